"""Conditions of TensorFlow 1, which `Switch` and `Merge` write: each `Merge` becomes a choice by a predicate.

Both branches are computed, and the predicate chooses: branches only compute values, and nothing here can fail. A branch
is found by walking back from an input of `Merge` to `Switch` nodes, over control inputs, too: constants have no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shine.base.errors import GraphImportError

_BOTH = frozenset({0, 1})

_MOST_VISITS = 1 << 22
"""Most nodes that are visited to find branches, some seconds' work."""


def with_choices(nodes: Mapping[str, Any]) -> dict[str, Any]:
    """The nodes, of which each `Merge` reads the predicate, its value if true, and its value if false.

    One whose predicate cannot be found stays as it is, and is an error where it is needed.

    Raises
    ------
    GraphImportError
        If there are very many conditions that depend on very many nodes.
    """
    result = dict(nodes)
    visits = 0
    for name, node in nodes.items():
        if node.op == "Merge":
            values = [text for text in node.input if not text.startswith("^")]
            walks = [_sides(nodes, text) for text in values]
            visits += sum(count for _, count in walks)
            if visits > _MOST_VISITS:
                raise GraphImportError("it has so many conditions (Switch, Merge) that their branches are not searched")
            result[name] = _choice(node, values, [sides for sides, _ in walks])
    return result


def _choice(node: Any, values: Sequence[str], sides: Sequence[Mapping[str, int]]) -> Any:
    if len(values) != 2:
        return node
    first, second = sides
    for predicate in {**first, **second}:
        a, b = first.get(predicate), second.get(predicate)
        # A branch of constants may depend on nothing.
        if {a, b} == _BOTH or (None in (a, b) and len(first.keys() | second.keys()) == 1):
            is_first_true = a == 1 or b == 0
            choice = type(node)()
            choice.CopyFrom(node)
            del choice.input[:]
            choice.input.extend([predicate, *(values if is_first_true else reversed(values))])
            return choice
    return node


def _sides(nodes: Mapping[str, Any], start: str) -> tuple[dict[str, int], int]:
    """The predicates that a value depends on being true (1) or false (0), and how many nodes that took."""
    found: dict[str, set[int]] = {}
    waiting, seen = [start], {start}
    while waiting:
        name, _, index = waiting.pop().removeprefix("^").partition(":")
        node = nodes.get(name)
        if node is None:
            continue
        inputs = list(node.input)
        if node.op == "Switch" and len(inputs) > 1:
            found.setdefault(_origin(nodes, inputs[1]), set()).add(int(index == "1"))
        for text in inputs:
            if text not in seen:
                seen.add(text)
                waiting.append(text)
    # A condition inside that branch has both sides.
    return {predicate: min(sides) for predicate, sides in found.items() if sides != _BOTH}, len(seen)


def _origin(nodes: Mapping[str, Any], text: str) -> str:
    """The value that a chain of `Identity` nodes passes on."""
    seen = set()
    while text not in seen:
        seen.add(text)
        node = nodes.get(text.partition(":")[0])
        if node is None or node.op != "Identity" or not node.input:
            break
        text = node.input[0]
    return text.removesuffix(":0")
