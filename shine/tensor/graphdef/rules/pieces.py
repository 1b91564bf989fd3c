"""Operations that take tensors apart and put them together."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from shine.base.errors import GraphImportError
from shine.base.typing import AnyArray
from shine.tensor.frontend.graph_builder import MOST_FOLDED, GraphBuilder, Operand, numbers
from shine.tensor.graphdef.node import Node, axis_of, check_count, one_number, one_of

MOST_PIECES = 4096
"""Most outputs of a node: each takes an instruction."""

_MOST_PLACES = 1 << 20
"""Most places of an axis that may be written as a constant."""


def concatenate(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Concat, whose first input is the axis, and ConcatV2, whose last one is."""
    check_count(inputs, 2, -1)
    axis, parts = (inputs[0], inputs[1:]) if node.op == "Concat" else (inputs[-1], inputs[:-1])
    return b.emit("concatenate", parts, axis=axis_of(one_number(axis, "axis"), parts[0].rank))


def pack(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Pack: tensors of one shape stacked along a new axis."""
    check_count(inputs, 1, -1)
    axis = axis_of(node.optional("axis", "i") or 0, inputs[0].rank + 1)
    parts = [b.reshape(each, shape=(*each.shape[:axis], 1, *each.shape[axis:])) for each in inputs]
    return b.emit("concatenate", parts, axis=axis)


def unpack(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Unpack: the slices of an axis, without it."""
    check_count(inputs, 1)
    operand = inputs[0]
    axis = axis_of(node.optional("axis", "i") or 0, operand.rank)
    if node.attribute("num", "i") != operand.shape[axis]:
        raise GraphImportError(f"attr 'num' is {node.attribute('num', 'i')}, but axis {axis} has {operand.shape[axis]}")
    shape = (*operand.shape[:axis], *operand.shape[axis + 1 :])
    return [b.reshape(piece, shape=shape) for piece in _pieces(b, operand, axis, (1,) * operand.shape[axis])]


def split(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Split into equal parts; the first input is the axis."""
    check_count(inputs, 2)
    operand, count = inputs[1], node.attribute("num_split", "i")
    axis = axis_of(one_number(inputs[0], "axis"), operand.rank)
    if count < 1 or operand.shape[axis] % count:
        raise GraphImportError(f"axis {axis} of {list(operand.shape)} cannot be split into {count} equal parts")
    if count > MOST_PIECES:
        raise GraphImportError(f"it has {count} parts; at most {MOST_PIECES} are supported")
    return _pieces(b, operand, axis, (operand.shape[axis] // count,) * count)


def split_v(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """SplitV into parts of given sizes; one may be -1."""
    check_count(inputs, 3)
    operand, sizes = inputs[0], numbers(inputs[1], "sizes")
    axis = axis_of(one_number(inputs[2], "axis"), operand.rank)
    rest = operand.shape[axis] - sum(size for size in sizes if size != -1)
    sizes = tuple(rest if size == -1 else size for size in sizes)
    if min(sizes, default=0) < 0 or sum(sizes) != operand.shape[axis]:
        raise GraphImportError(f"axis {axis} of {list(operand.shape)} cannot be split into {list(sizes)}")
    return _pieces(b, operand, axis, sizes)


def _pieces(b: GraphBuilder, operand: Operand, axis: int, sizes: Sequence[int]) -> list[Operand]:
    if len(sizes) > MOST_PIECES:
        raise GraphImportError(f"it has {len(sizes)} parts; at most {MOST_PIECES} are supported")
    result, first = [], 0
    for size in sizes:
        start, stop = [0] * operand.rank, list(operand.shape)
        start[axis], stop[axis] = first, first + size
        result.append(b.slice(operand, start=tuple(start), stop=tuple(stop)))
        first += size
    return result


def slice_(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Slice; a size of -1 means up to the end."""
    check_count(inputs, 3)
    operand, start, sizes = inputs[0], numbers(inputs[1], "begin"), numbers(inputs[2], "size")
    if not len(start) == len(sizes) == operand.rank:
        raise GraphImportError(f"begin {list(start)} and size {list(sizes)} do not fit {list(operand.shape)}")
    stop = tuple(
        length if size == -1 else first + size for first, size, length in zip(start, sizes, operand.shape, strict=True)
    )
    return b.emit("slice", [operand], start=start, stop=stop)


def strided_slice(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """StridedSlice: Python's indexing, with bits for the kind of each index."""
    check_count(inputs, 4)
    operand = inputs[0]
    begin, end, strides = (
        numbers(each, name) for each, name in zip(inputs[1:], ("begin", "end", "strides"), strict=True)
    )
    if not len(begin) == len(end) == len(strides) or 0 in strides:
        raise GraphImportError(f"begin {list(begin)}, end {list(end)} and strides {list(strides)} do not fit")

    def is_set(name: str, place: int) -> bool:
        return bool((node.optional(f"{name}_mask", "i") or 0) >> place & 1)

    index: list[slice | int | None] = []
    ellipses = [place for place in range(len(begin)) if is_set("ellipsis", place)]
    # The bit of an ellipsis counts before that of a new axis.
    taken = sum(not is_set("ellipsis", place) and not is_set("new_axis", place) for place in range(len(begin)))
    if len(ellipses) > 1 or taken > operand.rank:
        raise GraphImportError(f"{len(begin)} indices do not fit the shape {list(operand.shape)}")
    for place, (first, last, by) in enumerate(zip(begin, end, strides, strict=True)):
        if is_set("ellipsis", place):
            index += [slice(None)] * (operand.rank - taken)
        elif is_set("new_axis", place):
            index.append(None)
        elif is_set("shrink_axis", place):
            index.append(first)
        else:
            ends = (None if is_set("begin", place) else first, None if is_set("end", place) else last)
            index.append(slice(*ends, by))
    return (_indexed(b, operand, index),)


def _indexed(b: GraphBuilder, operand: Operand, index: Sequence[slice | int | None]) -> Operand:
    """Python's indexing with slices, numbers and new axes."""
    start, stop, step, shape = [], [], [], []
    backwards: list[int] = []
    axis = 0
    for each in [*index, *[slice(None)] * (operand.rank - sum(each is not None for each in index))]:
        if each is None:
            shape.append(1)
            continue
        size = operand.shape[axis]
        if isinstance(each, int):
            each = axis_of(each, size, f"index of axis {axis}")
            first, last, by, count = each, each + 1, 1, 1
        else:
            places = range(size)[each]
            first, last, by, count = places.start, places.stop, places.step, len(places)
            if by < 0:
                backwards.append(axis)
                first, last, by = (places[-1], places[0] + 1, -by) if count else (0, 0, 1)
            last = max(first, min(last, size))
            shape.append(count)
        start.append(first if count else 0)
        stop.append(last if count else 0)
        step.append(by)
        axis += 1
    result = b.slice(operand, start=tuple(start), stop=tuple(stop), step=tuple(step))
    for turned in backwards:
        result = reversed_along(b, result, turned)
    return b.reshape(result, shape=tuple(shape))


def reversed_along(b: GraphBuilder, operand: Operand, axis: int) -> Operand:
    """The slices of an axis, last one first."""
    if operand.shape[axis] < 2:
        return operand
    return picked(b, operand, _places(operand.shape[axis])[::-1], axis)


def picked(b: GraphBuilder, operand: Operand, places: AnyArray, axis: int) -> Operand:
    """The slices of an axis at places that are known."""
    return b.gather(operand, b.constant(places.astype(np.int64)), axis=axis)


def _places(size: int) -> AnyArray:
    """The positions along an axis, as a constant."""
    if size > _MOST_PLACES:
        raise GraphImportError(f"it needs {size} places of an axis as a constant; at most {_MOST_PLACES} are supported")
    return np.arange(size)


def reverse(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """ReverseV2 along axes."""
    check_count(inputs, 2)
    result = inputs[0]
    for axis in numbers(inputs[1], "axes"):
        result = reversed_along(b, result, axis_of(axis, result.rank))
    return (result,)


def pad(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Pad with zeros, and PadV2 with a number."""
    check_count(inputs, 3 if node.op == "PadV2" else 2)
    low, high = _paddings(inputs)
    filling = inputs[2] if node.op == "PadV2" else b.like(inputs[0], 0)
    return b.emit("pad", [inputs[0], filling], low=low, high=high)


def mirror_pad(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """MirrorPad: with or without the elements at the border."""
    check_count(inputs, 2)
    reflects = one_of(node, "mode", None, ("REFLECT", "SYMMETRIC")) == "REFLECT"
    result = inputs[0]
    for axis, (low, high) in enumerate(zip(*_paddings(inputs), strict=True)):
        if max(low, high) > result.shape[axis] - reflects:
            raise GraphImportError(f"padding {low}, {high} is wider than axis {axis} of {list(inputs[0].shape)}")
        if low or high:
            places = _places(result.shape[axis])
            result = picked(b, result, np.pad(places, (low, high), mode="reflect" if reflects else "symmetric"), axis)
    return (result,)


def _paddings(inputs: Sequence[Operand]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Elements before and after each axis."""
    known = inputs[1].known
    if known is None or known.shape != (inputs[0].rank, 2) or known.dtype.kind != "i":
        raise GraphImportError(f"its paddings must be constant, two integers for each axis of {list(inputs[0].shape)}")
    if (known < 0).any():
        raise GraphImportError(f"its paddings {known.tolist()} must be at least 0")
    return tuple(map(int, known[:, 0])), tuple(map(int, known[:, 1]))


def gather(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Gather and GatherV2: slices of an axis, for each element of a batch if `batch_dims` says so."""
    check_count(inputs, 2, 3)
    operand, indices = inputs[:2]
    batch = node.optional("batch_dims", "i") or 0
    batch = axis_of(batch, indices.rank + 1, "attr 'batch_dims'") if batch < 0 else batch
    axis = axis_of(one_number(inputs[2], "axis") if len(inputs) == 3 else 0, operand.rank)
    if not 0 <= batch <= min(axis, indices.rank) or operand.shape[:batch] != indices.shape[:batch]:
        raise GraphImportError(f"indices {list(indices.shape)} do not fit axis {axis} of {list(operand.shape)}")
    if not batch:
        return b.emit("gather", [operand, indices], axis=axis)
    # The batch and the axis become one axis of slices.
    between = tuple(range(batch, axis))
    order = (*range(batch), axis, *between, *range(axis + 1, operand.rank))
    moved = b.transpose(operand, permutation=order)
    count, size = prod(operand.shape[:batch]), operand.shape[axis]
    flat = b.reshape(moved, shape=(count * size, *moved.shape[batch + 1 :]))
    wide = b.cast_to(b.reshape(indices, shape=(count, prod(indices.shape[batch:]))), "int64")
    places = b.add(wide, b.constant((_places(count) * size)[:, None], "int64"))
    found = b.gather(flat, places, axis=0)
    found = b.reshape(found, shape=(*indices.shape, *moved.shape[batch + 1 :]))
    rank, extra = indices.rank, len(between)
    back = (*range(batch), *range(rank, rank + extra), *range(batch, rank), *range(rank + extra, found.rank))
    return (b.transpose(found, permutation=back),)


def gather_nd(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """GatherNd: the last axis of the indices has an index for each of the first axes."""
    check_count(inputs, 2)
    operand, indices = inputs
    if not indices.rank or not 0 < indices.shape[-1] <= operand.rank or node.optional("batch_dims", "i"):
        raise GraphImportError(f"indices of shape {list(indices.shape)} do not fit {list(operand.shape)}")
    depth = indices.shape[-1]
    strides = [prod(operand.shape[axis + 1 : depth]) for axis in range(depth)]
    scaled = b.mul(b.cast_to(indices, "int64"), b.constant(strides, "int64"))
    places = b.reduce_sum(scaled, axes=(indices.rank - 1,))
    flat = b.reshape(operand, shape=(prod(operand.shape[:depth]), *operand.shape[depth:]))
    return b.emit("gather", [flat, places], axis=0)


def one_hot(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """OneHot: one number at the index, another elsewhere."""
    check_count(inputs, 4)
    indices, depth = inputs[0], one_number(inputs[1], "depth")
    if not 0 <= depth <= MOST_FOLDED:
        raise GraphImportError(f"its depth must be 0 to {MOST_FOLDED}, is {depth}")
    given = node.optional("axis", "i")
    axis = axis_of(-1 if given is None else given, indices.rank + 1)
    column = b.reshape(indices, shape=(*indices.shape[:axis], 1, *indices.shape[axis:]))
    places = b.constant(np.arange(depth).reshape(-1, *(1,) * (indices.rank - axis)), indices.dtype)
    return b.emit("select", [b.eq(column, places), inputs[2], inputs[3]])


def depth_to_space(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """DepthToSpace and SpaceToDepth, with the channels last."""
    check_count(inputs, 1)
    block = node.attribute("block_size", "i")
    if inputs[0].rank != 4 or (node.optional("data_format", "s") or b"NHWC") != b"NHWC" or block < 1:
        raise GraphImportError(f"only images in the format NHWC are supported, not {list(inputs[0].shape)}")
    n, rows, columns, channels = inputs[0].shape
    if node.op == "DepthToSpace":
        apart = b.reshape(inputs[0], shape=(n, rows, columns, block, block, channels // block**2))
        moved = b.transpose(apart, permutation=(0, 1, 3, 2, 4, 5))
        return (b.reshape(moved, shape=(n, rows * block, columns * block, channels // block**2)),)
    apart = b.reshape(inputs[0], shape=(n, rows // block, block, columns // block, block, channels))
    moved = b.transpose(apart, permutation=(0, 1, 3, 2, 4, 5))
    return (b.reshape(moved, shape=(n, rows // block, columns // block, channels * block**2)),)


def between_space_and_batch(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """SpaceToBatchND and BatchToSpaceND, for dilated convolutions."""
    check_count(inputs, 3)
    operand, block, ends = inputs[0], numbers(inputs[1], "block shape"), inputs[2].known
    axes = len(block)
    if ends is None or ends.shape != (axes, 2) or operand.rank < 1 + axes or min((*block, *ends.flat), default=0) < 0:
        raise GraphImportError(f"its blocks {list(block)} do not fit the shape {list(operand.shape)}")
    low, high = ((0, *(int(n) for n in side), *(0,) * (operand.rank - 1 - axes)) for side in (ends[:, 0], ends[:, 1]))
    move = _into_batch if node.op == "SpaceToBatchND" else _out_of_batch
    return (move(b, operand, block, low, high),)


def _into_batch(
    b: GraphBuilder, operand: Operand, block: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]
) -> Operand:
    padded, axes = b.pad(operand, b.like(operand, 0), low=low, high=high), len(block)
    if any(not size or length % size for size, length in zip(block, padded.shape[1:], strict=False)):
        raise GraphImportError(f"blocks {list(block)} do not divide the padded shape {list(padded.shape)}")
    rest = padded.shape[1 + axes :]
    counts = [length // size for size, length in zip(block, padded.shape[1:], strict=False)]
    pairs = [n for pair in zip(counts, block, strict=True) for n in pair]
    apart = b.reshape(padded, shape=(padded.shape[0], *pairs, *rest))
    order = (*range(2, 2 * axes + 1, 2), 0, *range(1, 2 * axes, 2), *range(2 * axes + 1, apart.rank))
    moved = b.transpose(apart, permutation=order)
    return b.reshape(moved, shape=(padded.shape[0] * prod(block), *counts, *rest))


def _out_of_batch(
    b: GraphBuilder, operand: Operand, block: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]
) -> Operand:
    axes, blocks = len(block), prod(block)
    if not blocks or operand.shape[0] % blocks:
        raise GraphImportError(f"a batch of {operand.shape[0]} cannot be divided into blocks {list(block)}")
    counts, rest = operand.shape[1 : 1 + axes], operand.shape[1 + axes :]
    apart = b.reshape(operand, shape=(*block, operand.shape[0] // blocks, *counts, *rest))
    pairs = [place for axis in range(axes) for place in (axes + 1 + axis, axis)]
    moved = b.transpose(apart, permutation=(axes, *pairs, *range(2 * axes + 1, apart.rank)))
    sizes = [count * size for count, size in zip(counts, block, strict=True)]
    joined = b.reshape(moved, shape=(operand.shape[0] // blocks, *sizes, *rest))
    stop = tuple(length - after for length, after in zip(joined.shape, high, strict=True))
    return b.slice(joined, start=low, stop=stop)
