"""What a folder tells about its run: finished, unfinished, damaged, of former versions."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from helpers.past_runs import model, past_run
from hypothesis import given
from strategies import trees

from shine.base.errors import ExportError
from shine.faces.config import read_job
from shine.faces.runs.entries import DAMAGED, UNFINISHED, read_entry, word, words_of
from shine.faces.runs.resuming import data_digest
from shine.lang.forms.tree import Tree
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


def test_a_run_without_a_result_takes_the_hash_from_the_checkpoint(real: Path, tmp_path: Path):
    checkpoint = next((real / "checkpoints").iterdir())
    past_run(tmp_path / "old")
    (tmp_path / "old/result.json").unlink()
    (tmp_path / "old/checkpoints").mkdir()
    (tmp_path / "old/checkpoints" / checkpoint.name).write_bytes(checkpoint.read_bytes())
    assert read_entry(tmp_path / "old").data_hash == read_entry(real).data_hash


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


@pytest.mark.parametrize("formula", ["exp(x", "x + z", "foo(x)"])
def test_a_result_whose_formula_is_refused_is_damaged(formula: str, tmp_path: Path):
    entry = read_entry(past_run(tmp_path / "run", model("x"), model(formula)))
    assert entry.stopped_by == DAMAGED and "result.json" in entry.problem


def test_a_damaged_configuration_is_a_remark(tmp_path: Path):
    folder = past_run(tmp_path / "run")
    (folder / "config.yaml").write_text("data: [")
    entry = read_entry(folder)
    assert len(entry.formulas) == 2 and entry.settings == {} and "config.yaml" in entry.problem


def test_numbers_that_are_not_finite_are_unknown(tmp_path: Path):
    folder = past_run(tmp_path / "run", model("x", loss=float("inf"), r2=10**400))
    (formula,) = read_entry(folder).formulas
    assert (formula.loss, formula.r2) == (None, None)


def test_folders_in_place_of_files_are_a_remark(tmp_path: Path):
    (tmp_path / "run/config.yaml").mkdir(parents=True)
    (tmp_path / "run/result.json").mkdir()
    assert read_entry(tmp_path / "run").stopped_by == DAMAGED


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


@pytest.mark.parametrize(("given", "known"), [("+", "add"), ("^", "pow"), ("ln", "log"), ("x1", "x1"), ("exp", "exp")])
def test_users_words_for_them(given: str, known: str):
    assert word(given) == known


BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
}  # fmt: skip


@given(trees())
def test_names_and_operators_are_those_that_pythons_parser_finds(tree: Tree):
    nodes = list(ast.walk(ast.parse(str(tree), mode="eval")))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    operators = {BINARY[type(node.op)] for node in nodes if isinstance(node, ast.BinOp)}
    found = words_of(str(tree))
    assert names <= found
    assert found & (set(BINARY.values()) - names - {"pow"}) == operators - names - {"pow"}


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


def test_other_hashes_of_one_file_tell_nothing_if_one_run_was_streamed(tmp_path: Path):
    runs = [past_run(tmp_path / name, data_hash=digest) for name, digest in [("a", "1"), ("b", "2")]]
    assert compare(runs).same_data is False
    config = tmp_path / "b" / "config.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("target: y", "target: y, stream: true"), encoding="utf-8")
    assert compare(runs).same_data is None


def test_a_folder_without_a_run_is_told(tmp_path: Path):
    with pytest.raises(ExportError, match="holds no run"):
        compare([tmp_path, tmp_path])
