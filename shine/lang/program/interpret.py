"""The meaning of a program, in NumPy: the oracle for the tests of compiled programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shine.base.typing import AnyArray
from shine.lang.forms.tree import Tree, names_in
from shine.lang.interpret import evaluate
from shine.lang.program.program import STORAGE_TYPES, Parameter, Program, Statement

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Wording:
    """The words of error messages about a call.

    Parameters
    ----------
    callee, argument : str
        Names for the thing that is called, and for its arguments.
    surplus : str
        The problem if there are more arguments than parameters.
    overflow : str
        The problem with a number outside the range of an integer type.
    types : bool
        Whether a list of the parameters shows their types.
    """

    callee: str
    argument: str
    surplus: str
    overflow: str
    types: bool


GRAPH = Wording("program", "input", "too many arguments", "is too large", types=True)
"""Words about programs from a graph."""

FORMULA = Wording("formula", "argument", "too many", "is out of range", types=False)
"""Words about programs from formulas."""


class Signature:
    """The arguments of a call of a program."""

    def __init__(self, program: Program, wording: Wording = GRAPH) -> None:
        self._wording = wording
        self._free = program.arguments
        self._targets = [(each, each.name, np.dtype(each.dtype)) for each in program.parameters]
        # A label may be the name of another parameter; the label comes first.
        self._names = {each.name: each.name for each in self._free} | {each.label: each.name for each in self._free}
        self._order = tuple(each.name for each in self._free)
        self._required = [each.name for each in self._free if each.default is None]

    def arrays(self, arguments: Sequence[ArrayLike], named: Mapping[str, ArrayLike]) -> list[AnyArray]:
        """The values of all parameters, the bound ones too, each of its storage type; not yet broadcast.

        Parameters
        ----------
        arguments : sequence of array-like
            In the order of the parameters that are arguments.
        named : mapping of str to array-like
            By label or name.

        Raises
        ------
        TypeError
            If arguments are missing, too many, not numbers, or do not fit their type.
        """
        given = dict(zip(self._order, arguments, strict=False))
        unexpected = []
        for key, value in named.items():
            name = self._names.get(key)
            if name is None or name in given:
                unexpected.append(key)
            else:
                given[name] = value
        if unexpected or len(arguments) > len(self._order) or not all(name in given for name in self._required):
            raise self._refusal(len(arguments), unexpected, given)
        return [self._array(each, dtype, given.get(name)) for each, name, dtype in self._targets]

    def _refusal(self, count: int, unexpected: Sequence[str], given: Mapping[str, ArrayLike]) -> TypeError:
        free, words = self._free, self._wording
        if count > len(free):
            problem = words.surplus
        elif unexpected:
            problem = f"unexpected {unexpected[0]!r}"
        else:
            problem = f"missing {next(p.label for p in free if p.name not in given and p.default is None)!r}"
        listed = ", ".join(f"{each.label}: {each.dtype}" if words.types else each.label for each in free)
        return TypeError(f"the {words.callee} takes ({listed}): {problem}")

    def _array(self, parameter: Parameter, dtype: np.dtype, value: ArrayLike | None) -> AnyArray:
        if value is None:
            value = parameter.value if parameter.value is not None else parameter.default
        array = np.asarray(value)
        if array.dtype == dtype:
            return array
        kind = array.dtype.kind
        if kind not in "biuf":
            raise TypeError(f"{self._named(parameter)} has dtype {array.dtype}; numbers are needed")
        # Smaller numbers overflow in no type, so NumPy's warnings need not be silenced, which takes a microsecond.
        if kind != "f" or (array.ndim == 0 and abs(array.item()) < 2.0**31):
            converted = array.astype(dtype)
        else:
            with np.errstate(invalid="ignore", over="ignore"):
                converted = array.astype(dtype)
        if dtype.kind != "f" and not np.array_equal(converted, array):
            problem = f"it has fractions, or {self._wording.overflow}"
            if parameter.dtype == "bool":
                problem = "it has other numbers than 0 and 1"
            raise TypeError(f"{self._named(parameter)} does not fit {parameter.dtype}: {problem}")
        return converted

    def _named(self, parameter: Parameter) -> str:
        return f"{self._wording.argument} {parameter.label!r}"

    def shape(self, positions: Sequence[int], arrays: Sequence[AnyArray]) -> Shape:
        """The shape that the arrays of some parameters broadcast to.

        A `ValueError` if they do not fit; the message names two that differ.
        """
        distinct = {arrays[position].shape for position in positions} - {()}
        if len(distinct) <= 1:
            return distinct.pop() if distinct else ()
        shape: Shape = ()
        for count, position in enumerate(positions):
            try:
                shape = np.broadcast_shapes(shape, arrays[position].shape)
            except ValueError:
                misfits = (p for p in positions[:count] if not _fit(arrays[p].shape, arrays[position].shape))
                described = [f"{self._targets[p][0].label!r}, {arrays[p].shape}" for p in (next(misfits), position)]
                raise ValueError(
                    f"the shapes of {self._wording.argument}s {described[0]}, and {described[1]}, do not fit each other"
                ) from None
        return shape


def _fit(first: Shape, second: Shape) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(first), reversed(second), strict=False))


def interpret(program: Program, arguments: Sequence[ArrayLike] | Mapping[str, ArrayLike]) -> tuple[AnyArray, ...]:
    """The outputs of a program.

    Parameters
    ----------
    program : Program
    arguments : sequence or mapping of str to array-like
        In the order of ``program.arguments``, or by label or name.

    Returns
    -------
    tuple of ndarray
        One for each output, of its type and of the broadcast shape of the arguments that it depends on.

    Raises
    ------
    TypeError, ValueError
        If arguments are missing or too many, or do not fit their types or each other.
    ZeroDivisionError
        If an integer division has a zero divisor in any row.
    """
    listed, named = ((), arguments) if isinstance(arguments, Mapping) else (arguments, {})
    return interpret_arrays(program, Signature(program).arrays(listed, named))


def interpret_arrays(program: Program, arrays: Sequence[AnyArray]) -> tuple[AnyArray, ...]:
    """The outputs of a program, statement by statement.

    Every value has the broadcast shape of its operands, like the nodes of a graph.

    Parameters
    ----------
    program : Program
    arrays : sequence of ndarray
        One for each parameter, bound ones included, of the parameter's storage type.

    Returns
    -------
    tuple of ndarray
        One for each output, of its storage type.

    Raises
    ------
    ZeroDivisionError
        If an integer division has a zero divisor in any row.
    ValueError
        If shapes do not fit each other.
    """
    values: dict[str, AnyArray] = {}
    for parameter, array in zip(program.parameters, arrays, strict=True):
        values[parameter.name] = np.asarray(array).astype(STORAGE_TYPES[parameter.dtype])
    operands = [names_in(statement.value) for statement in program.statements]
    left = Counter(name for names in operands for name in names)
    left.update(output.name for output in program.outputs)
    for statement, names in zip(program.statements, operands, strict=True):
        values[statement.name] = _value(program, statement, names, [values[name] for name in names])
        # Free values after their last use: all values of a long program do not fit into memory.
        left.subtract(names)
        for name in names:
            if left[name] == 0:
                del values[name]
    return tuple(
        values[output.name] != 0 if output.dtype == "bool" else values[output.name].copy() for output in program.outputs
    )


def converted(array: AnyArray, dtype: str) -> AnyArray:
    """Values in another number type, as `shine.lang.program.program.Statement` defines it."""
    if array.dtype.kind == "i" or np.dtype(dtype).kind == "f":
        with np.errstate(over="ignore"):
            return array.astype(dtype)
    limits = np.iinfo(dtype)
    # Both bounds are powers of two, which every float type can represent. NaN is not between them.
    fits = (array >= float(limits.min)) & (array < -float(limits.min))
    return np.where(fits, np.where(fits, array, 0).astype(dtype), limits.min).astype(dtype)


def _value(program: Program, statement: Statement, names: Sequence[str], operands: Sequence[AnyArray]) -> AnyArray:
    if statement.converts:
        return converted(operands[0], statement.dtype)
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    columns = [np.broadcast_to(operand, shape).reshape(-1) for operand in operands]
    tree = Tree(tuple(names), statement.value, functions=program.functions)
    return evaluate(tree, columns, statement.dtype).reshape(shape)
