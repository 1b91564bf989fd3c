"""The operation of each primitive in torch. Importing this module imports torch; exports contain its functions' text.

The functions take tensors of one dtype, float64 or float32. They replace torch's own functions that differ at NaN,
signed zeros or the ends of the range; `array_operations` has those that all libraries share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from shine.formats.write.statements.array_operations import SHARED


def numbers(like: Tensor) -> Callable[[float], Tensor]:
    """A function that makes numbers of the same dtype and on the same device."""
    if not like.dtype.is_floating_point:
        raise TypeError(f"the formula takes floating-point numbers, not {like.dtype}")
    return like.new_tensor


def filled(value: Tensor, columns: Sequence[Tensor], arguments: Sequence[Tensor]) -> Tensor:
    """A value that depends on no feature, repeated for each row."""
    return torch.broadcast_to(value, columns[0].shape if columns else arguments[0].shape[:-1])


def sign(a: Tensor) -> Tensor:
    """1, -1 or 0; NaN for NaN, where torch gives 0."""
    return torch.where(a != a, a, torch.sign(a))


def fmod(a: Tensor, b: Tensor) -> Tensor:
    """The exact remainder; torch's is NaN if a / b overflows, so large multiples of b are removed first."""
    step = 2.0**550 if a.dtype == torch.float64 else 2.0**90
    return torch.fmod(torch.fmod(torch.fmod(a, b * step * step), b * step), b)


def modulo(a: Tensor, b: Tensor) -> Tensor:
    """The remainder that has the sign of the divisor; NaN for the divisor 0."""
    remainder = fmod(a, b)
    moved = torch.where((b < 0) != (remainder < 0), remainder + b, remainder)
    return torch.where(remainder == 0, torch.copysign(torch.zeros_like(moved), b), moved)


def floor_divide(a: Tensor, b: Tensor) -> Tensor:
    """The quotient rounded down, from an exact remainder; a / b for the divisor 0."""
    remainder = fmod(a, b)
    quotient = (a - remainder) / b
    moves = (remainder != 0) & ((b < 0) != (remainder < 0))
    quotient = torch.where(moves, quotient - 1, quotient)
    below = torch.floor(quotient)
    below = torch.where(quotient - below > 0.5, below + 1, below)
    plain = a / b
    below = torch.where(quotient == 0, torch.copysign(torch.zeros_like(plain), plain), below)
    return torch.where(b == 0, plain, below)


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


def less(a: Tensor, b: Tensor) -> Tensor:
    """1 where a < b, else 0."""
    return (a < b).to(a.dtype)


def less_equal(a: Tensor, b: Tensor) -> Tensor:
    """1 where a <= b, else 0."""
    return (a <= b).to(a.dtype)


def greater(a: Tensor, b: Tensor) -> Tensor:
    """1 where a > b, else 0."""
    return (a > b).to(a.dtype)


def greater_equal(a: Tensor, b: Tensor) -> Tensor:
    """1 where a >= b, else 0."""
    return (a >= b).to(a.dtype)


def equal(a: Tensor, b: Tensor) -> Tensor:
    """1 where a == b, else 0."""
    return (a == b).to(a.dtype)


def not_equal(a: Tensor, b: Tensor) -> Tensor:
    """1 where a != b, else 0."""
    return (a != b).to(a.dtype)


def logical_not(a: Tensor) -> Tensor:
    """1 where a is 0, else 0."""
    return (a == 0).to(a.dtype)


OPERATIONS: dict[str, Callable[..., Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "pow": torch.pow,
    "neg": torch.neg,
    **{name: getattr(torch, name) for name in ("abs", "sqrt", "exp", "log", "floor", "ceil", "sin", "cos", "tan")},
    **{name: getattr(torch, name) for name in ("asin", "acos", "atan", "tanh")},
    "floordiv": floor_divide,
    "mod": modulo,
    "sign": sign,
    "sinh": sinh,
    "cosh": cosh,
    "lt": less,
    "le": less_equal,
    "gt": greater,
    "ge": greater_equal,
    "eq": equal,
    "ne": not_equal,
    "logical_not": logical_not,
    **{name: partial(function, torch) for name, function in SHARED.items()},
}
"""The basic primitives, and composite ones whose definition would have the derivative NaN where it has a value."""
