"""A coordinate that alone determines the target is found by sorting the rows, whatever the function."""

import numpy as np
import pytest

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.interpret import evaluate_tape
from shine.search.seeding.bank.formula_writer import Writer, tape
from shine.search.seeding.bank.one_coordinate import Coordinates, one_coordinate_systems

LAWS = {
    "saturation in SI units": (lambda x: 1e20 * np.tanh(1e-3 * x[0] * x[1] / x[2]), ()),
    "with a factor": (lambda x: x[2] / (np.exp(x[0] * x[1] / 500) + 1), (2,)),
    "several periods": (lambda x: np.sin(0.003 * x[0] * x[1]), None),
}


def systems(law, members=(), values=None, rows=200):
    x = np.exp(np.random.default_rng(4).uniform(0, 4, (3, rows)))
    writer = Writer(PrimitiveSet(tuple(STANDARD.values()), ("a", "b", "c")))
    features = Coordinates.of_features(x, np.arange(3))
    own = np.zeros((0, rows)) if values is None else values(x)
    return x, writer, one_coordinate_systems(features, law(x), members, own, writer, 1)


@pytest.mark.parametrize("kind", LAWS)
def test_a_monomial_that_determines_the_target_is_found(kind):
    law, factors = LAWS[kind]
    x, writer, found = systems(law)
    (system,) = found
    assert len(system.nodes) == 1
    # A function of x0 * x1 may also be divided by a power of it.
    assert factors is None or {nodes[0][0] - 1 for nodes, _ in system.factors} == set(factors)
    formula = tape(system.nodes[0])
    values = evaluate_tape(formula.codes, formula.values, writer.primitives, list(x))
    assert values == pytest.approx(system.values[0])
    # The law is a function of the coordinate: equal neighbours.
    reduced = (law(x) / system.factor)[np.argsort(values)]
    assert np.median(np.abs(np.diff(reduced))) < 0.1 * np.std(reduced)


def test_a_member_of_a_bank_is_found():
    member = ((1, 0.0), (2, 0.0), (0, 0.0))
    _, _, found = systems(lambda x: np.exp(-(x[0] + x[1]) / 30), [member], lambda x: (x[0] + x[1])[None])
    assert found[0].nodes == (member,)


def test_a_target_of_several_coordinates_has_none():
    assert systems(lambda x: x[0] + 30 * np.sin(x[1]) + x[2])[2] == []


def test_few_rows_show_nothing():
    assert systems(lambda x: x[0] * x[1], rows=20)[2] == []
