"""Functions of LLVM IR in a configuration: they become definitions, so that a run no longer needs their files."""

from __future__ import annotations

import pytest
import yaml
from click.testing import CliRunner

from shine.base.errors import ConfigError, ExportError
from shine.faces.cli.commands import shine as command_line
from shine.faces.config import Config, Job, LlvmFunction, dump_config, read_config, read_job
from shine.faces.runs.jobs import resume_job, run_job
from shine.faces.runs.opening import open_run

LEG = """
declare double @llvm.sqrt.f64(double)
define double @leg(double %a, double %b) {
  %x = fmul double %a, %a
  %y = fmul double %b, %b
  %s = fadd double %x, %y
  %r = call double @llvm.sqrt.f64(double %s)
  ret double %r
}
"""
DEFINITION = "def leg(a, b):\n    return sqrt(a*a + b*b)"
CONFIG = """
data:
  generate:
    rows: 100
    features: {u: {uniform: {low: 1, high: 5}}, v: {uniform: {low: 1, high: 5}}}
    target: u*sqrt(u*u + v*v)
primitives: [add, mul, {llvm: leg.ll, function: leg}]
evolution: {population: 100, complexity: {leg: 2}, seeding: 0}
constraints: {nesting: {leg: {leg: 0}}}
guesses: ["leg(u, v) + u"]
fitness: {noise: absolute}
stop: {generations: 30}
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "leg.ll").write_text(LEG)
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    return path


def test_a_function_becomes_its_definition(config):
    read = read_config(config)
    assert read.primitives == ("add", "mul", DEFINITION)
    # The text that is kept of it reads back without the file.
    (config.parent / "leg.ll").unlink()
    config.write_text(dump_config(read))
    assert read_config(config) == read


@pytest.mark.slow
def test_a_run_keeps_what_it_needs_of_a_function(config, tmp_path):
    folder = tmp_path / "run"
    done = CliRunner().invoke(command_line, ["evolve", str(config), "--out", str(folder)])
    assert done.exit_code == 0, done.output
    (tmp_path / "leg.ll").unlink()
    result = open_run(folder).result
    assert "leg(u, v)" in result.best.expression
    assert result.best.predict([[3.0, 4.0]])[0] == pytest.approx(15, rel=1e-12)
    resumed = resume_job(folder, overrides=["stop.generations=40"])
    assert resumed.best.predict([[3.0, 4.0]])[0] == pytest.approx(15, rel=1e-12)
    text = (folder / "result.json").read_text()
    (folder / "result.json").write_text(text.replace("def leg", "def 1eg"))
    with pytest.raises(ExportError, match=r"result\.json: primitives: "):
        _ = open_run(folder).result


@pytest.mark.slow
def test_a_configuration_made_in_python_may_have_functions(config, tmp_path):
    job = read_job(config, ["guesses=[]"])
    function = LlvmFunction(llvm=tmp_path / "leg.ll", function="leg", name="side")
    values = {
        **job.config.model_dump(),
        "primitives": ("mul", function),
        "evolution": {"population": 50, "seeding": 0.0},
    }
    made = Config(**{**values, "constraints": {}, "stop": {"generations": 1}})
    (tmp_path / "run").mkdir()
    run_job(Job(made, job.dataset), tmp_path / "run")
    kept = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert kept["primitives"] == ["mul", DEFINITION.replace("leg", "side")]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{llvm: nope.ll, function: leg}", "primitives.1: nope.ll: cannot be read"),
        ("{llvm: leg.ll, function: foot}", "primitives.1: the LLVM module defines no function 'foot'; it defines leg"),
        ("{llvm: leg.ll, function: leg, name: hypot}", "primitives.1: 'hypot' is one of Shine's own names"),
        ("{llvm: leg.ll}", "primitives.1.function: is missing"),
        ("{llvm: leg.ll, functions: leg}", "allowed are llvm, function, name"),
        ('"def leg(a): return a.b"', "primitives.1: line 1, column 20: attribute access"),
        ("3", "primitives.1: must be text, is 3"),
    ],
)
def test_a_mistake_is_reported_at_its_place(config, entry, message, monkeypatch):
    monkeypatch.chdir(config.parent)
    with pytest.raises(ConfigError) as caught:
        read_config(config, [f"primitives=[add, {entry}]"])
    assert any(message in problem for problem in caught.value.problems)


def test_a_function_is_listed_once(config, monkeypatch):
    monkeypatch.chdir(config.parent)
    with pytest.raises(ConfigError, match='"leg" is listed twice'):
        read_config(config, ['primitives=["def leg(a): return a", {llvm: leg.ll, function: leg}]'])
