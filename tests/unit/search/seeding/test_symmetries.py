"""Features that matter only together are merged, factors are divided out, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.interpret import evaluate_tape
from shine.search.seeding.bank.coordinates import Coordinates
from shine.search.seeding.bank.formula_writer import Writer, tape
from shine.search.seeding.symmetries import share_left, systems

LAWS = {
    "difference": (lambda x: np.exp(-((x[0] - x[1]) ** 2) / 4) * x[2], 1, 1),
    "sum": (lambda x: np.log(x[0] + x[1] + 2 * x[2] ** 2), 2, 0),
    "product": (lambda x: np.sin(0.3 * x[0] * x[1]) + x[2], 2, 0),
    "quotient": (lambda x: np.exp(x[0] / x[1]) + x[2] ** 2, 2, 0),
    "sum of squares": (lambda x: 1 / (1 + x[0] ** 2 + x[1] ** 2) + np.log(x[2]), 2, 0),
    "factor": (lambda x: x[2] ** 2 / (1 + x[0] ** 2 * x[1]), 1, 1),
    "merged factors": (lambda x: x[0] * np.tanh(x[0] / (x[1] * x[2])), 1, 1),
}


@pytest.mark.parametrize("kind", LAWS)
def test_symmetries_reduce_the_coordinates(kind):
    law, most, factors = LAWS[kind]
    x = np.random.default_rng(2).uniform(1, 3, (3, 800))
    target = law(x)
    target = target + 0.005 * np.std(target) * np.random.default_rng(3).standard_normal(800)
    writer = Writer(PrimitiveSet(tuple(STANDARD.values()), ("a", "b", "c")))
    found = systems(Coordinates.of_features(x, np.arange(3)), target, np.full(800, 1 / 800), writer, (0.01,))
    assert found
    assert len(found[0].nodes) <= most
    assert len(found[0].factors) >= factors
    for nodes, values in zip(found[0].nodes, found[0].values, strict=True):
        formula = tape(nodes)
        assert evaluate_tape(formula.codes, formula.values, writer.primitives, list(x)) == pytest.approx(values)
    # Once the factor is divided out, the law is a function of the coordinates: neighbours in them have similar values.
    reduced = law(x) / found[0].factor
    if len(found[0].nodes) == 1:
        order = np.argsort(found[0].values[0])
        steps = np.abs(np.diff(reduced[order]))
        assert np.median(steps) < 0.02 * np.std(reduced)


def test_no_symmetry_is_found_if_there_is_none():
    x = np.random.default_rng(2).uniform(1, 3, (2, 800))
    writer = Writer(PrimitiveSet(tuple(STANDARD.values()), ("a", "b")))
    target = x[0] * np.sin(x[1]) + np.exp(x[0] / 2)
    assert not systems(Coordinates.of_features(x, np.arange(2)), target, np.full(800, 1 / 800), writer, (0.01,))


def test_a_direction_that_is_not_finite_has_no_share():
    for bad in (np.nan, np.inf):
        assert share_left(np.array([1.0, bad]), np.array([1.0, 2.0])) == (0.0, 1.0)
        assert share_left(np.array([1.0, 2.0]), np.array([1.0, np.nan])) == (0.0, 1.0)
