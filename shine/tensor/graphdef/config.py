"""Feeds and fetches of a graph: the `Config` of TensorFlow's compiler, or names and shapes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shine.base.errors import GraphImportError, placed
from shine.lang.forms.names import shown, value_text
from shine.tensor.graphdef.constants import ELEMENTS, Shape, dtype_name, shape_from_message
from shine.tensor.graphdef.files import Source, read_message
from shine.tensor.graphdef.order import parse_reference


@dataclass(frozen=True)
class Feed:
    """A value that is given when the function is called; the graph is cut there.

    Parameters
    ----------
    node : str
    index : int
        Index of the node's output.
    shape : tuple or None
        The known part.
    dtype : str
        Element type; empty for the one that the graph says.
    name : str
        Of the argument; empty for that of the node.
    """

    node: str
    index: int = 0
    shape: Shape = None
    dtype: str = ""
    name: str = ""

    @property
    def label(self) -> str:
        """Name of the argument."""
        return self.name or (f"{self.node}:{self.index}" if self.index else self.node)


@dataclass(frozen=True)
class Fetch:
    """A result: an output of a node, and perhaps its required shape and element type."""

    node: str
    index: int = 0
    name: str = ""
    shape: Shape = None
    dtype: str = ""

    @property
    def text(self) -> str:
        """As the graph writes it."""
        return f"{self.node}:{self.index}" if self.index else self.node

    @property
    def label(self) -> str:
        """Name of the result."""
        return self.name or self.text


@dataclass(frozen=True)
class Signature:
    """Feeds and fetches.

    Parameters
    ----------
    feeds : tuple of Feed, optional
        None for all placeholders that are needed.
    fetches : tuple of Fetch, optional
        None for all nodes that no other node reads.
    variables : tuple of Feed
        Variables that are given like feeds, after them.
    """

    feeds: tuple[Feed, ...] | None
    fetches: tuple[Fetch, ...] | None
    variables: tuple[Feed, ...] = ()


def read_config(source: Source) -> Signature:
    """The signature in a tf2xla `Config`, as text or binary.

    Raises
    ------
    GraphImportError
        If it is no such file, or says something that is not possible.
    """
    with placed("config" if isinstance(source, bytes) else f"config {os.fspath(source)}", GraphImportError):
        return _signature(read_message(source, "Config"))


def _signature(message: Any) -> Signature:
    feeds = tuple(Feed(*_identity(each.id), **_typed(each)) for each in message.feed)
    fetches = tuple(Fetch(*_identity(each.id), **_typed(each)) for each in message.fetch)
    if not fetches:
        raise GraphImportError("it has no fetch; name at least one result")
    for given, what in ((feeds, "feed"), (fetches, "fetch")):
        for listed in ([f"{each.node}:{each.index}" for each in given], [each.label for each in given]):
            repeated = [each for each in listed if listed.count(each) > 1]
            if repeated:
                raise GraphImportError(f"there are two of {what} {shown(repeated[0])}")
    variables = []
    for each in message.variable:
        if not each.readonly:
            raise GraphImportError(
                f"variable {shown(each.node_name)} is not readonly; variables that a function changes are not supported"
            )
        variables.append(Feed(each.node_name, **_typed(each)))
    return Signature(feeds, fetches, tuple(variables))


def _identity(message: Any) -> tuple[str, int]:
    if not message.node_name:
        raise GraphImportError("an id has no node_name")
    if not 0 <= message.output_index <= 999_999:  # largest number of an output
        raise GraphImportError(f"output_index {message.output_index} of {shown(message.node_name)} must be at least 0")
    # A name of an output is a usual slip.
    if ":" in message.node_name or message.node_name.startswith("^"):
        raise GraphImportError(f"node_name {shown(message.node_name)} must be a node's name; write output_index apart")
    return message.node_name, message.output_index


def _typed(message: Any) -> dict[str, Any]:
    return {
        "shape": shape_from_message(message.shape) if message.HasField("shape") else None,
        "dtype": dtype_name(message.type, ELEMENTS) if message.type else "",
        "name": message.name,
    }


def named(feeds: Sequence[str] | Mapping[str, Sequence[int] | None] | None, fetches: Sequence[str] | None) -> Signature:
    """The signature of names of outputs, `"name"` or `"name:1"`, with shapes or without.

    A `GraphImportError` if a name is none, or listed twice.
    """
    for given, what in ((feeds, "feeds"), (fetches, "fetches")):
        if isinstance(given, str):
            raise TypeError(f"{what} is a sequence of names, not one string")
        if given is not None and not (isinstance(given, Iterable) and all(isinstance(name, str) for name in given)):
            raise TypeError(f"{what} is a sequence of names, and not {value_text(given)}")
        if given is not None and len(set(given)) < len(given):
            raise GraphImportError(f"{what}: a name is listed twice")
    made = None
    if feeds is not None:
        shapes = feeds if isinstance(feeds, Mapping) else dict.fromkeys(feeds)
        made = tuple(
            Feed(*_reference(name, "feed"), shape=None if shape is None else sizes_of(name, shape))
            for name, shape in shapes.items()
        )
    if fetches is not None and not fetches:
        raise GraphImportError("fetches is empty; name at least one node")
    return Signature(made, None if fetches is None else tuple(Fetch(*_reference(each, "fetch")) for each in fetches))


def sizes_of(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape that is given for a feed; a `TypeError` if it is no sequence."""
    if not isinstance(shape, Iterable):
        raise TypeError(f"feeds: the shape of {shown(name)} is a sequence of sizes, and not {value_text(shape)}")
    return tuple(shape)


def _reference(text: str, what: str) -> tuple[str, int]:
    try:
        found = parse_reference(text)
    except GraphImportError as error:
        raise GraphImportError(f"{what} {error}") from None
    return found.node, found.number
