"""Formulas that cannot come onto the front are not polished."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import loss_of
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.population import Population
from shine.lang.vocabulary import primitive_table
from shine.search.evolution.complexity import constant_counts, weighed
from shine.search.finishing.polishing import Polishing
from shine.search.problem.reference_losses import rounding_error

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 3, (200, 2))
ROWS = Dataset.from_arrays(
    X, -6 * X[:, 0] * X[:, 1] - X[:, 1] ** 3 + 0.01 * RNG.standard_normal(200), features=("a", "b")
)
SHORT = "-6.01*a*b - 1.002*(b*b*b)"
NEARER = "a*b*-6.0 + b*(b*-1.0)*b + 0.003"


def promising(*texts: str, sound: bool = True) -> list[bool]:
    functions, names = primitive_table(["add", "sub", "mul", "exp"])
    primitives = PrimitiveSet(select(functions, names), ("a", "b"))
    population = Population.from_trees([shine.parse(text, ("a", "b")) for text in texts], primitives)
    loss = loss_of("mse")
    polishing = Polishing(loss, 1, 1e-13, lambda: False, partial(rounding_error, loss=loss))
    complexities = weighed(population, {})
    simplest = complexities - 2 * constant_counts(population)
    return polishing.promising(population, complexities, simplest, ROWS, lambda place: sound).tolist()


def test_a_formula_far_behind_a_simpler_one_is_left():
    assert promising(SHORT, "a*b*exp(a*a - b)*exp(b - a*a)*a*b*a*b*a*b*a") == [True, False]


def test_what_is_not_sound_beats_none():
    assert promising(SHORT, "a*b*exp(a*a - b)*exp(b - a*a)*a*b*a*b*a*b*a", sound=False) == [True, True]


@pytest.mark.parametrize("worse", ["2.0*a*b + 1.01*(b*b)*a*b", "a*3.0 + 0.9*b*b*b*a + 0.1*a"])
def test_a_formula_that_its_constants_may_make_simpler_is_polished(worse):
    """A coefficient of 1.01 may become 1: then the formula has fewer nodes than the one that is far better."""
    assert promising(SHORT, worse) == [True, True]


def test_formulas_as_good_as_another_are_polished():
    assert promising(SHORT, NEARER) == [True, True]
