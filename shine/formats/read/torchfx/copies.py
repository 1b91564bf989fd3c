"""Operations that compute nothing: copies, conversions, filled tensors."""

from __future__ import annotations

from typing import Any

from shine.formats.read.torchfx.rules import Rule
from shine.formats.read.torchfx.values import Value, Values, refuse


def unchanged(values: Values, input: Any, **options: Any) -> Value:
    """Copies, and other operations that change no number."""
    return values.of(input)


def dropout(values: Values, input: Any, p: float = 0.5, training: bool = True) -> Value:
    """`torch.nn.functional.dropout` outside training."""
    if training and p:
        refuse("dropout is random while training; call eval() on the module first")
    return values.of(input)


def to(values: Values, input: Any, *targets: Any, **options: Any) -> Value:
    """`torch.Tensor.to`."""
    value = values.of(input)
    for target in (*targets, options.get("dtype"), options.get("other")):
        if isinstance(target, Value):
            value = values.converted(value, target.dtype)
        elif isinstance(target, values.torch.dtype):
            value = values.converted(value, values.storage_type(target))
        elif isinstance(target, str) and target != "cpu":
            refuse(f"{target!r} is neither a number type nor the CPU")
    return value


def type_as(values: Values, input: Any, other: Any) -> Value:
    """`torch.Tensor.type_as`."""
    return values.converted(values.of(input), values.of(other).dtype)


def to_type(dtype: str) -> Rule:
    """Rule of a conversion to a type."""

    def rule(values: Values, input: Any) -> Value:
        return values.converted(values.of(input), dtype)

    return rule


def filled(constant: float) -> Rule:
    """Rule of `torch.zeros_like` or `torch.ones_like`."""

    def rule(values: Values, input: Any, dtype: Any = None, **options: Any) -> Value:
        return full_like(values, input, constant, dtype=dtype)

    return rule


def full_like(values: Values, input: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Value:
    """`torch.full_like`."""
    like = values.of(input)
    kind = like.dtype if dtype is None else values.storage_type(dtype)
    if not isinstance(fill_value, bool | int | float):
        refuse("only a number can fill a tensor")
    number = values.converted(values.of(fill_value), kind).constant
    # A number suffices: the new tensor has the dimensions of `input`.
    return Value(kind, constant=number, scalar=like.scalar)


def scalar_tensor(values: Values, s: Any, dtype: Any = None, **options: Any) -> Value:
    """`torch.scalar_tensor`."""
    kind = values.of(s).dtype if dtype is None else values.storage_type(dtype)
    return Value(kind, constant=values.converted(values.of(s), kind).constant, scalar=True)


def full(values: Values, size: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Value:
    """`torch.full` of a single number."""
    if len(size):
        refuse("it makes an array of its own; only full_like and numbers are supported")
    return scalar_tensor(values, fill_value, dtype)
