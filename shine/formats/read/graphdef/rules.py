"""Rules of TensorFlow's operations: what a node adds to the program."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.errors import GraphImportError
from shine.formats.read.graphdef.constants import dtype_name
from shine.formats.read.graphdef.node import Node
from shine.formats.read.graphdef.shapes import Shape, broadcast, same
from shine.formats.read.graphdef.values import Building, Value

Rule = Callable[[Building, Node, Sequence[Value]], Sequence[Value]]
"""Takes a node and its inputs; returns its outputs."""

Extra = Callable[[Node, str], Sequence[float]]
"""Takes a node and its element type; returns arguments of the function that are not inputs."""


@dataclass(frozen=True)
class Elementwise:
    """An operation that applies one function to its inputs, which broadcast.

    Parameters
    ----------
    arity : int
    floats, integers, bools : str, optional
        The primitive for each kind of element; None if TensorFlow has no such kernel.
    result : str, optional
        Element type of the result, if it differs from the inputs'.
    extra : callable, optional
        Further arguments of the primitive.
    """

    arity: int
    floats: str | None = None
    integers: str | None = None
    bools: str | None = None
    result: str | None = None
    extra: Extra | None = None

    def __call__(self, building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
        _check_count(inputs, self.arity)
        dtype = "bool" if self.floats is None and self.integers is None else node.dtype("T")
        _check_types(inputs, dtype)
        kind = "bools" if dtype == "bool" else "floats" if dtype.startswith("float") else "integers"
        function: str | None = getattr(self, kind)
        if function is None:
            raise GraphImportError(f"there is no {node.op} of {dtype}; supported are {_kinds(self)}")
        extra = () if self.extra is None else self.extra(node, dtype)
        shape = broadcast([value.shape for value in inputs])
        return (building.apply(function, inputs, shape, self.result or dtype, extra),)


def _kinds(operation: Elementwise) -> str:
    kinds = {"floats": "float32, float64", "integers": "int32, int64", "bools": "bool"}
    return ", ".join(text for kind, text in kinds.items() if getattr(operation, kind))


def _check_count(inputs: Sequence[Value], expected: int) -> None:
    if len(inputs) != expected:
        raise GraphImportError(f"reads {len(inputs)} values, but takes {expected}")


def _check_types(inputs: Sequence[Value], dtype: str) -> None:
    for position, value in enumerate(inputs):
        if value.dtype != dtype:
            raise GraphImportError(f"input {position} is {value.dtype}, but must be {dtype}")


def alpha(node: Node, dtype: str) -> Sequence[float]:
    """Attribute `alpha` of LeakyRelu."""
    given = node.optional("alpha", "f")
    return (float(np.float32(0.2)) if given is None else given,)


def tolerance(node: Node, dtype: str) -> Sequence[float]:
    """Attribute `tolerance` of ApproximateEqual."""
    given = node.optional("tolerance", "f")
    return (float(np.float32(1e-5)) if given is None else given,)


def softplus_threshold(node: Node, dtype: str) -> Sequence[float]:
    """Threshold of Softplus, as TensorFlow's kernel has it."""
    return (math.log(np.finfo(dtype).eps) + 2,)


def constant(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """Const: a constant."""
    _check_count(inputs, 0)
    dtype, tensor = node.dtype("dtype"), node.tensor()
    if tensor.dtype != dtype:
        raise GraphImportError(f"attr 'dtype' is {dtype}, but its tensor is {tensor.dtype}")
    return (building.constant(tensor, node.name),)


def placeholder(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """Placeholder: an argument of the program."""
    _check_count(inputs, 0)
    return (building.parameter(node.name, node.dtype("dtype"), node.shape(building.producer)),)


def placeholder_with_default(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """PlaceholderWithDefault: an argument with a default value."""
    _check_count(inputs, 1)
    dtype, shape, tensor = node.dtype("dtype"), node.shape(building.producer), inputs[0].tensor
    _check_types(inputs, dtype)
    if tensor is None:
        raise GraphImportError("its default is computed; only a Const is supported")
    same([shape, tensor.shape])
    return (building.parameter(node.name, dtype, shape, tensor),)


def identity(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """Operations that return their input."""
    _check_count(inputs, 1)
    _check_types(inputs, node.dtype("T"))
    return inputs


def identities(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """IdentityN: several inputs, returned as they are."""
    dtypes = [dtype_name(number) for number in node.attribute("T", "list").type]
    _check_count(inputs, len(dtypes))
    for value, dtype in zip(inputs, dtypes, strict=True):
        _check_types([value], dtype)
    return inputs


def nothing(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """NoOp: no inputs and no outputs."""
    _check_count(inputs, 0)
    return ()


def total(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """AddN: the sum of the inputs."""
    expected = node.attribute("N", "i")
    if expected < 1:
        raise GraphImportError(f"attr 'N' must be at least 1, is {expected}")
    _check_count(inputs, expected)
    dtype = node.dtype("T")
    _check_types(inputs, dtype)
    if dtype == "bool":
        raise GraphImportError("there is no AddN of bool; supported are float32, float64, int32, int64")
    same([value.shape for value in inputs])
    added = inputs[0]
    for value in inputs[1:]:
        added = building.apply("add", [added, value], same([added.shape, value.shape]), dtype)
    return (added,)


def cast(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """Cast to another element type."""
    _check_count(inputs, 1)
    source, target = node.dtype("SrcT"), node.dtype("DstT")
    _check_types(inputs, source)
    (value,) = inputs
    if source == target:
        return inputs
    if target == "bool":
        return (building.apply("ne", inputs, value.shape, "bool", extra=(0,)),)
    return (Value(target, value.shape, building.builder.convert(building.name(value), target)),)


def power(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """Pow; integers refuse negative exponents."""
    _check_count(inputs, 2)
    exponent = inputs[1].tensor
    if exponent is None or exponent.dtype not in ("int32", "int64"):
        return _POWER(building, node, inputs)
    if (exponent.values < 0).any():
        raise GraphImportError("its exponent is a negative integer, which TensorFlow refuses for integers")
    return _CHECKED_POWER(building, node, inputs)


def select(building: Building, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """Select and SelectV2: a choice by a condition."""
    _check_count(inputs, 3)
    condition, *branches = inputs
    dtype = node.dtype("T")
    if condition.dtype != "bool":
        raise GraphImportError(f"its condition is {condition.dtype}, but must be bool")
    _check_types(branches, dtype)
    if node.op == "Select":
        _check_select(condition.shape, [value.shape for value in branches])
    shape = broadcast([value.shape for value in inputs])
    number_type = building.number_type(branches if any(value.name for value in branches) else inputs)
    if dtype != "bool":
        number_type = dtype
    test, *values = building.operands(inputs, number_type)
    return (Value(dtype, shape, building.builder.assign(number_type, ast.IfExp(test, *values))),)


def _check_select(condition: Shape, branches: Sequence[Shape]) -> None:
    """Check the shapes of Select, which does not broadcast: a condition with one axis chooses whole rows."""
    result = same(branches)
    if condition is None or result is None or condition == ():
        return
    if len(condition) == 1 and len(result) > 1:
        raise GraphImportError("its condition chooses rows, which is not supported; use SelectV2 with a column")
    same([condition, result])


_POWER = Elementwise(2, "pow", "integer_pow")
_CHECKED_POWER = Elementwise(2, "pow", "pow")
