"""Programs <-> trees: a program as one formula over real numbers, and a formula as a program of one number type."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from shine.base.errors import GraphImportError
from shine.lang.forms.facts import basic_where
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import CONDITIONAL, Tree, names_in
from shine.lang.program.program import (
    NUMBER_TYPES,
    STORAGE_TYPES,
    Output,
    Parameter,
    Program,
    Statement,
    parameters_read,
)
from shine.lang.values import ValueGraph

_WHOLE = basic_where(lambda facts: facts.values is not None)
"""Primitives whose values are whole numbers for any operands."""

_TRUTHS = basic_where(lambda facts: facts.values == "truth")
"""Primitives whose values are 0 or 1."""


class _RealValues(ValueGraph):
    """Values over real numbers. While `integers` is set, primitives have their meaning for integers."""

    def __init__(self) -> None:
        super().__init__()
        self.integers = False

    def apply(self, name: str, *operands: int) -> int:
        if not self.integers:
            return super().apply(name, *operands)
        if name in ("floor", "ceil"):
            return operands[0]
        value = super().apply(name, *operands)
        exponent = self.number(operands[1]) if name == "pow" else None
        if name == "div" or (name == "pow" and (exponent is None or exponent < 0)):
            return self.truncated(value)
        return value

    def truncated(self, value: int) -> int:
        """A value without its fraction."""
        number = self.number(value)
        if number is not None:
            return self.constant(int(number))
        if self.names[value] in _WHOLE:
            return value
        apply = super().apply
        negative = apply("lt", value, self.constant(0))
        return apply(CONDITIONAL, negative, apply("ceil", value), apply("floor", value))


def tree_of(program: Program, output: str | None = None) -> Tree:
    """One output of a program as a formula over real numbers, in float64.

    Divisions and powers of integers and conversions to integers truncate, by floor and ceil. Truth values are 1 and 0.
    Values that are used more than once are assignments. The formula ignores the size of number types: it neither wraps
    nor rounds.

    Parameters
    ----------
    program : Program
    output : str, optional
        Its label; needed only if there are several outputs.

    Returns
    -------
    Tree
        Its parameters are the parameters of the program that the output depends on.

    Raises
    ------
    GraphImportError
        If the output depends on an array that is part of the program.
    ValueError
        If the label is unknown, or missing although there are several outputs.
    """
    position = _position(program, output)
    chosen = program.outputs[position]
    parameters = [program.parameters[index] for index in parameters_read(program)[position]]
    for parameter in parameters:
        if parameter.value is not None:
            raise GraphImportError(
                f"output {chosen.label!r} depends on the constant array {parameter.label!r} of shape "
                f"{parameter.value.shape}: a formula has only numbers; use the program itself"
            )
    graph = _RealValues()
    result = _read(program, graph)[chosen.name]
    truths = {parameter.name for parameter in parameters if parameter.dtype == "bool"}
    if chosen.dtype == "bool" and graph.names[result] not in _TRUTHS and chosen.name not in truths:
        result = graph.apply("ne", result, graph.constant(0))
    return graph.write([result], [parameter.name for parameter in parameters], program.name)[0]


def _position(program: Program, output: str | None) -> int:
    """Position of the output with a label, or of the only output."""
    labels = [each.label for each in program.outputs]
    if output is None and len(labels) > 1:
        raise ValueError(f"the program has several outputs; choose one of {', '.join(labels)}")
    if output is not None and output not in labels:
        raise ValueError(f"the program has no output {output!r}; its outputs are {', '.join(labels)}")
    return 0 if output is None else labels.index(output)


def _read(program: Program, graph: _RealValues) -> dict[str, int]:
    """Read a program into a graph: the value of each parameter and statement by name."""
    values = {parameter.name: graph.parameter(parameter.name) for parameter in program.parameters}
    dtypes = {parameter.name: STORAGE_TYPES[parameter.dtype] for parameter in program.parameters}
    for statement in program.statements:
        dtypes[statement.name] = statement.dtype
        names = names_in(statement.value)
        graph.integers = statement.dtype.startswith("int")
        if statement.converts:
            value = values[names[0]]
            truncates = graph.integers and dtypes[names[0]].startswith("float")
            values[statement.name] = graph.truncated(value) if truncates else value
        else:
            # For integers, composites are replaced by their definitions: quotients in them truncate.
            kept = () if graph.integers else STANDARD
            expression = Tree(names, statement.value, functions=program.functions)
            values[statement.name] = graph.read(expression, [values[name] for name in names], kept)
    graph.integers = False
    return values


def tree_program(tree: Tree, dtype: str = "float64") -> Program:
    """A formula as a program of one number type. The label of its output is ``"result"``.

    Parameters
    ----------
    tree : Tree
    dtype : {"float64", "float32", "int64", "int32"}

    Raises
    ------
    ValueError
        If the type is unknown.
    """
    return trees_program([tree], dtype)


def trees_program(trees: Sequence[Tree], dtype: str = "float64") -> Program:
    """Formulas with the same parameters and the same assignments as a program of one number type.

    Parameters
    ----------
    trees : sequence of Tree
    dtype : {"float64", "float32", "int64", "int32"}

    Returns
    -------
    Program
        Its outputs are labelled ``"result"``, ``"result_"`` and so on.

    Raises
    ------
    ValueError
        If there is no such type.
    """
    if dtype not in NUMBER_TYPES:
        raise ValueError(f"unknown number type {dtype!r}; use one of {', '.join(NUMBER_TYPES)}")
    first = trees[0]
    parameters = tuple(Parameter(name, dtype, name) for name in first.parameters)
    statements = [Statement(name, dtype, value) for name, value in first.assignments]
    taken = {*first.parameters, *(name for name, _ in first.assignments)}
    outputs: list[Output] = []
    label = "result"
    for tree in trees:
        if isinstance(tree.result, ast.Name):
            name = tree.result.id
        else:
            name = label
            while name in taken:
                name += "_"
            taken.add(name)
            statements.append(Statement(name, dtype, tree.result))
        outputs.append(Output(label, name, dtype))
        label += "_"
    return Program(parameters, tuple(statements), tuple(outputs), first.name, first.functions)


@dataclass(frozen=True)
class Stage:
    """Statements of a program that are compiled together.

    Parameters
    ----------
    program : Program
        Its parameters are parameters of the whole program, with their names, and values of earlier stages.
    targets : tuple of (int or str)
        Target of each output: a position among the whole program's outputs, or the name of a value for later stages.
    """

    program: Program
    targets: tuple[int | str, ...]


def stages(program: Program, most: int) -> tuple[Stage, ...]:
    """Split a program into stages of at most `most` nodes. A statement with more nodes is a stage of its own.

    Compilers take more than linear time for a long function, and keep all its values on the stack.
    """
    if program.size <= most:
        return (Stage(program, tuple(range(len(program.outputs)))),)
    groups = _groups(program, most)
    dtypes = {parameter.name: STORAGE_TYPES[parameter.dtype] for parameter in program.parameters}
    dtypes |= {statement.name: statement.dtype for statement in program.statements}
    parameters = {parameter.name: parameter for parameter in program.parameters}
    reads = [dict.fromkeys(name for each in group for name in names_in(each.value)) for group in groups]
    last = {name: number for number, names in enumerate(reads) for name in names}
    home = {each.name: number for number, group in enumerate(groups) for each in group}
    targets: list[list[int | str]] = [[] for _ in groups]
    for position, output in enumerate(program.outputs):
        number = home.get(output.name, 0)
        targets[number].append(position)
        reads[number][output.name] = None
    for name, number in home.items():
        if last.get(name, number) > number:
            targets[number].append(name)
    made = []
    for group, names, own in zip(groups, reads, targets, strict=True):
        inside = {each.name for each in group}
        inputs = [parameters.get(name, Parameter(name, dtypes[name], name)) for name in names if name not in inside]
        outputs = [
            program.outputs[target] if isinstance(target, int) else Output(target, target, dtypes[target])
            for target in own
        ]
        part = replace(program, parameters=tuple(inputs), statements=tuple(group), outputs=tuple(outputs))
        made.append(Stage(part, tuple(own)))
    return tuple(made)


def _groups(program: Program, most: int) -> Sequence[Sequence[Statement]]:
    groups: list[list[Statement]] = [[]]
    size = 0
    for statement in program.statements:
        size += statement.size
        if size > most and groups[-1]:
            groups.append([])
            size = statement.size
        groups[-1].append(statement)
    return groups
