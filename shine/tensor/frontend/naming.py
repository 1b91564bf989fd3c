"""Names of parameters and results after those of a foreign graph."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from shine.base.errors import GraphImportError
from shine.lang.forms.names import listed, shown
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Function, Instruction, Value
from shine.tensor.form.verifier import without_dead


def with_results(
    b: FunctionBuilder, results: Sequence[tuple[str, Value]], labels: Mapping[str, str]
) -> tuple[Function, dict[str, str]]:
    """A function whose results have names after their labels.

    Parameters
    ----------
    b : FunctionBuilder
        All instructions.
    results : sequence of (str, Value)
        With their labels in the graph.
    labels : mapping of str to str
        Those of the parameters, by the parameters' names.

    Returns
    -------
    function : Function
        Without instructions that no result needs.
    labels : dict of str to str
        Those of the results, by the results' names.
    """
    values: list[Value] = []
    names: dict[str, str] = {}
    taken = dict(labels)
    new: dict[str, str] = {}
    for label, value in results:
        if value.name in labels or value.name in new:
            # Parameters have names of their own, and so has each result.
            value = b.emit("reshape", [value], shape=value.type.shape)[0]
        new[value.name] = free_name(taken, label)
        taken[new[value.name]] = names[new[value.name]] = label
        values.append(value)
    return _renamed(without_dead(b.done(*values)), new), names


def fetched(wanted: Sequence[str], values: Mapping[str, Value]) -> list[tuple[str, Value]]:
    """Values inside of a graph by their names, with these names; a `GraphImportError` if there is none of a name."""
    for name in wanted:
        if name not in values:
            raise GraphImportError(f"there is no value {shown(name)} to fetch; there are {listed(values)}")
    return [(name, values[name]) for name in wanted]


def _renamed(function: Function, names: dict[str, str]) -> Function:
    """The function with other names for some values, and for those that have these names already."""
    used = {value.name for each in function.body for value in each.results}
    for name in sorted(used.intersection(names.values()) - names.keys()):
        free = f"{name}_"
        while free in used or free in names.values():
            free += "_"
        names = {**names, name: free}

    def renamed(value: Value) -> Value:
        return replace(value, name=names[value.name]) if value.name in names else value

    body = tuple(
        Instruction(
            tuple(map(renamed, each.results)), each.operation, tuple(map(renamed, each.operands)), each.attributes
        )
        for each in function.body
    )
    return replace(function, body=body, results=tuple(map(renamed, function.results)))


def free_name(taken: Mapping[str, str], label: str) -> str:
    """A name for a value of the graph, as near to its label as the form's names allow."""
    name = base = sanitized(label, "value")
    number = 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def sanitized(label: str, default: str) -> str:
    """A label as a name of the form; a default if it is empty."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", label) or default
    return name if re.match("[A-Za-z_]", name) else f"_{name}"
