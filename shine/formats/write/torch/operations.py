"""The operation of each primitive in torch. Importing this module imports torch; exports contain its functions' text.

The functions take tensors of one dtype, float64 or float32. They replace torch's own functions that differ at NaN,
signed zeros or the ends of the range; `array_operations` has those that all libraries share.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from shine.formats.write.array_operations import floored, operations_of, with_sign_of

xp = torch
"""The library, as `array_operations` calls it."""


def numbers(like: Tensor) -> Callable[[float], Tensor]:
    """A function that makes numbers of the same dtype and on the same device."""
    if not like.dtype.is_floating_point:
        raise TypeError(f"the formula takes floating-point numbers, not {like.dtype}")
    return like.new_tensor


def sign(a: Tensor) -> Tensor:
    """1, -1 or 0; NaN for NaN, where torch gives 0."""
    return torch.where(a != a, a, torch.sign(a))


def fmod(a: Tensor, b: Tensor) -> Tensor:
    """The exact remainder; torch's is NaN if a / b overflows, so large multiples of b are removed first."""
    step = 2.0**550 if a.dtype == torch.float64 else 2.0**90
    return torch.fmod(torch.fmod(torch.fmod(a, b * step * step), b * step), b)


def modulo(a: Tensor, b: Tensor) -> Tensor:
    """The remainder that has the sign of the divisor; NaN for the divisor 0."""
    return with_sign_of(xp, b, fmod(a, b))


def floor_divide(a: Tensor, b: Tensor) -> Tensor:
    """The quotient rounded down, from an exact remainder; a / b for the divisor 0."""
    return floored(xp, a, b, fmod(a, b))


def sinh(a: Tensor) -> Tensor:
    """The hyperbolic sine; torch's overflows too early."""
    large = torch.abs(a) > (700 if a.dtype == torch.float64 else 80)
    half = torch.exp(torch.where(large, torch.abs(a), 1.0) / 2)
    return torch.where(large, torch.sign(a) * (half / 2) * half, torch.sinh(torch.where(large, 0.0, a)))


def cosh(a: Tensor) -> Tensor:
    """The hyperbolic cosine; torch's overflows too early."""
    large = torch.abs(a) > (700 if a.dtype == torch.float64 else 80)
    half = torch.exp(torch.where(large, torch.abs(a), 1.0) / 2)
    return torch.where(large, (half / 2) * half, torch.cosh(torch.where(large, 0.0, a)))


OPERATIONS: dict[str, Callable[..., Tensor]] = {
    **operations_of(xp),
    "pow": torch.pow,
    "floordiv": floor_divide,
    "mod": modulo,
    "sign": sign,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": torch.tanh,
}
"""The basic primitives, and composite ones whose definition would have the derivative NaN where it has a value."""
