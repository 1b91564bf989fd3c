"""Every recognised function computes the same as Python's or NumPy's own."""

from __future__ import annotations

import builtins
import math
import operator
from itertools import product

import numpy as np
import pytest
from deap import gp
from scipy.special import expit

import shine
import shine.deap
from shine.lang.interpret import evaluate
from shine.lang.python.known import KNOWN, TABLE

NUMBERS = [
    -np.inf,
    -700.5,
    -2.5,
    -2.0,
    -1.0,
    -0.5,
    -1e-300,
    -0.0,
    0.0,
    1e-300,
    0.3,
    1.0,
    2.0,
    3.7,
    711.0,
    np.inf,
    np.nan,
]
TRUTHS = [False, True]


def cases():
    cases = []
    for module in (operator, math, np, builtins):
        for name in (name for name in dir(module) if not name.startswith("_")):
            known = KNOWN.get(id(getattr(module, name)))
            for primitive in known.names if known else ():
                arity = TABLE[primitive].arity
                cases.append(pytest.param(getattr(module, name), arity, id=f"{module.__name__}.{name}-{arity}"))
    return cases


def values_of(function, arity, columns):
    """The function's own values; NaN where it raises or its value is not a real number."""
    if isinstance(function, np.ufunc) or getattr(function, "__module__", "") == "numpy":
        with np.errstate(all="ignore"):
            return np.asarray(function(*columns), dtype=float)
    values = []
    for row in zip(*(column.tolist() for column in columns), strict=True):
        try:
            value = function(*row)
            values.append(math.nan if isinstance(value, complex) else float(value))
        except (ArithmeticError, ValueError, TypeError):
            values.append(math.nan)
    return np.array(values)


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")  # NumPy 2.5; it is still recognised
@pytest.mark.parametrize(("function", "arity"), cases())
def test_a_recognised_function_has_its_own_values(function, arity):
    bitwise = function in (operator.and_, operator.or_, operator.xor, np.bitwise_and, np.bitwise_or, np.bitwise_xor)
    rows = list(product(TRUTHS if bitwise else NUMBERS, repeat=arity))
    if function in (math.hypot, np.hypot):
        rows = [row for row in rows if not np.isnan(row).any()]  # C's is inf for inf and NaN, Shine's is NaN
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    pset = gp.PrimitiveSet("MAIN", arity)
    pset.addPrimitive(function, arity, name="f")
    individual = gp.PrimitiveTree([pset.mapping["f"], *(pset.mapping[name] for name in pset.arguments)])
    ours = evaluate(shine.deap.tree(individual, pset), [column.astype(float) for column in columns])
    theirs = values_of(function, arity, columns)
    # Where Python raises an error, the value is not finite here: NaN or an infinity.
    finite = np.isfinite(theirs)
    np.testing.assert_allclose(ours[finite], theirs[finite], rtol=2e-15)
    if isinstance(function, np.ufunc):
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
        np.testing.assert_array_equal(ours[np.isinf(theirs)], theirs[np.isinf(theirs)])
    refused = np.isnan(theirs) & np.all([np.isfinite(column) for column in columns], axis=0)
    assert not np.isfinite(ours[refused]).any()


@pytest.mark.parametrize("function", [operator.and_, operator.or_, operator.xor])
def test_a_bitwise_operator_of_numbers_other_than_truth_values_is_nan(function):
    pset = gp.PrimitiveSet("MAIN", 2)
    pset.addPrimitive(function, 2, name="f")
    formula = shine.deap.tree(gp.PrimitiveTree.from_string("f(ARG0, ARG1)", pset), pset)
    values = evaluate(formula, [np.array([6.0, 1.0, 0.5, 1.0]), np.array([3.0, 1.5, 1.0, 0.0])])
    assert np.isnan(values).tolist() == [True, True, True, False]


HARD = [*NUMBERS, -4503599627370497.5, -1.5, -0.49999999999999994, 5e-324, 0.49999999999999994, 0.5, 1.5, 3.5]


@pytest.mark.parametrize(
    ("function", "arity"),
    [
        (np.rint, 1), (np.round, 1), (np.signbit, 1), (np.nan_to_num, 1), (expit, 1), (np.copysign, 2), (np.arctan2, 2),
        (np.logaddexp, 2), (np.logaddexp2, 2), (np.heaviside, 2),
    ],
)  # fmt: skip
def test_a_composed_function_has_numpys_values_and_signs(function, arity):
    columns = [np.array(column) for column in zip(*product(HARD, repeat=arity), strict=True)]
    pset = gp.PrimitiveSet("MAIN", arity)
    pset.addPrimitive(function, arity, name="f")
    individual = gp.PrimitiveTree([pset.mapping["f"], *(pset.mapping[name] for name in pset.arguments)])
    ours, theirs = evaluate(shine.deap.tree(individual, pset), columns), values_of(function, arity, columns)
    np.testing.assert_allclose(ours, theirs, rtol=3e-15)
    known = ~np.isnan(theirs)
    np.testing.assert_array_equal(np.signbit(ours[known]), np.signbit(theirs[known]))


def test_a_number_of_digits_is_refused():
    pset = gp.PrimitiveSet("MAIN", 2)
    pset.addPrimitive(round, 2)
    with pytest.raises(shine.UnsupportedSyntaxError, match="it takes 1 arguments, not 2"):
        shine.deap.CompiledEvaluator(pset, np.zeros((2, 2)), [1.0, 2.0])
