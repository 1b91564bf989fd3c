"""The operation `convolve`: register tiles of output pixels by filters, over the image where it is.

For each row of the kernel, the window of a pixel is contiguous in a channels-last image, and so are the windows of
neighbouring pixels, a stride apart: a product whose left operand overlaps itself, which needs no copy. An image with
padding is copied into a larger one first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, counted
from shine.compiler.processor import Machine
from shine.tensor.form.module import Instruction
from shine.tensor.form.types import DTYPES
from shine.tensor.loops.arena import aligned
from shine.tensor.loops.fusion import Nest
from shine.tensor.loops.index import LANE, Index, linear, row_major, variable
from shine.tensor.loops.lanes import constant, load, store
from shine.tensor.loops.nest import Shape, Site, loops, put, vectors
from shine.tensor.loops.products.kernel import STRAIGHT, Arithmetic, Columns, Sums, Walk, accumulate, moved
from shine.tensor.loops.products.product import Span, steps
from shine.tensor.loops.products.tiles import Tiles, tiles_of


@dataclass(frozen=True)
class Convolution:
    """A convolution in two dimensions; one with one has rows of height 1.

    Parameters
    ----------
    dtype : str
    batch : int
    size, padded, made, window : tuple of int
        Height and width of the image, of the padded image, of the result, of the kernel.
    channels, filters, groups : int
    strides, dilation, low : tuple of int
    tiles : Tiles
    is_streamed : bool
        Whether the filters do not stay in the second cache: then some of them, packed, see all images before the next.
    """

    dtype: str
    batch: int
    size: tuple[int, int]
    padded: tuple[int, int]
    made: tuple[int, int]
    window: tuple[int, int]
    channels: int
    filters: int
    groups: int
    strides: tuple[int, int]
    dilation: tuple[int, int]
    low: tuple[int, int]
    tiles: Tiles
    is_streamed: bool

    @property
    def is_padded(self) -> bool:
        """Whether the image must be copied."""
        return self.padded != self.size

    @property
    def is_depthwise(self) -> bool:
        """Whether each filter sees one channel of several, its own."""
        return 1 < self.groups == self.channels == self.filters

    @property
    def terms(self) -> int:
        """Products in a sum."""
        return self.window[0] * self.window[1] * (self.channels // self.groups)

    @property
    def padded_bytes(self) -> int:
        """Bytes of the padded images, if there must be any."""
        each = self.padded[0] * self.padded[1] * self.channels * DTYPES[self.dtype].itemsize
        return aligned(self.batch * each) if self.is_padded else 0

    @property
    def scratch_bytes(self) -> int:
        """Bytes of the padded images and of packed filters."""
        panel = self.terms * self.tiles.vectors * self.tiles.width * DTYPES[self.dtype].itemsize
        return self.padded_bytes + panel * self.is_streamed

    def __str__(self) -> str:
        window = " x ".join(map(str, self.window))
        how = f"vectors of {self.tiles.width} channels" if self.is_depthwise else f"pixels x filters: {self.tiles}"
        copied = ", padded copy" * self.is_padded + ", packed filters" * self.is_streamed
        return f"{self.batch} of {self.padded[0]} x {self.padded[1]} x {self.channels} by {window}: {how}{copied}"


def convolution_of(machine: Machine, maker: Instruction) -> Convolution:
    """The plan of an instruction."""
    image, kernel = (operand.type for operand in maker.operands)
    result = maker.result.type
    attributes: Any = maker.attributes

    def pair(sizes: Sequence[int], missing: int) -> tuple[int, int]:
        return (missing, sizes[0]) if len(sizes) == 1 else (sizes[0], sizes[1])

    size, groups = pair(image.shape[1:-1], 1), attributes["groups"]
    low, high = pair(attributes["low"], 0), pair(attributes["high"], 0)
    made, filters = pair(result.shape[1:-1], 1), kernel.shape[-1] // groups
    terms = kernel.elements // max(kernel.shape[-1], 1)
    itemsize = DTYPES[image.dtype].itemsize
    columns = kernel.shape[-1] if groups == image.shape[-1] == kernel.shape[-1] else filters
    # Most pixels of a result with filters that are not packed: each is read once or twice.
    return Convolution(
        image.dtype,
        image.shape[0],
        size,
        (size[0] + low[0] + high[0], size[1] + low[1] + high[1]),
        made,
        pair(kernel.shape[:-2], 1),
        image.shape[-1],
        kernel.shape[-1],
        groups,
        pair(attributes["strides"], 1),
        pair(attributes["dilation"], 1),
        low,
        tiles_of(machine, itemsize, max(made[1], 1), terms, max(columns, 1), True, False),
        groups == 1 and kernel.bytes > machine.caches[1] // 2 and result.elements > 16 * kernel.shape[-1],
    )


@dataclass(frozen=True)
class Rooms:
    """Addresses of the image to read and of memory for packed filters."""

    image: ir.Value
    panel: ir.Value


def rooms_of(site: Site, nest: Nest, scratch: ir.Value, panel: ir.Value | None = None) -> Rooms:
    """Memory of a convolution; `panel` is that of packed filters, else behind the padded images."""
    maker = nest.maker
    assert maker is not None
    done = convolution_of(site.machine, maker)
    if panel is None:
        panel = moved(site.builder, scratch, done.padded_bytes, "u8")
    return Rooms(scratch if done.padded_bytes else site.pointers[maker.operands[0]], panel)


def emit_padding(site: Site, nest: Nest, scratch: ir.Value) -> None:
    """Emit the padded copy if there must be one."""
    maker = nest.maker
    assert maker is not None
    done = convolution_of(site.machine, maker)
    image = site.pointers[maker.operands[0]]
    if not done.padded_bytes:
        return
    builder, dtype = site.builder, done.dtype
    width = site.machine.lanes(DTYPES[dtype].itemsize)
    channels, wide = done.channels, done.padded[1]
    row = wide * channels
    strides = row_major((done.batch, done.padded[0], row))

    def fill(extent: int, target: ir.Value, source: ir.Value | None) -> None:
        def body(pieces: list[tuple[Index, int]], values: list[ir.Value]) -> list[ir.Value]:
            for start, count in pieces:
                place = start.value(builder)
                value = constant(dtype, 0, width)
                if source is not None:
                    value = load(builder, moved(builder, source, place, dtype), dtype, width, count)
                store(builder, value, moved(builder, target, place, dtype), dtype, count)
            return values

        vectors(builder, extent, Shape(0, (), width, 2), body)

    def zeros(at: list[Index], values: list[ir.Value]) -> list[ir.Value]:
        fill(done.padded[0] * row, moved(builder, scratch, at[0].times(strides[0]).value(builder), dtype), None)
        return values

    def copy(at: list[Index], values: list[ir.Value]) -> list[ir.Value]:
        here = linear(at, strides[:2]).plus(done.low[0] * row + done.low[1] * channels)
        there = linear(at, (done.size[0] * done.size[1] * channels, done.size[1] * channels))
        target = moved(builder, scratch, here.value(builder), dtype)
        fill(done.size[1] * channels, target, moved(builder, image, there.value(builder), dtype))
        return values

    loops(builder, [done.batch], zeros)
    loops(builder, [done.batch, done.size[0]], copy)


def emit_convolution(site: Site, nest: Nest, rooms: Rooms, outer: Sequence[Index], some: Span | None = None) -> None:
    """Emit the loops of a nest whose maker is a `convolve`, inside those over images and, if given, rows.

    `some` are steps over packed filters, if not all are computed.
    """
    maker = nest.maker
    assert maker is not None
    done = convolution_of(site.machine, maker)
    builder, width = site.builder, done.tiles.width
    kernel, step = site.pointers[maker.operands[1]], done.tiles.vectors * width
    groups = 1 if done.is_depthwise else done.groups
    filters = done.filters // groups
    is_flat = len(maker.result.type.shape) == 3
    extents = ((done.batch,) if is_flat else (done.batch, done.made[0]))[len(outer) :]

    arithmetic = Arithmetic(done.dtype, site.machine.fma)

    def panel(column: Index, across: int) -> None:
        columns = Columns.of(arithmetic, across, width)
        chosen = Filters(Index(), column, _packed(site, done, kernel, column, columns, rooms.panel), columns)

        def row(at: list[Index], values: list[ir.Value]) -> list[ir.Value]:
            _emit_row(site, nest, done, rooms.image, at, chosen)
            return values

        loops(builder, extents, row)

    def line(at: list[Index], values: list[ir.Value]) -> list[ir.Value]:
        def group(which: list[Index], values: list[ir.Value]) -> list[ir.Value]:
            def each(column: Index, across: int) -> None:
                start = moved(builder, kernel, which[0].times(filters).plus(column).value(builder), done.dtype)
                columns = Columns.of(arithmetic, across, width)
                walk = Walk(start, done.filters, columns.offsets)
                _emit_row(site, nest, done, rooms.image, at, Filters(which[0], column, walk, columns))

            steps(builder, filters, step, each)
            return values

        loops(builder, [groups], group)
        return values

    if done.is_streamed and not outer:
        steps(builder, filters, step, panel, some)
    else:
        loops(builder, extents, line, indices=outer)


def _packed(site: Site, done: Convolution, kernel: ir.Value, column: Index, columns: Columns, panel: ir.Value) -> Walk:
    """A copy of some filters, term after term."""
    builder, dtype, width = site.builder, done.dtype, done.tiles.width
    step = done.tiles.vectors * width
    with counted(builder, ir.Constant(I64, 0), ir.Constant(I64, done.terms)) as loop:
        term = variable(loop.index)
        source = moved(builder, kernel, term.times(done.filters).plus(column).value(builder), dtype)
        target = moved(builder, panel, term.times(step).value(builder), dtype)
        for offset, count in zip(columns.offsets, columns.counts, strict=True):
            value = load(builder, moved(builder, source, offset, dtype), dtype, width, count)
            store(builder, value, moved(builder, target, offset, dtype), dtype)
    return Walk(panel, step, columns.offsets)


@dataclass(frozen=True)
class Filters:
    """Some filters: their group, the first in it, where their numbers are, and the vectors that they are in."""

    group: Index
    first: Index
    walk: Walk
    columns: Columns


def _emit_row(site: Site, nest: Nest, done: Convolution, image: ir.Value, at: Sequence[Index], chosen: Filters) -> None:
    """Some filters of one row of pixels."""
    builder, width, dtype, maker = site.builder, done.tiles.width, done.dtype, nest.maker
    assert maker is not None
    apart, groups = done.strides[1] * done.channels, 1 if done.is_depthwise else done.groups
    number, high = at if len(at) == 2 else (at[0], Index())
    line = done.padded[1] * done.channels
    first = chosen.group.times(done.filters // groups).plus(chosen.first)
    counts = chosen.columns.counts
    seen = number.times(done.padded[0] * line).plus(high, done.strides[0] * line)
    seen = seen.plus(chosen.first) if done.is_depthwise else seen.plus(chosen.group, done.channels // groups)

    def pixels(pixel: Index, many: int) -> None:
        start = moved(builder, image, seen.plus(pixel, apart).value(builder), dtype)
        sums = _window(site, done, Walk(start, 1, tuple(n * apart for n in range(many))), chosen)
        for place, found in enumerate(sums):
            row, vector = divmod(place, len(counts))
            filters = first.plus(vector * width)
            lanes = filters.plus(Index(0, {LANE: 1})) if width > 1 else filters
            indices = [*at, pixel.plus(row), lanes]
            scope = site.scope(width, counts[vector])
            scope.define(maker.result, indices, found)
            for stored in nest.stores:
                put(scope, stored, indices)

    steps(builder, done.made[1], done.tiles.rows, pixels)


def _window(site: Site, done: Convolution, left: Walk, chosen: Filters) -> Sums:
    """The sums over a kernel's rows, columns and channels, in this order."""
    builder, dtype, right, columns = site.builder, done.dtype, chosen.walk, chosen.columns
    high, wide = done.window
    channels = done.channels // done.groups
    line = done.padded[1] * done.channels
    is_run = done.dilation[1] == 1 and done.groups == 1
    places, terms = ([0], wide * channels) if is_run else (list(range(wide)), channels)
    sums = columns.zeros(len(left.across))

    def row(a: ir.Value, b: ir.Value, sums: Sums) -> Sums:
        for place in places:
            here = Walk(moved(builder, a, place * done.dilation[1] * done.channels, dtype), left.step, left.across)
            there = Walk(moved(builder, b, place * channels * right.step, dtype), right.step, right.across)
            if done.is_depthwise:
                sums = _each_its_own(site, columns, here, there, sums)
            else:
                sums = accumulate(builder, columns, terms, here, there, sums)
        return sums

    below, next_row = done.dilation[0] * line, wide * channels * right.step
    if high == 1 or high * len(places) * terms * len(sums) <= 2 * STRAIGHT:
        for number in range(high):
            a, b = (
                moved(builder, left.pointer, number * below, dtype),
                moved(builder, right.pointer, number * next_row, dtype),
            )
            sums = row(a, b, sums)
        return sums
    start = [left.pointer, right.pointer, *sums]
    with counted(builder, ir.Constant(I64, 0), ir.Constant(I64, high), carried=start) as loop:
        a, b, *inner = loop.values
        inner = row(a, b, inner)
        loop.results = [moved(builder, a, below, dtype), moved(builder, b, next_row, dtype), *inner]
    return list(loop.values[2:])


def _each_its_own(site: Site, columns: Columns, left: Walk, right: Walk, sums: Sums) -> Sums:
    """One term of a depthwise convolution: a vector of channels by a vector of filters."""
    builder, arithmetic, width, counts = site.builder, columns.arithmetic, columns.width, columns.counts
    dtype = arithmetic.dtype
    found = []
    factors = [
        load(builder, moved(builder, right.pointer, offset, dtype), dtype, width, count)
        for offset, count in zip(right.across, counts, strict=True)
    ]
    for number, offset in enumerate(left.across):
        for place, count in enumerate(counts):
            pixel = moved(builder, left.pointer, offset + place * width, dtype)
            value = load(builder, pixel, dtype, width, count)
            found.append(arithmetic.multiply_add(builder, value, factors[place], sums[number * len(counts) + place]))
    return found
