"""Compositions for networks: softmax, attention, running sums, one-hot and the like.

Each function adds instructions to a builder and returns a value. Elementwise functions are in `activations`, means and
what divides by them in `normalization`, windows in `pooling`, sums of products in `contraction`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shine.base.errors import FormError
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Value
from shine.tensor.form.types import INTEGERS, TensorType, axes_of, axis_of


def logsumexp(b: FunctionBuilder, x: Value, axes: Sequence[int] | None = None, keep: bool = False) -> Value:
    """The logarithm of the sum of exponentials; it does not overflow."""
    found, count = axes_of(x.type, axes)
    if not count:
        empty = b.emit("reduce_sum", [x], axes=found, keep=keep)[0]
        return b.emit("add", [empty, b.like(x, -math.inf)])[0]
    top = _ceiling(b, x, found)
    # Infinite elements are not moved: infinity minus infinity has no value.
    top = b.emit("select", [b.eq(b.sub(top, top), b.like(x, 0)), top, b.like(x, 0)])[0]
    total = b.emit("reduce_sum", [b.exp(b.sub(x, top))], axes=found, keep=keep)[0]
    if not keep:
        top = b.emit("reshape", [top], shape=total.type.shape)[0]
    return b.emit("add", [b.log(total), top])[0]


def softmax(b: FunctionBuilder, x: Value, axis: int = -1) -> Value:
    """Exponentials divided by their sum along an axis; it does not overflow."""
    along = (axis_of(x.type.rank, axis),)
    if not x.type.shape[along[0]]:
        return x
    powers = b.exp(b.sub(x, _ceiling(b, x, along)))
    return b.emit("div", [powers, b.reduce_sum(powers, axes=along, keep=True)])[0]


def log_softmax(b: FunctionBuilder, x: Value, axis: int = -1) -> Value:
    """The logarithm of `softmax`, also where that is 0."""
    along = (axis_of(x.type.rank, axis),)
    if not x.type.shape[along[0]]:
        return x
    moved = b.sub(x, _ceiling(b, x, along))
    return b.emit("sub", [moved, b.log(b.reduce_sum(b.exp(moved), axes=along, keep=True))])[0]


def cumsum(b: FunctionBuilder, x: Value, axis: int, exclusive: bool = False, reverse: bool = False) -> Value:
    """Sums of the elements up to each one, or from each one on; without itself if exclusive.

    Each of about log2(n) steps adds the sums of twice as many elements (Hillis, Steele 1986).
    """
    at = axis_of(x.type.rank, axis)
    size = x.type.shape[at]
    if exclusive:
        x = _shifted(b, x, at, 1, reverse)
    by = 1
    while by < size:
        x = b.add(x, _shifted(b, x, at, by, reverse))
        by *= 2
    return x


def _shifted(b: FunctionBuilder, x: Value, axis: int, by: int, back: bool) -> Value:
    """The elements moved along an axis, and zeros where none comes from."""
    start, stop = [0] * x.type.rank, list(x.type.shape)
    low, high = [0] * x.type.rank, [0] * x.type.rank
    by = min(by, x.type.shape[axis])
    if back:
        start[axis], high[axis] = by, by
    else:
        stop[axis], low[axis] = x.type.shape[axis] - by, by
    kept = b.emit("slice", [x], start=tuple(start), stop=tuple(stop))[0]
    return b.emit("pad", [kept, b.like(x, 0)], low=tuple(low), high=tuple(high))[0]


def _ceiling(b: FunctionBuilder, x: Value, axes: tuple[int, ...]) -> Value:
    """Whole numbers at or just above the largest elements, kept in place.

    What subtracts them does not depend on which numbers they are, so no derivative needs to flow through them, and
    `ceil` lets none through.
    """
    return b.emit("ceil", [b.reduce_max(x, axes=axes, keep=True)])[0]


def linear(
    b: FunctionBuilder, x: Value, weights: Value, bias: Value | None = None, outputs_first: bool = False
) -> Value:
    """A dense layer; weights are inputs x outputs, or the other way round as in PyTorch."""
    if outputs_first:
        weights = b.transpose(weights)
    product = b.dot(x, weights)
    return product if bias is None else b.emit("add", [product, bias])[0]


def embedding(b: FunctionBuilder, table: Value, indices: Value) -> Value:
    """Rows of a table."""
    return b.emit("gather", [table, indices], axis=0)[0]


def attention(
    b: FunctionBuilder,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Value:
    """Scaled dot-product attention (Vaswani et al. 2017).

    Parameters
    ----------
    b : FunctionBuilder
    query : Value
        ... x queries x width.
    key : Value
        ... x keys x width.
    value : Value
        ... x keys x width of the result.
    mask : Value, optional
        Broadcast to ... x queries x keys: bool, true for the pairs that count, or floats to add to the scores. A query
        without any pair gets 0.
    causal : bool
        Whether query i counts the keys 0 to i only.
    scale : float, optional
        Factor of the scores; 1 / sqrt(width) by default.
    """
    width = query.type.shape[-1]
    order = (*range(key.type.rank - 2), key.type.rank - 1, key.type.rank - 2)
    factor = 1 / math.sqrt(max(width, 1)) if scale is None else scale
    # The queries are fewer numbers than the scores.
    scores = b.dot(b.mul(query, b.like(query, factor)), b.transpose(key, permutation=order))
    counts = mask if mask is not None and mask.type.dtype == "bool" else None
    if mask is not None and counts is None:
        scores = b.add(scores, mask)
    if causal:
        queries, keys = scores.type.shape[-2:]
        before = b.constant(np.tril(np.ones((queries, keys), bool)))
        counts = before if counts is None else b.emit("and", [counts, before])[0]
    if counts is None:
        return b.emit("dot", [softmax(b, scores), value])[0]
    # The lowest number and not -inf, which has no distance from itself: the weights of other keys are 0 either way.
    lowest = b.like(scores, float(np.finfo(scores.type.numpy).min))
    weights = softmax(b, b.select(counts, scores, lowest))
    if mask is not None:
        weights = b.select(counts, weights, b.like(scores, 0))
    return b.emit("dot", [weights, value])[0]


# Numbers that are known.


def iota(b: FunctionBuilder, dtype: str, shape: Sequence[int], axis: int = 0) -> Value:
    """0, 1, 2, ... along an axis."""
    type = TensorType(dtype, tuple(shape))
    along = [-1 if i == axis % type.rank else 1 for i in range(type.rank)]
    numbers = np.arange(type.shape[axis], dtype=type.numpy).reshape(along)
    return b.constant(np.broadcast_to(numbers, type.shape))


def linspace(b: FunctionBuilder, dtype: str, start: float, stop: float, count: int) -> Value:
    """Equally spaced numbers from start to stop, both included."""
    return b.constant(np.linspace(start, stop, count).astype(TensorType(dtype).numpy))


def one_hot(b: FunctionBuilder, indices: Value, depth: int, dtype: str = "f32", axis: int = -1) -> Value:
    """1 at each index along a new axis, and 0 elsewhere; an index beyond the axis gives zeros only."""
    if indices.type.dtype not in INTEGERS:
        raise FormError(f"one_hot takes integers, and is given {indices.type}")
    rank = indices.type.rank + 1
    at = axis_of(rank, axis)
    shape = indices.type.shape
    spread = b.reshape(indices, shape=(*shape[:at], 1, *shape[at:]))
    spread = b.cast(spread, dtype="i64")
    numbers = b.constant(np.arange(depth).reshape([depth if i == at else 1 for i in range(rank)]), "i64")
    return b.emit("cast", [b.eq(spread, numbers)], dtype=dtype)[0]
