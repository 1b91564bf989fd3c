"""The nodes of a GraphDef, and values that add nodes to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from shine.base.errors import ExportError
from shine.formats.read.messages import TYPE_NAMES, Messages
from shine.lang.forms.names import unique

TYPES: dict[str, tuple[str, str]] = {
    "float64": ("DT_DOUBLE", "double_val"),
    "float32": ("DT_FLOAT", "float_val"),
    "int32": ("DT_INT32", "int_val"),
    "int64": ("DT_INT64", "int64_val"),
}
"""TensorFlow's name of each number type, and the field of a tensor for its numbers."""

_NUMBERS = {name: number for number, name in TYPE_NAMES.items()}

_PRODUCER = 24
"""Version of the format: that of TensorFlow 1.5, whose nodes are still valid."""


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
        self.message.versions.producer = _PRODUCER
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
        """Where two truth values differ."""
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
