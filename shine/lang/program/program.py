"""A program: formulas over values of several number types, as graphs of other libraries have them.

A tree has one number type; a program is a list of statements that each have their own, with conversions in between.
What is used more than once is a statement of its own, so that a shared subgraph is computed once and never copied.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from shine.lang.lazy import cached_property
from shine.lang.tree import Primitive, Tree
from shine.typing import AnyArray

NUMBER_TYPES = ("float64", "float32", "int64", "int32")
"""Types of the values inside a program."""

STORAGE_TYPES: dict[str, str] = {**{name: name for name in NUMBER_TYPES}, "bool": "int32"}
"""Types of what goes in and comes out, each with the number type it is inside: truth is 1, everything else 0."""


@dataclass(frozen=True, eq=False)
class Parameter:
    """What a program reads.

    Parameters
    ----------
    name : str
        What statements call it; a name of the language.
    dtype : str
        One of `STORAGE_TYPES`.
    label : str
        What its graph calls it.
    shape : tuple of (int or None), optional
        As far as the graph says; None where it does not.
    value : ndarray, optional
        The array it always is, for a constant that is no single number. It is no argument then.
    default : ndarray, optional
        The value of an argument that may be left out.
    """

    name: str
    dtype: str
    label: str
    shape: tuple[int | None, ...] | None = None
    value: AnyArray | None = None
    default: AnyArray | None = None


@dataclass(frozen=True, eq=False)
class Statement:
    """One value: an expression over names of the same number type, or the conversion of a name of another one.

    Parameters
    ----------
    name : str
        Every name is assigned once, and used only after that.
    dtype : str
        One of `NUMBER_TYPES`.
    value : ast.expr
        Verified, in the language's normal form; a bare name in a conversion.
    converts : bool
        Whether `value` is a name of another type. Integers to integers wrap; floats to integers are truncated, and
        what does not fit (NaN too) becomes the smallest integer; everything else is rounded to nearest, ties to even.
    """

    name: str
    dtype: str
    value: ast.expr
    converts: bool = False

    @cached_property
    def size(self) -> int:
        """Number of nodes; a conversion is one."""
        return 1 if self.converts else Tree((), self.value).size


@dataclass(frozen=True, eq=False)
class Output:
    """A result of a program.

    Parameters
    ----------
    label : str
        What its graph calls it.
    name : str
        The statement or parameter it is.
    dtype : str
        One of `STORAGE_TYPES`; the number type inside must be that of the name, or any where it is bool.
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
        The table its calls were verified against.
    """

    parameters: tuple[Parameter, ...]
    statements: tuple[Statement, ...]
    outputs: tuple[Output, ...]
    name: str = "graph"
    functions: Mapping[str, Primitive] = field(default_factory=dict)

    @cached_property
    def arguments(self) -> tuple[Parameter, ...]:
        """The parameters a call gives values for: those that are no arrays of the program itself."""
        return tuple(parameter for parameter in self.parameters if parameter.value is None)

    @cached_property
    def size(self) -> int:
        """Number of nodes of all statements; a conversion is one."""
        return sum(statement.size for statement in self.statements)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{each.label}: {each.dtype}" for each in self.arguments)
        outputs = ", ".join(f"{each.label}: {each.dtype}" for each in self.outputs)
        return f"<Program {self.name}({inputs}) -> ({outputs}), {len(self.statements)} statements>"
