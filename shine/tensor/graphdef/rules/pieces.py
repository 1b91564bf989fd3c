"""Operations that take tensors apart and put them together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np

from shine.base.errors import GraphImportError
from shine.base.typing import AnyArray
from shine.tensor.frontend.graph_builder import MOST_FOLDED, GraphBuilder, Operand, cut, one_hot, picked
from shine.tensor.graphdef.node import Operation, Rule, axis_of, takes

MOST_PIECES = 4096
"""Most outputs of a node: each takes an instruction."""

_MOST_PLACES = 1 << 20
"""Most places of an axis that may be written as a constant."""


def _concatenate(n: Operation) -> Operand:
    """The axis is the first input of Concat, and the last one of ConcatV2."""
    place, parts = (0, n.inputs[1:]) if n.op == "Concat" else (-1, n.inputs[:-1])
    return n.b.concatenate(*parts, axis=n.axis(place, parts[0].rank))


def _pack(n: Operation) -> Operand:
    """Tensors of one shape stacked along a new axis."""
    axis = axis_of(n.optional("axis", "i") or 0, n[0].rank + 1)
    parts = [n.b.reshape(each, shape=(*each.shape[:axis], 1, *each.shape[axis:])) for each in n.inputs]
    return n.b.concatenate(*parts, axis=axis)


def _unpack(n: Operation) -> list[Operand]:
    """The slices of an axis, without it."""
    operand = n[0]
    axis = axis_of(n.optional("axis", "i") or 0, operand.rank)
    if n.attribute("num", "i") != operand.shape[axis]:
        raise GraphImportError(f"attr 'num' is {n.attribute('num', 'i')}, but axis {axis} has {operand.shape[axis]}")
    shape = (*operand.shape[:axis], *operand.shape[axis + 1 :])
    return [n.b.reshape(piece, shape=shape) for piece in _pieces(n.b, operand, axis, (1,) * operand.shape[axis])]


def _split(n: Operation) -> list[Operand]:
    """Equal parts; the first input is the axis."""
    operand, count = n[1], n.attribute("num_split", "i")
    axis = n.axis(0, operand.rank)
    if count < 1 or operand.shape[axis] % count:
        raise GraphImportError(f"axis {axis} of {list(operand.shape)} cannot be split into {count} equal parts")
    _check_pieces(count)
    return _pieces(n.b, operand, axis, (operand.shape[axis] // count,) * count)


def _split_v(n: Operation) -> list[Operand]:
    """Parts of given sizes; one may be -1."""
    operand, sizes = n[0], n.numbers(1, "sizes")
    axis = n.axis(2, operand.rank)
    rest = operand.shape[axis] - sum(size for size in sizes if size != -1)
    sizes = tuple(rest if size == -1 else size for size in sizes)
    if min(sizes, default=0) < 0 or sum(sizes) != operand.shape[axis]:
        raise GraphImportError(f"axis {axis} of {list(operand.shape)} cannot be split into {list(sizes)}")
    return _pieces(n.b, operand, axis, sizes)


def _check_pieces(count: int) -> None:
    if count > MOST_PIECES:
        raise GraphImportError(f"it has {count} parts; at most {MOST_PIECES} are supported")


def _pieces(b: GraphBuilder, operand: Operand, axis: int, sizes: Sequence[int]) -> list[Operand]:
    _check_pieces(len(sizes))
    ends = np.cumsum((0, *sizes)).tolist()
    return [cut(b, operand, axis, first, last) for first, last in pairwise(ends)]


def _slice(n: Operation) -> Operand:
    """A size of -1 means up to the end."""
    operand, start, sizes = n[0], n.numbers(1, "begin"), n.numbers(2, "size")
    if not len(start) == len(sizes) == operand.rank:
        raise GraphImportError(f"begin {list(start)} and size {list(sizes)} do not fit {list(operand.shape)}")
    stop = tuple(
        length if size == -1 else first + size for first, size, length in zip(start, sizes, operand.shape, strict=True)
    )
    return n.b.slice(operand, start=start, stop=stop)


def _strided_slice(n: Operation) -> Operand:
    """Python's indexing, with bits for the kind of each index."""
    operand = n[0]
    begin, end, strides = (n.numbers(place, name) for place, name in enumerate(("begin", "end", "strides"), 1))
    if not len(begin) == len(end) == len(strides) or 0 in strides:
        raise GraphImportError(f"begin {list(begin)}, end {list(end)} and strides {list(strides)} do not fit")

    def is_set(name: str, place: int) -> bool:
        return bool((n.optional(f"{name}_mask", "i") or 0) >> place & 1)

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
    return _indexed(n.b, operand, index)


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
        result = _reversed_along(b, result, turned)
    return b.reshape(result, shape=tuple(shape))


def _reversed_along(b: GraphBuilder, operand: Operand, axis: int) -> Operand:
    """The slices of an axis, last one first."""
    if operand.shape[axis] < 2:
        return operand
    return picked(b, operand, _places(operand.shape[axis])[::-1], axis)


def _places(size: int) -> AnyArray:
    """The positions along an axis, as a constant."""
    if size > _MOST_PLACES:
        raise GraphImportError(f"it needs {size} places of an axis as a constant; at most {_MOST_PLACES} are supported")
    return np.arange(size)


def _reverse(n: Operation) -> Operand:
    result = n[0]
    for axis in n.numbers(1, "axes"):
        result = _reversed_along(n.b, result, axis_of(axis, result.rank))
    return result


def _pad(n: Operation) -> Operand:
    """With zeros, or with the number that PadV2 gives."""
    low, high = _paddings(n)
    return n.b.pad(n[0], n[2] if n.op == "PadV2" else n.b.like(n[0], 0), low=low, high=high)


def _mirror_pad(n: Operation) -> Operand:
    """With or without the elements at the border."""
    reflects = n.one_of("mode", None, ("REFLECT", "SYMMETRIC")) == "REFLECT"
    result = n[0]
    for axis, (low, high) in enumerate(zip(*_paddings(n), strict=True)):
        if max(low, high) > result.shape[axis] - reflects:
            raise GraphImportError(f"padding {low}, {high} is wider than axis {axis} of {list(n[0].shape)}")
        if low or high:
            places = np.pad(_places(result.shape[axis]), (low, high), mode="reflect" if reflects else "symmetric")
            result = picked(n.b, result, places, axis)
    return result


def _paddings(n: Operation) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Elements before and after each axis."""
    known = n[1].known
    if known is None or known.shape != (n[0].rank, 2) or known.dtype.kind != "i":
        raise GraphImportError(f"its paddings must be constant, two integers for each axis of {list(n[0].shape)}")
    if (known < 0).any():
        raise GraphImportError(f"its paddings {known.tolist()} must be at least 0")
    return tuple(map(int, known[:, 0])), tuple(map(int, known[:, 1]))


def _gather(n: Operation) -> Operand:
    """Slices of an axis, for each element of a batch if `batch_dims` says so."""
    b, (operand, indices) = n.b, n.inputs[:2]
    batch = n.optional("batch_dims", "i") or 0
    batch = axis_of(batch, indices.rank + 1, "attr 'batch_dims'") if batch < 0 else batch
    axis = n.axis(2, operand.rank) if len(n.inputs) == 3 else axis_of(0, operand.rank)
    if not 0 <= batch <= min(axis, indices.rank) or operand.shape[:batch] != indices.shape[:batch]:
        raise GraphImportError(f"indices {list(indices.shape)} do not fit axis {axis} of {list(operand.shape)}")
    if not batch:
        return b.gather(operand, indices, axis=axis)
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
    return b.transpose(found, permutation=back)


def _gather_nd(n: Operation) -> Operand:
    """The last axis of the indices has an index for each of the first axes."""
    b, (operand, indices) = n.b, n.inputs
    if not indices.rank or not 0 < indices.shape[-1] <= operand.rank or n.optional("batch_dims", "i"):
        raise GraphImportError(f"indices of shape {list(indices.shape)} do not fit {list(operand.shape)}")
    depth = indices.shape[-1]
    strides = [prod(operand.shape[axis + 1 : depth]) for axis in range(depth)]
    scaled = b.mul(b.cast_to(indices, "int64"), b.constant(strides, "int64"))
    places = b.reduce_sum(scaled, axes=(indices.rank - 1,))
    flat = b.reshape(operand, shape=(prod(operand.shape[:depth]), *operand.shape[depth:]))
    return b.gather(flat, places, axis=0)


def _one_hot(n: Operation) -> Operand:
    depth, given = n.number(1, "depth"), n.optional("axis", "i")
    if not 0 <= depth <= MOST_FOLDED:
        raise GraphImportError(f"its depth must be 0 to {MOST_FOLDED}, is {depth}")
    axis = axis_of(-1 if given is None else given, n[0].rank + 1)
    return one_hot(n.b, n[0], depth, axis, n[2], n[3])


def _depth_to_space(n: Operation) -> Operand:
    """DepthToSpace and SpaceToDepth, with the channels last."""
    block = n.attribute("block_size", "i")
    if n[0].rank != 4 or (n.optional("data_format", "s") or b"NHWC") != b"NHWC" or block < 1:
        raise GraphImportError(f"only images in the format NHWC are supported, not {list(n[0].shape)}")
    images, rows, columns, channels = n[0].shape
    if n.op == "DepthToSpace":
        parts, whole = (rows, columns, block, block, channels // block**2), (rows * block, columns * block)
    else:
        parts = (rows // block, block, columns // block, block, channels)
        whole = (rows // block, columns // block)
    moved = n.b.transpose(n.b.reshape(n[0], shape=(images, *parts)), permutation=(0, 1, 3, 2, 4, 5))
    last = channels // block**2 if n.op == "DepthToSpace" else channels * block**2
    return n.b.reshape(moved, shape=(images, *whole, last))


def _between_space_and_batch(n: Operation) -> Operand:
    """SpaceToBatchND and BatchToSpaceND, for dilated convolutions."""
    operand, block, ends = n[0], n.numbers(1, "block shape"), n[2].known
    axes = len(block)
    if ends is None or ends.shape != (axes, 2) or operand.rank < 1 + axes or min((*block, *ends.flat), default=0) < 0:
        raise GraphImportError(f"its blocks {list(block)} do not fit the shape {list(operand.shape)}")
    low, high = ((0, *(int(size) for size in side), *(0,) * (operand.rank - 1 - axes)) for side in ends.T)
    move = _into_batch if n.op == "SpaceToBatchND" else _out_of_batch
    return move(n.b, operand, block, low, high)


def _into_batch(
    b: GraphBuilder, operand: Operand, block: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]
) -> Operand:
    padded, axes = b.pad(operand, b.like(operand, 0), low=low, high=high), len(block)
    if any(not size or length % size for size, length in zip(block, padded.shape[1:], strict=False)):
        raise GraphImportError(f"blocks {list(block)} do not divide the padded shape {list(padded.shape)}")
    rest = padded.shape[1 + axes :]
    counts = [length // size for size, length in zip(block, padded.shape[1:], strict=False)]
    pairs = [size for pair in zip(counts, block, strict=True) for size in pair]
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


PIECES: dict[str, Rule] = {
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), takes(1, _depth_to_space)),
    **dict.fromkeys(("SpaceToBatchND", "BatchToSpaceND"), takes(3, _between_space_and_batch)),
    **dict.fromkeys(("Concat", "ConcatV2"), takes(2, _concatenate, -1)),
    "Pack": takes(1, _pack, -1),
    "Unpack": takes(1, _unpack),
    "Split": takes(2, _split),
    "SplitV": takes(3, _split_v),
    "Slice": takes(3, _slice),
    "StridedSlice": takes(4, _strided_slice),
    "ReverseV2": takes(2, _reverse),
    "Pad": takes(2, _pad),
    "PadV2": takes(3, _pad),
    "MirrorPad": takes(2, _mirror_pad),
    **dict.fromkeys(("Gather", "GatherV2"), takes(2, _gather, 3)),
    "GatherNd": takes(2, _gather_nd),
    "OneHot": takes(4, _one_hot),
}
