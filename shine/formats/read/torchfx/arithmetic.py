"""Arithmetic, extremes and choices as torch computes them."""

from __future__ import annotations

import math
from typing import Any

from shine.formats.read.torchfx.rules import Rule, logical, rounded
from shine.formats.read.torchfx.templates import ROUNDED
from shine.formats.read.torchfx.values import Value, Values, refuse


def add(values: Values, input: Any, other: Any, alpha: Any = 1) -> Value:
    """`torch.add`."""
    dtype = values.result_type(input, other)
    if dtype == "bool":
        return logical("x or y")(values, input, other)
    template = "x + y" if alpha == 1 else "x + alpha*y"
    return values.compute(dtype, template, x=input, y=other, **({} if alpha == 1 else {"alpha": alpha}))


def sub(values: Values, input: Any, other: Any, alpha: Any = 1) -> Value:
    """`torch.sub`."""
    dtype = values.result_type(input, other)
    if dtype == "bool":
        refuse("torch has no difference of truth values")
    template = "x - y" if alpha == 1 else "x - alpha*y"
    return values.compute(dtype, template, x=input, y=other, **({} if alpha == 1 else {"alpha": alpha}))


def rsub(values: Values, input: Any, other: Any, alpha: Any = 1) -> Value:
    """`torch.rsub`."""
    return sub(values, other, input, alpha)


def mul(values: Values, input: Any, other: Any) -> Value:
    """`torch.mul`."""
    return values.compute(values.result_type(input, other), "x*y", x=input, y=other)


def div(values: Values, input: Any, other: Any, rounding_mode: str | None = None) -> Value:
    """`torch.div`."""
    if rounding_mode == "floor":
        return floor_divide(values, input, other)
    dtype = values.result_type(input, other)
    if rounding_mode is None:
        return values.compute(values.floating(dtype), "x/y", x=input, y=other)
    quotient = values.compute(numeric(dtype), "x/y", x=input, y=other)
    return rounded(ROUNDED["trunc"])(values, quotient)


def floor_divide(values: Values, input: Any, other: Any) -> Value:
    """`torch.floor_divide`."""
    return values.compute(numeric(values.result_type(input, other)), "x//y", x=input, y=other)


def remainder(values: Values, input: Any, other: Any) -> Value:
    """`torch.remainder`."""
    return values.compute(numeric(values.result_type(input, other)), "x % y", x=input, y=other)


def fmod(values: Values, input: Any, other: Any) -> Value:
    """`torch.fmod`."""
    dtype = numeric(values.result_type(input, other))
    # The remainder of absolute values is exact; the quotient of whole numbers truncates.
    floats = "-(abs(x) % abs(y)) if x < 0 else abs(x) % abs(y)"
    return values.compute(dtype, floats if dtype.startswith("float") else "x - x/y*y", x=input, y=other)


def numeric(dtype: str) -> str:
    """A type that is not bool."""
    if dtype == "bool":
        refuse("torch has no division of truth values")
    return dtype


POWERS: dict[float, str] = {
    0.5: "sqrt(x)", 1: "x", 2: "x*x", 3: "x*x*x", -0.5: "1/sqrt(x)", -1: "1/x", -2: "1/(x*x)"
}  # fmt: skip
"""Powers of floats that torch computes as other functions."""


def power(values: Values, input: Any, exponent: Any) -> Value:
    """`torch.pow`."""
    dtype = values.result_type(input, exponent)
    power = values.of(exponent)
    if dtype == "bool":
        refuse("powers of truth values are not supported")
    if power.constant is not None and dtype.startswith("float") and power.constant in POWERS:
        return values.compute(dtype, POWERS[power.constant], x=input)
    if power.constant is not None and power.constant < 0 and not dtype.startswith("float"):
        refuse("torch has no negative powers of whole numbers")
    if not dtype.startswith("float") and power.constant is None:
        # A negative power of the integer zero is 0, not an error.
        base = values.chosen(dtype, values.test(dtype, "y < 0 and x == 0", x=input, y=exponent), 2, input)
        return values.compute(dtype, "x**y", x=base, y=exponent)
    return values.compute(dtype, "x**y", x=input, y=exponent)


def extreme(name: str) -> Rule:
    """Rule of `torch.maximum` or `torch.minimum`."""

    def rule(values: Values, input: Any, other: Any) -> Value:
        return values.compute(values.result_type(input, other), f"{name}(x, y)", x=input, y=other)

    return rule


def extreme_of_tensors(name: str) -> Rule:
    """Rule of `torch.max` or `torch.min` of two tensors."""

    def rule(values: Values, input: Any, other: Any = None) -> Value:
        if not isinstance(other, Value):
            refuse(f"only {name} of two tensors is elementwise")
        return extreme(name)(values, input, other)

    return rule


def extreme_number(name: str) -> Rule:
    """Rule of `torch.fmax` or `torch.fmin`, which ignore NaN."""

    def rule(values: Values, input: Any, other: Any) -> Value:
        template = f"y if x != x else x if y != y else {name}(x, y)"
        return values.compute(values.result_type(input, other), template, x=input, y=other)

    return rule


def clamp(values: Values, input: Any, min: Any = None, max: Any = None) -> Value:
    """`torch.clamp`."""
    if min is None and max is None:
        refuse("clamp needs at least one bound")
    bounds = [bound for bound in (min, max) if bound is not None]
    dtype = values.result_type(input, *bounds)
    if min is None:
        return values.compute(dtype, "min(x, high)", x=input, high=max)
    if max is None:
        return values.compute(dtype, "max(x, low)", x=input, low=min)
    return values.compute(dtype, "min(max(x, low), high)", x=input, low=min, high=max)


def clamp_min(values: Values, input: Any, min: Any) -> Value:
    """`torch.clamp_min`."""
    return clamp(values, input, min=min)


def clamp_max(values: Values, input: Any, max: Any) -> Value:
    """`torch.clamp_max`."""
    return clamp(values, input, max=max)


def hardtanh(values: Values, input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Value:
    """`torch.nn.functional.hardtanh`."""
    dtype = values.result_type(input)
    return values.compute(dtype, "min(max(x, low), high)", x=input, low=min_val, high=max_val)


def gelu(values: Values, input: Any, approximate: str = "none") -> Value:
    """`torch.nn.functional.gelu`."""
    if approximate != "tanh":
        refuse("gelu needs the error function, which the language lacks; approximate='tanh' is supported")
    inner, factor = "x + 0.044715*(x*x*x)", math.sqrt(2 / math.pi)
    return values.compute(values.result_type(input), f"0.5*x*(1 + tanh(factor*({inner})))", x=input, factor=factor)


def where(values: Values, condition: Any, input: Any, other: Any) -> Value:
    """`torch.where`."""
    return values.chosen(values.result_type(input, other), condition, input, other)


def where_method(values: Values, input: Any, condition: Any, other: Any) -> Value:
    """`torch.Tensor.where`."""
    return where(values, condition, input, other)


def masked_fill(values: Values, input: Any, mask: Any, value: Any) -> Value:
    """`torch.masked_fill`."""
    return values.chosen(values.result_type(input), mask, value, input)


def lerp(values: Values, input: Any, end: Any, weight: Any) -> Value:
    """`torch.lerp`."""
    template = "x + w*(y - x) if abs(w) < 0.5 else y - (y - x)*(1 - w)"
    return values.compute(values.result_type(input, end, weight), template, x=input, y=end, w=weight)


def addcmul(values: Values, input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Value:
    """`torch.addcmul`."""
    dtype = values.result_type(input, tensor1, tensor2)
    return values.compute(dtype, "x + value*a*b", x=input, a=tensor1, b=tensor2, value=value)


def addcdiv(values: Values, input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Value:
    """`torch.addcdiv`."""
    dtype = values.result_type(input, tensor1, tensor2)
    if not dtype.startswith("float"):
        refuse("torch has it for floats only")
    return values.compute(dtype, "x + value*a/b", x=input, a=tensor1, b=tensor2, value=value)


def hypot(values: Values, input: Any, other: Any) -> Value:
    """`torch.hypot`."""
    return values.compute(values.floating(values.result_type(input, other)), "hypot(x, y)", x=input, y=other)


def xlogy(values: Values, input: Any, other: Any) -> Value:
    """`torch.xlogy`."""
    template = "y if y != y else 0 if x == 0 else x*log(y)"
    return values.compute(values.floating(values.result_type(input, other)), template, x=input, y=other)


def threshold(values: Values, input: Any, threshold: Any, value: Any) -> Value:
    """`torch.nn.functional.threshold`."""
    dtype = values.result_type(input)
    return values.compute(dtype, "value if x <= threshold else x", x=input, threshold=threshold, value=value)
