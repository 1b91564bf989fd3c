"""Fits of the constants inside formulas: they reach the right ones, in any units, and leave whole numbers alone."""

import numpy as np
import pytest

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.search.seeding.bank.formula_writer import Writer, constant, unknown, with_constants
from shine.search.seeding.fits.free_constants import evaluated, refitted

PRIMITIVES = PrimitiveSet(tuple(STANDARD[name] for name in ("add", "mul", "div", "exp", "square")), ("x",))
WRITER = Writer(PRIMITIVES)
X = ((1, 0.0),)


def decay(rate):
    return WRITER.call("exp", WRITER.multiply(constant(rate), X))


def test_values_for_several_choices_of_a_constant():
    x, formula = np.array([[0.0, 1.0, 2.0]]), decay(0.5)
    found = evaluated(formula, x, PRIMITIVES, unknown(formula), np.array([[0.5], [-1.5]]))
    assert found == pytest.approx(np.exp(np.outer([0.5, -1.5], x[0])))
    assert evaluated(formula, x, PRIMITIVES) == pytest.approx(np.exp(0.5 * x))


@pytest.mark.parametrize("unit", [1e-34, 1.0, 1e34])
def test_a_rate_is_found_in_any_unit(unit):
    x = np.linspace(0, 5, 12)[None] * unit
    target = 3 + 2 * np.exp(-0.7 * x[0] / unit)
    weights = np.full(12, 1 / 12)
    found = refitted(decay(-0.2 / unit), x, target, weights, PRIMITIVES, slope=True, intercept=True)
    assert found[unknown(found)[0]][1] * unit == pytest.approx(-0.7, rel=1e-9)


def test_whole_numbers_are_no_unknowns():
    formula = WRITER.add(WRITER.multiply(constant(2.0), X), constant(0.3))
    assert [formula[place][1] for place in unknown(formula)] == [0.3]
    assert with_constants(formula, unknown(formula), 0.0) == WRITER.call(
        "add", WRITER.multiply(constant(2.0), X), constant(0.0)
    )


def test_a_fit_that_cannot_begin_leaves_the_formula():
    x, weights = np.array([[1e3, 2e3, 3e3, 4e3]]), np.full(4, 0.25)
    formula = decay(7.5)
    assert refitted(formula, x, x[0], weights, PRIMITIVES, slope=True, intercept=True) == formula
