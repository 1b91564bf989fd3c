"""Softmax and normalization: compositions of primitives."""

from __future__ import annotations

from collections.abc import Sequence

from shine.base.errors import GraphImportError
from shine.tensor.compositions import networks as compositions
from shine.tensor.compositions import normalization
from shine.tensor.graphdef.node import Node
from shine.tensor.graphdef.rules.attributes import check_count, flag, one_of
from shine.tensor.imported.building import Building, Operand

_EPSILON = 1e-4
"""Added to variances by default."""


def softmax(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Softmax over the last axis."""
    check_count(inputs, 1)
    return (Operand(compositions.softmax(b.builder, inputs[0].value)),)


def log_softmax(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """LogSoftmax over the last axis."""
    check_count(inputs, 1)
    return (Operand(compositions.log_softmax(b.builder, inputs[0].value)),)


def batch_norm(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
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
    made = normalization.batch_norm(
        b.builder,
        operand.value,
        mean.value,
        variance.value,
        scale.value,
        offset.value,
        epsilon=_EPSILON if epsilon is None else epsilon,
        axis=axis,
    )
    outputs = 6 if node.op == "FusedBatchNormV3" else 5
    return [Operand(made), *[mean, variance, mean, variance, mean][: outputs - 1]]
