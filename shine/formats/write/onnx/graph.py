"""The nodes of an ONNX graph: values with Python's operators, and elementary functions written in them.

ONNX Runtime lacks six elementary functions in float64, and its sine, cosine and hyperbolic tangent are many ulp off.
These are the algorithms of Shine's own compiled functions, with the same coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shine.compiler.codegen.vecmath.exponential import DOUBLE_SINH, DOUBLE_TANH
from shine.compiler.codegen.vecmath.reduction import QUARTER_TURN_PARTS
from shine.compiler.codegen.vecmath.trigonometric import (
    ARCTANGENT_FAR,
    ARCTANGENTS,
    DOUBLE_ASIN,
    DOUBLE_ATAN,
    DOUBLE_COS,
    DOUBLE_SIN,
    HALF_PI,
    PI,
)

_SPLITTER = 2.0**27 + 1


class Graph:
    """The nodes of a graph, in the order in which they were asked for."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.initializers: dict[tuple[str, int], Any] = {}

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; returns the name of its output."""
        output = f"v{len(self.nodes) + 1}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def number(self, number: float, kind: int) -> str:
        """The name of a constant of an element type."""
        key = (repr(number), kind)
        if key not in self.initializers:
            name = f"c{len(self.initializers) + 1}"
            self.initializers[key] = self.onnx.helper.make_tensor(name, kind, [], [number])
        return str(self.initializers[key].name)


@dataclass(frozen=True, eq=False)
class Value:
    """A value of the graph; Python's operators add nodes.

    Parameters
    ----------
    graph : Graph
    name : str
    kind : int
        ONNX's number of the element type: float64, float32 or bool.
    """

    graph: Graph
    name: str
    kind: int

    def apply(self, operator: str, *others: Value | float, **attributes: Any) -> Value:
        """Apply an operator to this value and others; the result has the same type."""
        names = [self._operand(other).name for other in others]
        return Value(self.graph, self.graph.node(operator, self.name, *names, **attributes), self.kind)

    def _operand(self, other: Value | float) -> Value:
        return other if isinstance(other, Value) else self.number(other)

    def number(self, number: float) -> Value:
        """A constant of this value's type."""
        return Value(self.graph, self.graph.number(number, self.kind), self.kind)

    def test(self, operator: str, *others: Value | float) -> Value:
        """Apply an operator that returns a condition."""
        return Value(self.graph, self.apply(operator, *others).name, int(self.graph.onnx.TensorProto.BOOL))

    def where(self, yes: Value, no: Value | float) -> Value:
        """`yes` where this condition holds, else `no`; ONNX Runtime may turn -0.0 into 0.0."""
        other = yes._operand(no)
        return Value(self.graph, self.graph.node("Where", self.name, yes.name, other.name), yes.kind)

    def choose(self, yes: Value, no: Value) -> Value:
        """As `where`, but keeps the sign of zeros by choosing between their inverses, too."""
        chosen = self.where(yes, no)
        negative = (chosen < 0.0) | (self.where(1.0 / yes, 1.0 / no) < 0.0)
        return chosen.magnitude() * negative.where(chosen.number(-1.0), 1.0)

    def cast(self, kind: int) -> Value:
        """The same numbers in another element type."""
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
        """The condition that it is NaN."""
        return self.test("IsNaN")

    def magnitude(self) -> Value:
        """The absolute value."""
        return self.apply("Abs")

    def head(self) -> Value:
        """The number rounded to 26 bits, by Dekker's product."""
        scaled = self * _SPLITTER
        return scaled - (scaled - self)


REDUCED = 2.0**16
"""Largest angle that is reduced to the first quarter turn here; ONNX Runtime's own functions take larger ones."""


def unit(a: Value) -> Value:
    """1 or -1, the sign of a number, zeros included."""
    return (a.equals(0.0).where(1.0 / a, a) < 0.0).where(a.number(-1.0), 1.0)


def _polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    result = x.number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


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
    """`sin`, `cos` or `tan`; beyond `REDUCED` the library's value for the angle without its sign."""
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
    return result * unit(a)


def sin(a: Value) -> Value:
    """The sine."""
    return _circular(a, a.magnitude().apply("Sin"), "sin")


def cos(a: Value) -> Value:
    """The cosine."""
    return _circular(a, a.apply("Cos"), "cos")


def tan(a: Value) -> Value:
    """The tangent."""
    return _circular(a, a.magnitude().apply("Sin") / a.apply("Cos"), "tan")


def _arcsine_parts(a: Value) -> tuple[Value, Value, Value]:
    """Whether |a| < 1/2; then asin(|a|), else asin(sqrt((1 - |a|) / 2)), as the sum of two numbers."""
    size = a.magnitude()
    small = size < 0.5
    square = small.where(size * size, (1.0 - size) * 0.5)
    root = square.apply("Sqrt")
    s = small.where(size, root)
    head = small.where(size, root.head())
    # The denominator must not be zero.
    remainder = small.where(a.number(0.0), (square - head * head) / root.equals(0.0).where(a.number(1.0), root + head))
    return small, head, s * (square * _polynomial(square, DOUBLE_ASIN)) + remainder


def asin(a: Value) -> Value:
    """The arc sine."""
    small, head, tail = _arcsine_parts(a)
    far_head = HALF_PI[0] - 2.0 * head
    lost = (HALF_PI[0] - far_head) - 2.0 * head
    return small.where(head + tail, far_head - (2.0 * tail - (HALF_PI[1] + lost))) * unit(a)


def acos(a: Value) -> Value:
    """The arc cosine."""
    small, head, tail = _arcsine_parts(a)
    negative = a < 0.0
    start = small.where(a.number(HALF_PI[0]), negative.where(a.number(PI[0]), 0.0))
    start_tail = small.where(a.number(HALF_PI[1]), negative.where(a.number(PI[1]), 0.0))
    factor = small.where(a.number(-1.0), 2.0)
    factor = negative.where(-factor, factor)
    head, tail = head * factor, tail * factor
    total = start + head
    return total + (tail + (start_tail + ((start - total) + head)))


def atan(a: Value) -> Value:
    """The arc tangent."""
    size = a.magnitude()
    centre = start = start_tail = a.number(0.0)
    for begin, middle, arc, arc_tail in ARCTANGENTS:
        before = size < begin
        centre = before.where(centre, middle)
        start = before.where(start, arc)
        start_tail = before.where(start_tail, arc_tail)
    far = size > ARCTANGENT_FAR
    start = far.where(a.number(HALF_PI[0]), start)
    start_tail = far.where(a.number(HALF_PI[1]), start_tail)
    t = far.where(a.number(-1.0), size - centre) / far.where(size, 1.0 + centre * size)
    square = t * t
    return (start + (t + (start_tail + t * square * _polynomial(square, DOUBLE_ATAN)))) * unit(a)


def _exponential_halves(size: Value) -> tuple[Value, Value, Value]:
    """Whether e**size may overflow; e**size where it does not; e**size / 2, from two factors, where it may."""
    large = size > 700.0
    power = large.where(size.number(0.0), size).apply("Exp")
    half = (large.where(size, 0.0) * 0.5).apply("Exp")
    return large, power, (half * 0.5) * half


def sinh(a: Value) -> Value:
    """The hyperbolic sine."""
    size = a.magnitude()
    large, power, huge = _exponential_halves(size)
    square = size * size
    near = size + size * square * _polynomial(square, DOUBLE_SINH)
    far = large.where(huge, (power - 1.0 / power) * 0.5)
    return (size < 1.0).where(near, far) * unit(a)


def cosh(a: Value) -> Value:
    """The hyperbolic cosine."""
    large, power, huge = _exponential_halves(a.magnitude())
    return large.where(huge, (power + 1.0 / power) * 0.5)


def tanh(a: Value) -> Value:
    """The hyperbolic tangent."""
    size = a.magnitude()
    square = size * size
    above, below = (_polynomial(square, coefficients) for coefficients in DOUBLE_TANH)
    near = size + size * square * above / below
    # Beyond 22 the result is 1; the bound keeps the power from overflowing.
    bounded = (size > 22.0).where(size.number(22.0), size)
    far = 1.0 - 2.0 / ((bounded + bounded).apply("Exp") + 1.0)
    return (size < 0.55).where(near, far) * unit(a)
