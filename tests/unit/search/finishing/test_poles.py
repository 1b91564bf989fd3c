"""Formulas with poles near the data make room for those without."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from helpers.markers import mostly_slow

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain import Domain
from shine.search.finishing.poles import EARNED, without_poles
from shine.search.models.model import Model

FEATURES = ("a", "b")
X = np.random.default_rng(0).normal(size=(60, 2))
DOMAIN = Domain(Dataset.from_arrays(X, X[:, 0], features=FEATURES))


def model(text: str, loss: float) -> Model:
    return Model(shine.parse(text, FEATURES), loss, 1 - loss)


def texts(models) -> list[str]:
    return [each.expression for each in models]


def test_formulas_with_poles_are_left_out():
    models = [model("2.0", 1.0), model("1/a", 0.5), model("a + b", 0.6), model("a/(b - 0.5)", 0.1)]
    assert texts(without_poles(models, 0.0, DOMAIN)) == ["2", "a + b"]


@pytest.mark.parametrize("loss", [0.0, 1e-13])
def test_an_exact_formula_keeps_its_poles(loss):
    models = [model("2.0", 1.0), model("1/a", loss), model("a + b", 1e-12)]
    assert "1/a" in texts(without_poles(models, 1e-12, DOMAIN))


def test_a_formula_far_better_than_all_without_poles_keeps_them():
    models = [model("2.0", 1.0), model("1/a", 0.9 * EARNED * 0.5), model("a + b", 0.5), model("1/b", 2 * EARNED * 0.5)]
    assert texts(without_poles(models, 0.0, DOMAIN)) == ["2", "1/a", "a + b"]


def levels(rows: int) -> np.ndarray:
    """Quantum numbers: the second is larger than the first in every row."""
    rng = np.random.default_rng(1)
    first = rng.integers(1, 4, rows)
    return np.column_stack([first, first + rng.integers(1, 7, rows)]).astype(float)


def test_poles_where_columns_are_combined_anew_are_earned_by_half_the_loss():
    # By chance alone, eight such rows could well have this order.
    few = Domain(Dataset.from_arrays(levels(8), levels(8)[:, 0], features=FEATURES))
    law, twin = "1/(1/a**2 - 1/b**2)", "1/(1/a**2 - 1.05/b**2)"
    assert not few.defines(shine.parse(law, FEATURES))
    models = [
        model("2.0", 1.0),
        model("a**2", 0.5),
        model(twin, 0.099),
        model(law, 0.1),
        model("a*b*(a + b)*(a - 3)/(3*a*a + 2*b) - 1", 0.05),
    ]
    assert law in texts(without_poles(models, 0.0, few))
    assert twin not in texts(without_poles(models, 0.0, few))
    models[3] = model(law, 0.3)
    assert law not in texts(without_poles(models, 0.0, few))


def test_an_order_of_columns_that_is_no_chance_holds_for_fresh_rows():
    many = Domain(Dataset.from_arrays(levels(120), levels(120)[:, 0], features=FEATURES))
    assert many.defines(shine.parse("1/(1/a**2 - 1/b**2)", FEATURES))
    assert many.defines(shine.parse("log(b - a)", FEATURES))
    radii = np.sort(np.random.default_rng(2).uniform(0, 1, (100, 2)), axis=1)
    assert Domain(Dataset.from_arrays(radii, radii[:, 0], features=FEATURES)).defines(
        shine.parse("sqrt(b - a)", FEATURES)
    )
    assert not Domain(Dataset.from_arrays(radii, radii[:, 0], features=FEATURES)).defines(
        shine.parse("1/(b - a - 0.3)", FEATURES)
    )
    unordered = np.random.default_rng(2).uniform(0, 1, (100, 2))
    domain = Domain(Dataset.from_arrays(unordered, unordered[:, 0], features=FEATURES))
    assert not domain.defines(shine.parse("sqrt(b - a)", FEATURES))


def test_a_formula_with_as_many_constants_as_rows_does_not_earn_its_poles():
    few, flexible = Domain(Dataset.from_arrays(X[:3], X[:3, 0], features=FEATURES)), "1.5*a/(b - 0.5) - 2.5"
    models = [model("2.0", 1.0), model(flexible, 0.0), model("a + b", 0.5)]
    assert texts(without_poles(models, 1e-12, few)) == ["2", "a + b"]
    assert flexible in texts(without_poles(models, 1e-12, DOMAIN))


def test_all_formulas_stay_if_all_have_poles():
    models = [model("1/a", 1.0), model("1/(b - 0.5)", 0.5)]
    assert without_poles(models, 0.0, DOMAIN) == models


def fresh_values(result, rng) -> np.ndarray:
    return result.predict(rng.normal(size=(10_000, 2)))


@pytest.mark.filterwarnings("ignore::shine.base.errors.ExtrapolationWarning")
@pytest.mark.parametrize("weighted", mostly_slow([False, True], fast=[True]))
def test_a_guess_that_fits_by_a_pole_is_not_recommended(weighted):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + 1e-3 / (X[:, 1] - X[7, 1] - 2e-4) + 0.05 * rng.normal(size=40)
    pole = f"a + 0.001/(b - {float(X[7, 1]) + 2e-4!r})"
    weights = rng.uniform(0.5, 2, 40) if weighted else None
    result = shine.evolve(
        X, y, sample_weight=weights, features=FEATURES, generations=0, seconds=None, guesses=[pole, "a"], population=50,
        primitives=["add", "sub", "mul", "div"], threads=1,
    )  # fmt: skip
    values = fresh_values(result, rng)
    assert np.isfinite(values).all() and np.abs(values).max() < 100
    constant, *front = result.front
    assert constant.tree.size == 1 and not constant.tree.used_parameters
    assert all(x.loss > y.loss and x.complexity < y.complexity for x, y in pairwise(front))
    domain = Domain(Dataset.from_arrays(X, y, sample_weight=weights, features=FEATURES))
    assert all(domain.defines(each.tree) for each in front)


def test_a_law_with_a_pole_is_found_and_recommended():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2))
    result = shine.evolve(
        X, X[:, 0] / (X[:, 1] - 0.5), features=FEATURES, generations=0, seconds=None, guesses=["a/(b - 0.5)"],
        population=50, primitives=["add", "sub", "mul", "div"], threads=1,
    )  # fmt: skip
    assert result.best.loss < 1e-20
    assert result.best is result.front[-1]
