"""Calls about formulas, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from shine.data.datasets.preparation import Preparation, plain_preparation
from shine.faces.mcp.applying import Chosen, compare, explain
from shine.faces.mcp.places import CallError
from shine.lang.parse import parse
from shine.search.models.model import Model

TABLE = "a,y\n1,2\n2,4\n,7\n3,\n4,9\n-999,3\n"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TABLE, encoding="utf-8")
    return "t.csv"


def test_rows_without_a_value_are_left_out_of_a_comparison(table: str) -> None:
    found = compare({"formula": "2*a"}, {"formula": "2.5*a"}, table, "y")
    assert (found["rows"], found["rows_left_out"]) == (4, 2)


def test_marks_of_a_run_hold_for_the_other_formula_and_the_target_too(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Preparation(plain_preparation({"a": "a"}).columns, "drop", missing_marks=(-999,))
    of = Chosen.of
    run = Model(parse("2*a"), 0.0, 1.0, preparation=known)
    monkeypatch.setattr(Chosen, "of", lambda given: Chosen(run) if "run" in given else of(given))
    found = compare({"run": "r"}, {"formula": "2.5*a"}, table, "y")
    assert (found["rows"], found["rows_left_out"]) == (3, 3)


def test_a_table_that_is_explained_may_lack_values(table: str) -> None:
    assert explain({"formula": "2*a"}, table)["features"]["a"]["direction"].startswith("rises everywhere")


def test_a_range_of_no_feature_is_told() -> None:
    with pytest.raises(CallError, match="ranges: 'b' is no feature of the formula; there are a"):
        explain({"formula": "a**2"}, ranges={"a": [-3, 4], "b": [0, 1]})


@pytest.mark.parametrize(
    ("units", "error", "message"),
    [
        ({"w": "m"}, CallError, "'w' is no feature of the formula; there are a, target"),
        ({"a": "?"}, ValueError, "'a': "),
    ],
)
def test_wrong_units_are_told_with_their_place(units, error, message) -> None:
    with pytest.raises(error, match=f"units: {message}"):
        explain({"formula": "a**2"}, ranges={"a": [-3, 4]}, units=units)
