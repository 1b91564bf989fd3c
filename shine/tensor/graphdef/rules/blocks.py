"""Operations that move blocks of an image between axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shine.base.errors import GraphImportError
from shine.tensor.graphdef.node import Node
from shine.tensor.graphdef.rules.attributes import check_count
from shine.tensor.imported.building import Building, Operand, numbers


def depth_to_space(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
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


def between_space_and_batch(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
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
    b: Building, operand: Operand, block: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]
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
    found: Operand = b.reshape(moved, shape=(padded.shape[0] * prod(block), *counts, *rest))
    return found


def _out_of_batch(
    b: Building, operand: Operand, block: tuple[int, ...], low: tuple[int, ...], high: tuple[int, ...]
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
    found: Operand = b.slice(joined, start=low, stop=stop)
    return found
