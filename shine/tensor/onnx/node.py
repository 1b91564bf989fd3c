"""A node as the rules see it: its inputs, attributes and operator set."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Value
from shine.tensor.frontend.graph_builder import GraphBuilder, Operand, numbers
from shine.tensor.onnx.files import read_model

_KINDS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings"}
"""The field of each type of attribute, by its number in onnx.proto."""


@dataclass(frozen=True, eq=False)
class Node:
    """A node in the making.

    Parameters
    ----------
    operator : str
    inputs : tuple of (Operand or None)
        None for those that are left out.
    attributes : mapping of str
        Numbers, text, lists, tensors and graphs as messages.
    version : int
        Of the operator set.
    outputs : int
        Number of named outputs.
    b : GraphBuilder
        The function in the making.
    """

    operator: str
    inputs: tuple[Operand | None, ...]
    attributes: dict[str, Any]
    version: int
    outputs: int
    b: GraphBuilder

    @property
    def builder(self) -> FunctionBuilder:
        """For compositions."""
        return self.b.builder

    def input(self, place: int) -> Operand:
        """An input that must be there."""
        found = self.optional(place)
        if found is None:
            raise GraphImportError(f"its input {place} is missing")
        return found

    def optional(self, place: int) -> Operand | None:
        """An input that may be left out."""
        return self.inputs[place] if place < len(self.inputs) else None

    def value(self, place: int) -> Value:
        """An input as a value, for compositions."""
        return self.input(place).value

    @property
    def values(self) -> list[Operand]:
        """All inputs."""
        return [self.input(place) for place in range(len(self.inputs))]

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute; of the kind of its default, if there is one.

        A `GraphImportError` if it is missing and has no default, or is of another kind.
        """
        found = self.attributes.get(name, default)
        if found is None:
            raise GraphImportError(f"its attribute {name} is missing")
        kinds = (int, float) if isinstance(default, float) else type(default)
        if default is not None and not isinstance(found, kinds):
            raise GraphImportError(f"its attribute {name} = {found!r} is not {type(default).__name__}")
        # All floats of ONNX are single, defaults too.
        return float(np.float32(found)) if isinstance(default, float) else found

    def sizes(self, name: str, place: int, default: tuple[int, ...] | None = None) -> tuple[int, ...] | None:
        """Integers that are an attribute in older operator sets, and a constant input in newer ones."""
        given = self.optional(place)
        if given is not None:
            return numbers(given, name)
        found = self.attributes.get(name, default)
        if found is not None and not isinstance(found, tuple):
            raise GraphImportError(f"its attribute {name} is no list of integers")
        return found

    def axis(self, name: str, default: int, rank: int) -> int:
        """An axis, counted from the end if it is negative."""
        return checked_axis(self.get(name, default), rank)


def checked_axis(axis: int, rank: int) -> int:
    """An axis, counted from the end if it is negative."""
    if not -rank <= axis < rank:
        raise GraphImportError(f"its axis {axis} is not one of {rank}")
    return axis % rank


def checked_axes(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Axes in ascending order."""
    found = tuple(sorted(checked_axis(axis, rank) for axis in axes))
    if len(set(found)) != len(found):
        raise GraphImportError(f"its axes {list(axes)} name one twice")
    return found


def attributes_of(node: Any) -> dict[str, Any]:
    """The attributes of a node message."""
    found: dict[str, Any] = {}
    for attribute in node.attribute:
        field = _KINDS.get(attribute.type)
        if field is None:
            raise GraphImportError(f"its attribute {attribute.name} has a type that is not supported")
        value = getattr(attribute, field)
        if field == "s":
            value = value.decode("utf-8", "replace")
        elif field == "strings":
            value = tuple(text.decode("utf-8", "replace") for text in value)
        elif field in ("floats", "ints"):
            value = tuple(value)
        found[attribute.name] = value
    return found


def batch_shapes(source: str | os.PathLike[str] | bytes, rows: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the inputs of which only the first axis is open, with so many rows.

    A `GraphImportError` if it is none.
    """
    graph = read_model(source)[0].graph
    constants = {tensor.name for tensor in graph.initializer}
    found = {}
    for given in graph.input:
        sizes = given.type.tensor_type.shape.dim
        if given.name in constants or not sizes or sizes[0].HasField("dim_value"):
            continue
        if all(size.HasField("dim_value") for size in sizes[1:]):
            found[given.name] = (rows, *(size.dim_value for size in sizes[1:]))
    return found
