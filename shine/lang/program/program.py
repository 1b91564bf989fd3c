"""A program: formulas over values of several number types, like the graphs of other libraries.

A tree has one number type. A program is a list of statements, each with its own number type, and conversions between
them. A value that is used more than once is a statement, so that shared subgraphs are computed once and never copied.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from shine.base.lazy import cached_property
from shine.base.typing import AnyArray
from shine.lang.forms.tree import Primitive, Tree, names_in

NUMBER_TYPES = ("float64", "float32", "int64", "int32")
"""Types of the values inside a program."""

STORAGE_TYPES: dict[str, str] = {**{name: name for name in NUMBER_TYPES}, "bool": "int32"}
"""Types of inputs and outputs, each with the number type inside the program: True is 1, False is 0."""


@dataclass(frozen=True, eq=False)
class Parameter:
    """An input of a program.

    Parameters
    ----------
    name : str
        Its name in statements; a name of the language.
    dtype : str
        One of `STORAGE_TYPES`.
    label : str
        Its name in the graph.
    shape : tuple of (int or None), optional
        The shape in the graph; None for unknown lengths.
    value : ndarray, optional
        The array, if the parameter is a constant array of the graph. Calls do not pass it.
    default : ndarray, optional
        The value if a call leaves the argument out.
    """

    name: str
    dtype: str
    label: str
    shape: tuple[int | None, ...] | None = None
    value: AnyArray | None = None
    default: AnyArray | None = None


@dataclass(frozen=True, eq=False)
class Statement:
    """One value: an expression over names of the same number type, or the conversion of a name of another type.

    Parameters
    ----------
    name : str
        Every name is assigned once, before its first use.
    dtype : str
        One of `NUMBER_TYPES`.
    value : ast.expr
        A verified expression in the language's normal form; a bare name in a conversion.
    converts : bool
        Whether `value` is a name of another type. Integers wrap around in other integer types. Floats are truncated to
        integers; those out of range, and NaN, become the smallest integer. All other conversions round to nearest, ties
        to even.
    """

    name: str
    dtype: str
    value: ast.expr
    converts: bool = False

    @cached_property
    def size(self) -> int:
        """Number of nodes; a conversion has one."""
        return 1 if self.converts else Tree((), self.value).size


@dataclass(frozen=True, eq=False)
class Output:
    """A result of a program.

    Parameters
    ----------
    label : str
        Its name in the graph.
    name : str
        Name of the statement or parameter with its value.
    dtype : str
        One of `STORAGE_TYPES`: the number type of the name, or bool for any number type.
    """

    label: str
    name: str
    dtype: str


@dataclass(frozen=True, eq=False)
class Program:
    """Statements over typed parameters, with one or more outputs.

    Parameters
    ----------
    parameters : tuple of Parameter
    statements : tuple of Statement
    outputs : tuple of Output
    name : str
    functions : mapping of str to Primitive
        The table that the calls were verified against.
    """

    parameters: tuple[Parameter, ...]
    statements: tuple[Statement, ...]
    outputs: tuple[Output, ...]
    name: str = "graph"
    functions: Mapping[str, Primitive] = field(default_factory=dict)

    @cached_property
    def arguments(self) -> tuple[Parameter, ...]:
        """The parameters whose values are passed in calls: all but the program's own constant arrays."""
        return tuple(parameter for parameter in self.parameters if parameter.value is None)

    @cached_property
    def size(self) -> int:
        """Number of nodes of all statements; a conversion has one."""
        return sum(statement.size for statement in self.statements)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{each.label}: {each.dtype}" for each in self.arguments)
        outputs = ", ".join(f"{each.label}: {each.dtype}" for each in self.outputs)
        return f"<Program {self.name}({inputs}) -> ({outputs}), {len(self.statements)} statements>"


def parameters_read(program: Program) -> tuple[tuple[int, ...], ...]:
    """Positions of the parameters that each output depends on, in increasing order."""
    # A set of parameters is a number, one bit for each: programs have up to hundreds of thousands of statements.
    read = {parameter.name: 1 << position for position, parameter in enumerate(program.parameters)}
    for statement in program.statements:
        read[statement.name] = 0
        for name in names_in(statement.value):
            read[statement.name] |= read[name]
    positions = range(len(program.parameters))
    return tuple(tuple(p for p in positions if read[output.name] >> p & 1) for output in program.outputs)


def part(program: Program, outputs: Sequence[int]) -> Program:
    """The program with only the outputs at the given positions."""
    chosen = tuple(program.outputs[position] for position in outputs)
    needed = {output.name for output in chosen}
    statements = []
    for statement in reversed(program.statements):
        if statement.name in needed:
            statements.append(statement)
            needed.update(names_in(statement.value))
    parameters = tuple(parameter for parameter in program.parameters if parameter.name in needed)
    return replace(program, parameters=parameters, statements=tuple(reversed(statements)), outputs=chosen)
