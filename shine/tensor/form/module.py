"""Values, instructions, functions and modules: frozen data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from shine.base.errors import FormError
from shine.tensor.form.types import TensorType

Attribute: TypeAlias = "bool | int | str | tuple[int, ...] | np.ndarray"
"""Value of an attribute; functions are named by strings, without `@`."""


@dataclass(frozen=True)
class Value:
    """The result of an instruction, or a parameter; names are unique in a function.

    Parameters
    ----------
    name : str
        Without `%`.
    type : TensorType
    """

    name: str
    type: TensorType

    def __hash__(self) -> int:
        # Passes look values up all the time; Python remembers the hash of a string.
        return hash(self.name)

    def __str__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True, eq=False)
class Instruction:
    """An operation on values; it computes one value, or several.

    Parameters
    ----------
    results : tuple of Value
    operation : str
        A name in `OPERATIONS`.
    operands : tuple of Value
    attributes : mapping of str
        Facts known when the program is written, such as axes.
    """

    results: tuple[Value, ...]
    operation: str
    operands: tuple[Value, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    @property
    def result(self) -> Value:
        """The only result."""
        (result,) = self.results
        return result


@dataclass(frozen=True, eq=False)
class Function:
    """Instructions in order: each operand is a parameter or the result of an instruction before.

    Parameters
    ----------
    name : str
        Without `@`.
    parameters : tuple of Value
    body : tuple of Instruction
    results : tuple of Value
    separate : bool
        Whether passes leave it a function of its own, because it computes again what takes memory to keep.
    """

    name: str
    parameters: tuple[Value, ...]
    body: tuple[Instruction, ...]
    results: tuple[Value, ...]
    separate: bool = False

    @property
    def parameter_types(self) -> tuple[TensorType, ...]:
        """Types of the parameters."""
        return tuple(value.type for value in self.parameters)

    @property
    def result_types(self) -> tuple[TensorType, ...]:
        """Types of the results."""
        return tuple(value.type for value in self.results)


@dataclass(frozen=True)
class GradientDeclaration:
    """A function that is declared as the gradient of another one, and has no body yet (DLVM; Wei et al. 2017).

    Parameters
    ----------
    name : str
    of : str
        The function to differentiate, which may be declared itself.
    wrt : tuple of int
        The parameters, from 0, with respect to which.
    keeping : tuple of int
        Results of the original, from 0, that the gradient returns as well, after the gradients.
    seedable : bool
        Whether it takes a derivative for each result of the original, after the parameters. Otherwise the original has
        one result, a scalar, and its derivative is 1.
    parameter_types, result_types : tuple of TensorType
    """

    name: str
    of: str
    wrt: tuple[int, ...]
    keeping: tuple[int, ...]
    seedable: bool
    parameter_types: tuple[TensorType, ...]
    result_types: tuple[TensorType, ...]


@dataclass(frozen=True, eq=False)
class Module:
    """Functions by name. Those that others call may stand before or after them.

    Parameters
    ----------
    name : str
    functions : mapping of str to Function or GradientDeclaration
    labels : mapping of str to str
        Names that a foreign graph gave to parameters and results of its function, by their names here.
    """

    name: str
    functions: Mapping[str, Function | GradientDeclaration]
    labels: Mapping[str, str] = field(default_factory=dict)

    def function(self, name: str) -> Function:
        """A function with a body.

        Raises
        ------
        FormError
            If the module has none of that name.
        """
        found = self.functions.get(name)
        if isinstance(found, GradientDeclaration):
            raise FormError(f"@{name} is declared as a gradient and has no body yet")
        if found is None:
            known = ", ".join(f"@{known}" for known in self.functions)
            raise FormError(f"there is no function @{name}; there are {known or 'none'}")
        return found

    @property
    def defined(self) -> Iterator[Function]:
        """The functions that have a body, in order."""
        return (function for function in self.functions.values() if isinstance(function, Function))

    def with_functions(self, *functions: Function | GradientDeclaration) -> Module:
        """The module with functions added, or put in the place of those with their names."""
        return replace(self, functions={**self.functions, **{f.name: f for f in functions}})


def with_result_names(function: Function, wanted: tuple[Value, ...]) -> Function:
    """A function whose results have the names of some values; parameters keep their own."""
    parameters = set(function.parameters)
    now: dict[Value, Value] = {}
    for result, old in zip(function.results, wanted, strict=True):
        if result not in parameters and result not in now and old not in now.values():
            now[result] = old
    taken = {old.name for old in now.values()}
    names = {value.name for value in parameters} | {r.name for i in function.body for r in i.results} | taken
    for instruction in function.body:
        for value in instruction.results:
            if value not in now and value.name in taken:
                now[value] = replace(value, name=_free(value.name, names))
    if all(old == new for old, new in now.items()):
        return function

    def renamed(values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(now.get(value, value) for value in values)

    body = tuple(Instruction(renamed(i.results), i.operation, renamed(i.operands), i.attributes) for i in function.body)
    return replace(function, body=body, results=renamed(function.results))


def _free(name: str, names: set[str]) -> str:
    """A name that is not taken; it is taken then."""
    found = next(new for number in range(len(names) + 1) if (new := f"{name}.{number}") not in names)
    names.add(found)
    return found
