"""What no row tests: oscillations faster than the rows, peaks between them, needles at them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain import Domain, neighbourhood
from shine.evaluate.domain.neighbourhood import Levels, ranks_of

RNG = np.random.default_rng(5)
ROWS = 240
LEVELS = RNG.choice([15.0, 31.0, 60.0, 126.0, 252.0], ROWS)
COLUMNS = {
    "levels": LEVELS,
    "even": np.linspace(0, 24, ROWS),
    "any": RNG.uniform(0, 24, ROWS),
    "whole": RNG.integers(0, 12, ROWS).astype(float),
    "thousands": RNG.integers(1000, 9000, ROWS).astype(float),
    "tenths": np.round(RNG.uniform(0, 10, ROWS), 1),
    "heavy": RNG.lognormal(0, 1, ROWS),
    "binary": RNG.integers(0, 2, ROWS).astype(float),
    "other": RNG.uniform(1, 2, ROWS),
    "with_even": np.linspace(0, 24, ROWS) ** 2 + RNG.normal(0, 0.1, ROWS),
}
FIVE = RNG.choice([0.0, 1.0, 2.5, 4.0, 5.0], ROWS)


def untested(formula: str, scale: float = 1.0, **columns: np.ndarray) -> str | None:
    columns = {**COLUMNS, **columns}
    used = [name for name in columns if re.search(rf"\b{name}\b", formula)]
    X = np.column_stack([columns[name] for name in used])
    tree = shine.parse(formula, used)
    target = np.asarray(scale * shine.jit(formula, used)(*X.T))
    return Domain(Dataset.from_arrays(X, target, features=used)).untested(tree)


WILD = {
    "0.343*cos(9.709*levels) + 0.62": "levels",
    "other*cos(2.000307*levels + 0.96)": "levels",
    "sin(80*even)": "even",
    "sin(300*any)": "any",
    "sin(thousands)": "thousands",
    "sin(45*tenths) + other": "tenths",
    "sin(200*heavy)": "heavy",
    "2*levels + 12*cos(9.709*levels)": "levels",
    "even + 50*exp(-((levels - 90)/5)**2)": "levels",
    "any + 0.05/(levels - 60.01)": "levels",
    "exp(exp(3*cos(9.7*levels)))": "levels",
}
SOUND = [
    "1.5/levels**0.25 + 0.02*other",
    "sin(6*even)",  # ten rows a period
    "sin(2*any)",
    "sin(3*whole)",  # nothing lies between whole numbers
    "cos(3.14159265358979*whole)",
    "abs(even - 12)",
    "sqrt(abs(any - 7))",
    "1/(1 + exp(-1e4*(even - 12.01)))",
    "(five - 3.1)**2",
    "(five - 0.4)*(other - 1.5)",
    "sin(30*binary)",
    "1/heavy**3",
    "exp(heavy)",
    "sin(with_even/40)",
    "3*even - 0.12*with_even",
    "7.25 + 0*any",
    "even + sin(5*any)/5",
    "exp(-any) + levels/10",
]


@pytest.mark.slow
@pytest.mark.parametrize("formula", WILD)
def test_wild_formulas_are_found_with_their_feature(formula):
    assert untested(formula) == WILD[formula]


@pytest.mark.slow
@pytest.mark.parametrize("formula", SOUND)
def test_sound_formulas_are_tested(formula):
    assert untested(formula, five=FIVE) is None


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e20, 1e150])
def test_units_of_the_target_do_not_matter(scale):
    for formula, feature in WILD.items():
        assert untested(f"({formula})*{scale!r}") == feature
    for formula in SOUND:
        assert untested(f"({formula})*{scale!r}", five=FIVE) is None


def test_the_order_of_the_rows_does_not_matter():
    X = np.column_stack([COLUMNS["levels"], COLUMNS["any"]])
    order = RNG.permutation(ROWS)
    for formula in ("cos(9.709*x) + y", "x*y", "x + sin(90*y)"):
        tree = shine.parse(formula, ["x", "y"])
        rows = (Dataset.from_arrays(X[at], X[at, 0], features=["x", "y"]) for at in (np.arange(ROWS), order))
        assert len({Domain(each).untested(tree) for each in rows}) == 1


def test_of_several_features_the_one_of_fewest_levels_is_named():
    assert untested("sin(300*any) + cos(9.709*levels)") == "levels"


@pytest.mark.parametrize("slope", [0.0, 3.0])
@pytest.mark.parametrize("column", ["even", "tenths", "any"])
@pytest.mark.parametrize("rows_a_period", [10, 4, 2.6, 2.1, 1.5, 0.9, 0.45, 0.19])
def test_on_a_grid_more_than_half_a_turn_a_step_is_an_alias(rows_a_period, column, slope):
    x = COLUMNS[column]
    step = {"even": x[1], "tenths": 0.1, "any": 0.1}[column]
    tree = shine.parse(f"{slope}*x + sin({2 * np.pi / (rows_a_period * step)}*x + 0.3)", ["x"])
    domain = Domain(Dataset.from_arrays(x[:, None], x, features=["x"]))
    assert domain.is_alias(tree, "x") == (column != "any" and rows_a_period < 2)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows_leave_nothing_between_them_or_little(rows):
    X = np.linspace(0, 1, rows)[:, None]
    tree = shine.parse("2*x + 1", ["x"])
    assert Domain(Dataset.from_arrays(X, X[:, 0], features=["x"])).untested(tree) is None


def test_ways_keep_the_order_of_columns():
    inner = RNG.uniform(1, 2, ROWS)
    assert untested("1/(outer - inner)", inner=inner, outer=inner + 10.0 ** RNG.uniform(-3, 0, ROWS)) is None


def test_a_way_out_of_the_region_of_values_says_nothing():
    angle, radius = RNG.uniform(0, 7, ROWS), np.sqrt(RNG.uniform(0, 1, ROWS))
    assert untested("sqrt(1 - p**2 - q**2)", p=radius * np.cos(angle), q=radius * np.sin(angle)) is None


@pytest.mark.slow
@pytest.mark.parametrize("rows_a_period", [8, 10, 20])
@pytest.mark.parametrize("column", ["even", "any"])
def test_oscillations_that_rows_show_are_tested(rows_a_period, column):
    for phase in range(7):
        frequency = 2 * np.pi * ROWS / 24 / rows_a_period
        assert untested(f"sin({frequency!r}*{column} + {phase!r})") is None


@pytest.mark.parametrize(
    "values", [COLUMNS["whole"], COLUMNS["heavy"], np.zeros(5), np.array([0.0, -0.0, 1.0]), np.array([3.0])]
)
def test_levels_are_the_sorted_different_values(values):
    levels = Levels.of(values)
    different, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    assert levels.value(np.arange(len(levels))).tolist() == different.tolist()
    assert levels.at.tolist() == at.tolist()
    assert np.diff(levels.first).tolist() == counts.tolist()
    assert levels.ranks.tolist() == ranks_of(values[None], values[None])[0].tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formula", "found"), [("sin(80*even)", "even"), ("sin(3*even)", None), ("cos(9.7*levels)", "levels")]
)
def test_of_very_many_rows_some_tell_the_levels(formula, found, monkeypatch):
    assert untested(formula) == found
    monkeypatch.setattr(neighbourhood, "_MOST_LEVELS", 200)
    assert untested(formula) == found
