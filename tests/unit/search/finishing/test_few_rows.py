"""Formulas that owe a pole or a needle to a few rows are left out; laws with poles stay."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain import Domain
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.search.finishing.few_rows import FewRows
from shine.search.models.model import Model
from shine.search.problem.scaling import LINE_FUNCTIONS, with_functions

PRIMITIVES = with_functions(PrimitiveSet(select(STANDARD, ["add", "mul", "div", "tan"]), ("S",)), LINE_FUNCTIONS)
LAW = "11.5*S/(S + 3.9)"
RNG = np.random.default_rng(0)
COLUMNS = {
    "any": RNG.uniform(0.5, 20, 120),
    "rounded": np.round(RNG.uniform(0.5, 20, 120), 2),
    "whole": np.arange(1.0, 41),
    "repeated": np.repeat(np.arange(1.0, 21), 5),
}
LEVELS = np.repeat([1.0, 2.5, 4.0, 9.0, 13.0, 20.0], 50)


def front_of(x: np.ndarray, y: np.ndarray, formulas: list[str]) -> list[str]:
    """The formulas that stay, in the order of their losses."""
    dataset = Dataset.from_arrays(x[:, None], y, features=("S",))
    models = []
    for text in formulas:
        tree = shine.parse(text, ["S"])
        values = Model(tree, 0.0, 0.0).predict(x[:, None])
        models.append(Model(tree, float(np.mean((y - values) ** 2)), 0.0))
    few_rows = FewRows(Domain(dataset), PRIMITIVES, 1)
    front = few_rows.front(models, models, lambda left: tuple(sorted(left, key=lambda model: model.loss)))
    return [formulas[models.index(model)] for model in front]


def with_outlier(x: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
    y = 11.5 * x / (x + 3.9) + noise * np.random.default_rng(1).normal(size=len(x))
    y[17] += 4.0
    return y, float(x[17])


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("width", [1e-3, 1e-8])
def test_a_pole_through_one_row_gives_way_to_the_law(kind, width):
    x = COLUMNS[kind]
    y, at = with_outlier(x, 1e-3)
    height = 4.0 / float(np.count_nonzero(x == at))
    pole = f"{LAW} + {width!r}/(S - {at - width / height!r})"
    front = front_of(x, y, [LAW, pole, "7.5"])
    assert LAW in front and pole not in front


def test_a_pole_through_one_level_gives_way_to_the_line_however_many_rows_the_level_has():
    x = LEVELS
    moved = (x == 9.0) & (np.arange(len(x)) % 50 < 45)
    y = 2 - 0.3 * x + 1.5 * moved + 0.1 * np.random.default_rng(1).normal(size=len(x))
    pole = "2 - 0.3*S + 0.0015/(S - 8.999)"
    front = front_of(x, y, ["2.1 - 0.31*S", pole, "0.1"])
    assert pole not in front and "2.1 - 0.31*S" in front


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "column"),
    [
        ("1/(S - 9.213)", "any"),
        ("1/(S - 9.213)", "rounded"),
        ("tan(S)", "any"),
        ("20/(S - 14.5)", "whole"),
        ("20/(S - 6.3)", "levels"),
    ],
)
def test_a_law_with_a_pole_stays(law, column):
    x = LEVELS if column == "levels" else COLUMNS[column]
    y = Model(shine.parse(law, ["S"]), 0.0, 0.0).predict(x[:, None])
    y = y + 0.05 * np.random.default_rng(1).normal(size=len(x))
    assert law in front_of(x, y, ["0.1", "0.01*S", "1 - 0.1*S", law])


def test_a_formula_that_is_steady_stays_though_few_rows_speak_for_it():
    x = np.linspace(0.0, 10, 60)
    y = 1.0 + np.where(x > 9.9, 5.0, 0.0)
    assert front_of(x, y, ["1.1", "1 + 5*(0.1*S)**60"]) == ["1 + 5*(0.1*S)**60", "1.1"]
