"""Formulas as graphs of TensorFlow: GraphDef, as text and as bytes.

A value that the formula computes twice is one node. TensorFlow keeps truth values and numbers apart: a comparison is a
node of booleans, followed by a Cast if the formula uses its number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shine.base.errors import ExportError
from shine.formats.read.protobuf import TYPE_NAMES, Messages, messages
from shine.formats.write.sources import Headings, notes, takes_models
from shine.formats.write.straightline import straight_line
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import unique
from shine.lang.forms.tree import Tree

TYPES: dict[str, tuple[str, str]] = {
    "float64": ("DT_DOUBLE", "double_val"),
    "float32": ("DT_FLOAT", "float_val"),
    "int32": ("DT_INT32", "int_val"),
    "int64": ("DT_INT64", "int64_val"),
}
"""TensorFlow's name of each number type, and the field of a tensor for its numbers."""

_NUMBERS = {name: number for number, name in TYPE_NAMES.items()}


class Graph:
    """The nodes of a graph, in the order in which they were asked for; equal nodes are one.

    Parameters
    ----------
    made : Messages
    dtype : str
        The type of all numbers.
    """

    def __init__(self, made: Messages, dtype: str) -> None:
        self.message = made.GraphDef()
        # Version of the format: that of TensorFlow 1.5, whose nodes are still valid.
        self.message.versions.producer = 24
        self.dtype = dtype
        self.names: set[str] = set()
        self.known: dict[tuple[object, ...], Value] = {}
        self.numbered: dict[str, int] = {}

    def placeholder(self, feature: str) -> Value:
        """An argument."""
        # TensorFlow's names are ASCII and begin with a letter or a digit.
        cleaned = re.sub(r"[^A-Za-z0-9_]", "_", feature)
        node = self._new(unique(cleaned if cleaned[0] != "_" else f"x{cleaned}", self.names), "Placeholder")
        self._set_type(node, "dtype", self.dtype)
        node.attr["shape"].shape.unknown_rank = True
        return Value(self, node.name, self.dtype)

    def number(self, value: float) -> Value:
        """A number as a scalar constant; an `ExportError` if an integer type cannot hold it exactly."""
        key = ("number", repr(value))
        if key not in self.known:
            stored = _stored(value, self.dtype)
            node = self._new(self._numbered("Const"), "Const")
            self._set_type(node, "dtype", self.dtype)
            tensor = node.attr["value"].tensor
            tensor.dtype = _NUMBERS[TYPES[self.dtype][0]]
            tensor.tensor_shape.SetInParent()
            getattr(tensor, TYPES[self.dtype][1]).append(stored)
            self.known[key] = Value(self, node.name, self.dtype)
        return self.known[key]

    def node(self, operation: str, dtype: str, *operands: Value, **types: str) -> Value:
        """The value of an operation; `dtype` is its type, and the keywords are those attributes that hold types."""
        key = (operation, *(operand.name for operand in operands), *types.items())
        if key not in self.known:
            name = self._numbered(operation)
            self.add(operation, name, *operands, **types)
            self.known[key] = Value(self, name, dtype)
        return self.known[key]

    def add(self, operation: str, name: str, *operands: Value, **types: str) -> None:
        """Add a node under a name, with a number added if the name is taken."""
        cleaned = re.sub(r"[^A-Za-z0-9_]", "_", name)
        node = self._new(unique(cleaned if cleaned[0] != "_" else f"f{cleaned}", self.names), operation)
        node.input.extend(operand.name for operand in operands)
        for attribute, dtype in types.items():
            self._set_type(node, attribute, dtype)

    def _new(self, name: str, operation: str) -> Any:
        self.names.add(name)
        return self.message.node.add(name=name, op=operation)

    def _numbered(self, stem: str) -> str:
        """A free name, numbered as TensorFlow does; `unique` would try all numbers from 2 on."""
        while True:
            count = self.numbered[stem] = self.numbered.get(stem, -1) + 1
            name = f"{stem}_{count}" if count else stem
            if name not in self.names:
                return name

    def _set_type(self, node: Any, attribute: str, dtype: str) -> None:
        node.attr[attribute].type = _NUMBERS["DT_BOOL" if dtype == "bool" else TYPES[dtype][0]]


def _stored(value: float, dtype: str) -> float | int:
    if dtype == "float64":
        return value
    if dtype == "float32":
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    limits = np.iinfo(dtype)
    if value != int(value) or not limits.min <= value <= limits.max:
        raise ExportError(f"constant {value!r} does not fit {dtype}; use whole numbers within its range, or float64")
    return int(value)


@dataclass(frozen=True, eq=False)
class Value:
    """The output of a node: numbers of the graph's type, or truth values, which become 0 and 1 as numbers.

    Parameters
    ----------
    graph : Graph
    name : str
        Name of the node.
    dtype : str
        The graph's dtype, or "bool".
    """

    graph: Graph
    name: str
    dtype: str

    def apply(self, operation: str, *others: Value) -> Value:
        """Apply an operation on numbers that returns numbers."""
        return self._on_numbers(operation, self.graph.dtype, *others)

    def test(self, operation: str, *others: Value) -> Value:
        """Apply an operation on numbers that returns truth values."""
        return self._on_numbers(operation, "bool", *others)

    def _on_numbers(self, operation: str, dtype: str, *others: Value) -> Value:
        operands = [operand.as_number() for operand in (self, *others)]
        return self.graph.node(operation, dtype, *operands, T=self.graph.dtype)

    def logical(self, operation: str, *others: Value) -> Value:
        """Apply an operation on truth values that returns truth values."""
        return self.graph.node(operation, "bool", *(operand.as_truth() for operand in (self, *others)))

    def differs(self, other: Value) -> Value:
        """Exclusive or of two truth values."""
        return self.graph.node("NotEqual", "bool", self, other, T="bool")

    def where(self, yes: Value, no: Value) -> Value:
        """The first number where this value is true, else the second."""
        numbers = yes.as_number(), no.as_number()
        return self.graph.node("SelectV2", self.graph.dtype, self.as_truth(), *numbers, T=self.graph.dtype)

    def like(self, value: float) -> Value:
        """A constant of the same graph."""
        return self.graph.number(value)

    def as_truth(self) -> Value:
        """As truth values: where the number is not zero."""
        return self if self.dtype == "bool" else self.test("NotEqual", self.like(0.0))

    def as_number(self) -> Value:
        """As numbers: 1 for true, 0 for false."""
        if self.dtype != "bool":
            return self
        return self.graph.node("Cast", self.graph.dtype, self, SrcT="bool", DstT=self.graph.dtype)


Rule = Callable[..., Value]
"""Makes the value of a primitive from its operands."""


def _operation(name: str) -> Rule:
    return lambda a, *others: a.apply(name, *others)


def _comparison(name: str) -> Rule:
    return lambda a, b: a.test(name, b)


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
    "logical_and": lambda a, b: a.logical("LogicalAnd", b) if a.dtype == b.dtype == "bool" else a.where(b, a),
    "logical_or": lambda a, b: a.logical("LogicalOr", b) if a.dtype == b.dtype == "bool" else a.where(a, b),
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


_FORM = "GraphDef"


@takes_models
def graphdef(tree: Tree, name: str = "f", dtype: str = "float64") -> Any:
    """A formula as a GraphDef message.

    Parameters
    ----------
    tree : Tree or Model
    name : str
        Name of the node with the result; a number is added if a feature has the name.
    dtype : {"float64", "float32", "int32", "int64"}
        Type of the arguments and of the result.

    Returns
    -------
    GraphDef
        First a Placeholder of any shape for each feature, in the order of the tree's parameters; their names are the
        features', without characters that TensorFlow does not allow. Then the other nodes, each after its inputs. The
        result has the shape to which the used features broadcast.

    Raises
    ------
    ExportError
        If protobuf is not installed, the formula calls a function without a definition, or the type cannot hold a
        constant or compute a primitive.
    ValueError
        If the dtype is unknown.

    Notes
    -----
    TensorFlow computes both branches of a conditional, and stops with an error if either divides an integer by zero or
    raises an integer to a negative power. Its kernels for floats treat subnormal numbers as zero.
    """
    if dtype not in TYPES:
        raise ValueError(f"unknown dtype {dtype!r}; use one of {', '.join(TYPES)}")
    code = straight_line(tree, _FORM, list(COMPOSITES))
    graph = Graph(messages(), dtype)
    arguments = [graph.placeholder(parameter) for parameter in tree.parameters]
    rules = FLOAT if dtype in ("float64", "float32") else INTEGER
    for body in (code.main, *code.functions.values()):
        for primitive in (step.primitive for step in body.steps if step.primitive):
            if primitive.definition is None and primitive.name not in rules:
                raise ExportError(
                    f"primitive {primitive.name!r} cannot be exported to {_FORM} in {dtype}; use float64 or float32"
                )
    result = code.run(rules, graph.number, arguments)
    graph.add("Identity", name or "f", result.as_number(), T=dtype)
    return graph.message


@takes_models
def graphdef_text(tree: Tree, name: str = "f", dtype: str = "float64", *, headings: Headings | None = None) -> str:
    """A formula as the text of a `.pbtxt` file, with the original headings in comments; see `graphdef`."""
    message = graphdef(tree, name, dtype)
    # The placeholders come first, in the order of the features.
    placeholders = dict(zip(tree.parameters, (node.name for node in message.node), strict=False))
    comments = [f"# {placeholder} is {heading}\n" for placeholder, heading in notes(placeholders, headings).items()]
    text: str = messages().text_format.MessageToString(message)
    return "".join(comments) + text


@takes_models
def graphdef_bytes(tree: Tree, name: str = "f", dtype: str = "float64") -> bytes:
    """A formula as the bytes of a `.pb` file; see `graphdef`."""
    made: bytes = graphdef(tree, name, dtype).SerializeToString(deterministic=True)
    return made
