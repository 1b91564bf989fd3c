"""Rules that operations of one pattern share: functions given by a template, tests, comparisons, logic.

A rule takes the `Values` it adds to and the operation's arguments by torch's names, and returns a value. Functions,
methods, modules and ATen operators of the same name share a rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shine.formats.read.torchfx.values import Value, Values, refuse

Rule = Callable[..., Value]


def floating(template: str) -> Rule:
    """Rule of a function of real numbers; whole numbers become floats first."""

    def rule(values: Values, input: Any) -> Value:
        return values.compute(values.floating(values.result_type(input)), template, x=input)

    return rule


def same_type(template: str) -> Rule:
    """Rule of a function that keeps the type of its input."""

    def rule(values: Values, input: Any) -> Value:
        dtype = values.result_type(input)
        if dtype == "bool":
            refuse("torch has no such operation of truth values")
        return values.compute(dtype, template, x=input)

    return rule


def rounded(template: str) -> Rule:
    """Rule of a rounding function, which leaves whole numbers as they are."""

    def rule(values: Values, input: Any, decimals: int = 0) -> Value:
        dtype = values.result_type(input)
        if decimals != 0:
            refuse("rounding to decimals is not supported")
        return values.compute(dtype, template, x=input) if dtype.startswith("float") else values.of(input)

    return rule


def tested(template: str) -> Rule:
    """Rule of a test of one number."""

    def rule(values: Values, input: Any) -> Value:
        return values.test(values.result_type(input), template, x=input)

    return rule


def comparison(template: str) -> Rule:
    """Rule of a comparison of two numbers."""

    def rule(values: Values, input: Any, other: Any) -> Value:
        return values.test(values.result_type(input, other), template, x=input, y=other)

    return rule


def logical(template: str) -> Rule:
    """Rule of a logical operator on truth values."""

    def rule(values: Values, input: Any, other: Any) -> Value:
        x, y = values.truth(values.of(input)), values.truth(values.of(other))
        return values.compute("bool", template, x=x, y=y)

    return rule


def bitwise(template: str) -> Rule:
    """Rule of a bitwise operator, for truth values."""

    def rule(values: Values, input: Any, other: Any) -> Value:
        if values.result_type(input, other) != "bool":
            refuse("bitwise operations are supported for truth values only")
        return logical(template)(values, input, other)

    return rule


def logical_not(values: Values, input: Any) -> Value:
    """`torch.logical_not`."""
    return values.compute("bool", "not x", x=values.truth(values.of(input)))


def bitwise_not(values: Values, input: Any) -> Value:
    """`torch.bitwise_not`."""
    dtype = values.result_type(input)
    return logical_not(values, input) if dtype == "bool" else values.compute(dtype, "-1 - x", x=input)


def activation(template: str, **defaults: float) -> Rule:
    """Rule of a function of a float tensor that has numbers as parameters."""

    def rule(values: Values, input: Any, *given: Any, **named: Any) -> Value:
        parameters = {**defaults, **dict(zip(defaults, given, strict=False)), **named}
        if len(given) > len(defaults) or set(named) - set(defaults):
            refuse(f"it takes {', '.join(defaults)} only")
        dtype = values.result_type(input)
        if not dtype.startswith("float"):
            refuse(f"torch has it for floats only, not for {dtype}")
        return values.compute(dtype, template, x=input, **parameters)

    return rule
