"""Formulas as graphs of TensorFlow: GraphDef, as text and as bytes.

What the formula computes twice is one node. TensorFlow keeps truth and numbers apart, so that a comparison is a node of
booleans, with a Cast behind it where the formula goes on with its number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shine.errors import ExportError, GraphImportError
from shine.export.statements.straightline import straight_line, unique
from shine.frontends.graphdef.messages import TYPE_NAMES, Messages, messages
from shine.lang.library import STANDARD
from shine.lang.tree import Tree

_FORM = "GraphDef"

_TYPES: dict[str, tuple[str, str]] = {
    "float64": ("DT_DOUBLE", "double_val"),
    "float32": ("DT_FLOAT", "float_val"),
    "int32": ("DT_INT32", "int_val"),
    "int64": ("DT_INT64", "int64_val"),
}
"""TensorFlow's name of each number type, and the field of a tensor that has such numbers."""

_NUMBERS = {name: number for number, name in TYPE_NAMES.items()}

_PRODUCER = 24
"""Version of the format: that of TensorFlow 1.5, whose nodes are still those of today."""


def graphdef(tree: Tree, name: str = "f", dtype: str = "float64") -> Any:
    """A formula as a GraphDef message.

    Parameters
    ----------
    tree : Tree
    name : str
        Of the node that is the result; with a number added where a feature has that name.
    dtype : {"float64", "float32", "int32", "int64"}
        Of the arguments and the result.

    Returns
    -------
    GraphDef
        A Placeholder of any shape a feature, in the order of the tree's parameters and called as they are, but for
        characters that TensorFlow's names do not have; then the other nodes, each after those it needs. The result has
        the shape to which those of the features that it needs broadcast.

    Raises
    ------
    ExportError
        If protobuf is not installed, the formula calls a function without a meaning, or a primitive or a number has
        none in the type.
    ValueError
        If there is no such dtype.

    Notes
    -----
    TensorFlow takes both branches of a conditional, and ends with an error where integers are divided by zero in
    either, or raised to a negative power. In floats, its kernels take subnormal numbers for zero.
    """
    if dtype not in _TYPES:
        raise ValueError(f"unknown dtype {dtype!r}; use one of {', '.join(_TYPES)}")
    code = straight_line(tree, _FORM, list(_COMPOSITES))
    graph = _Graph(_messages(), dtype)
    arguments = [graph.placeholder(parameter) for parameter in tree.parameters]
    rules = _FLOAT if dtype in ("float64", "float32") else _INTEGER
    for body in (code.main, *code.functions.values()):
        for primitive in (step.primitive for step in body.steps if step.primitive):
            if primitive.definition is None and primitive.name not in rules:
                raise ExportError(
                    f"primitive {primitive.name!r} cannot be exported to {_FORM} in {dtype}; use float64 or float32"
                )
    result = code.run(rules, graph.number, arguments)
    graph.add("Identity", name or "f", result.as_number(), T=dtype)
    return graph.message


def graphdef_text(tree: Tree, name: str = "f", dtype: str = "float64") -> str:
    """A formula as the text of a `.pbtxt` file; see `graphdef`."""
    text: str = _messages().text_format.MessageToString(graphdef(tree, name, dtype))
    return text


def graphdef_bytes(tree: Tree, name: str = "f", dtype: str = "float64") -> bytes:
    """A formula as the bytes of a `.pb` file; see `graphdef`."""
    made: bytes = graphdef(tree, name, dtype).SerializeToString(deterministic=True)
    return made


def _messages() -> Messages:
    try:
        return messages()
    except GraphImportError:
        raise ExportError(
            "the export to GraphDef needs protobuf; install it with: pip install 'shine[tensorflow]'"
        ) from None


class _Graph:
    """Nodes in the order they were asked for, each once.

    Parameters
    ----------
    made : Messages
    dtype : str
        Type of all numbers.
    """

    def __init__(self, made: Messages, dtype: str) -> None:
        self.message = made.GraphDef()
        self.message.versions.producer = _PRODUCER
        self.dtype = dtype
        self.names: set[str] = set()
        self.known: dict[tuple[object, ...], _Value] = {}
        self.numbered: dict[str, int] = {}

    def placeholder(self, feature: str) -> _Value:
        """An argument."""
        # A name of TensorFlow's begins with a letter or a digit, and is ASCII.
        cleaned = re.sub(r"[^A-Za-z0-9_]", "_", feature)
        node = self._new(unique(cleaned if cleaned[0] != "_" else f"x{cleaned}", self.names), "Placeholder")
        self._set_type(node, "dtype", self.dtype)
        node.attr["shape"].shape.unknown_rank = True
        return _Value(self, node.name, self.dtype)

    def number(self, value: float) -> _Value:
        """A number as a scalar constant.

        Raises
        ------
        ExportError
            If an integer type cannot hold it exactly.
        """
        key = ("number", repr(value))
        if key not in self.known:
            stored = _stored(value, self.dtype)
            node = self._new(self._numbered("Const"), "Const")
            self._set_type(node, "dtype", self.dtype)
            tensor = node.attr["value"].tensor
            tensor.dtype = _NUMBERS[_TYPES[self.dtype][0]]
            tensor.tensor_shape.SetInParent()
            getattr(tensor, _TYPES[self.dtype][1]).append(stored)
            self.known[key] = _Value(self, node.name, self.dtype)
        return self.known[key]

    def node(self, operation: str, dtype: str, *operands: _Value, **types: str) -> _Value:
        """The value of an operation, of a type; keywords are the node's attributes that are types."""
        key = (operation, *(operand.name for operand in operands), *types.items())
        if key not in self.known:
            name = self._numbered(operation)
            self.add(operation, name, *operands, **types)
            self.known[key] = _Value(self, name, dtype)
        return self.known[key]

    def add(self, operation: str, name: str, *operands: _Value, **types: str) -> None:
        """Add a node under a name, or one with a number behind it where that is taken."""
        cleaned = re.sub(r"[^A-Za-z0-9_]", "_", name)
        node = self._new(unique(cleaned if cleaned[0] != "_" else f"f{cleaned}", self.names), operation)
        node.input.extend(operand.name for operand in operands)
        for attribute, dtype in types.items():
            self._set_type(node, attribute, dtype)

    def _new(self, name: str, operation: str) -> Any:
        self.names.add(name)
        return self.message.node.add(name=name, op=operation)

    def _numbered(self, stem: str) -> str:
        """A free name, numbered as TensorFlow does; `unique` would try all numbers from the beginning."""
        while True:
            count = self.numbered[stem] = self.numbered.get(stem, -1) + 1
            name = f"{stem}_{count}" if count else stem
            if name not in self.names:
                return name

    def _set_type(self, node: Any, attribute: str, dtype: str) -> None:
        node.attr[attribute].type = _NUMBERS["DT_BOOL" if dtype == "bool" else _TYPES[dtype][0]]


def _stored(value: float, dtype: str) -> float | int:
    if dtype == "float64":
        return value
    if dtype == "float32":
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    limits = np.iinfo(dtype)
    if value != int(value) or not limits.min <= value <= limits.max:
        raise ExportError(f"constant {value!r} is no {dtype}; use whole numbers within its range, or float64")
    return int(value)


@dataclass(frozen=True, eq=False)
class _Value:
    """What a node computes: numbers of the graph's type, or truth, which becomes 0 and 1 where numbers are needed.

    Parameters
    ----------
    graph : _Graph
    name : str
        Of the node.
    dtype : str
        The graph's, or "bool".
    """

    graph: _Graph
    name: str
    dtype: str

    def apply(self, operation: str, *others: _Value) -> _Value:
        """An operation on numbers, with a number as its result."""
        return self._on_numbers(operation, self.graph.dtype, *others)

    def test(self, operation: str, *others: _Value) -> _Value:
        """An operation on numbers, with truth as its result."""
        return self._on_numbers(operation, "bool", *others)

    def _on_numbers(self, operation: str, dtype: str, *others: _Value) -> _Value:
        operands = [operand.as_number() for operand in (self, *others)]
        return self.graph.node(operation, dtype, *operands, T=self.graph.dtype)

    def logical(self, operation: str, *others: _Value) -> _Value:
        """An operation on truth, with truth as its result."""
        return self.graph.node(operation, "bool", *(operand.as_truth() for operand in (self, *others)))

    def differs(self, other: _Value) -> _Value:
        """Whether one of two truths holds and the other does not."""
        return self.graph.node("NotEqual", "bool", self, other, T="bool")

    def where(self, yes: _Value, no: _Value) -> _Value:
        """One of two numbers, as this truth says."""
        numbers = yes.as_number(), no.as_number()
        return self.graph.node("SelectV2", self.graph.dtype, self.as_truth(), *numbers, T=self.graph.dtype)

    def like(self, value: float) -> _Value:
        """A number of the same graph."""
        return self.graph.number(value)

    def as_truth(self) -> _Value:
        """Whether the number is not zero."""
        return self if self.dtype == "bool" else self.test("NotEqual", self.like(0.0))

    def as_number(self) -> _Value:
        """1 where it is true, 0 elsewhere; a number as it is."""
        if self.dtype != "bool":
            return self
        return self.graph.node("Cast", self.graph.dtype, self, SrcT="bool", DstT=self.graph.dtype)


Rule = Callable[..., _Value]


def _operation(name: str) -> Rule:
    return lambda a, *others: a.apply(name, *others)


def _comparison(name: str) -> Rule:
    return lambda a, b: a.test(name, b)


def _logical_and(a: _Value, b: _Value) -> _Value:
    return a.logical("LogicalAnd", b) if a.dtype == b.dtype == "bool" else a.where(b, a)


def _logical_or(a: _Value, b: _Value) -> _Value:
    return a.logical("LogicalOr", b) if a.dtype == b.dtype == "bool" else a.where(a, b)


def _float_mod(a: _Value, b: _Value) -> _Value:
    """FloorMod, with the sign of the divisor for a remainder of zero."""
    remainder, zero = a.apply("FloorMod", b), a.like(0.0)
    signed = b.test("Less", zero).where(a.like(-0.0), zero)
    return remainder.test("Equal", zero).where(signed, remainder)


def _float_floordiv(a: _Value, b: _Value) -> _Value:
    """Python's `//` (CPython's float_floor_div): TensorFlow's FloorDiv is the floor of a quotient that is rounded."""
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
"""What the primitives are that all number types have."""

_FLOAT: dict[str, Rule] = _BASIC | {
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

_INTEGER: dict[str, Rule] = _BASIC | {
    "div": _operation("Div"),
    "floordiv": _operation("FloorDiv"),
    "mod": _operation("FloorMod"),
    "floor": lambda a: a,
    "ceil": lambda a: a,
    "inv": lambda a: a.like(1.0).apply("Div", a),
}

_COMPOSITES = tuple(name for name in _FLOAT if STANDARD[name].definition is not None)
"""Primitives of the library that TensorFlow has as operations."""
