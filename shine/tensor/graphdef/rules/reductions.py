"""Operations that sum: products, reductions and normalizations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shine.base.errors import GraphImportError
from shine.tensor.compositions import contraction, normalization
from shine.tensor.compositions import networks as compositions
from shine.tensor.frontend.graph_builder import GraphBuilder, Operand
from shine.tensor.graphdef.node import Node, Rule, axes_of, axis_of, check_count, flag, one_number, one_of, word


def reduction(operation: str) -> Rule:
    """The rule of an operation that is a reduction of the form."""

    def rule(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
        operand, axes, keep = _read(node, inputs)
        return b.emit(operation, [operand], axes=axes, keep=keep)

    return rule


def mean(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Mean; that of integers is truncated."""
    operand, axes, keep = _read(node, inputs)
    count = prod(operand.shape[axis] for axis in axes)
    summed = b.reduce_sum(operand, axes=axes, keep=keep)
    return (b.div(summed, b.like(summed, count)),)


def every(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """All: a product of truth values."""
    operand, axes, keep = _read(node, inputs)
    return (b.cast_to(b.reduce_prod(b.cast_to(operand, "uint8"), axes=axes, keep=keep), "bool"),)


def some(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Any: not all are false."""
    operand, axes, keep = _read(node, inputs)
    return (b.not_(b.cast_to(b.reduce_prod(b.cast_to(b.not_(operand), "uint8"), axes=axes, keep=keep), "bool")),)


def _read(node: Node, inputs: Sequence[Operand]) -> tuple[Operand, tuple[int, ...], bool]:
    check_count(inputs, 2)
    return inputs[0], axes_of(inputs[1], inputs[0].rank), flag(node, "keep_dims")


def arg_reduction(operation: str) -> Rule:
    """The rule of ArgMax or ArgMin."""

    def rule(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
        check_count(inputs, 2)
        axis = axis_of(one_number(inputs[1], "axis"), inputs[0].rank)
        dtype = "int64" if node.optional("output_type", "type") is None else node.dtype("output_type")
        return (b.cast_to(b.emit(operation, inputs[:1], axis=axis)[0], dtype),)

    return rule


def top_k(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """TopK and TopKV2: the largest elements of the last axis, and their places."""
    if node.op == "TopKV2":
        check_count(inputs, 2)
        k = one_number(inputs[1], "number of elements")
    else:
        check_count(inputs, 1)
        k = node.attribute("k", "i")
    if not inputs[0].rank or not 0 <= k <= inputs[0].shape[-1]:
        raise GraphImportError(f"there are no {k} largest elements along the last axis of {list(inputs[0].shape)}")
    values, places = b.emit("top_k", [inputs[0]], k=k)
    dtype = "int32" if node.optional("index_type", "type") is None else node.dtype("index_type")
    return values, b.cast_to(places, dtype)


def matmul(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """MatMul of two matrices, each transposed or not."""
    check_count(inputs, 2)
    left, right = inputs
    if left.rank != 2 or right.rank != 2:
        raise GraphImportError(f"its inputs must be matrices, but have shapes {list(left.shape)}, {list(right.shape)}")
    return (b.dot(_turned(b, left, flag(node, "transpose_a")), _turned(b, right, flag(node, "transpose_b"))),)


def batch_matmul(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """BatchMatMul and its versions: stacks of matrices."""
    check_count(inputs, 2)
    left, right = inputs
    if left.rank < 2 or right.rank < 2:
        raise GraphImportError(f"its inputs must be matrices, but have shapes {list(left.shape)}, {list(right.shape)}")
    if node.op == "BatchMatMul" and left.shape[:-2] != right.shape[:-2]:
        raise GraphImportError(f"stacks {list(left.shape)} and {list(right.shape)} differ; BatchMatMulV2 broadcasts")
    return (b.dot(_turned(b, left, flag(node, "adj_x")), _turned(b, right, flag(node, "adj_y"))),)


def _turned(b: GraphBuilder, operand: Operand, is_turned: bool) -> Operand:
    if not is_turned:
        return operand
    axes = tuple(range(operand.rank - 2))
    return b.transpose(operand, permutation=(*axes, operand.rank - 1, operand.rank - 2))


def einsum(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Einsum of any number of inputs."""
    check_count(inputs, 1, -1)
    return (Operand(contraction.einsum(b.builder, word(node, "equation"), *(each.value for each in inputs))),)


_EPSILON = 1e-4
"""Added to variances by default."""


def softmax(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Softmax over the last axis."""
    check_count(inputs, 1)
    return (Operand(compositions.softmax(b.builder, inputs[0].value)),)


def log_softmax(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """LogSoftmax over the last axis."""
    check_count(inputs, 1)
    return (Operand(compositions.log_softmax(b.builder, inputs[0].value)),)


def batch_norm(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """FusedBatchNorm of a network that is used, and not trained: mean and variance are given."""
    check_count(inputs, 5)
    if flag(node, "is_training", default=True):
        raise GraphImportError("it trains (attr 'is_training'); export the network for inference")
    operand, scale, offset, mean, variance = inputs
    epsilon = node.optional("epsilon", "f")
    axis = 1 if one_of(node, "data_format", "NHWC", ("NHWC", "NCHW")) == "NCHW" else operand.rank - 1
    if any(not each.dtype.startswith("float") for each in inputs):
        raise GraphImportError(f"its inputs must be float32 or float64, but the first is {operand.dtype}")
    if operand.rank != 4 or any(each.shape != (operand.shape[axis],) for each in inputs[1:]):
        raise GraphImportError(f"its parameters do not fit an input of shape {list(operand.shape)}")
    channels = normalization.Channels(scale.value, offset.value, _EPSILON if epsilon is None else epsilon, axis)
    made = normalization.batch_norm(b.builder, operand.value, mean.value, variance.value, channels)
    outputs = 6 if node.op == "FusedBatchNormV3" else 5
    return [Operand(made), *[mean, variance, mean, variance, mean][: outputs - 1]]
