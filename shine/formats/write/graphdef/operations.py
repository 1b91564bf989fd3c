"""The TensorFlow operations of each primitive."""

from __future__ import annotations

from collections.abc import Callable

from shine.formats.write.graphdef.graph import Value
from shine.lang.forms.library import STANDARD

Rule = Callable[..., Value]
"""Makes the value of a primitive from its operands."""


def _operation(name: str) -> Rule:
    return lambda a, *others: a.apply(name, *others)


def _comparison(name: str) -> Rule:
    return lambda a, b: a.test(name, b)


def _logical_and(a: Value, b: Value) -> Value:
    return a.logical("LogicalAnd", b) if a.dtype == b.dtype == "bool" else a.where(b, a)


def _logical_or(a: Value, b: Value) -> Value:
    return a.logical("LogicalOr", b) if a.dtype == b.dtype == "bool" else a.where(a, b)


def _float_mod(a: Value, b: Value) -> Value:
    """FloorMod; a remainder of zero gets the sign of the divisor."""
    remainder, zero = a.apply("FloorMod", b), a.like(0.0)
    signed = b.test("Less", zero).where(a.like(-0.0), zero)
    return remainder.test("Equal", zero).where(signed, remainder)


def _float_floordiv(a: Value, b: Value) -> Value:
    """Python's `//` (CPython's float_floor_div); TensorFlow's FloorDiv rounds the quotient before the floor."""
    zero = a.like(0.0)
    size = a.apply("Abs").apply("FloorMod", b.apply("Abs"))
    remainder = a.test("Less", zero).where(size.apply("Neg"), size)
    quotient = a.apply("Sub", remainder).apply("RealDiv", b)
    opposite = b.test("Less", zero).differs(remainder.test("Less", zero))
    moves = opposite.logical("LogicalAnd", remainder.test("NotEqual", zero))
    quotient = moves.where(quotient.apply("Sub", a.like(1.0)), quotient)
    floor = quotient.apply("Floor")
    rounded_down = quotient.apply("Sub", floor).test("Greater", a.like(0.5))
    floor = rounded_down.where(floor.apply("AddV2", a.like(1.0)), floor)
    plain = a.apply("RealDiv", b)
    floor = quotient.test("Equal", zero).where(plain.apply("Mul", zero), floor)
    return b.test("Equal", zero).where(plain, floor)


_BASIC: dict[str, Rule] = {
    **{
        name: _operation(operation)
        for name, operation in {
            "add": "AddV2", "sub": "Sub", "mul": "Mul", "pow": "Pow", "min": "Minimum", "max": "Maximum",
            "neg": "Neg", "abs": "Abs", "sign": "Sign", "square": "Square", "relu": "Relu",
        }.items()
    },
    **{
        name: _comparison(operation)
        for name, operation in {
            "lt": "Less", "le": "LessEqual", "gt": "Greater", "ge": "GreaterEqual", "eq": "Equal", "ne": "NotEqual",
        }.items()
    },
    "logical_and": _logical_and,
    "logical_or": _logical_or,
    "logical_not": lambda a: a.logical("LogicalNot"),
    "where": lambda test, a, b: test.where(a, b),
}  # fmt: skip
"""Rules of the primitives that all number types have."""

FLOAT: dict[str, Rule] = _BASIC | {
    **{
        name: _operation(operation)
        for name, operation in {
            "div": "RealDiv", "sqrt": "Sqrt", "exp": "Exp", "log": "Log", "floor": "Floor", "ceil": "Ceil",
            "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan",
            "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh",
            "inv": "Reciprocal", "log1p": "Log1p", "expm1": "Expm1",
        }.items()
    },
    "floordiv": _float_floordiv,
    "mod": _float_mod,
}  # fmt: skip
"""Rules for floating-point numbers."""

INTEGER: dict[str, Rule] = _BASIC | {
    "div": _operation("Div"),
    "floordiv": _operation("FloorDiv"),
    "mod": _operation("FloorMod"),
    "floor": lambda a: a,
    "ceil": lambda a: a,
    "inv": lambda a: a.like(1.0).apply("Div", a),
}
"""Rules for integers."""

COMPOSITES = tuple(name for name in FLOAT if STANDARD[name].definition is not None)
"""Composite primitives that TensorFlow has as operations."""
