"""Conditions on runs and formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.past_runs import model, past_run

from shine.base.errors import ExportError
from shine.runs import find

DAY = 86_400.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs."""
    runs = tmp_path_factory.mktemp("runs")
    past_run(
        runs / "small", model("x", 2.0, 1, 0.2), model("exp(x)/2.0", 0.5, 4, 0.91), model("x*x*exp(x)", 0.1, 20, 0.99),
        population=100, seconds=10, seed=1, date=1_700_000_000,
    )  # fmt: skip
    past_run(
        runs / "large", model("exp(x)", 1.0, 2, 0.5), model("log(x + 1.0)", 0.2, 6, 0.95),
        population=500, seconds=60, seed=2, data="/other/it's.csv", data_hash="fedcba9876543210",
        date=1_700_000_000 + 5 * DAY,
    )  # fmt: skip
    past_run(runs / "sweep/ü", model("3.0", 5.0, 1, None), population=500, seed=3, date=1_700_000_000 + 9 * DAY)
    return runs


def test_conditions_on_formulas_are_for_one_formula(folder: Path):
    (found,) = find(folder, uses="exp", nodes="<12", r2=0.9)
    assert (found.formula, found.place, found.best) == ("exp(x)/2.0", 1, False)
    assert find(folder, uses="log", nodes="<5") == []


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("date", ["sweep/ü", "large", "small"]),
        ("r2", ["small", "large", "sweep/ü"]),
        ("nodes", ["sweep/ü", "large", "small"]),
        ("name", ["large", "small", "sweep/ü"]),
    ],
)
def test_the_best_or_the_latest_come_first(folder: Path, sort: str, names: list[str]):
    assert [each.name for each in find(folder, sort=sort)] == names
    assert [each.name for each in find(folder, sort=sort, limit=2)] == names[:2]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"nodes": "~12"}, "nodes: '~12' is not a number; write a number, or one after <=, <, >"),
        ({"data": ""}, "data: has no value to compare with"),
        ({"where": "r2"}, "line 1, column 1: 'r2' is no condition"),
        ({"where": "r2 > 0.9; DROP TABLE runs"}, "line 1, column 9: not an expression"),
        ({"where": "seed = 3"}, "line 1, column 6: a query assigns nothing; write '=='"),
        (
            {"where": "stopped_by == loss"},
            "line 1, column 15: stopped_by holds texts and loss numbers; texts stand in quotes",
        ),
        ({"where": "nodes > '3'"}, "line 1, column 9: column 'nodes' holds numbers; leave out the quotes"),
        ({"where": "date > 'soon'"}, "line 1, column 8: 'soon' is not a date"),
        ({"since": "yesterday"}, "'yesterday' is not a date; write 2026-01-31"),
        ({"settings": {"gp.population": 5}}, "did you mean evolution.population"),
        ({"settings": {"evolution.pop_size": 5}}, "did you mean evolution.population"),
        ({"settings": {"popuation": 5}}, "no run has a setting of this name; did you mean"),
        ({"sort": "beauty"}, "cannot sort by 'beauty'; there are"),
        ({"limit": -1}, "limit: is a number from 0 on"),
    ],
)
def test_a_wrong_condition_is_told(folder: Path, asked: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        find(folder, **asked)


def test_quotes_in_a_condition_are_text(folder: Path):
    assert find(folder, formula="'; DROP TABLE runs; --") == []
    assert find(folder, uses='"', data='"', where='"\'" in name') == []
    assert len(find(folder)) == 3


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("evolution.population == 500 and stop.seconds > 10", ["large"]),
        ("seed == 1 | seed == 3", ["small", "sweep/ü"]),
        ("seed in (1, 2) and not stop.seconds > 10", ["small"]),
        ("seed.between(2, 3)", ["large", "sweep/ü"]),
        ("isna(r2) or nodes == 6", ["large", "sweep/ü"]),
        ("1 < nodes <= 4", ["large", "small"]),
        ("population > 100 and date >= '2023-11-20'", ["sweep/ü"]),
        ("data == 'plants.csv' and hash != 'x'", ["small", "sweep/ü"]),
    ],
)
def test_conditions_are_joined(folder: Path, text: str, names: list[str]):
    assert sorted({each.name for each in find(folder, where=text)}) == names


def test_a_data_frame_can_be_made_of_what_is_found(folder: Path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(find(folder, sort="name"))
    assert list(frame["name"]) == ["large", "small", "sweep/ü"] and frame["r2"].max() == 0.99


def test_links_within_the_folder_are_no_second_runs(tmp_path: Path):
    past_run(tmp_path / "runs/a")
    past_run(tmp_path / "elsewhere/b")
    (tmp_path / "runs/latest").symlink_to("a")
    (tmp_path / "runs/self").symlink_to(".")
    (tmp_path / "runs/up").symlink_to("..")
    (tmp_path / "runs/far").symlink_to(tmp_path / "elsewhere")
    assert [each.name for each in find(tmp_path / "runs", sort="name")] == ["a", "far/b"]


def test_a_missing_folder_is_told(tmp_path: Path):
    with pytest.raises(ExportError, match="no such folder; name the folder that holds the runs"):
        find(tmp_path / "none")
