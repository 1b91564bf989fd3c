"""Reductions, normalizations, and orders of elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.compositions import networks as compositions
from shine.tensor.compositions import normalization
from shine.tensor.form.module import Value
from shine.tensor.form.types import FLOATS
from shine.tensor.frontend.graph_builder import Operand, cut, numbers, picked
from shine.tensor.onnx.node import Node, checked_axes, checked_axis

Rule = Callable[[Node], "Operand | Sequence[Operand]"]


def _axes(node: Node) -> tuple[int, ...]:
    x, given = node.input(0), node.sizes("axes", 1)
    if not given:
        return () if node.get("noop_with_empty_axes", 0) else tuple(range(x.rank))
    return checked_axes(given, x.rank)


def _reduction(operation: str, before: str = "", after: str = "") -> Rule:
    """A reduction of a function of the elements, and a function of that."""

    def rule(node: Node) -> Operand:
        b, x = node.b, node.input(0)
        if before:
            x = b.mul(x, x) if before == "square" else b.emit(before, [x])[0]
        found = b.emit(operation, [x], axes=_axes(node), keep=bool(node.get("keepdims", 1)))[0]
        if not after:
            return found
        # Of integers as well: the root or logarithm is cut off.
        exact = found if found.value.type.dtype in FLOATS else b.cast_to(found, "float64")
        return b.cast_to(b.emit(after, [exact])[0], found.dtype)

    return rule


def _extremum(operation: str) -> Rule:
    def rule(node: Node) -> Operand:
        x = node.input(0)
        if x.value.type.dtype == "bool":
            return node.b.cast_to(reduced(node, node.b.cast_to(x, "uint8")), "bool")
        return reduced(node, x)

    def reduced(node: Node, x: Operand) -> Operand:
        b, axes, keep = node.b, _axes(node), bool(node.get("keepdims", 1))
        if all(x.shape[axis] for axis in axes):
            return b.emit(operation, [x], axes=axes, keep=keep)[0]
        # Of nothing: what no element is beyond.
        low, high = _limits(x.dtype)
        found = b.add(b.reduce_sum(x, axes=axes, keep=keep), b.like(x, low if "max" in operation else high))
        return found

    return rule


def _limits(dtype: str) -> tuple[float, float]:
    """The smallest and the largest number of an element type."""
    if np.dtype(dtype).kind == "f":
        return -math.inf, math.inf
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _mean(node: Node) -> Operand:
    b, x, axes = node.b, node.input(0), _axes(node)
    total = b.reduce_sum(x, axes=axes, keep=bool(node.get("keepdims", 1)))
    return b.div(total, b.like(x, math.prod(x.shape[i] for i in axes)))


def _log_sum_exp(node: Node) -> Operand:
    b, x, keep = node.b, node.input(0), bool(node.get("keepdims", 1))
    exact = x if x.value.type.dtype in FLOATS else b.cast_to(x, "float64")
    return b.cast_to(Operand(compositions.logsumexp(node.builder, exact.value, _axes(node), keep)), x.dtype)


def _floats(node: Node) -> Value:
    x = node.value(0)
    if x.type.dtype not in FLOATS:
        raise GraphImportError(f"its input has elements {x.type.dtype}; they must be floats")
    return x


def _arg(operation: str) -> Rule:
    def rule(node: Node) -> Operand:
        b, x = node.b, node.input(0)
        axis = node.axis("axis", 0, x.rank)
        if node.get("select_last_index", 0):
            turned = picked(b, x, np.arange(x.shape[axis])[::-1], axis)
            found = b.emit(operation, [turned], axis=axis)[0]
            found = b.sub(b.constant(x.shape[axis] - 1, "int64"), found)
        else:
            found = b.emit(operation, [x], axis=axis)[0]
        if node.get("keepdims", 1):
            found = b.reshape(found, shape=(*x.shape[:axis], 1, *x.shape[axis + 1 :]))
        return found

    return rule


def _top_k(node: Node) -> list[Operand]:
    b, x = node.b, node.input(0)
    axis = node.axis("axis", -1, x.rank)
    count = numbers(node.input(1), "k")
    if len(count) != 1 or not 0 <= count[0] <= x.shape[axis]:
        raise GraphImportError(f"its k = {list(count)} is not one number from 0 to {x.shape[axis]}")
    found = b.emit("sort", [x], axis=axis, descending=bool(node.get("largest", 1)))
    return [cut(b, part, axis, 0, count[0]) for part in found]


def _soft(composition: Callable[..., Value]) -> Rule:
    def rule(node: Node) -> Operand:
        x = _floats(node)
        if node.version >= 13:
            return Operand(composition(node.builder, x, checked_axis(node.get("axis", -1), x.type.rank)))
        # Older sets flatten the axes from this one on.
        axis, shape = checked_axis(node.get("axis", 1), x.type.rank), x.type.shape
        flat = node.builder.reshape(x, shape=(math.prod(shape[:axis]), math.prod(shape[axis:])))
        return Operand(node.builder.reshape(composition(node.builder, flat, 1), shape=shape))

    return rule


def _layer_norm(node: Node) -> Operand:
    x = _floats(node)
    axis = checked_axis(node.get("axis", -1), x.type.rank)
    shift = None if node.optional(2) is None else node.value(2)
    if node.outputs > 1:
        raise GraphImportError("its mean and deviation are asked for; only the first output is supported")
    axes = tuple(range(axis, x.type.rank))
    return Operand(normalization.layer_norm(node.builder, x, axes, node.value(1), shift, node.get("epsilon", 1e-5)))


def _rms_norm(node: Node) -> Operand:
    x = _floats(node)
    axes = tuple(range(checked_axis(node.get("axis", -1), x.type.rank), x.type.rank))
    return Operand(normalization.rms_norm(node.builder, x, axes, node.value(1), node.get("epsilon", 1e-5)))


def _batch_norm(node: Node) -> Operand:
    if node.get("training_mode", 0):
        raise GraphImportError("it is in training mode; export the model for inference")
    scale, shift, average, variance = (node.value(place) for place in (1, 2, 3, 4))
    channels = normalization.Channels(scale, shift, node.get("epsilon", 1e-5), axis=1)
    return Operand(normalization.batch_norm(node.builder, _floats(node), average, variance, channels))


def _instance_norm(node: Node) -> Operand:
    channels = normalization.Channels(node.value(1), node.value(2), node.get("epsilon", 1e-5), axis=1)
    return Operand(normalization.instance_norm(node.builder, _floats(node), channels))


def _group_norm(node: Node) -> Operand:
    x, groups = _floats(node), node.get("num_groups")
    scale, shift = node.input(1), node.input(2)
    if scale.shape != (x.type.shape[1],):
        raise GraphImportError(f"its scale has the shape {list(scale.shape)}; one number a channel is supported")
    channels = normalization.Channels(scale.value, shift.value, node.get("epsilon", 1e-5), axis=1)
    return Operand(normalization.group_norm(node.builder, x, groups, channels))


def _lp_norm(node: Node) -> Operand:
    b, x = node.b, node.input(0)
    axis, p = node.axis("axis", -1, x.rank), node.get("p", 2)
    if p not in (1, 2):
        raise GraphImportError(f"its p is {p}; only 1 and 2 are supported")
    powers = b.abs(x) if p == 1 else b.mul(x, x)
    total = b.reduce_sum(powers, axes=(axis,), keep=True)
    # Vectors with the norm 0 stay 0.
    total = b.select(b.eq(total, b.like(total, 0)), b.like(total, 1), total)
    return b.div(x, total if p == 1 else b.sqrt(total))


def _lrn(node: Node) -> Operand:
    """Local response normalization over neighbouring channels."""
    b, x, size = node.b, node.input(0), node.get("size")
    if x.rank < 2 or size < 1:
        raise GraphImportError("its input has no channels, or its size is below 1")
    before, channels = (size - 1) // 2, x.shape[1]
    low, high = [0] * x.rank, [0] * x.rank
    low[1], high[1] = before, size - 1 - before
    wide = b.pad(b.mul(x, x), b.like(x, 0), low=tuple(low), high=tuple(high))
    total = reduce(b.add, (cut(b, wide, 1, shift, shift + channels) for shift in range(size)))
    scaled = b.mul(total, b.like(x, node.get("alpha", 1e-4) / size))
    base = b.add(scaled, b.like(x, node.get("bias", 1.0)))
    return b.div(x, b.pow(base, b.like(x, node.get("beta", 0.75))))


REDUCTIONS: dict[str, Rule] = {
    "ReduceSum": _reduction("reduce_sum"),
    "ReduceProd": _reduction("reduce_prod"),
    "ReduceMax": _extremum("reduce_max"),
    "ReduceMin": _extremum("reduce_min"),
    "ReduceMean": _mean,
    "ReduceL1": _reduction("reduce_sum", before="abs"),
    "ReduceL2": _reduction("reduce_sum", before="square", after="sqrt"),
    "ReduceSumSquare": _reduction("reduce_sum", before="square"),
    "ReduceLogSum": _reduction("reduce_sum", after="log"),
    "ReduceLogSumExp": _log_sum_exp,
    "ArgMax": _arg("argmax"),
    "ArgMin": _arg("argmin"),
    "TopK": _top_k,
    "Softmax": _soft(compositions.softmax),
    "LogSoftmax": _soft(compositions.log_softmax),
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "BatchNormalization": _batch_norm,
    "InstanceNormalization": _instance_norm,
    "GroupNormalization": _group_norm,
    "LpNormalization": _lp_norm,
    "LRN": _lrn,
}
