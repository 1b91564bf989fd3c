"""The variants of a sweep."""

from __future__ import annotations

import pytest

from shine.faces.runs.variants import Sweep, range_of, values_of


def test_every_combination_of_a_grid_with_every_seed_and_fold():
    found = Sweep({"evolution.population": ("1", "2"), "stop.seconds": ("3",)}, seeds=2, folds=2).variants()
    assert [each.overrides for each in found[:4]] == [
        ("evolution.population=1", "stop.seconds=3", f"seed={seed}", f"data.fold={fold}/2")
        for seed in (0, 1)
        for fold in (1, 2)
    ]
    assert len(found) == 8 and found[4].settings[0] == ("evolution.population", "2")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("200,500", ["200", "500"]),
        ("[add,mul],[add, exp]", ["[add,mul]", "[add, exp]"]),
        ("{a: 1, b: 2},x", ["{a: 1, b: 2}", "x"]),
        ('"a,b",c', ['"a,b"', "c"]),
        ("1,1,2,", ["1", "2"]),
        ("[it's,a],[b's]", ["[it's,a]", "[b's]"]),
        ("it's,b,'it''s, c'", ["it's", "b", "'it''s, c'"]),
    ],
)
def test_values_are_separated_by_commas(text: str, values: list[str]):
    assert values_of(text) == values


@pytest.mark.parametrize("text", ["3", "5..5", "9..1", "a..b", "0..1:log", "..", "1..inf"])
def test_what_is_no_range_is_told(text: str):
    with pytest.raises(ValueError, match="range: key="):
        range_of("key", text)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ranges": {"a": range_of("a", "1..2")}}, "needs a number of draws"),
        ({"random": 3}, "needs a range or a grid"),
        ({"grid": {"a": ()}}, "a has no values"),
        ({"grid": {"seed": ("1",)}, "seeds": 2}, "the grid has seeds"),
        ({"folds": 1}, "folds: is at least 2"),
        ({"grid": {"a": ("1",)}, "ranges": {"a": range_of("a", "1..2")}, "random": 2}, "a has a grid too"),
    ],
)
def test_a_wrong_sweep_is_told(given: dict, message: str):
    with pytest.raises(ValueError, match=message):
        Sweep(**given)


def test_too_many_runs_are_told_before_they_are_made():
    with pytest.raises(ValueError, match="a sweep of 1000000000 runs"):
        Sweep({f"k{n}": tuple("0123456789") for n in range(9)}).variants()
