"""Operations that sum: products, reductions and normalizations."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from shine.base.errors import GraphImportError
from shine.tensor.compositions import contraction, normalization
from shine.tensor.compositions import networks as compositions
from shine.tensor.form.module import Value
from shine.tensor.frontend.graph_builder import Operand
from shine.tensor.graphdef.node import Operation, Rule, axis_of, takes


def _reduced(n: Operation, operation: str, operand: Operand) -> Operand:
    """A reduction of an operand over the axes that the node names."""
    axes = sorted({axis_of(number, operand.rank) for number in n.numbers(1, "axes")})
    return n.b.emit(operation, [operand], axes=tuple(axes), keep=n.flag("keep_dims"))[0]


def _reduction(operation: str) -> Rule:
    return takes(2, lambda n: _reduced(n, operation, n[0]))


def _mean(n: Operation) -> Operand:
    """That of integers is truncated."""
    summed = _reduced(n, "reduce_sum", n[0])
    count = prod(n[0].shape[axis] for axis in {number % n[0].rank for number in n.numbers(1, "axes")})
    return n.b.div(summed, n.b.like(summed, count))


def _every(n: Operation, operand: Operand) -> Operand:
    """Whether all are true: a product of truth values."""
    return n.b.cast_to(_reduced(n, "reduce_prod", n.b.cast_to(operand, "uint8")), "bool")


def _arg_reduction(operation: str) -> Rule:
    def rule(n: Operation) -> Operand:
        found = n.b.emit(operation, [n[0]], axis=n.axis(1, n[0].rank))[0]
        return n.b.cast_to(found, n.dtype_or("int64", "output_type"))

    return takes(2, rule)


def _top_k(n: Operation) -> list[Operand]:
    """The largest elements of the last axis, and their places."""
    k = n.number(1, "number of elements") if n.op == "TopKV2" else n.attribute("k", "i")
    if not n[0].rank or not 0 <= k <= n[0].shape[-1]:
        raise GraphImportError(f"there are no {k} largest elements along the last axis of {list(n[0].shape)}")
    values, places = n.b.emit("top_k", [n[0]], k=k)
    return [values, n.b.cast_to(places, n.dtype_or("int32", "index_type"))]


def _matmul(n: Operation) -> Operand:
    """A product of two matrices, each transposed or not, or of stacks of them."""
    left, right = n.inputs
    is_one = n.op == "MatMul"
    if left.rank < 2 or right.rank < 2 or (is_one and (left.rank, right.rank) != (2, 2)):
        raise GraphImportError(f"its inputs must be matrices, but have shapes {list(left.shape)}, {list(right.shape)}")
    if n.op == "BatchMatMul" and left.shape[:-2] != right.shape[:-2]:
        raise GraphImportError(f"stacks {list(left.shape)} and {list(right.shape)} differ; BatchMatMulV2 broadcasts")
    turns = ("transpose_a", "transpose_b") if is_one else ("adj_x", "adj_y")
    return n.b.dot(*(_turned(n, operand, key) for operand, key in zip((left, right), turns, strict=True)))


def _turned(n: Operation, operand: Operand, key: str) -> Operand:
    if not n.flag(key):
        return operand
    axes = tuple(range(operand.rank - 2))
    return n.b.transpose(operand, permutation=(*axes, operand.rank - 1, operand.rank - 2))


def _einsum(n: Operation) -> Operand:
    return Operand(contraction.einsum(n.b.builder, n.word("equation"), *(each.value for each in n.inputs)))


_EPSILON = 1e-4
"""Added to variances by default."""


def _soft(composition: Callable[..., Value]) -> Rule:
    """A function of the numbers of the last axis."""
    return takes(1, lambda n: Operand(composition(n.b.builder, n[0].value)))


def _batch_norm(n: Operation) -> list[Operand]:
    """In a network that is used, and not trained: mean and variance are given."""
    if n.flag("is_training", default=True):
        raise GraphImportError("it trains (attr 'is_training'); export the network for inference")
    operand, scale, offset, mean, variance = n.inputs
    epsilon = n.optional("epsilon", "f")
    axis = 1 if n.one_of("data_format", "NHWC", ("NHWC", "NCHW")) == "NCHW" else operand.rank - 1
    if any(not each.dtype.startswith("float") for each in n.inputs):
        raise GraphImportError(f"its inputs must be float32 or float64, but the first is {operand.dtype}")
    if operand.rank != 4 or any(each.shape != (operand.shape[axis],) for each in n.inputs[1:]):
        raise GraphImportError(f"its parameters do not fit an input of shape {list(operand.shape)}")
    channels = normalization.Channels(scale.value, offset.value, _EPSILON if epsilon is None else epsilon, axis)
    made = normalization.batch_norm(n.b.builder, operand.value, mean.value, variance.value, channels)
    outputs = 6 if n.op == "FusedBatchNormV3" else 5
    return [Operand(made), *[mean, variance, mean, variance, mean][: outputs - 1]]


REDUCTIONS: dict[str, Rule] = {
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), takes(2, _matmul)),
    "Einsum": takes(1, _einsum, -1),
    "Softmax": _soft(compositions.softmax),
    "LogSoftmax": _soft(compositions.log_softmax),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), takes(5, _batch_norm)),
    "Sum": _reduction("reduce_sum"),
    "Prod": _reduction("reduce_prod"),
    "Max": _reduction("reduce_max"),
    "Min": _reduction("reduce_min"),
    "Mean": takes(2, _mean),
    "All": takes(2, lambda n: _every(n, n[0])),
    "Any": takes(2, lambda n: n.b.not_(_every(n, n.b.not_(n[0])))),
    "ArgMax": _arg_reduction("argmax"),
    "ArgMin": _arg_reduction("argmin"),
    "TopK": takes(1, _top_k),
    "TopKV2": takes(2, _top_k),
}
