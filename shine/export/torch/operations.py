"""The operation of each primitive in torch. Importing this module imports torch; exports contain its functions' text.

The functions take tensors of one dtype, float64 or float32. They replace torch's own functions that differ at NaN,
signed zeros or the ends of the range. A choice between two values keeps the value that is not chosen away from zero
divisors and the like, so that its derivative is never NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def columns_of(arguments: Sequence[Tensor], count: int) -> list[Tensor]:
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


def numbers(like: Tensor) -> Callable[[float], Tensor]:
    """A function that makes numbers of the same dtype and on the same device."""
    if not like.dtype.is_floating_point:
        raise TypeError(f"the formula takes floating-point numbers, not {like.dtype}")
    return like.new_tensor


def filled(value: Tensor, columns: Sequence[Tensor], arguments: Sequence[Tensor]) -> Tensor:
    """A value that depends on no feature, repeated for each row."""
    return torch.broadcast_to(value, columns[0].shape if columns else arguments[0].shape[:-1])


def minimum(a: Tensor, b: Tensor) -> Tensor:
    """The smaller number, NaN if either is; of equal ones, 0.0 and -0.0 among them, the second."""
    return torch.where((a < b) | (a != a), a, b)


def maximum(a: Tensor, b: Tensor) -> Tensor:
    """The larger number, NaN if either is; of equal ones, 0.0 and -0.0 among them, the second."""
    return torch.where((a > b) | (a != a), a, b)


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


def logical_and(a: Tensor, b: Tensor) -> Tensor:
    """One of the operands: the second unless the first is 0."""
    return torch.where(a != 0, b, a)


def logical_or(a: Tensor, b: Tensor) -> Tensor:
    """One of the operands: the first unless it is 0."""
    return torch.where(a != 0, a, b)


def logical_not(a: Tensor) -> Tensor:
    """1 where a is 0, else 0."""
    return (a == 0).to(a.dtype)


def where(test: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The second operand unless the first is 0, then the third."""
    return torch.where(test != 0, a, b)


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), with the derivative 0 where exp overflows."""
    overflows = torch.isinf(torch.exp(-x))
    return torch.where(overflows, 0.0, 1 / (1 + torch.exp(torch.where(overflows, 0.0, -x))))


def log1p(x: Tensor) -> Tensor:
    """Kahan's correction of log(1 + x), with the derivative 1 where it is 0 / 0."""
    u = 1 + x
    corrected = torch.log(u) * (x / torch.where(u == 1, 1.0, u - 1))
    return torch.where(u == 1, x, torch.where(u == x, torch.log(u), corrected))


def expm1(x: Tensor) -> Tensor:
    """Kahan's correction of exp(x) - 1, with the derivative 1 where it is 0 / 0."""
    u = torch.exp(x)
    flat = (u - 1 == u) | (u - 1 == -1)
    corrected = (u - 1) * (x / torch.log(torch.where((u == 1) | flat, 2.0, u)))
    return torch.where(u == 1, x, torch.where(flat, u - 1, corrected))


def hypot(a: Tensor, b: Tensor) -> Tensor:
    """The length of (a, b), scaled by the longer leg; with the derivative 0 at (0, 0)."""
    large = maximum(torch.abs(a), torch.abs(b))
    small = minimum(torch.abs(a), torch.abs(b))
    alone = (small == 0) | (large - large != 0)
    ratio = small / torch.where(alone, 1.0, large)
    return torch.where(alone, large, large * torch.sqrt(1 + ratio * ratio))


def protected_div(a: Tensor, b: Tensor) -> Tensor:
    """a / b, or 1 for small divisors."""
    far = torch.abs(b) > 0.001
    return torch.where(far, a / torch.where(far, b, 1.0), 1.0)


def protected_log(x: Tensor) -> Tensor:
    """log(abs(x)), or 0 for small numbers."""
    far = torch.abs(x) > 0.001
    return torch.where(far, torch.log(torch.where(far, torch.abs(x), 1.0)), 0.0)


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
    "min": minimum,
    "max": maximum,
    "sign": sign,
    "sinh": sinh,
    "cosh": cosh,
    "lt": less,
    "le": less_equal,
    "gt": greater,
    "ge": greater_equal,
    "eq": equal,
    "ne": not_equal,
    "logical_and": logical_and,
    "logical_or": logical_or,
    "logical_not": logical_not,
    "where": where,
    "sigmoid": sigmoid,
    "log1p": log1p,
    "expm1": expm1,
    "hypot": hypot,
    "protected_div": protected_div,
    "protected_log": protected_log,
}
"""The basic primitives, and the composite ones whose derivative would be NaN at points where they have a value."""
