"""The operation of each primitive in JAX. Importing this module imports JAX; exports contain the text of its functions.

The functions take arrays of one dtype, float64 or float32. They replace JAX's own functions that differ at NaN, signed
zeros or the ends of the range; `array_operations` has those that all libraries share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import Array

from shine.formats.write.statements.array_operations import SHARED


def numbers(like: Array) -> Callable[[float], Array]:
    """A function that makes numbers of the same dtype."""
    if not jnp.issubdtype(like.dtype, jnp.floating):
        raise TypeError(f"the formula takes floating-point numbers, not {like.dtype}")

    def number(value: float) -> Array:
        # Numbers too large for float32 become infinite.
        with np.errstate(over="ignore"):
            return jnp.asarray(value, dtype=like.dtype)

    return number


def filled(value: Array, columns: Sequence[Array], arguments: Sequence[Array]) -> Array:
    """A value that depends on no feature, repeated for each row."""
    return jnp.broadcast_to(value, columns[0].shape if columns else arguments[0].shape[:-1])


def sign(a: Array) -> Array:
    """1, -1 or 0; 0.0 for -0.0, and NaN for NaN."""
    return jnp.where(a == 0, 0.0, jnp.sign(a))


def modulo(a: Array, b: Array) -> Array:
    """The remainder that has the sign of the divisor; NaN for the divisor 0."""
    remainder = jnp.fmod(a, b)
    moved = jnp.where((b < 0) != (remainder < 0), remainder + b, remainder)
    return jnp.where(remainder == 0, jnp.copysign(jnp.zeros_like(moved), b), moved)


def floor_divide(a: Array, b: Array) -> Array:
    """The quotient rounded down, from an exact remainder; a / b for the divisor 0."""
    remainder = jnp.fmod(a, b)
    quotient = (a - remainder) / b
    moves = (remainder != 0) & ((b < 0) != (remainder < 0))
    quotient = jnp.where(moves, quotient - 1, quotient)
    below = jnp.floor(quotient)
    below = jnp.where(quotient - below > 0.5, below + 1, below)
    plain = a / b
    below = jnp.where(quotient == 0, jnp.copysign(jnp.zeros_like(plain), plain), below)
    return jnp.where(b == 0, plain, below)


def sinh(a: Array) -> Array:
    """The hyperbolic sine; JAX's is hundreds of ulp off."""
    small, large = jnp.abs(a) < 1, jnp.abs(a) > (700 if a.dtype == jnp.float64 else 80)
    x = jnp.where(small, a, 0.0)
    near = jnp.expm1(x) * (1 + jnp.exp(-x)) / 2
    power = jnp.exp(jnp.where(large, 1.0, a))
    half = jnp.exp(jnp.where(large, jnp.abs(a), 1.0) / 2)
    far = jnp.where(large, jnp.sign(a) * (half / 2) * half, (power - 1 / power) / 2)
    return jnp.where(small, near, far)


def cosh(a: Array) -> Array:
    """The hyperbolic cosine; JAX's is hundreds of ulp off."""
    large = jnp.abs(a) > (700 if a.dtype == jnp.float64 else 80)
    power = jnp.exp(jnp.where(large, 1.0, a))
    half = jnp.exp(jnp.where(large, jnp.abs(a), 1.0) / 2)
    return jnp.where(large, (half / 2) * half, (power + 1 / power) / 2)


def tanh(a: Array) -> Array:
    """The hyperbolic tangent; JAX's is several ulp off."""
    small = jnp.abs(a) < 0.5
    near = jnp.expm1(2 * jnp.where(small, a, 0.0))
    far = 1 - 2 / (jnp.exp(jnp.minimum(2 * jnp.abs(jnp.where(small, 1.0, a)), 88.0)) + 1)
    return jnp.where(small, near / (near + 2), jnp.where(a < 0, -far, far))


def less(a: Array, b: Array) -> Array:
    """1 where a < b, else 0."""
    return (a < b).astype(a.dtype)


def less_equal(a: Array, b: Array) -> Array:
    """1 where a <= b, else 0."""
    return (a <= b).astype(a.dtype)


def greater(a: Array, b: Array) -> Array:
    """1 where a > b, else 0."""
    return (a > b).astype(a.dtype)


def greater_equal(a: Array, b: Array) -> Array:
    """1 where a >= b, else 0."""
    return (a >= b).astype(a.dtype)


def equal(a: Array, b: Array) -> Array:
    """1 where a == b, else 0."""
    return (a == b).astype(a.dtype)


def not_equal(a: Array, b: Array) -> Array:
    """1 where a != b, else 0."""
    return (a != b).astype(a.dtype)


def logical_not(a: Array) -> Array:
    """1 where a is 0, else 0."""
    return (a == 0).astype(a.dtype)


OPERATIONS: dict[str, Callable[..., Array]] = {
    "add": jnp.add,
    "sub": jnp.subtract,
    "mul": jnp.multiply,
    "div": jnp.divide,
    "pow": jnp.power,
    "neg": jnp.negative,
    **{name: getattr(jnp, name) for name in ("abs", "sqrt", "exp", "log", "floor", "ceil", "sin", "cos", "tan")},
    **{name: getattr(jnp, name) for name in ("asin", "acos", "atan")},
    "floordiv": floor_divide,
    "mod": modulo,
    "sign": sign,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "lt": less,
    "le": less_equal,
    "gt": greater,
    "ge": greater_equal,
    "eq": equal,
    "ne": not_equal,
    "logical_not": logical_not,
    **{name: partial(function, jnp) for name, function in SHARED.items()},
}
"""The basic primitives, and composite ones whose definition would have the derivative NaN where it has a value."""
