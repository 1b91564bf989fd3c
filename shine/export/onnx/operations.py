"""What the primitives are in ONNX: nodes whose operators ONNX Runtime has on the CPU in float64 and float32.

Six operators are missing there in float64, and sine, cosine and the hyperbolic tangent are many units in the last place
off. These are written out as what Shine's own compiled functions do (docs/accuracy.md), with their coefficients. In
float32, the operators that are more than 2 ulp off are computed in float64 and rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from shine.codegen.vecmath.exponential import DOUBLE_SINH, DOUBLE_TANH
from shine.codegen.vecmath.reduction import QUARTER_TURN_PARTS
from shine.codegen.vecmath.trigonometric import DOUBLE_ASIN, DOUBLE_ATAN, DOUBLE_COS, DOUBLE_SIN, HALF_PI, PI

REDUCED = 2.0**16
"""Largest angle that is brought into the first quarter turn here; ONNX Runtime's own functions take those beyond."""

_SPLITTER = 2.0**27 + 1


class Graph:
    """Nodes in the order they were asked for.

    Parameters
    ----------
    onnx : module
        The library.
    """

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.initializers: dict[tuple[str, int], Any] = {}

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; the name of its output."""
        output = f"v{len(self.nodes) + 1}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def number(self, number: float, kind: int) -> str:
        """The name of a number of an element type."""
        key = (repr(number), kind)
        if key not in self.initializers:
            name = f"c{len(self.initializers) + 1}"
            self.initializers[key] = self.onnx.helper.make_tensor(name, kind, [], [number])
        return str(self.initializers[key].name)


@dataclass(frozen=True, eq=False)
class Value:
    """A value of the graph, which operators of Python make nodes from.

    Parameters
    ----------
    graph : Graph
    name : str
    kind : int
        Element type: that of float64, float32 or bool.
    """

    graph: Graph
    name: str
    kind: int

    def apply(self, operator: str, *others: Value | float, **attributes: Any) -> Value:
        """The operator applied to this value and others, with a result of the same type."""
        names = [self._operand(other).name for other in others]
        return Value(self.graph, self.graph.node(operator, self.name, *names, **attributes), self.kind)

    def _operand(self, other: Value | float) -> Value:
        return other if isinstance(other, Value) else self.number(other)

    def number(self, number: float) -> Value:
        """A number of this value's type."""
        return Value(self.graph, self.graph.number(number, self.kind), self.kind)

    def test(self, operator: str, *others: Value | float) -> Value:
        """The same with a condition as its result."""
        return Value(self.graph, self.apply(operator, *others).name, int(self.graph.onnx.TensorProto.BOOL))

    def where(self, yes: Value, no: Value | float) -> Value:
        """This condition's choice; ONNX Runtime may make 0.0 of -0.0."""
        other = yes._operand(no)
        return Value(self.graph, self.graph.node("Where", self.name, yes.name, other.name), yes.kind)

    def choose(self, yes: Value, no: Value) -> Value:
        """This condition's choice, with the sign of zeros, which their inverses carry past the operator."""
        chosen = self.where(yes, no)
        negative = (chosen < 0.0) | (self.where(1.0 / yes, 1.0 / no) < 0.0)
        return chosen.magnitude() * negative.where(chosen.number(-1.0), 1.0)

    def cast(self, kind: int) -> Value:
        """The same numbers in another type."""
        return Value(self.graph, self.graph.node("Cast", self.name, to=kind), kind)

    def __add__(self, other: Value | float) -> Value:
        return self.apply("Add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self.apply("Sub", other)

    def __mul__(self, other: Value | float) -> Value:
        return self.apply("Mul", other)

    def __truediv__(self, other: Value | float) -> Value:
        return self.apply("Div", other)

    def __radd__(self, other: float) -> Value:
        return self.number(other) + self

    def __rsub__(self, other: float) -> Value:
        return self.number(other) - self

    def __rmul__(self, other: float) -> Value:
        return self.number(other) * self

    def __rtruediv__(self, other: float) -> Value:
        return self.number(other) / self

    def __neg__(self) -> Value:
        return self.apply("Neg")

    def __lt__(self, other: Value | float) -> Value:
        return self.test("Less", other)

    def __gt__(self, other: Value | float) -> Value:
        return self.test("Greater", other)

    def __or__(self, other: Value) -> Value:
        return self.test("Or", other)

    def __and__(self, other: Value) -> Value:
        return self.test("And", other)

    def equals(self, other: Value | float) -> Value:
        """The condition that the numbers are equal."""
        return self.test("Equal", other)

    def differs(self, other: Value | float) -> Value:
        """The condition that the numbers are not equal; NaN is not equal to itself."""
        return self.equals(other).test("Not")

    def is_nan(self) -> Value:
        """The condition that it is no number."""
        return self.test("IsNaN")

    def magnitude(self) -> Value:
        """Without the sign."""
        return self.apply("Abs")

    def head(self) -> Value:
        """The number rounded to 26 bits, by Dekker's product."""
        scaled = self * _SPLITTER
        return scaled - (scaled - self)


def _number(condition: Value, like: Value) -> Value:
    return condition.where(like.number(1.0), 0.0)


def _unit(a: Value) -> Value:
    """1 or -1, as the sign is, of zeros too."""
    return (a.equals(0.0).where(1.0 / a, a) < 0.0).where(a.number(-1.0), 1.0)


def _polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    result = x.number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


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
    return zero.where(a.number(0.0), moved) * zero.where(_unit(b), 1.0)


def _floor_divide(a: Value, b: Value) -> Value:
    remainder = a.apply("Mod", b, fmod=1)
    quotient = (a - remainder) / b
    moves = _opposite(b, remainder) & remainder.differs(0.0)
    quotient = moves.where(quotient - 1.0, quotient)
    below = quotient.apply("Floor")
    below = (quotient - below > 0.5).where(below + 1.0, below)
    plain = a / b
    zero = quotient.equals(0.0)
    return b.equals(0.0).where(plain, zero.where(a.number(0.0), below)) * zero.where(_unit(plain), 1.0)


def _reduced(a: Value) -> tuple[Value, Value, Value]:
    """|a| as quarter turns and r + tail, |r| <= pi/4, for |a| <= REDUCED; the turns modulo 4."""
    size = a.magnitude()
    k = (size * (2.0 / PI[0]) + 0.5).apply("Floor")
    first, second, third = (k * part for part in QUARTER_TURN_PARTS)
    # The first two products and the first difference are exact.
    coarse = size - first
    middle = coarse - second
    lost = (coarse - middle) - second
    r = middle + (lost - third)
    tail = (middle - r) + (lost - third)
    return k - 4.0 * (k * 0.25).apply("Floor"), r, tail


def _sine_and_cosine(r: Value, tail: Value) -> tuple[Value, Value]:
    square = r * r
    half = 0.5 * square
    one_less = 1.0 - half
    sine = r + (r * square * _polynomial(square, DOUBLE_SIN) + tail * one_less)
    cosine = one_less + (((1.0 - one_less) - half) + (square * square * _polynomial(square, DOUBLE_COS) - r * tail))
    return sine, cosine


def _circular(a: Value, library: Value, name: str) -> Value:
    """One of the functions of an angle; beyond `REDUCED` the library's, of the angle without its sign."""
    quarters, r, tail = _reduced(a)
    sine, cosine = _sine_and_cosine(r, tail)
    odd = quarters.equals(1.0) | quarters.equals(3.0)
    if name == "tan":
        result = odd.where(-cosine, sine) / odd.where(sine, cosine)
    elif name == "sin":
        turned = odd.where(cosine, sine)
        result = (quarters > 1.5).where(-turned, turned)
    else:
        turned = odd.where(sine, cosine)
        result = (quarters.equals(1.0) | quarters.equals(2.0)).where(-turned, turned)
    result = (a.magnitude() > REDUCED).where(library, result)
    if name == "cos":
        return result
    return result * _unit(a)


def _sin(a: Value) -> Value:
    return _circular(a, a.magnitude().apply("Sin"), "sin")


def _cos(a: Value) -> Value:
    return _circular(a, a.apply("Cos"), "cos")


def _tan(a: Value) -> Value:
    return _circular(a, a.magnitude().apply("Sin") / a.apply("Cos"), "tan")


def _arcsine_parts(a: Value) -> tuple[Value, Value, Value]:
    """Whether |a| < 1/2, and asin(|a|) there or asin(sqrt((1 - |a|) / 2)) elsewhere, as two numbers to be added."""
    size = a.magnitude()
    small = size < 0.5
    square = small.where(size * size, (1.0 - size) * 0.5)
    root = square.apply("Sqrt")
    s = small.where(size, root)
    head = small.where(size, root.head())
    # The denominator must not be zero.
    remainder = small.where(a.number(0.0), (square - head * head) / root.equals(0.0).where(a.number(1.0), root + head))
    return small, head, s * (square * _polynomial(square, DOUBLE_ASIN)) + remainder


def _asin(a: Value) -> Value:
    small, head, tail = _arcsine_parts(a)
    far_head = HALF_PI[0] - 2.0 * head
    lost = (HALF_PI[0] - far_head) - 2.0 * head
    return small.where(head + tail, far_head - (2.0 * tail - (HALF_PI[1] + lost))) * _unit(a)


def _acos(a: Value) -> Value:
    small, head, tail = _arcsine_parts(a)
    negative = a < 0.0
    start = small.where(a.number(HALF_PI[0]), negative.where(a.number(PI[0]), 0.0))
    start_tail = small.where(a.number(HALF_PI[1]), negative.where(a.number(PI[1]), 0.0))
    factor = small.where(a.number(-1.0), 2.0)
    factor = negative.where(-factor, factor)
    head, tail = head * factor, tail * factor
    total = start + head
    return total + (tail + (start_tail + ((start - total) + head)))


# Where the centres of atan's intervals begin, the centres, and their arc tangents in two parts: fdlibm's choice.
_ARCTANGENTS = (
    (7 / 16, 0.5, 0.4636476090008061, 2.2698777452961687e-17),
    (11 / 16, 1.0, 0.7853981633974483, 3.061616997868383e-17),
    (19 / 16, 1.5, 0.982793723247329, 1.3903311031230998e-17),
)


def _atan(a: Value) -> Value:
    size = a.magnitude()
    centre = start = start_tail = a.number(0.0)
    for begin, middle, arc, arc_tail in _ARCTANGENTS:
        before = size < begin
        centre = before.where(centre, middle)
        start = before.where(start, arc)
        start_tail = before.where(start_tail, arc_tail)
    far = size > 39 / 16
    start = far.where(a.number(HALF_PI[0]), start)
    start_tail = far.where(a.number(HALF_PI[1]), start_tail)
    t = far.where(a.number(-1.0), size - centre) / far.where(size, 1.0 + centre * size)
    square = t * t
    return (start + (t + (start_tail + t * square * _polynomial(square, DOUBLE_ATAN)))) * _unit(a)


def _exponential_halves(size: Value) -> tuple[Value, Value, Value]:
    """Whether e**size may overflow; e**size where not; e**size / 2 where it may, from two factors."""
    large = size > 700.0
    power = large.where(size.number(0.0), size).apply("Exp")
    half = (large.where(size, 0.0) * 0.5).apply("Exp")
    return large, power, (half * 0.5) * half


def _sinh(a: Value) -> Value:
    size = a.magnitude()
    large, power, huge = _exponential_halves(size)
    square = size * size
    near = size + size * square * _polynomial(square, DOUBLE_SINH)
    far = large.where(huge, (power - 1.0 / power) * 0.5)
    return (size < 1.0).where(near, far) * _unit(a)


def _cosh(a: Value) -> Value:
    large, power, huge = _exponential_halves(a.magnitude())
    return large.where(huge, (power + 1.0 / power) * 0.5)


def _tanh(a: Value) -> Value:
    size = a.magnitude()
    square = size * size
    above, below = (_polynomial(square, coefficients) for coefficients in DOUBLE_TANH)
    near = size + size * square * above / below
    # Beyond 22 it is 1, and no power overflows.
    bounded = (size > 22.0).where(size.number(22.0), size)
    far = 1.0 - 2.0 / ((bounded + bounded).apply("Exp") + 1.0)
    return (size < 0.55).where(near, far) * _unit(a)


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
    "sin": _sin,
    "cos": _cos,
    "tan": _tan,
    "asin": _asin,
    "acos": _acos,
    "atan": _atan,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "logical_and": lambda a, b: a.equals(0.0).choose(a, b),
    "logical_or": lambda a, b: a.equals(0.0).choose(b, a),
    "logical_not": lambda a: _number(a.equals(0.0), a),
    "where": lambda test, a, b: test.equals(0.0).choose(b, a),
}  # fmt: skip
"""What each basic primitive becomes in float64; in float32, but for the next two tables."""

SINGLE_OPERATORS = {"sin": "Sin", "cos": "Cos", "tan": "Tan", "sinh": "Sinh", "cosh": "Cosh"}
"""Operators that are within 2 ulp in float32."""

SINGLE_THROUGH_DOUBLE = ("log", "asin", "acos", "atan", "tanh")
"""Primitives that are computed in float64 and rounded to float32."""


def operations(kind: int, double: int) -> dict[str, Callable[..., Value]]:
    """The operations in an element type, given the one that float64 has."""
    if kind == double:
        return OPERATIONS

    def through_double(name: str) -> Callable[[Value], Value]:
        return lambda a: OPERATIONS[name](a.cast(double)).cast(kind)

    return {
        **OPERATIONS,
        **{name: _node(operator) for name, operator in SINGLE_OPERATORS.items()},
        **{name: through_double(name) for name in SINGLE_THROUGH_DOUBLE},
    }
