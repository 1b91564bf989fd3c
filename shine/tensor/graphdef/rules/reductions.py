"""Operations that make one element of many: sums, extrema, their places, and the largest elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shine.base.errors import GraphImportError
from shine.tensor.graphdef.node import Node
from shine.tensor.graphdef.rules.attributes import Rule, axes_of, axis_of, check_count, flag, one_number
from shine.tensor.imported.building import Building, Operand


def reduction(operation: str) -> Rule:
    """The rule of an operation that is a reduction of the form."""

    def rule(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
        operand, axes, keep = _read(node, inputs)
        return b.emit(operation, [operand], axes=axes, keep=keep)

    return rule


def mean(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Mean; that of integers is truncated."""
    operand, axes, keep = _read(node, inputs)
    count = prod(operand.shape[axis] for axis in axes)
    summed = b.reduce_sum(operand, axes=axes, keep=keep)
    return (b.div(summed, b.like(summed, count)),)


def every(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """All: a product of truth values."""
    operand, axes, keep = _read(node, inputs)
    return (b.cast_to(b.reduce_prod(b.cast_to(operand, "uint8"), axes=axes, keep=keep), "bool"),)


def some(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Any: not all are false."""
    operand, axes, keep = _read(node, inputs)
    return (b.not_(b.cast_to(b.reduce_prod(b.cast_to(b.not_(operand), "uint8"), axes=axes, keep=keep), "bool")),)


def _read(node: Node, inputs: Sequence[Operand]) -> tuple[Operand, tuple[int, ...], bool]:
    check_count(inputs, 2)
    return inputs[0], axes_of(inputs[1], inputs[0].rank), flag(node, "keep_dims")


def arg_reduction(operation: str) -> Rule:
    """The rule of ArgMax or ArgMin."""

    def rule(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
        check_count(inputs, 2)
        axis = axis_of(one_number(inputs[1], "axis"), inputs[0].rank)
        dtype = "int64" if node.optional("output_type", "type") is None else node.dtype("output_type")
        return (b.cast_to(b.emit(operation, inputs[:1], axis=axis)[0], dtype),)

    return rule


def top_k(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """TopK and TopKV2: the largest elements of the last axis, and their places."""
    if node.op == "TopKV2":
        check_count(inputs, 2)
        k = one_number(inputs[1], "number of elements")
    else:
        check_count(inputs, 1)
        k = node.attribute("k", "i")
    if not inputs[0].rank or not 0 <= k <= inputs[0].shape[-1]:
        raise GraphImportError(f"there are no {k} largest elements along the last axis of {list(inputs[0].shape)}")
    values, places = b.top_k(inputs[0], k=k)
    dtype = "int32" if node.optional("index_type", "type") is None else node.dtype("index_type")
    return values, b.cast_to(places, dtype)
