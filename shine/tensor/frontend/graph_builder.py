"""A function in the making, as the rules of operations see it: constants are computed while the graph is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import GraphImportError
from shine.base.typing import AnyArray
from shine.tensor.form.builder import FunctionBuilder, OperationMethods, write_composite
from shine.tensor.form.interpreter import evaluate
from shine.tensor.form.module import Attribute, Value
from shine.tensor.form.operations import FROM_THE_LANGUAGE, OPERATIONS
from shine.tensor.form.types import NAMES, TensorType
from shine.tensor.frontend.definitions import FUNCTIONS

MAX_NODES = 120_000
"""Most nodes that are computed, with those of called functions; each takes about 3 KB of memory."""

MOST_OPERANDS = 1 << 22
"""Most operands of all operations that nodes become."""

MOST_ELEMENTS = 1 << 26
"""Most elements of constants that are made, beside those that stand in the file."""


class Budget:
    """The rest of the budget of one module's functions.

    Parameters
    ----------
    in_file : int
        Most elements that constants in the file have.
    """

    def __init__(self, in_file: int = 0) -> None:
        self._nodes, self._operands, self._elements = 0, 0, -in_file

    def node(self) -> None:
        """Count a node, of a graph or of a called function; a `GraphImportError` if there are too many."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise OverBudgetError(f"the graph has more than {MAX_NODES} nodes, with those of called functions")

    def operation(self, operands: int) -> None:
        """Count an operation; a `GraphImportError` if there are too many operands."""
        self._operands += 1 + operands
        if self._operands > MOST_OPERANDS:
            raise OverBudgetError(f"the graph becomes operations with more than {MOST_OPERANDS} operands")

    def elements(self, count: int) -> None:
        """Count elements of a constant; a `GraphImportError` if there are too many."""
        self._elements += count
        if self._elements > MOST_ELEMENTS:
            raise OverBudgetError(f"the graph makes constants of more than {MOST_ELEMENTS} elements")


class OverBudgetError(GraphImportError):
    """A graph is too large, wherever that was noticed."""


MOST_FOLDED = 1 << 16
"""Most elements of constants that are computed here, operands and results: shapes and indices have far fewer."""

_INEXACT = frozenset({"call", "cond", "while", "dot", "convolve", "reduce_sum", "reduce_prod"})
"""Operations that are left to the compiled code: floats would have other bits, and calls need the module."""

_SAME = {"logical_and": "and", "logical_or": "or", "logical_not": "not", "round_even": "round"}
"""Operations of the form that have another name among the functions of graphs."""


@dataclass(frozen=True, eq=False)
class Operand:
    """An output of a node.

    Parameters
    ----------
    value : Value
    known : ndarray, optional
        The elements of a constant.
    """

    value: Value
    known: AnyArray | None = None

    @property
    def dtype(self) -> str:
        """NumPy's name of the element type."""
        return str(self.value.type.numpy)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.value.type.shape

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)


@dataclass(frozen=True)
class Variable:
    """A variable itself, which operations read."""

    name: str
    dtype: str = "resource"
    shape: tuple[int, ...] = ()


Output = Operand | Variable
"""Kinds of outputs of a node."""


class GraphBuilder(OperationMethods[Operand]):
    """A function in the making.

    Parameters
    ----------
    name : str
    signature_of : callable
        Types of the functions that it may call.
    variables : callable
        Value of a variable by its name.
    budget : Budget
        Of all functions of the module.
    """

    def __init__(
        self,
        name: str,
        signature_of: Callable[[str], Any],
        variables: Callable[[str], AnyArray | Value],
        budget: Budget,
    ) -> None:
        self.builder, self.budget = FunctionBuilder(name, signature_of), budget
        self.has_open_shapes = False
        """Whether lengths are 1 in the place of lengths that only calls know."""
        self._variables = variables
        self._read: dict[str, Operand] = {}

    def parameter(self, name: str, dtype: str, shape: Sequence[int]) -> Operand:
        """Add a parameter; the element type has NumPy's name."""
        return Operand(self.builder.parameter(name, TensorType(NAMES[np.dtype(dtype)], tuple(shape))))

    def constant(self, value: ArrayLike, dtype: str | None = None, *, is_parameter: bool = False) -> Operand:
        """Add a constant; the element type has NumPy's name.

        A `GraphImportError` if a number is beyond the element type, or there are too many, those of the model's
        parameters aside.
        """
        try:
            array = np.asarray(value, dtype)
        except (OverflowError, ValueError):
            raise GraphImportError(f"{value!r} is beyond the numbers of {dtype}") from None
        # Constants of more equal elements are written as one number, broadcast.
        if array.size > 64 and array.strides == (0,) * array.ndim:
            number = self.builder.constant(array[(0,) * array.ndim])
            return Operand(self.builder.broadcast(number, shape=array.shape), array)
        if not is_parameter:
            self.budget.elements(array.size)
        return Operand(self.builder.constant(array), array)

    def variable(self, variable: Variable) -> Operand:
        """The value of a variable."""
        if variable.name not in self._read:
            found = self._variables(variable.name)
            self._read[variable.name] = (
                Operand(found) if isinstance(found, Value) else self.constant(found, is_parameter=True)
            )
        return self._read[variable.name]

    def like(self, other: Operand, number: float) -> Operand:
        """A scalar with the elements of another operand."""
        return self.constant(number, other.dtype)

    def emit(self, operation: str, operands: Sequence[Operand], **attributes: Attribute) -> tuple[Operand, ...]:
        """Add an operation, or the constants that it gives if its operands are constants.

        A `FormError` if the operation does not take these operands or attributes.
        """
        self.budget.operation(len(operands))
        known = [operand.known for operand in operands if operand.known is not None]
        if len(known) == len(operands) and operation not in _INEXACT:
            folded = _folded(operation, operands, known, attributes)
            if folded is not None:
                return tuple(map(self.constant, folded))
        return tuple(map(Operand, self.builder.emit(operation, [operand.value for operand in operands], **attributes)))

    def apply(
        self, function: str, values: Sequence[Operand], shape: object, dtype: str, extra: Sequence[float] = ()
    ) -> Operand:
        """Apply a function of the language to operands of one element type.

        Parameters
        ----------
        function : str
        values : sequence of Operand
        shape : tuple
            Of the result; follows from the values.
        dtype : str
            Of the result.
        extra : sequence of float
            Arguments after the values.
        """
        operands = [*values, *(self.like(values[0], number) for number in extra)]
        name = _SAME.get(function, function)
        if name in OPERATIONS and (name in FROM_THE_LANGUAGE or name in _SAME.values()):
            result = self.emit(name, operands)[0]
        else:
            result = Operand(write_composite(self.builder, FUNCTIONS[function], [each.value for each in operands]))
        return result if result.dtype == dtype else self.cast_to(result, dtype)

    def cast_to(self, operand: Operand, dtype: str) -> Operand:
        """Another element type, by NumPy's name."""
        return operand if operand.dtype == dtype else self.emit("cast", [operand], dtype=NAMES[np.dtype(dtype)])[0]


def repeated(b: GraphBuilder, x: Operand, times: Sequence[int]) -> Operand:
    """An operand repeated along each axis, 0 times or more."""
    apart = [part for size in x.shape for part in (1, size)]
    spread = [part for count, size in zip(times, x.shape, strict=True) for part in (count, size)]
    wide = b.broadcast(b.reshape(x, shape=tuple(apart)), shape=tuple(spread))
    return b.reshape(wide, shape=tuple(n * size for n, size in zip(times, x.shape, strict=True)))


def cut(b: GraphBuilder, x: Operand, axis: int, start: int, stop: int, step: int = 1) -> Operand:
    """The elements of an axis from `start` to `stop`, both from 0 on."""
    starts, stops, steps = [0] * x.rank, list(x.shape), [1] * x.rank
    starts[axis], stops[axis], steps[axis] = start, stop, step
    return b.slice(x, start=tuple(starts), stop=tuple(stops), step=tuple(steps))


def picked(b: GraphBuilder, x: Operand, places: AnyArray, axis: int) -> Operand:
    """The slices of an axis at places that are known."""
    return b.gather(x, b.constant(places.astype(np.int64)), axis=axis)


def one_hot(b: GraphBuilder, indices: Operand, depth: int, axis: int, on: Operand, off: Operand) -> Operand:
    """One number at the places that indices name along a new axis, another one elsewhere."""
    column = b.reshape(indices, shape=(*indices.shape[:axis], 1, *indices.shape[axis:]))
    along = b.constant(np.arange(depth).reshape(-1, *(1,) * (indices.rank - axis)), indices.dtype)
    return b.select(b.eq(column, along), on, off)


def triangle(b: GraphBuilder, x: Operand, diagonal: int, upper: bool) -> Operand:
    """Matrices with zeros on one side of a diagonal."""
    ones = np.ones(x.shape[-2:], bool)
    mask = np.triu(ones, diagonal) if upper else np.tril(ones, diagonal)
    return b.select(b.constant(mask), x, b.like(x, 0))


def numbers(operand: Operand, what: str) -> tuple[int, ...]:
    """The integers of a constant of at most one axis.

    A `GraphImportError` if it is computed from arguments, or of another kind.
    """
    if operand.known is None:
        raise GraphImportError(f"its {what} must be a constant, but depends on the arguments: shapes are static here")
    if operand.known.dtype.kind not in "iu" or operand.known.ndim > 1 or operand.known.size > MOST_FOLDED:
        raise GraphImportError(f"its {what} must be integers, but is {operand.dtype} of shape {list(operand.shape)}")
    return tuple(map(int, operand.known.reshape(-1)))


def _folded(
    operation: str, operands: Sequence[Operand], known: Sequence[AnyArray], attributes: Mapping[str, Attribute]
) -> tuple[AnyArray, ...] | None:
    """The results of an operation on constants; None if they are large, or compiled code may have other bits."""
    if sum(array.size for array in known) > MOST_FOLDED:
        return None
    scratch = FunctionBuilder("constants")
    scratch.emit(operation, [operand.value for operand in operands], **attributes)
    (instruction,) = scratch.done().body
    facts = FROM_THE_LANGUAGE.get(operation)
    inexact = facts is not None and operation not in _EXACT and any(array.dtype.kind == "f" for array in known)
    if inexact or sum(result.type.elements for result in instruction.results) > MOST_FOLDED:
        return None
    with np.errstate(all="ignore"):
        found = evaluate(instruction, known)
    results = instruction.results
    return tuple(
        np.asarray(array, result.type.numpy).reshape(result.type.shape)
        for array, result in zip(found, results, strict=True)
    )


_EXACT = frozenset(
    {"add", "sub", "mul", "div", "neg", "abs", "min", "max", "floor", "ceil", "sign", "sqrt"}
    | {"lt", "le", "gt", "ge", "eq", "ne"}
)
"""Primitives whose results are rounded correctly everywhere, or not at all."""


def from_the_end(b: GraphBuilder, indices: Operand, size: int) -> Operand:
    """Indices of 64 bits; negative ones are counted from the end."""
    found = b.cast_to(indices, "int64")
    return b.select(b.lt(found, b.like(found, 0)), b.add(found, b.like(found, size)), found)


def elements_along(b: GraphBuilder, x: Operand, indices: Operand, axis: int) -> Operand:
    """For each place of the indices, the element of x that has the same place but on one axis.

    They are places of the flattened x, by arithmetic on the indices.
    """
    if indices.rank != x.rank:
        raise GraphImportError(f"its indices have {indices.rank} axes, and its input has {x.rank}")
    if not x.rank:
        return x
    strides = [math.prod(x.shape[i + 1 :]) for i in range(x.rank)]
    others = np.zeros(indices.shape, np.int64)
    for i, size in enumerate(indices.shape):
        if i != axis:
            others += (np.arange(size) * strides[i]).reshape([-1 if j == i else 1 for j in range(x.rank)])
    last = b.constant(max(x.shape[axis] - 1, 0), "int64")
    inside = b.max(b.min(indices, last), b.constant(0, "int64"))
    places = b.add(b.mul(inside, b.constant(strides[axis], "int64")), b.constant(others))
    return b.gather(b.reshape(x, shape=(math.prod(x.shape),)), places, axis=0)
