"""Fits of the constants inside formulas: they reach the right ones, in any units, and leave whole numbers alone."""

import numpy as np
import pytest

from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.interpret import evaluate_tape
from shine.search.seeding.bank.formula_writer import Writer, constant, unknown, with_constants
from shine.search.seeding.fits.free_constants import ConstantFits, refitted

PRIMITIVES = PrimitiveSet(tuple(STANDARD[name] for name in ("add", "mul", "div", "exp", "square")), ("x",))
WRITER = Writer(PRIMITIVES)
X = ((1, 0.0),)


def decay(rate):
    return WRITER.call("exp", WRITER.multiply(constant(rate), X))


def fits(x, target, linear_scaling=True):
    def predict(population):
        tapes = [population.tape(i) for i in range(len(population))]
        return np.array([evaluate_tape(t.codes, t.values, PRIMITIVES, [x]) for t in tapes])

    weights = np.full(len(x), 1 / len(x))
    linearizer = MachineLinearizer(Dataset(x[None], target, weights, ("x",)), "mse")
    return ConstantFits(predict, x[None], target, weights, linearizer, PRIMITIVES, linear_scaling)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_a_rate_is_found_in_any_unit(unit):
    x = np.linspace(0, 5, 12) * unit
    found = fits(x, 3 + 2 * np.exp(-0.7 * x / unit)).of([decay(-0.2 / unit)])
    rates = [after[unknown(after)[0]][1] * unit for _, after in found]
    assert rates[0] == pytest.approx(-0.7, rel=1e-9)


def test_a_formula_is_fitted_with_a_slope_alone_too():
    x = np.linspace(0, 5, 12)
    both, slope = fits(x, 2 * np.exp(-0.7 * x)).of([decay(-0.2)])
    assert both[0] == slope[0] == decay(-0.2)
    assert slope[1][unknown(slope[1])[0]][1] == pytest.approx(-0.7, rel=1e-9)
    assert len(slope[1]) == len(decay(-0.2))


def test_without_linear_scaling_a_formula_is_fitted_as_it_is():
    x = np.linspace(0, 5, 12)
    ((_, after),) = fits(x, np.exp(-0.7 * x), linear_scaling=False).of([decay(-0.2)])
    assert after[unknown(after)[0]][1] == pytest.approx(-0.7, rel=1e-9)


def test_whole_numbers_are_no_unknowns():
    formula = WRITER.add(WRITER.multiply(constant(2.0), X), constant(0.3))
    assert [formula[place][1] for place in unknown(formula)] == [0.3]
    assert with_constants(formula, unknown(formula), 0.0) == WRITER.call(
        "add", WRITER.multiply(constant(2.0), X), constant(0.0)
    )
    x = np.linspace(1, 5, 12)
    for _, after in fits(x, np.square(2.5 * x + 0.7)).of([WRITER.call("square", formula)]):
        assert with_constants(after, unknown(after), 0.3) == WRITER.call("square", formula)


def test_formulas_without_unknowns_and_fits_that_cannot_begin_stay():
    x = np.array([1e3, 2e3, 3e3, 4e3])
    assert fits(x, x).of([X, decay(7.5)]) == [(X, X)]


@pytest.mark.parametrize("unit", [1e-34, 1.0, 1e34])
def test_a_formula_of_the_bank_gets_its_rate_in_any_unit(unit):
    x = np.linspace(0, 5, 12)[None] * unit
    target = 3 + 2 * np.exp(-0.7 * x[0] / unit)
    weights = np.full(12, 1 / 12)
    found = refitted(decay(-0.2 / unit), x, target, weights, PRIMITIVES, slope=True, intercept=True)
    assert found[unknown(found)[0]][1] * unit == pytest.approx(-0.7, rel=1e-9)


def test_a_fit_that_cannot_begin_leaves_the_formula():
    x, weights = np.array([[1e3, 2e3, 3e3, 4e3]]), np.full(4, 0.25)
    formula = decay(7.5)
    assert refitted(formula, x, x[0], weights, PRIMITIVES, slope=True, intercept=True) == formula
