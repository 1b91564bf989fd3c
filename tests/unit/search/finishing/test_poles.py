"""Formulas with poles near the data make room for those without."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from helpers.markers import mostly_slow

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain import Domain
from shine.evaluate.scores import Scores
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.population import Population
from shine.search.description import DescriptionLength
from shine.search.evolution.archive import Archive
from shine.search.evolution.evolution import Outcome
from shine.search.finishing.poles import EARNED, individuals_to_refine, without_poles
from shine.search.models.model import Model

FEATURES = ("a", "b")
X = np.random.default_rng(0).normal(size=(60, 2))
DOMAIN = Domain(Dataset.from_arrays(X, X[:, 0], features=FEATURES))
PRIMITIVES = PrimitiveSet(select(STANDARD, ["add", "sub", "mul", "div", "sin"]), FEATURES)


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


def outcome_of(formulas: dict[str, float], stopped_by: str = "generations") -> Outcome:
    """A run that found these formulas of these losses."""
    archive = Archive.empty(PRIMITIVES, 9)
    population = Population.from_trees([shine.parse(text, FEATURES) for text in formulas], PRIMITIVES, width=9)
    count = len(formulas)
    archive = archive.updated(population, Scores(np.array(list(formulas.values())), np.ones(count), np.zeros(count)))
    front, scores = archive.front()
    return Outcome(front, scores, archive, 1, count, 0.0, stopped_by)


FOUND = {
    "a": 1.0, "1/a": 0.5, "sin(a*b)": 0.6, "1/(b - 1.5)": 0.4, "sin(a) + sin(a*b)": 0.45, "a + b + a + b + a": 0.7,
}  # fmt: skip
"""Formulas of the sizes 1, 3, 4, 5, 7 and 9."""


def test_individuals_hidden_only_by_others_with_poles_are_refined_too():
    population, scores = individuals_to_refine(outcome_of(FOUND), DOMAIN)
    # A formula without poles hides the last one.
    assert population.sizes.tolist() == [1, 3, 4, 5, 7]
    assert scores.losses.tolist() == [1.0, 0.5, 0.6, 0.4, 0.45]


def test_individuals_of_complexities_that_cannot_be_chosen_are_not_refined():
    short, long = ("a*b + a", "a + b + a"), ("a + b + a + b + a", "a*b + a + b + a")
    outcome = outcome_of({"a": 1.0} | dict.fromkeys(short, 0.01) | dict.fromkeys(long, 0.0109))
    for rows, kept in ((20, 2), (200, 0)):
        description = DescriptionLength.with_unknown_noise(rows, 0.5, 1.0)
        sizes = individuals_to_refine(outcome, DOMAIN, 1.1, description=description)[0].sizes.tolist()
        assert sizes.count(5) == 2
        assert sizes.count(9) == kept


def test_a_search_ended_by_an_exact_formula_refines_only_its_front():
    outcome = outcome_of(FOUND, "loss")
    assert individuals_to_refine(outcome, DOMAIN) == (outcome.front, outcome.scores)


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


def test_poles_beyond_the_rows_are_earned_by_a_tenth_of_the_loss():
    n = np.array([3.0, 4, 5, 7, 8, 9, 10])
    lines = Domain(Dataset.from_arrays(np.column_stack([n, n]), n, features=FEATURES))
    law, long = "4/(a**2 - 4) + 1", "sin(a)*a + sin(a**2)*(a - 1.5) + 1"
    assert not lines.defines(shine.parse(law, FEATURES))
    models = [model("2.0", 1.0), model("a**2", 0.5), model(law, 0.01), model(long, 0.001)]
    assert law in texts(without_poles(models, 0.0, lines))
    models[2] = model(law, 0.1)
    assert law not in texts(without_poles(models, 0.0, lines))
    between = model("4/(a**2 - 36) + 1", 0.001)
    assert between.expression not in texts(without_poles([*models, between], 0.0, lines))
