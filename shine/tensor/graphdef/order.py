"""The order of nodes, their inputs and their outputs, and a sequence of computation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from shine.base.errors import GraphImportError
from shine.lang.forms.names import shown

_REFERENCE = re.compile(r"(?P<node>[^:^]+)(?::(?P<output>[A-Za-z_][A-Za-z0-9_]*))?(?::(?P<index>[0-9]{1,6}))?")

PLACEHOLDERS = ("Placeholder", "PlaceholderWithDefault")
"""Ops of the nodes that become a program's arguments."""

_SINK = "NoOp"
_LEAVES = (*PLACEHOLDERS, "Const")


class Reference(NamedTuple):
    """One output of a node, as an input names it: ``node``, ``node:1``, or in functions ``node:output:1``."""

    node: str
    output: str | None
    number: int


@dataclass(frozen=True, eq=False)
class Step:
    """A node and its inputs, without control inputs."""

    node: Any
    inputs: tuple[Reference, ...]


def parse_reference(text: str) -> Reference:
    """Parse an input that is not a control input; a `GraphImportError` if the text is not a reference."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise GraphImportError(f"{shown(text)} is not an output of a node; write 'name' or 'name:1'")
    return Reference(match["node"], match["output"], int(match["index"] or 0))


def named_nodes(nodes: Iterable[Any], taken: Iterable[str] = ()) -> dict[str, Any]:
    """The nodes of a graph or of a function by name.

    A `GraphImportError` if two have the same name, or one has none.
    """
    result: dict[str, Any] = dict.fromkeys(taken)
    for position, node in enumerate(nodes):
        name = node.name
        if not name:
            raise GraphImportError(f"node number {position} (op {shown(node.op)}) has no name; every node needs one")
        if name in result:
            raise GraphImportError(f"there are two nodes with the name {shown(name)}; names must differ")
        result[name] = node
    return {name: node for name, node in result.items() if node is not None}


def unread_nodes(nodes: Mapping[str, Any]) -> list[str]:
    """Names of the nodes that no other node reads: by default, they are the results of a graph."""
    read = {text.removeprefix("^").split(":")[0] for node in nodes.values() for text in node.input}
    unread = [name for name, node in nodes.items() if name not in read and node.op != _SINK]
    return [name for name in unread if nodes[name].op not in _LEAVES] or unread


def ordered_steps(
    nodes: Mapping[str, Any], results: Sequence[str], arguments: Iterable[str] | None = None, others: Iterable[str] = ()
) -> list[Step]:
    """The nodes that the results need, each after the nodes that it reads.

    Parameters
    ----------
    nodes : mapping of str to NodeDef
    results : sequence of str
        Names of nodes or arguments.
    arguments : iterable of str, optional
        Arguments of a function, which its nodes may read.
    others : iterable of str
        Names of nodes that are only checked.

    Raises
    ------
    GraphImportError
        If a node reads a node that does not exist, or depends on itself.
    """
    in_function = arguments is not None
    inputs: dict[str, tuple[Reference, ...]] = {}
    order: list[str] = []
    done: set[str] = set(arguments or ())
    for start in (*results, *others):
        # A name is pushed twice: the second entry, marked, is popped when all its inputs are done.
        stack: list[tuple[str, bool]] = [] if start in done else [(start, False)]
        while stack:
            name, complete = stack.pop()
            if complete:
                order.append(name)
                done.add(name)
                continue
            if name in inputs:
                continue
            data, control = _read_inputs(nodes[name], in_function)
            inputs[name] = data
            stack.append((name, True))
            for other in (*(reference.node for reference in reversed(data)), *control):
                if other not in done:
                    if other not in nodes:
                        raise GraphImportError(
                            f"{_place(nodes[name])}: reads {shown(other)}, but there is no such node"
                        )
                    if other in inputs:
                        raise GraphImportError(_cycle(other, name, inputs, stack))
                    stack.append((other, False))
    needed = set(results)
    for name in reversed(order):
        if name in needed:
            needed.update(reference.node for reference in inputs[name])
    return [Step(nodes[name], inputs[name]) for name in order if name in needed]


def _place(node: Any) -> str:
    return f"node {shown(node.name)} (op {shown(node.op)})"


def _read_inputs(node: Any, in_function: bool) -> tuple[tuple[Reference, ...], list[str]]:
    data: list[Reference] = []
    control: list[str] = []
    try:
        for text in node.input:
            if text.startswith("^"):
                control.append(text[1:])
            else:
                data.append(parse_reference(text))
                if data[-1].output is not None and not in_function:
                    raise GraphImportError(f"{shown(text)} names an output, which only functions allow; write 'name:1'")
    except GraphImportError as error:
        raise GraphImportError(f"{_place(node)}: input {error}") from None
    return tuple(data), control


def _cycle(first: str, last: str, inputs: Mapping[str, object], stack: Sequence[tuple[str, bool]]) -> str:
    path = [name for name, complete in stack if complete]
    names = path[path.index(first) :] if first in path else [first, last]
    between = [f"({len(names) - 4} more)"] if len(names) > 6 else []
    listed = [*names[:3], *names[-1:]] if between else names
    text = " reads ".join([*map(shown, listed[:3]), *between, *map(shown, listed[3:]), shown(first)])
    return f"node {shown(first)} depends on itself: {text}; loops are not supported"


T = TypeVar("T")


class Outputs(NamedTuple, Generic[T]):
    """The outputs of a node, with their names if they have any: functions read them by name."""

    values: Sequence[T]
    names: Sequence[str] = ()


def chosen(values: Mapping[str, Outputs[T]], reference: Reference) -> T:
    """The output of a node that a reference names; a `GraphImportError` if the node has no such output."""
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
