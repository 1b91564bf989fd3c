"""What a folder tells about its run: finished, unfinished, damaged, of former versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.past_runs import model, past_run

from shine.base.errors import ExportError
from shine.faces.config import read_job
from shine.faces.runs.entries import DAMAGED, UNFINISHED, read_entry, words_of
from shine.faces.runs.resuming import data_digest
from shine.runs import compare, run_job

SMALL = """
data: {generate: {rows: 20, features: {a: {uniform: {low: 1, high: 2}}}, target: a*a}}
evolution: {population: 50, max_size: 5, seeding: 0}
fitness: {tier: reference, noise: absolute}
stop: {generations: 2}
seed: 7
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run as this version writes it."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "small.yaml").write_text(SMALL)
    (folder / "run").mkdir()
    run_job(read_job(folder / "small.yaml"), folder / "run")
    return folder / "run"


def test_a_run_of_this_version(real: Path):
    entry, result = read_entry(real), json.loads((real / "result.json").read_text())
    assert entry.data_hash == data_digest(read_job(real / "config.yaml"))
    assert (entry.data, entry.target, entry.seed, entry.problem) == ("a*a", "y", 7, "")
    assert entry.settings["evolution.population"] == 50
    assert [each.expression for each in entry.formulas] == [each["expression"] for each in result["front"]]
    assert [each.expression for each in entry.formulas if each.best] == [result["best"]["expression"]]
    assert (entry.generations, entry.seconds) == (result["generations"], result["seconds"])


def test_a_run_without_a_result_tells_its_last_generation(tmp_path: Path):
    folder = past_run(tmp_path / "run")
    (folder / "result.json").unlink()
    line = {"generation": 3, "evaluations": 40, "seconds": 1.0, "loss": 0.25, "size": 3, "formula": "x*x"}
    (folder / "log.jsonl").write_text(json.dumps(line) + '\n{"generation": 4, "eval')
    entry = read_entry(folder)
    assert (entry.stopped_by, entry.generations, entry.problem) == (UNFINISHED, 3, "")
    assert [(each.expression, each.loss, each.nodes) for each in entry.formulas] == [("x*x", 0.25, 3)]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"front": 3}', '{"front": [], "best": {}}', '{"front": [{}], "best": {"expression": "x"}}',
     '{"front": [{"expression": 3}], "best": {"expression": 3}}', "\x00\xff", "[" * 100_000],
)  # fmt: skip
def test_a_damaged_result_is_a_remark(content: str, tmp_path: Path):
    folder = past_run(tmp_path / "run")
    (folder / "result.json").write_text(content, encoding="utf-8")
    entry = read_entry(folder)
    assert (entry.stopped_by, entry.formulas, entry.settings["seed"]) == (DAMAGED, (), 0)
    assert "result.json" in entry.problem


def test_a_damaged_configuration_is_a_remark(tmp_path: Path):
    folder = past_run(tmp_path / "run")
    (folder / "config.yaml").write_text("data: [")
    entry = read_entry(folder)
    assert len(entry.formulas) == 2 and entry.settings == {} and "config.yaml" in entry.problem


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("2.5*exp(-a) + b", {"mul", "exp", "neg", "a", "add", "b"}),
        ("1e-300*x2 - -5.0", {"mul", "x2", "sub"}),
        ("x**-2.0", {"x", "pow"}),
        ("square(x)", {"square", "pow", "x"}),
        ("(a if a <= b else -0.0)//3 % 2", {"a", "b", "where", "le", "floordiv", "mod"}),
        ("not (a < b) and c", {"logical_not", "logical_and", "lt", "a", "b", "c"}),
        ("größe*µ", {"größe", "mul", "µ"}),
        ("exponent + 1", {"exponent", "add"}),
        ("min(0, -x) + max(-1.0, -0.0)", {"min", "neg", "x", "add", "max"}),
        ("", set()),
    ],
)
def test_the_words_of_a_formula(formula: str, words: set[str]):
    assert words_of(formula) == words


def test_settings_that_differ_and_fronts_by_size(tmp_path: Path):
    first = past_run(tmp_path / "a", model("x", nodes=1), model("exp(x)", nodes=2), population=100)
    second = past_run(tmp_path / "b", model("x", nodes=1), model("x*x", nodes=3), population=500)
    found = compare([first, second])
    assert found.settings == {"evolution.population": (100, 500)}
    assert found.same_data is True
    assert {size: [each and each.expression for each in row] for size, row in found.fronts.items()} == {
        1: ["x", "x"],
        2: ["exp(x)", None],
        3: [None, "x*x"],
    }


def test_other_data_are_told(tmp_path: Path):
    runs = [past_run(tmp_path / name, data_hash=digest) for name, digest in [("a", "1"), ("b", "2"), ("c", None)]]
    assert compare(runs[:2]).same_data is False
    assert compare(runs).same_data is None


def test_a_folder_without_a_run_is_told(tmp_path: Path):
    with pytest.raises(ExportError, match="holds no run"):
        compare([tmp_path, tmp_path])
