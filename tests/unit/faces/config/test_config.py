"""Valid configurations: their values, their defaults, and how they are written back."""

from __future__ import annotations

import re
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shine.base.errors import ConfigError
from shine.faces.config import dump_config, read_config, read_job, schema
from shine.faces.config.document import parse_document
from shine.search.constraints.constraints import Constraints
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.problem.settings import FitnessSettings
from shine.search.run import search

ROOT = Path(__file__).resolve().parents[4]
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))
SMALL = "data: {generate: {rows: 5, features: {a: {uniform: {low: 1, high: 2}}}, target: a*a}}\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "c.yaml"
    path.write_text(text)
    return path


def test_everything_except_the_data_has_a_default(tmp_path: Path) -> None:
    config = read_config(write(tmp_path, SMALL))
    assert config.evolution == EvolutionSettings()
    assert config.stop == StopSettings()
    assert (config.fitness.loss, config.fitness.dtype, config.fitness.tier) == ("mse", "float64", "machine")
    assert (config.seed, config.guesses, config.primitives) == (0, (), ("add", "sub", "mul", "div"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_shipped_configurations_are_valid(path: Path) -> None:
    if any("graph" in seed for seed in yaml.safe_load(path.read_text()).get("guesses", [])):
        pytest.importorskip("google.protobuf")
    job = read_job(path)
    assert job.dataset.n_rows > 100


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_written_configuration_reads_back_equal(path: Path, tmp_path: Path) -> None:
    config = read_config(path, ["evolution.population=77", "stop.seconds=null", "seed=5"])
    again = read_config(write(tmp_path, dump_config(config)))
    assert again == config
    assert (again.evolution.population, again.stop.seconds, again.seed) == (77, None, 5)


@pytest.mark.parametrize("text", ["1e5", "yes", "null", "1_0", "0o7", ".5", "x: y", "# c", "", "2024-01-01", "é"])
def test_text_that_looks_like_something_else_survives_writing(text: str, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,b\n1,2\n")
    config = read_config(write(tmp_path, "data: {path: d.csv, target: b}\n"))
    data = config.data.model_copy(update={"target": text})
    written = dump_config(config.model_copy(update={"data": data}))
    assert read_config(write(tmp_path, written)).data.target == text


def test_numbers_are_those_of_yaml_1_2() -> None:
    value = parse_document(
        "[a]: 1\n".replace("[a]: 1", "x: [1e-12, 1E5, -.5, 0x1f, 0o17, 010, 12:30, no, ~, '1']"), "c"
    )
    assert value.value["x"] == [1e-12, 1e5, -0.5, 31, 15, 10, "12:30", "no", None, "1"]


def test_constraints_are_read_and_written_back(tmp_path: Path) -> None:
    text = """constraints:
  limits: {mul: 3}
  nesting: {div: {div: 0}}
  required: [a]
  monotonic: {a: increasing}
  units: {a: m}
  target_unit: m^2
"""
    config = read_job(write(tmp_path, SMALL + text)).config
    assert config.constraints == Constraints(
        limits={"mul": 3},
        nesting={"div": {"div": 0}},
        required=("a",),
        monotonic={"a": "increasing"},
        units={"a": "m"},
        target_unit="m^2",
    )
    assert read_config(write(tmp_path, dump_config(config))) == config


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("limits: {mull: 3}", 3, 'constraints.limits.mull: unknown function or feature "mull"; did you mean "mul"?'),
        ("limits: {mul: -3}", 3, "constraints.limits.mul: must be at least 0, is -3"),
        ("required: [b]", 3, 'constraints.required: unknown feature "b"; allowed are a'),
        ("nestng: {}", 3, 'constraints.nestng: unknown key "nestng"; did you mean "nesting"?'),
        ("monotonic: {a: up}", 3, "constraints.monotonic.a: must be one of increasing, decreasing"),
        ("units: {a: furlong}\n  target_unit: m", 2, "constraints: the unit of 'a': unit 'furlong' cannot be read"),
        ("units: {a: m}", 2, "target_unit is missing; units are given for all features and the target"),
    ],
)
def test_a_mistake_in_the_constraints_is_found_where_it_is(text: str, line: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_job(write(tmp_path, f"{SMALL}constraints:\n  {text}\n"))
    (problem,) = caught.value.problems
    assert f"c.yaml:{line}:" in problem
    assert message in problem


def test_a_weight_of_something_unknown_is_found_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_job(write(tmp_path, f"{SMALL}evolution:\n  complexity: {{sine: 3}}\n"))
    (problem,) = caught.value.problems
    assert 'c.yaml:3:16: evolution.complexity.sine: unknown name "sine"; allowed are constant, a, add' in problem


def test_a_relative_path_is_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d.csv").write_text("a,b\n1,2\n")
    path = write(tmp_path, "data: {path: d.csv, target: b}\n")
    monkeypatch.chdir(ROOT)
    job = read_job(path)
    assert job.config.data.path == (tmp_path / "d.csv").resolve()
    assert job.dataset.target.tolist() == [2.0]


def test_an_overriding_path_is_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "e.csv").write_text("a,b\n1,3\n")
    path = write(tmp_path / "sub", "data: {path: d.csv, target: b}\n")
    monkeypatch.chdir(tmp_path)
    assert read_job(path, ["data.path=e.csv"]).dataset.target.tolist() == [3.0]


def schema_keys() -> dict[str, Any]:
    """Every property of every model in the schema, by its name."""
    document = schema()
    models = {"Config": document, **document["$defs"]}
    return {
        f"{model}.{key}": {**part, "required": key in node.get("required", ())}
        for model, node in models.items()
        for key, part in node["properties"].items()
    }


def test_every_key_of_the_schema_is_described() -> None:
    assert [key for key, part in schema_keys().items() if "description" not in part] == []


@cache
def rows_of_the_page() -> list[tuple[str, str, str, str]]:
    """Key, default, allowed values and meaning of each row of docs/config.md."""
    shown = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \| (.+) \|$", shown, re.MULTILINE)


def test_the_documentation_lists_exactly_the_keys_of_the_schema() -> None:
    assert sorted(key for key, *_ in rows_of_the_page()) == sorted(key.split(".")[1] for key in schema_keys())


@pytest.mark.parametrize(
    "settings", [EvolutionSettings(), FitnessSettings(), StopSettings()], ids=lambda one: type(one).__name__
)
def test_the_documentation_has_every_setting_and_its_default(settings: Any) -> None:
    documented = {(key, default) for key, default, *_ in rows_of_the_page()}
    plain = {key: str(value) for key, value in asdict(settings).items() if value is not None and value not in ({}, ())}
    expected = {
        (key, f"`{value.replace('(', '[').replace(')', ']').replace('True', 'true')}`") for key, value in plain.items()
    }
    assert expected - documented == set()


def test_the_documentation_has_the_allowed_values() -> None:
    allowed = {key: values for key, _, values, _ in rows_of_the_page()}
    assert allowed["tier"] == "`machine`, `native`, `reference`"
    assert (allowed["hoist_mutation"], allowed["penalty"]) == ("from 0 to 1", "from 0")
    assert allowed["validation_fraction"] == "above 0 below 1"


@given(st.integers(0, 2**63 - 1))
def test_every_allowed_seed_is_kept_exactly(seed: int) -> None:
    assert parse_document(f"seed: {seed}", "c").value == {"seed": seed}


def test_a_column_of_groups_keeps_whole_groups_back(tmp_path: Path) -> None:
    lines = [f"{row},{row % 5},{3 * row}" for row in range(40)]
    (tmp_path / "d.csv").write_text("\n".join(["a,patient,y", *lines]))
    text = "data: {path: d.csv, target: y, groups: patient}\nstop: {generations: 1, seconds: null}\n"
    job = read_job(write(tmp_path, text), ["evolution.seeding=0", "evolution.population=30"])
    assert job.dataset.features == ("a",)
    assert "16 rows of groups" in search(job.dataset, job.config.search).front.reason
    with pytest.raises(ConfigError, match=r"c.yaml:3:11: fitness.validation: validation='time' does not use"):
        read_job(write(tmp_path, text + "fitness: {validation: time}\n"))
