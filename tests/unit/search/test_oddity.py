"""Oddities of formulas, and their part in the archive."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.evaluate.scores import Scores
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.population import Population
from shine.search.description import NESTED, PERIODIC, SUM_INSIDE, oddities
from shine.search.evolution.archive import Archive

PRIMITIVES = PrimitiveSet(
    select(STANDARD, ("add", "sub", "mul", "div", "sqrt", "square", "exp", "log", "sin", "cos")), ("a", "b")
)


def population_of(*texts: str) -> Population:
    return Population.from_trees([shine.parse(text, ("a", "b")) for text in texts], PRIMITIVES)


@pytest.mark.parametrize(
    ("text", "nats"),
    [
        ("a*b + 2.0", 0.0),
        ("2.0*log(a) - 3.0", 0.0),
        ("exp(2.0*a)/b", 0.0),
        ("sqrt(square(a) + square(b))", 0.0),
        ("log(2.0/a + b)", SUM_INSIDE),
        ("exp(sqrt(log(a)))", NESTED),
        ("cos(a)", PERIODIC),
        ("exp(sin(a + b))", NESTED + PERIODIC + SUM_INSIDE),
        ("log(a) + log(b - 1.0) + sin(b)", SUM_INSIDE + PERIODIC),
    ],
)
def test_functions_in_functions_are_odd(text, nats):
    # A population of several, because their tapes differ in length.
    assert oddities(population_of("a", text, "log(exp(sin(b)))"))[1] == nats


def archive_of(nat: float, losses: tuple[float, float]) -> str:
    population = population_of("1.0/cos(a)", "square(a)/b")
    scores = Scores(np.array(losses), np.ones(2), np.zeros(2))
    archive = Archive.empty(PRIMITIVES, population.width, nat=nat).updated(population, scores)
    return str(archive.individuals.tree(3))


def test_the_plainer_of_two_formulas_stays_if_noise_hides_their_difference():
    assert archive_of(0.1, (1.0, 1.09)) == "square(a)/b"
    assert archive_of(0.1, (1.0, 1.2)) == "1.0/cos(a)"
    assert archive_of(0.0, (1.0, 1.0001)) == "1.0/cos(a)"


def test_the_order_of_arrival_does_not_matter():
    population = population_of("1.0/cos(a)", "square(a)/b")
    scores = Scores(np.array([1.0, 1.05]), np.ones(2), np.zeros(2))
    one_by_one = Archive.empty(PRIMITIVES, population.width, nat=0.1)
    for which in ([1], [0], [1]):
        one_by_one = one_by_one.updated(population.take(which), scores.take(which))
    assert str(one_by_one.individuals.tree(3)) == "square(a)/b"
    assert one_by_one.scores.losses[3] == 1.05


def test_a_slope_costs_nothing_beside_a_coefficient():
    population = population_of("2.0/square(a)", "b*2.5", "3.0*(a + b)", "square(a)/b", "a*(b - 3.0)")
    scores = Scores(np.array([1.0, 1.1, 1.2, 1.3, 1.4]), np.full(5, 7.0), np.zeros(5))
    for at, level in enumerate([4, 3, 5, 4 + 2, 5 + 2]):
        archive = Archive.empty(PRIMITIVES, population.width).updated(population.take([at]), scores.take([at]))
        assert np.flatnonzero(np.isfinite(archive.scores.losses)).tolist() == [level - 1]
