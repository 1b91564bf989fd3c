"""Operations that torch and JAX write alike, for a library `xp`; exports contain their text, with its name for `xp`.

The functions take arrays of one dtype, float64 or float32. A choice between two values keeps the value that is not
chosen away from zero divisors and the like, so that its derivative is never NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

Array = Any
"""An array of the library."""

Library = Any
"""A module of array functions."""


def columns_of(arguments: Sequence[Array], count: int) -> list[Array]:
    """The features of a formula: the columns of one matrix, or the arguments themselves.

    A single argument holds a feature at each position of its last axis; if the formula has one feature and the argument
    fewer than two axes, it is that feature.
    """
    columns = list(arguments)
    if len(arguments) == 1 and (count != 1 or arguments[0].ndim > 1):
        matrix = arguments[0]
        found = matrix.shape[-1] if matrix.ndim else 0
        columns = [matrix[..., position] for position in range(found)]
    if len(columns) != count:
        raise ValueError(f"the formula has {count} features, not {len(columns)}")
    return columns


def filled(xp: Library, value: Array, columns: Sequence[Array], arguments: Sequence[Array]) -> Array:
    """A value that depends on no feature, repeated for each row."""
    return xp.broadcast_to(value, columns[0].shape if columns else arguments[0].shape[:-1])


def with_sign_of(xp: Library, b: Array, remainder: Array) -> Array:
    """The remainder that has the sign of the divisor b, from an exact one."""
    moved = xp.where((b < 0) != (remainder < 0), remainder + b, remainder)
    return xp.where(remainder == 0, xp.copysign(xp.zeros_like(moved), b), moved)


def floored(xp: Library, a: Array, b: Array, remainder: Array) -> Array:
    """The quotient of a and b rounded down, from their exact remainder; a / b for the divisor 0."""
    quotient = (a - remainder) / b
    moves = (remainder != 0) & ((b < 0) != (remainder < 0))
    quotient = xp.where(moves, quotient - 1, quotient)
    below = xp.floor(quotient)
    below = xp.where(quotient - below > 0.5, below + 1, below)
    plain = a / b
    below = xp.where(quotient == 0, xp.copysign(xp.zeros_like(plain), plain), below)
    return xp.where(b == 0, plain, below)


def less(xp: Library, a: Array, b: Array) -> Array:
    """1 where a < b, else 0."""
    return xp.where(a < b, xp.ones_like(a), 0.0)


def less_equal(xp: Library, a: Array, b: Array) -> Array:
    """1 where a <= b, else 0."""
    return xp.where(a <= b, xp.ones_like(a), 0.0)


def greater(xp: Library, a: Array, b: Array) -> Array:
    """1 where a > b, else 0."""
    return xp.where(a > b, xp.ones_like(a), 0.0)


def greater_equal(xp: Library, a: Array, b: Array) -> Array:
    """1 where a >= b, else 0."""
    return xp.where(a >= b, xp.ones_like(a), 0.0)


def equal(xp: Library, a: Array, b: Array) -> Array:
    """1 where a == b, else 0."""
    return xp.where(a == b, xp.ones_like(a), 0.0)


def not_equal(xp: Library, a: Array, b: Array) -> Array:
    """1 where a != b, else 0."""
    return xp.where(a != b, xp.ones_like(a), 0.0)


def logical_not(xp: Library, a: Array) -> Array:
    """1 where a is 0, else 0."""
    return xp.where(a == 0, xp.ones_like(a), 0.0)


def minimum(xp: Library, a: Array, b: Array) -> Array:
    """The smaller number, NaN if either is; of equal ones, 0.0 and -0.0 among them, the second."""
    return xp.where((a < b) | (a != a), a, b)


def maximum(xp: Library, a: Array, b: Array) -> Array:
    """The larger number, NaN if either is; of equal ones, 0.0 and -0.0 among them, the second."""
    return xp.where((a > b) | (a != a), a, b)


def logical_and(xp: Library, a: Array, b: Array) -> Array:
    """One of the operands: the second unless the first is 0."""
    return xp.where(a != 0, b, a)


def logical_or(xp: Library, a: Array, b: Array) -> Array:
    """One of the operands: the first unless it is 0."""
    return xp.where(a != 0, a, b)


def where(xp: Library, test: Array, a: Array, b: Array) -> Array:
    """The second operand unless the first is 0, then the third."""
    return xp.where(test != 0, a, b)


def sigmoid(xp: Library, x: Array) -> Array:
    """1 / (1 + exp(-x)), with the derivative 0 where exp overflows."""
    overflows = xp.isinf(xp.exp(-x))
    return xp.where(overflows, 0.0, 1 / (1 + xp.exp(xp.where(overflows, 0.0, -x))))


def log1p(xp: Library, x: Array) -> Array:
    """Kahan's correction of log(1 + x), with the derivative 1 where it is 0 / 0."""
    u = 1 + x
    corrected = xp.log(u) * (x / xp.where(u == 1, 1.0, u - 1))
    return xp.where(u == 1, x, xp.where(u == x, xp.log(u), corrected))


def expm1(xp: Library, x: Array) -> Array:
    """Kahan's correction of exp(x) - 1, with the derivative 1 where it is 0 / 0."""
    u = xp.exp(x)
    flat = (u - 1 == u) | (u - 1 == -1)
    corrected = (u - 1) * (x / xp.log(xp.where((u == 1) | flat, 2.0, u)))
    return xp.where(u == 1, x, xp.where(flat, u - 1, corrected))


def hypot(xp: Library, a: Array, b: Array) -> Array:
    """The length of (a, b), scaled by the longer leg; with the derivative 0 at (0, 0)."""
    large = maximum(xp, xp.abs(a), xp.abs(b))
    small = minimum(xp, xp.abs(a), xp.abs(b))
    alone = (small == 0) | (large - large != 0)
    ratio = small / xp.where(alone, 1.0, large)
    return xp.where(alone, large, large * xp.sqrt(1 + ratio * ratio))


def protected_div(xp: Library, a: Array, b: Array) -> Array:
    """a / b, or 1 for small divisors."""
    far = xp.abs(b) > 0.001
    return xp.where(far, a / xp.where(far, b, 1.0), 1.0)


def protected_log(xp: Library, x: Array) -> Array:
    """log(abs(x)), or 0 for small numbers."""
    far = xp.abs(x) > 0.001
    return xp.where(far, xp.log(xp.where(far, xp.abs(x), 1.0)), 0.0)


_SHARED: dict[str, Callable[..., Array]] = {
    "lt": less,
    "le": less_equal,
    "gt": greater,
    "ge": greater_equal,
    "eq": equal,
    "ne": not_equal,
    "logical_not": logical_not,
    "min": minimum,
    "max": maximum,
    "logical_and": logical_and,
    "logical_or": logical_or,
    "where": where,
    "sigmoid": sigmoid,
    "log1p": log1p,
    "expm1": expm1,
    "hypot": hypot,
    "protected_div": protected_div,
    "protected_log": protected_log,
}
"""Basic primitives, and composite ones whose derivative would be NaN at points where they have a value."""

_NAMED_ALIKE = ("abs", "sqrt", "exp", "log", "floor", "ceil", "sin", "cos", "tan", "asin", "acos", "atan")


def operations_of(xp: Library) -> dict[str, Callable[..., Array]]:
    """The operations that a library writes as others do, by primitive."""
    return {
        "add": xp.add,
        "sub": xp.subtract,
        "mul": xp.multiply,
        "div": xp.divide,
        "neg": xp.negative,
        **{name: getattr(xp, name) for name in _NAMED_ALIKE},
        **{name: partial(function, xp) for name, function in _SHARED.items()},
    }
