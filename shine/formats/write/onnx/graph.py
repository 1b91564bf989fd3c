"""The nodes of an ONNX graph, and values whose Python operators add nodes to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_SPLITTER = 2.0**27 + 1


class Graph:
    """The nodes of a graph, in the order in which they were asked for.

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
