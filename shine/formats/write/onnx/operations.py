"""The ONNX operators of each primitive, chosen so that ONNX Runtime runs them on the CPU in float64 and float32.

Functions that it lacks in float64, or computes badly, are in `elementary`. In float32, operators that are more than
2 ulp off are computed in float64 and rounded.
"""

from __future__ import annotations

from collections.abc import Callable

from shine.formats.write.onnx import elementary
from shine.formats.write.onnx.elementary import unit
from shine.formats.write.onnx.graph import Value


def _number(condition: Value, like: Value) -> Value:
    return condition.where(like.number(1.0), 0.0)


def _minimum(a: Value, b: Value) -> Value:
    return ((a < b) | a.is_nan()).choose(a, b)


def _maximum(a: Value, b: Value) -> Value:
    return ((a > b) | a.is_nan()).choose(a, b)


def _sign(a: Value) -> Value:
    below = (a < 0.0).where(a.number(-1.0), a.equals(0.0).where(a.number(0.0), a))
    return (a > 0.0).where(a.number(1.0), below)


def _opposite(a: Value, b: Value) -> Value:
    return (a < 0.0).apply("Xor", b < 0.0)


def _modulo(a: Value, b: Value) -> Value:
    remainder = a.apply("Mod", b, fmod=1)
    moved = _opposite(b, remainder).where(remainder + b, remainder)
    zero = remainder.equals(0.0)
    return zero.where(a.number(0.0), moved) * zero.where(unit(b), 1.0)


def _floor_divide(a: Value, b: Value) -> Value:
    remainder = a.apply("Mod", b, fmod=1)
    quotient = (a - remainder) / b
    moves = _opposite(b, remainder) & remainder.differs(0.0)
    quotient = moves.where(quotient - 1.0, quotient)
    below = quotient.apply("Floor")
    below = (quotient - below > 0.5).where(below + 1.0, below)
    plain = a / b
    zero = quotient.equals(0.0)
    return b.equals(0.0).where(plain, zero.where(a.number(0.0), below)) * zero.where(unit(plain), 1.0)


def _node(operator: str) -> Callable[..., Value]:
    return lambda a, *others: a.apply(operator, *others)


def _comparison(operator: str) -> Callable[[Value, Value], Value]:
    return lambda a, b: _number(a.test(operator, b), a)


OPERATIONS: dict[str, Callable[..., Value]] = {
    **{
        name: _node(operator)
        for name, operator in {
            "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "neg": "Neg", "abs": "Abs", "sqrt": "Sqrt",
            "floor": "Floor", "ceil": "Ceil", "exp": "Exp", "log": "Log", "pow": "Pow",
        }.items()
    },
    **{
        name: _comparison(operator)
        for name, operator in {
            "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "eq": "Equal",
        }.items()
    },
    "ne": lambda a, b: _number(a.differs(b), a),
    "floordiv": _floor_divide,
    "mod": _modulo,
    "min": _minimum,
    "max": _maximum,
    "sign": _sign,
    **{
        name: getattr(elementary, name)
        for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")
    },
    "logical_and": lambda a, b: a.equals(0.0).choose(a, b),
    "logical_or": lambda a, b: a.equals(0.0).choose(b, a),
    "logical_not": lambda a: _number(a.equals(0.0), a),
    "where": lambda test, a, b: test.equals(0.0).choose(b, a),
}  # fmt: skip
"""Operation of each basic primitive in float64; also in float32, except for the next two tables."""

SINGLE_OPERATORS = {"sin": "Sin", "cos": "Cos", "tan": "Tan", "sinh": "Sinh", "cosh": "Cosh"}
"""Operators that are within 2 ulp in float32."""

SINGLE_THROUGH_DOUBLE = ("log", "asin", "acos", "atan", "tanh")
"""Primitives computed in float64 and rounded to float32."""


def operations(kind: int, double: int) -> dict[str, Callable[..., Value]]:
    """The operations in the element type `kind`; `double` is the number of float64."""
    if kind == double:
        return OPERATIONS

    def through_double(name: str) -> Callable[[Value], Value]:
        return lambda a: OPERATIONS[name](a.cast(double)).cast(kind)

    return {
        **OPERATIONS,
        **{name: _node(operator) for name, operator in SINGLE_OPERATORS.items()},
        **{name: through_double(name) for name in SINGLE_THROUGH_DOUBLE},
    }
