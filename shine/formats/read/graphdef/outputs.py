"""Outputs of nodes: those that a graph's user wants, and those that other nodes read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from shine.base.errors import GraphImportError
from shine.formats.read.graphdef.order import Reference, Step, ordered_steps, parse_reference, shown, unread_nodes

T = TypeVar("T")


class Outputs(NamedTuple, Generic[T]):
    """The outputs of a node, with their names if they have any: functions read them by name."""

    values: Sequence[T]
    names: Sequence[str] = ()


def chosen(values: Mapping[str, Outputs[T]], reference: Reference) -> T:
    """The output of a node that a reference names.

    Raises
    ------
    GraphImportError
        If the node has no such output.
    """
    found, names = values[reference.node]
    index = reference.number
    if reference.output is not None and names:
        if reference.output not in names:
            raise GraphImportError(f"{shown(reference.node)} has no output {shown(reference.output)}")
        index += names.index(reference.output)
    if index >= len(found):
        plural = "s" * (len(found) != 1)
        raise GraphImportError(f"{shown(reference.node)} has no output {index}; it has {len(found)} output{plural}")
    return found[index]


def wanted_steps(
    nodes: Mapping[str, Any], outputs: Sequence[str] | None
) -> tuple[list[tuple[str, Reference]], list[Step]]:
    """The results by label, and the nodes they need.

    Parameters
    ----------
    nodes : mapping of str to NodeDef
    outputs : sequence of str, optional
        By default all nodes that no other node reads.

    Raises
    ------
    GraphImportError
        If a result does not exist, or a node that it needs.
    """
    if outputs is None:
        names = unread_nodes(nodes)
        # Ordering all nodes also finds a loop that no result needs.
        steps = ordered_steps(nodes, names, others=nodes)
        if not names:
            raise GraphImportError("the graph has no results: every node is read by another; name some with outputs=")
        return [(name, Reference(name, None, 0)) for name in names], steps
    if not outputs:
        raise GraphImportError("outputs is empty; name at least one node")
    if len(set(outputs)) < len(outputs):
        raise GraphImportError("an output is listed twice")
    results = []
    for label in outputs:
        try:
            reference = parse_reference(label)
        except GraphImportError as error:
            raise GraphImportError(f"output {error}") from None
        if reference.node not in nodes:
            raise GraphImportError(f"there is no node {shown(reference.node)}; {_some(nodes)}")
        results.append((label, reference))
    return results, ordered_steps(nodes, [reference.node for _, reference in results])


def _some(names: Mapping[str, Any]) -> str:
    listed = list(names)[:20]
    return f"nodes are {', '.join(map(shown, listed))}{', ...' if len(names) > len(listed) else ''}"
