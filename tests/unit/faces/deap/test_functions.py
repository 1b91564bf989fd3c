"""Users' own functions, compiled from their source, compute what Python computes; others are named with the reason."""

from __future__ import annotations

import functools
import math
import operator
import warnings
from itertools import product

import numpy
import numpy as np
import pytest
from deap import gp
from unit.faces.deap.sets import if_then_else, protected_division

import shine
import shine.deap
from shine.lang.interpret import evaluate

NUMBERS = [-math.inf, -800.0, -2.5, -1.0, -0.5, -0.0, 0.0, 1e-200, 0.5, 1.0, 3.0, 800.0, math.inf, math.nan]
LIMIT = 1e-6
HALF = np.float64(0.5)


class Settings:
    base = 2.0


def bare(left, right):
    try:
        return left / right
    except:  # noqa: E722
        return 0.0


def assigned(left, right):
    """With a docstring."""
    try:
        value = left / right
        value = value + 1
    except ZeroDivisionError:
        value = left
    return value * 2


def ignored(left, right):
    value = 7.0
    try:  # noqa: SIM105
        value = left % right
    except ZeroDivisionError:
        pass
    return value


def several(x, y):
    try:
        a = math.log(x)
        b = math.sqrt(y) / (x - 1)
        if b > 0:
            b = math.exp(b)
        return a + b
    except ValueError:
        return -1
    except (ZeroDivisionError, OverflowError):
        y = -2.0
    return y


def powers(x, y):
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.inf
    except ValueError:
        return LIMIT


def sines(x):
    try:
        return math.sin(x) + math.cos(x)
    except ValueError:
        return 5


def rounded(x):
    try:
        return math.floor(x) + int(x)
    except OverflowError:
        return 1.0
    except ValueError:
        return 2.0


def integer_division(x, y):
    try:
        return x // y if x > 0 else 1 / y
    except ArithmeticError:
        return 4.0


def guarded_operands(x, y):
    try:
        return (x > 0 and 1 / y > 1) or 2 / x
    except ZeroDivisionError:
        return 9.0


def chained(x, y):
    try:
        return x < 1 < 2 / y
    except ZeroDivisionError:
        return 9.0


def overflowing(x, y):
    try:
        return x**2 * math.cosh(y)
    except OverflowError:
        return -1.0


def constants(x, scale=3.0, *, shift=LIMIT):
    return scale * x + shift + HALF * math.pi + Settings.base


def branches(x, y):
    if abs(x) < LIMIT:
        return 1.0
    elif x > y:
        x -= y
    else:
        pass
    return if_then_else(x > 1, protected_division(y, x), min(x, y, 2.0))


def by_errstate(left, right):
    with numpy.errstate(divide="ignore", invalid="ignore"):
        x = numpy.divide(left, right)
        if isinstance(x, numpy.ndarray):
            x[numpy.isinf(x)] = 1
            x[numpy.isnan(x)] = 1
        elif numpy.isinf(x) or numpy.isnan(x):
            x = 1
    return x


def by_where(x, y):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.where(np.abs(y) > LIMIT, np.divide(x, y), 1.0)


def by_ufunc_where(x, y):
    with np.errstate(all="ignore"):
        return np.divide(x, y, out=np.ones_like(x), where=np.abs(y) > LIMIT)


def by_masks(x):
    with np.errstate(all="ignore"):
        result = np.sqrt(np.abs(x)) * np.sign(x)
        result[(x > 1) & (x < 10) | (x == -0.5)] = np.inf
    return result


square_of_sum = lambda a, b: (a + b) ** 2  # noqa: E731
pair = (lambda a: a + 1, lambda a: a * 2)

BY_ROW = [
    (bare, 2), (protected_division, 2), (assigned, 2), (ignored, 2), (several, 2), (powers, 2), (sines, 1),
    (rounded, 1), (integer_division, 2), (guarded_operands, 2), (chained, 2), (overflowing, 2), (constants, 1),
    (constants, 2), (branches, 2), (if_then_else, 3), (square_of_sum, 2), (pair[0], 1), (pair[1], 1),
    (functools.partial(operator.sub, 3), 1), (functools.partial(constants, scale=0.5), 1),
    (functools.partial(if_then_else, 1.0), 2),
]  # fmt: skip
BY_ARRAY = [(by_errstate, 2), (by_where, 2), (by_ufunc_where, 2), (by_masks, 1), (np.vectorize(protected_division), 2)]


def translated(function, arity, columns):
    pset = gp.PrimitiveSet("MAIN", arity)
    pset.addPrimitive(function, arity, name="f")
    individual = gp.PrimitiveTree([pset.mapping["f"], *(pset.mapping[name] for name in pset.arguments)])
    return evaluate(shine.deap.tree(individual, pset), columns)


def grid(arity):
    return [np.array(column) for column in zip(*product(NUMBERS, repeat=arity), strict=True)]


def named(case):
    return getattr(case, "__name__", None) if not isinstance(case, int) else None


@pytest.mark.parametrize(("function", "arity"), BY_ROW, ids=named)
def test_a_function_has_pythons_values_for_pythons_numbers(function, arity):
    columns = grid(arity)
    ours, compared = translated(function, arity, columns), 0
    for value, *row in zip(ours.tolist(), *(column.tolist() for column in columns), strict=True):
        try:
            theirs = function(*row)
        except (ArithmeticError, ValueError):
            continue  # here the user's script would end
        if isinstance(theirs, complex):
            continue
        compared += 1
        assert value == pytest.approx(float(theirs), rel=1e-14, nan_ok=True), row
    assert compared > len(ours) / 3


@pytest.mark.parametrize(("function", "arity"), BY_ARRAY, ids=named)
def test_a_function_has_numpys_values_for_arrays(function, arity):
    columns = grid(arity)
    with np.errstate(all="ignore"):
        theirs = np.asarray(function(*(column.copy() for column in columns)), dtype=float)
    np.testing.assert_allclose(translated(function, arity, columns), theirs, rtol=1e-14)


def loops(x):
    total = 0.0
    for _ in range(3):
        total += x
    return total


def recursive(x):
    return recursive(x - 1) if x > 0 else 0.0


def variadic(*arguments):
    return arguments[0]


def listed(x):
    return x + LIST


def unknown(x):
    return nowhere(x)  # noqa: F821


def finally_(x):
    try:
        return 1 / x
    finally:
        print(x)


def nested(x):
    try:
        try:
            return 1 / x
        except ZeroDivisionError:
            return math.log(x)
    except ValueError:
        return 0.0


def calling(x):
    try:
        return protected_division(1, x)
    except ValueError:
        return 0.0


def opened(x):
    with open("file"):
        return x


def raising(x):
    raise ValueError(x)


def indexed(x):
    return x[0]


def endless(x):
    if x > 0:
        return x


LIST = [1, 2]


class Adder:
    def __call__(self, x):
        return x + 1


@pytest.mark.parametrize(
    ("function", "arity", "reason"),
    [
        (loops, 1, r"line \d+, column 5: 'for' is not part of the language; write the terms out"),
        (recursive, 1, "'recursive' calls itself"),
        (variadic, 1, r"it takes '\*' arguments"),
        (listed, 1, r"line \d+, column 16: 'LIST' is \[1, 2\] of type list, not a number"),
        (unknown, 1, "it calls 'nowhere', which is no function that is known here"),
        (finally_, 1, "'else' and 'finally' of a 'try' are not translated"),
        (nested, 1, "a 'try' within a 'try' cannot be followed"),
        (calling, 1, "within 'try' only operators and functions of Python's own can be called"),
        (opened, 1, "'with' is only translated for numpy.errstate"),
        (raising, 1, "Raise is not part of the language"),
        (indexed, 1, "subscripts are not part of the language"),
        (endless, 1, "the function can end without 'return'"),
        (Adder(), 1, "which Shine does not know; write a function of numbers"),
        (math.erf, 1, "erf of type builtin_function_or_method, which Shine does not know"),
        (math.sin, 2, "it takes 1 arguments, not 2|math.sin"),
        (protected_division, 1, "'right' has no value"),
        (protected_division, 3, "it takes 2 arguments, not 3"),
        (functools.partial(operator.add, "a"), 1, "arguments bound that are not numbers"),
    ],
    ids=named,
)
def test_a_function_that_cannot_be_compiled_is_named_with_the_reason(function, arity, reason):
    pset = gp.PrimitiveSet("MAIN", arity)
    pset.addPrimitive(function, arity, name="mine")
    with pytest.raises(shine.UnsupportedSyntaxError, match=reason) as caught:
        shine.deap.CompiledEvaluator(pset, np.zeros((2, arity)), [1.0, 2.0])
    assert str(caught.value).startswith("primitive 'mine' of primitive set 'MAIN' cannot be compiled: ")


def test_a_function_without_source_is_named():
    namespace = {}
    exec("def hidden(x):\n    return x + 1", namespace)
    pset = gp.PrimitiveSet("MAIN", 1)
    pset.addPrimitive(namespace["hidden"], 1)
    with pytest.raises(shine.UnsupportedSyntaxError, match=r"'hidden' .* its source is not at hand"):
        shine.deap.CompiledEvaluator(pset, [[1.0], [2.0]], [1.0, 2.0])


def parity(x):
    return int(x) & 1


def masked(x, y):
    return (x > 0) & (y > 0) | np.isnan(x) ^ True


def test_bits_of_numbers_are_refused():
    pset = gp.PrimitiveSet("MAIN", 1)
    pset.addPrimitive(parity, 1)
    with pytest.raises(
        shine.UnsupportedSyntaxError, match=r"line \d+, column 12: 'int\(x\)' in 'int\(x\) & 1' is a numb"
    ):
        shine.deap.CompiledEvaluator(pset, [[1.0], [2.0]], [1.0, 2.0])
