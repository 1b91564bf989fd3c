"""The operation of each primitive in JAX. Importing this module imports JAX; exports contain the text of its functions.

The functions take arrays of one dtype, float64 or float32. They replace JAX's own functions that differ at NaN, signed
zeros or the ends of the range; `array_operations` has those that all libraries share.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array

from shine.formats.write.array_operations import floored, operations_of, with_sign_of

xp = jnp
"""The library, as `array_operations` calls it."""


def numbers(like: Array) -> Callable[[float], Array]:
    """A function that makes numbers of the same dtype."""
    if not jnp.issubdtype(like.dtype, jnp.floating):
        raise TypeError(f"the formula takes floating-point numbers, not {like.dtype}")

    def number(value: float) -> Array:
        # Numbers too large for float32 become infinite.
        with np.errstate(over="ignore"):
            return jnp.asarray(value, dtype=like.dtype)

    return number


def sign(a: Array) -> Array:
    """1, -1 or 0; 0.0 for -0.0, and NaN for NaN."""
    return jnp.where(a == 0, 0.0, jnp.sign(a))


def modulo(a: Array, b: Array) -> Array:
    """The remainder that has the sign of the divisor; NaN for the divisor 0."""
    return with_sign_of(xp, b, jnp.fmod(a, b))


def floor_divide(a: Array, b: Array) -> Array:
    """The quotient rounded down, from an exact remainder; a / b for the divisor 0."""
    return floored(xp, a, b, jnp.fmod(a, b))


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


OPERATIONS: dict[str, Callable[..., Array]] = {
    **operations_of(xp),
    "pow": jnp.power,
    "floordiv": floor_divide,
    "mod": modulo,
    "sign": sign,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
}
"""The basic primitives, and composite ones whose definition would have the derivative NaN where it has a value."""
