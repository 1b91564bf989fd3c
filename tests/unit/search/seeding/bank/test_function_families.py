"""Families of functions: their tables agree with their formulas, and their grids follow the units."""

import numpy as np
import pytest

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.interpret import evaluate_tape
from shine.search.seeding.bank.formula_writer import Writer, tape
from shine.search.seeding.bank.function_families import FACTORS, FAMILIES, WIDER_FAMILIES
from shine.search.seeding.fits.correlations import Normalized

NAMES = ("add", "sub", "mul", "div", "sqrt", "square", "exp", "log")
PRIMITIVES = PrimitiveSet(tuple(STANDARD[name] for name in NAMES), ("x",))
ARGUMENT = np.linspace(0.4, 3.1, 9)
ALL = (*FAMILIES, *WIDER_FAMILIES, *FACTORS)


@pytest.mark.parametrize("family", ALL, ids=lambda family: family.name)
def test_a_formula_has_the_values_of_its_table_up_to_a_factor(family):
    constants = family.grid(ARGUMENT)
    with np.errstate(all="ignore"):
        values = family.values(ARGUMENT, constants)
    for row in range(0, len(constants), 7):
        written = tape(family.write(Writer(PRIMITIVES), ((1, 0.0),), tuple(constants[row].tolist())))
        with np.errstate(all="ignore"):
            own = evaluate_tape(written.codes, written.values, PRIMITIVES, [ARGUMENT])
        if np.isfinite(own).all() and np.abs(own).min() > 1e-200:
            assert np.ptp(values[row] / own) <= 1e-6 * np.abs(values[row] / own).max()


@pytest.mark.parametrize("family", ALL, ids=lambda family: family.name)
def test_the_values_of_a_table_do_not_depend_on_the_unit(family):
    with np.errstate(all="ignore"):
        own = family.values(ARGUMENT, family.grid(ARGUMENT))
        other = family.values(1e30 * ARGUMENT, family.grid(1e30 * ARGUMENT))
    weights = np.full(len(ARGUMENT), 1 / len(ARGUMENT))
    assert Normalized.of(other, weights).units == pytest.approx(Normalized.of(own, weights).units, abs=1e-6)
