"""Convolutions with channels before space, as ONNX and torch have them; the form has channels last.

Transposes stand between, and passes remove those that cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.frontend.graph_builder import GraphBuilder, Operand, picked


@dataclass(frozen=True)
class Convolution:
    """Numbers for each axis of space, and the groups of channels."""

    strides: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


def same_padding(
    sizes: Sequence[int], window: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding on either side of each axis, of which the second may be one wider, so that strides alone shorten it."""
    totals = [
        max((-(-size // stride) - 1) * stride + (wide - 1) * by + 1 - size, 0)
        for size, wide, stride, by in zip(sizes, window, strides, dilation, strict=True)
    ]
    return halves(totals)


def halves(totals: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Numbers divided in two, the second of which may be one larger."""
    return tuple(total // 2 for total in totals), tuple(total - total // 2 for total in totals)


def convolution(b: GraphBuilder, x: Operand, kernel: Operand, options: Convolution) -> Operand:
    """Batch x channels x space with filters x (channels / groups) x space."""
    _check(x, kernel)
    turned = b.transpose(kernel, permutation=(*range(2, x.rank), 1, 0))
    image = b.convolve(
        _channels_last(b, x),
        turned,
        strides=options.strides,
        low=options.low,
        high=options.high,
        dilation=options.dilation,
        groups=options.groups,
    )
    return _channels_first(b, image)


def transposed_convolution(
    b: GraphBuilder, x: Operand, kernel: Operand, options: Convolution, extra: Sequence[int]
) -> Operand:
    """The adjoint of a convolution: the input is spread by the strides, the kernel turned round.

    Parameters
    ----------
    b : GraphBuilder
    x : Operand
        Batch x channels x space.
    kernel : Operand
        Channels x (filters / groups) x space.
    options : Convolution
        Those of the convolution: padding takes away from the result.
    extra : sequence of int
        Elements that the result has more at the end of each axis.
    """
    _check(x, kernel)
    groups = options.groups
    channels, filters, *window = kernel.shape
    if groups < 1 or channels % groups:
        raise GraphImportError(f"its {channels} channels cannot be divided into {groups} groups")
    for axis, wide in enumerate(window):
        kernel = picked(b, kernel, np.arange(wide)[::-1], 2 + axis)
    space = len(window)
    parts = b.reshape(kernel, shape=(groups, channels // groups, filters, *window))
    parts = b.transpose(parts, permutation=(*range(3, 3 + space), 1, 0, 2))
    turned = b.reshape(parts, shape=(*window, channels // groups, groups * filters))
    between = (0, *(stride - 1 for stride in options.strides), 0)
    image = b.pad(_channels_last(b, x), b.like(x, 0), low=(0,) * x.rank, high=(0,) * x.rank, interior=between)
    reach = [(wide - 1) * by for wide, by in zip(window, options.dilation, strict=True)]
    before = [far - cut for far, cut in zip(reach, options.low, strict=True)]
    after = [far - cut + more for far, cut, more in zip(reach, options.high, extra, strict=True)]
    low, high = (tuple(max(n, 0) for n in ends) for ends in (before, after))
    image = b.convolve(image, turned, low=low, high=high, dilation=options.dilation, groups=groups)
    start, stop = [0] * image.rank, list(image.shape)
    for axis in range(space):
        start[1 + axis] = max(-before[axis], 0)
        stop[1 + axis] = max(stop[1 + axis] - max(-after[axis], 0), start[1 + axis])
    return _channels_first(b, b.slice(image, start=tuple(start), stop=tuple(stop)))


def _check(x: Operand, kernel: Operand) -> None:
    if x.rank not in (3, 4) or kernel.rank != x.rank:
        raise GraphImportError(f"its input has {x.rank} axes; convolutions of 3 and 4 axes are supported")


def _channels_last(b: GraphBuilder, x: Operand) -> Operand:
    return b.transpose(x, permutation=(0, *range(2, x.rank), 1))


def _channels_first(b: GraphBuilder, x: Operand) -> Operand:
    return b.transpose(x, permutation=(0, x.rank - 1, *range(1, x.rank - 1)))
