"""Matrix products: loops of register tiles, over operands as they are or over packed panels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, counted
from shine.tensor.form.types import DTYPES
from shine.tensor.loops.index import Index, variable
from shine.tensor.loops.lanes import constant, gathered, load, store, widened
from shine.tensor.loops.products.kernel import Arithmetic, Columns, Sums, Walk, accumulate, moved
from shine.tensor.loops.products.tiles import Tiles


@dataclass(frozen=True)
class Matrix:
    """A matrix in memory.

    Parameters
    ----------
    pointer : ir.Value
    row, column : int
        Strides, in elements.
    """

    pointer: ir.Value
    row: int
    column: int


Span = tuple[ir.Value, ir.Value]
"""The first step and the end of those that one thread makes."""

Epilogue = Callable[[Index, Index, ir.Value, int], None]
"""Its arguments: row, first column, a vector of finished sums, number of lanes in use."""


@dataclass(frozen=True)
class Product:
    """An m x k matrix times a k x n one.

    Parameters
    ----------
    arithmetic : Arithmetic
    m, k, n : int
    left, right : Matrix
    epilogue : callable
    partial : ir.Value or None
        Row-major m x n memory for unfinished sums, which `epilogue` may overwrite.
    scratch : ir.Value or None
        Memory for a packed block, `scratch_bytes` of it.
    rows, columns : Span or None
        Steps of the loop over rows, or over columns, if only some are made.
    """

    arithmetic: Arithmetic
    m: int
    k: int
    n: int
    left: Matrix
    right: Matrix
    epilogue: Epilogue
    partial: ir.Value | None = None
    scratch: ir.Value | None = None
    rows: Span | None = None
    columns: Span | None = None


@dataclass(frozen=True)
class Block:
    """The elements of the result whose sums are in registers at once.

    Parameters
    ----------
    row, column : Index
        The first.
    high : int
        Rows.
    columns : Columns
        The vectors of a row.
    """

    row: Index
    column: Index
    high: int
    columns: Columns


def scratch_bytes(tiles: Tiles, dtype: str) -> int:
    """Bytes of the packed blocks."""
    return (tiles.columns * tiles.depth + tiles.high * tiles.stride) * DTYPES[dtype].itemsize


def emit_product(builder: ir.IRBuilder, product: Product, tiles: Tiles) -> None:
    """Emit the loops of a product."""
    if tiles.columns:
        _packed(builder, product, tiles)
    elif tiles.terms:
        _streamed(builder, product, tiles)
    else:
        _direct(builder, product, tiles)


def steps(
    builder: ir.IRBuilder, extent: int, step: int, body: Callable[[Index, int], None], span: Span | None = None
) -> None:
    """Emit `body(start, size)` for each step, and for the rest; or for some of these only, the span."""
    whole = extent // step
    if span is not None:
        _some_steps(builder, extent, step, body, span)
        return
    if whole == 1:
        body(Index(), step)
    elif whole:
        with counted(builder, ir.Constant(I64, 0), ir.Constant(I64, whole * step), step) as loop:
            body(variable(loop.index), step)
    if extent % step:
        body(Index(whole * step), extent % step)


def _some_steps(builder: ir.IRBuilder, extent: int, step: int, body: Callable[[Index, int], None], span: Span) -> None:
    begin, end = span
    whole = ir.Constant(I64, extent // step)
    has_rest = builder.icmp_signed(">", end, whole)
    if extent >= step:
        size = ir.Constant(I64, step)
        stop = builder.select(has_rest, whole, end)
        with counted(builder, builder.mul(begin, size), builder.mul(stop, size), step) as loop:
            body(variable(loop.index), step)
    if extent % step:
        with builder.if_then(has_rest):
            body(Index(extent // step * step), extent % step)


def _direct(builder: ir.IRBuilder, product: Product, tiles: Tiles) -> None:
    dtype, width = product.arithmetic.dtype, tiles.width

    def columns(column: Index, wide: int) -> None:
        made = Columns.of(product.arithmetic, wide, width)

        def rows(row: Index, high: int) -> None:
            left = Walk(
                moved(builder, product.left.pointer, row.times(product.left.row).value(builder), dtype),
                product.left.column,
                tuple(number * product.left.row for number in range(high)),
            )
            right = Walk(
                moved(builder, product.right.pointer, column.value(builder), dtype),
                product.right.row,
                made.offsets,
            )
            sums = accumulate(builder, made, product.k, left, right, made.zeros(high), tiles.chains)
            _finish(product, Block(row, column, high, made), sums)

        steps(builder, product.m, tiles.rows, rows, product.rows)

    steps(builder, product.n, tiles.vectors * width, columns, product.columns)


def _streamed(builder: ir.IRBuilder, product: Product, tiles: Tiles) -> None:
    """Some rows of the right operand at once, in the order of memory: sums of one row wait in the first cache."""
    dtype, width, right = product.arithmetic.dtype, tiles.width, product.right
    step, row = tiles.vectors * width, Index()

    def clear(column: Index, wide: int) -> None:
        made = Columns.of(product.arithmetic, wide, width)
        _put(builder, product, Block(row, column, 1, made), made.zeros(1))

    def terms(start: Index, deep: int, is_last: bool) -> None:
        place = start.times(product.left.column)
        first = moved(builder, product.left.pointer, place.value(builder), dtype)
        pointers = [moved(builder, first, number * product.left.column, dtype) for number in range(deep)]
        factors = [widened(builder, load(builder, pointer, dtype), width) for pointer in pointers]
        origin = moved(builder, right.pointer, start.times(right.row).value(builder), dtype)

        def columns(column: Index, wide: int) -> None:
            made = Block(row, column, 1, Columns.of(product.arithmetic, wide, width))
            sums = _resumed(builder, product, made, False)
            base = moved(builder, origin, column.value(builder), dtype)
            for number, factor in enumerate(factors):
                for at, count in enumerate(made.columns.counts):
                    pointer = moved(builder, base, number * right.row + at * width, dtype)
                    found = load(builder, pointer, dtype, width, count)
                    sums[at] = product.arithmetic.multiply_add(builder, factor, found, sums[at])
            if is_last:
                _finish(product, made, sums)
            else:
                _put(builder, product, made, sums)

        steps(builder, product.n, step, columns, product.columns)

    last = (product.k - 1) // tiles.terms * tiles.terms
    steps(builder, product.n, step, clear, product.columns)
    steps(builder, last, tiles.terms, lambda start, deep: terms(start, deep, False))
    terms(Index(last), product.k - last, True)


def _finish(product: Product, block: Block, sums: Sums) -> None:
    """Hand sums to the epilogue."""
    for number in range(block.high):
        for place, count in enumerate(block.columns.counts):
            row, column = block.row.plus(number), block.column.plus(place * block.columns.width)
            product.epilogue(row, column, sums[number * len(block.columns.counts) + place], count)


def _packed(builder: ir.IRBuilder, product: Product, tiles: Tiles) -> None:
    """Blocks of columns, of terms, of rows; then panels of columns, which stay in the first cache, and rows."""
    dtype, width = product.arithmetic.dtype, tiles.width
    panel = tiles.vectors * width
    scratch = product.scratch
    assert scratch is not None

    def block(first: Index, wide: int) -> None:
        def terms(start: Index, deep: int) -> None:
            _pack(builder, product, first, wide, start, deep, tiles)
            is_first = _condition(builder, "==", start, 0)
            is_last = _condition(builder, "==", start, product.k - deep)

            def panels(matrix: Matrix, span: Span | None) -> None:
                def columns(column: Index, across: int) -> None:
                    vectors = Columns.of(product.arithmetic, across, width)
                    origin = moved(builder, scratch, column.times(deep).value(builder), dtype)
                    right = Walk(origin, panel, vectors.offsets)

                    def rows(row: Index, high: int) -> None:
                        left = Walk(
                            moved(builder, matrix.pointer, row.times(matrix.row).value(builder), dtype),
                            matrix.column,
                            tuple(number * matrix.row for number in range(high)),
                        )
                        made = Block(row, first.plus(column), high, vectors)
                        sums = vectors.zeros(high)
                        if is_first is not True:
                            sums = _resumed(builder, product, made, is_first)
                        sums = accumulate(builder, vectors.full(), deep, left, right, sums, tiles.chains)
                        if is_last is True:
                            _finish(product, made, sums)
                            return
                        if is_last is False:
                            _put(builder, product, made, sums)
                            return
                        with builder.if_else(is_last) as (then, otherwise):
                            with then:
                                _finish(product, made, sums)
                            with otherwise:
                                _put(builder, product, made, sums)

                    steps(builder, product.m, tiles.rows, rows, span)

                steps(builder, wide, panel, columns)

            place = start.times(product.left.column).value(builder)
            matrix = replace(product.left, pointer=moved(builder, product.left.pointer, place, dtype))
            if not tiles.high:
                panels(matrix, product.rows)
                return
            begin, end = product.rows or (ir.Constant(I64, 0), ir.Constant(I64, -(-product.m // tiles.rows)))
            with counted(builder, begin, end, tiles.high // tiles.rows) as loop:
                stop = _least(builder, builder.add(loop.index, ir.Constant(I64, tiles.high // tiles.rows)), end)
                panels(_pack_rows(builder, product, matrix, (loop.index, stop), deep, tiles), (loop.index, stop))

        steps(builder, product.k, tiles.depth, terms)

    steps(builder, product.n, tiles.columns, block, product.columns)


def _least(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    return builder.select(builder.icmp_signed("<", a, b), a, b)


def _pack_rows(builder: ir.IRBuilder, product: Product, source: Matrix, span: Span, deep: int, tiles: Tiles) -> Matrix:
    """Copy a block of the left operand behind that of the right one, and say where its rows would begin.

    Rows of a large matrix are often a power of two apart, so that a cache can hold few of them at once.
    """
    dtype, width = product.arithmetic.dtype, tiles.width
    assert product.scratch is not None
    memory = moved(builder, product.scratch, tiles.columns * tiles.depth, dtype)
    size = ir.Constant(I64, tiles.rows)
    begin = builder.mul(span[0], size)
    end = _least(builder, builder.mul(span[1], size), ir.Constant(I64, product.m))
    back = builder.mul(begin, ir.Constant(I64, -tiles.stride))
    made = Matrix(moved(builder, memory, back, dtype), tiles.stride, 1)
    with counted(builder, begin, end) as loop:
        row = variable(loop.index)
        origin = moved(builder, source.pointer, row.times(source.row).value(builder), dtype)
        target = moved(builder, made.pointer, row.times(made.row).value(builder), dtype)

        def copy(term: Index, count: int) -> None:
            start = moved(builder, origin, term.times(source.column).value(builder), dtype)
            if source.column == 1:
                value = load(builder, start, dtype, width, count)
            else:
                lanes = [moved(builder, start, lane * source.column, dtype) for lane in range(count)]
                value = gathered(builder, lanes, dtype, width)
            store(builder, value, moved(builder, target, term.value(builder), dtype), dtype, count)

        steps(builder, deep, width, copy)
    return made


def _condition(builder: ir.IRBuilder, operator: str, index: Index, value: int) -> ir.Value | bool:
    if not index.terms:
        return index.constant == value
    return builder.icmp_signed(operator, index.value(builder), ir.Constant(I64, value))


def _pointers(builder: ir.IRBuilder, product: Product, block: Block) -> list[tuple[ir.Value, int]]:
    """Addresses of unfinished sums, and lanes in use."""
    assert product.partial is not None
    dtype, start = product.arithmetic.dtype, block.row.times(product.n).plus(block.column)
    base = moved(builder, product.partial, start.value(builder), dtype)
    return [
        (moved(builder, base, number * product.n + place * block.columns.width, dtype), count)
        for number in range(block.high)
        for place, count in enumerate(block.columns.counts)
    ]


def _resumed(builder: ir.IRBuilder, product: Product, block: Block, is_first: ir.Value | bool) -> Sums:
    """Zeros in the first block of terms, then the sums so far."""
    dtype, width = product.arithmetic.dtype, block.columns.width
    pointers = _pointers(builder, product, block)
    if is_first is False:
        return [load(builder, pointer, dtype, width, count) for pointer, count in pointers]
    before, zero = builder.block, constant(dtype, 0, width)
    with builder.if_then(builder.not_(is_first)):
        found = [load(builder, pointer, dtype, width, count) for pointer, count in pointers]
        inside = builder.block
    sums = []
    for value in found:
        phi = builder.phi(value.type)
        phi.add_incoming(zero, before)
        phi.add_incoming(value, inside)
        sums.append(phi)
    return sums


def _put(builder: ir.IRBuilder, product: Product, block: Block, sums: Sums) -> None:
    for (pointer, count), value in zip(_pointers(builder, product, block), sums, strict=True):
        store(builder, value, pointer, product.arithmetic.dtype, count)


def _pack(
    builder: ir.IRBuilder, product: Product, first: Index, wide: int, start: Index, deep: int, tiles: Tiles
) -> None:
    """Copy a block of the right operand: panels of some columns, term after term; unused lanes are 0."""
    dtype, width, right = product.arithmetic.dtype, tiles.width, product.right
    panel = tiles.vectors * width
    assert product.scratch is not None
    scratch = product.scratch

    def columns(column: Index, across: int) -> None:
        counts = Columns.of(product.arithmetic, across, width).counts
        with ExitStack() as stack:
            loop = stack.enter_context(counted(builder, ir.Constant(I64, 0), ir.Constant(I64, deep)))
            term = variable(loop.index)
            source = first.plus(column).times(right.column).plus(start, right.row).plus(term, right.row)
            origin = moved(builder, right.pointer, source.value(builder), dtype)
            target = moved(builder, scratch, column.times(deep).plus(term, panel).value(builder), dtype)
            for place, count in enumerate(counts):
                pointers = [
                    moved(builder, origin, (place * width + lane) * right.column, dtype) for lane in range(count)
                ]
                if right.column == 1:
                    value = load(builder, pointers[0], dtype, width, count)
                else:
                    value = gathered(builder, pointers, dtype, width)
                store(builder, value, moved(builder, target, place * width, dtype), dtype)

    steps(builder, wide, panel, columns)
