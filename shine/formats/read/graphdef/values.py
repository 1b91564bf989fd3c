"""The values of a graph, which become operands of a program's statements."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.errors import GraphImportError
from shine.formats.read.graphdef.constants import Tensor
from shine.formats.read.graphdef.shapes import Shape, covers
from shine.lang.forms.tape import application
from shine.lang.forms.tree import Primitive
from shine.lang.program.builder import ProgramBuilder, number
from shine.lang.program.program import STORAGE_TYPES


@dataclass(frozen=True, slots=True)
class Value:
    """An output of a node.

    Parameters
    ----------
    dtype : str
        A storage type. A bool is 0 or 1 in the number type of its name.
    shape : tuple or None
        The known part of the shape.
    name : str
        Name of a parameter or a statement; empty for a constant that has no name yet.
    tensor : Tensor, optional
        The elements of a constant.
    label : str
        The graph's name of a constant.
    """

    dtype: str
    shape: Shape
    name: str = ""
    tensor: Tensor | None = None
    label: str = ""


class Building:
    """A program under construction.

    Parameters
    ----------
    functions : mapping of str to Primitive
        Functions that statements may call.
    producer : int
        Version of the software that wrote the graph.
    labels : iterable of str
        Labels of the arguments; constants get different ones.
    """

    def __init__(self, functions: Mapping[str, Primitive], producer: int, labels: Iterable[str]) -> None:
        self.builder = ProgramBuilder(functions)
        self.producer = producer
        self._constants: dict[tuple[Tensor, str], str] = {}
        self._literals: dict[Tensor, ast.expr] = {}
        self._labels = set(labels)

    def parameter(self, label: str, dtype: str, shape: Shape, default: Tensor | None = None) -> Value:
        """An argument of the program."""
        array = None if default is None else default.array()
        return Value(dtype, shape, self.builder.parameter(label, dtype, shape, default=array))

    def constant(self, tensor: Tensor, label: str) -> Value:
        """A constant; the reading node decides whether it becomes a number or an array."""
        return Value(tensor.dtype, tensor.shape, "", tensor, label)

    def name(self, value: Value) -> str:
        """The name of a value; a constant gets one here, as a statement if it is a scalar, else as a parameter."""
        if value.tensor is None:
            return value.name
        tensor = value.tensor
        key = (tensor, value.label)
        if key not in self._constants:
            if tensor.shape == ():
                self._constants[key] = self.builder.assign(STORAGE_TYPES[tensor.dtype], self._literal(tensor))
            else:
                label = self._free_label(value.label)
                array = tensor.array()
                self._constants[key] = self.builder.parameter(label, tensor.dtype, tensor.shape, array)
        return self._constants[key]

    def number_type(self, values: Sequence[Value]) -> str:
        """The number type in which values of one storage type are computed."""
        if values[0].dtype != "bool":
            return values[0].dtype
        return next((self.builder.dtype_of(value.name) for value in values if value.name), STORAGE_TYPES["bool"])

    def operands(self, values: Sequence[Value], number_type: str) -> list[ast.expr]:
        """Expressions of values in a number type.

        A constant with equal elements becomes a number if the other values determine the shape of the result.
        """
        shapes = {position: value.shape for position, value in enumerate(values)}
        result: list[ast.expr] = []
        for position, value in enumerate(values):
            tensor = value.tensor
            if tensor is not None and tensor.number is not None:
                others = [shape for index, shape in shapes.items() if index != position]
                if covers(others, tensor.shape):
                    del shapes[position]
                    result.append(self._literal(tensor))
                    continue
            name = self.builder.convert(self.name(value), number_type)
            result.append(ast.Name(name, ast.Load()))
        return result

    def apply(
        self, function: str, values: Sequence[Value], shape: Shape, dtype: str, extra: Sequence[float] = ()
    ) -> Value:
        """Apply a function to values of one storage type.

        Parameters
        ----------
        function : str
            A primitive.
        values : sequence of Value
        shape : tuple or None
            Of the result.
        dtype : str
            Storage type of the result.
        extra : sequence of float
            Arguments after the values.
        """
        number_type = self.number_type(values)
        operands = [*self.operands(values, number_type), *map(number, extra)]
        return Value(dtype, shape, self.builder.assign(number_type, application(function, operands)))

    def _free_label(self, label: str) -> str:
        free, count = label, 1
        while free in self._labels:
            count += 1
            free = f"{label}_{count}"
        self._labels.add(free)
        return free

    def _literal(self, tensor: Tensor) -> ast.expr:
        """The number that equals every element of a constant."""
        if tensor not in self._literals:
            self._literals[tensor] = _literal(tensor)
        return self._literals[tensor]


def _literal(tensor: Tensor) -> ast.expr:
    value = tensor.number
    if value is None:
        raise GraphImportError("its elements differ")
    if tensor.dtype == "float32" and np.isfinite(value):
        # The shortest decimal with this float32 value reads better than all digits of float64.
        short = float(str(np.float32(value)))
        value = short if np.float32(short) == value else value
    return number(value)
