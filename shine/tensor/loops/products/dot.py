"""The operation `dot`: stacks of matrix products, and sums along contiguous rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, counted
from shine.compiler.processor import Machine
from shine.tensor.form.module import Instruction, Value
from shine.tensor.form.types import DTYPES
from shine.tensor.loops.division import MOST_BLOCKS, Part, shared_loops
from shine.tensor.loops.fusion import Nest
from shine.tensor.loops.index import LANE, Index, linear, row_major, variable
from shine.tensor.loops.lanes import constant, horizontal, load
from shine.tensor.loops.nest import Site, loops, put
from shine.tensor.loops.placement import Placement
from shine.tensor.loops.products.kernel import Arithmetic, moved
from shine.tensor.loops.products.product import Matrix, Product, emit_product, scratch_bytes, steps
from shine.tensor.loops.products.tiles import LATENCY, Tiles, row_length, tiles_of

AT_ONCE = 4
"""Sums along rows that are computed together: they share the loads of the other operand."""


@dataclass(frozen=True)
class Operand:
    """A stack of matrices that is a view of a value in memory.

    Parameters
    ----------
    value : Value
    batch : tuple of int
        Strides of the stack's axes, as of the result; 0 where it is broadcast.
    row, column : int
        Strides of a matrix.
    """

    value: Value
    batch: tuple[int, ...]
    row: int
    column: int


@dataclass(frozen=True)
class Dot:
    """A stack of products of m x k matrices by k x n ones.

    Parameters
    ----------
    dtype : str
    batch : tuple of int
    m, k, n : int
    left, right : Operand
    is_swapped : bool
        Whether it is the transpose of the instruction's.
    tiles : Tiles or None
        None for sums along rows.
    """

    dtype: str
    batch: tuple[int, ...]
    m: int
    k: int
    n: int
    left: Operand
    right: Operand
    is_swapped: bool
    tiles: Tiles | None

    @property
    def scratch_bytes(self) -> int:
        """Bytes of the packed block."""
        return scratch_bytes(self.tiles, self.dtype) if self.tiles else 0

    def __str__(self) -> str:
        how = self.tiles or "sums along rows"
        stack = f"{' x '.join(map(str, self.batch))} of " if self.batch else ""
        return f"{stack}{self.m} x {self.k} x {self.n}: {how}"


def view(machine: Machine, placed: Placement, value: Value) -> tuple[Value, tuple[int, ...]]:
    """The value in memory behind a view, and the view's strides."""
    axes = list(range(value.type.rank))
    while not placed.has_memory(value):
        maker = placed.makers[value]
        permutation = maker.attributes["permutation"]
        assert isinstance(permutation, tuple)
        axes, value = [permutation[axis] for axis in axes], maker.operands[0]
    strides = row_major((*value.type.shape[:-1], row_length(machine, placed, value)))
    return value, tuple(strides[axis] for axis in axes)


def dot_of(machine: Machine, placed: Placement, maker: Instruction) -> Dot:
    """The plan of an instruction."""
    (a, b), dtype = maker.operands, maker.result.type.dtype
    rank = maker.result.type.rank - (a.type.rank > 1) - (b.type.rank > 1)
    batch = maker.result.type.shape[:rank]
    left, right = _operand(machine, placed, a, rank, True), _operand(machine, placed, b, rank, False)
    m = a.type.shape[-2] if a.type.rank > 1 else 1
    k, n = a.type.shape[-1], b.type.shape[-1] if b.type.rank > 1 else 1
    swaps = n == 1 and not (left.column == 1 or m == 1)
    if swaps:
        (m, n) = (n, m)
        left, right = (
            Operand(right.value, right.batch, right.column, right.row),
            Operand(left.value, left.batch, left.column, left.row),
        )
    # Most rows on the left for sums along the right operand's columns without a packed copy.
    along = left.column == 1 and right.row == 1 and (n == 1 or (right.column != 1 and m <= 4))
    tiles = None if along or not m * n else tiles_of(machine, DTYPES[dtype].itemsize, m, k, n, right.column == 1)
    return Dot(dtype, batch, m, k, n, left, right, swaps, tiles)


def _operand(machine: Machine, placed: Placement, value: Value, rank: int, is_left: bool) -> Operand:
    found, strides = view(machine, placed, value)
    sizes = value.type.shape
    if len(sizes) == 1:
        # A vector is a row on the left, a column on the right; the other stride is never used.
        row, column = (0, strides[0]) if is_left else (strides[0], 0)
        return Operand(found, (0,) * rank, row, column)
    stack = [0 if size == 1 else stride for size, stride in zip(sizes[:-2], strides[:-2], strict=True)]
    return Operand(found, (0,) * (rank - len(stack)) + tuple(stack), strides[-2], strides[-1])


def shared_columns(dot: Dot) -> int:
    """Columns of a packed block if columns are divided."""
    assert dot.tiles is not None
    panel = dot.tiles.vectors * dot.tiles.width
    return min(dot.tiles.columns, max(1, -(-dot.n // panel) // MOST_BLOCKS) * panel)


def emit_dot(site: Site, nest: Nest, scratch: ir.Value, part: Part | None = None) -> None:
    """Emit the loops of a nest whose maker is a `dot`, or a part of them."""
    maker = nest.maker
    assert maker is not None
    dot = dot_of(site.machine, site.placed, maker)
    a, b = maker.operands
    tiles, over = dot.tiles, part.sharing.over if part else ""
    if tiles is not None and tiles.columns and over == "columns":
        # A block of columns is too narrow to pay for a copy of the rows.
        tiles = replace(tiles, columns=shared_columns(dot), high=0)

    def one(batch: list[Index], _: list[ir.Value]) -> list[ir.Value]:
        def epilogue(row: Index, column: Index, found: ir.Value, count: int) -> None:
            width = found.type.count if isinstance(found.type, ir.VectorType) else 1
            column = column.plus(Index(0, {LANE: 1})) if width > 1 else column
            if dot.is_swapped:
                row, column = column, row
            at = [*batch, *([row] if a.type.rank > 1 else []), *([column] if b.type.rank > 1 else [])]
            scope = site.scope(width, count)
            scope.define(maker.result, at, found)
            for store in nest.stores:
                put(scope, store, at)

        left, right = (_matrix(site, operand, batch, dot.dtype) for operand in (dot.left, dot.right))
        arithmetic = Arithmetic(dot.dtype, site.machine.fma)
        place = linear(batch, row_major((*dot.batch, dot.m * dot.n))[:-1])
        partial = moved(site.builder, site.pointers[nest.stores[0].target], place.value(site.builder), dot.dtype)
        product = Product(arithmetic, dot.m, dot.k, dot.n, left, right, epilogue, partial, scratch)
        if part is not None:
            rows, columns = (part.span if over == each else None for each in ("rows", "columns"))
            product = replace(product, rows=rows, columns=columns, scratch=part.scratch)
        if tiles is None:
            _emit_along(site.builder, product, site.machine)
        else:
            emit_product(site.builder, product, tiles)
        return []

    if part is not None and over == "matrices":
        shared_loops(site.builder, dot.batch, part.span, one)
    else:
        loops(site.builder, dot.batch, one)


def _matrix(site: Site, operand: Operand, batch: Sequence[Index], dtype: str) -> Matrix:
    place = linear(batch, operand.batch)
    pointer = moved(site.builder, site.pointers[operand.value], place.value(site.builder), dtype)
    return Matrix(pointer, operand.row, operand.column)


def _emit_along(builder: ir.IRBuilder, product: Product, machine: Machine) -> None:
    """Each element is a sum along a row on the left and a column on the right, both contiguous: vectors of terms."""
    dtype = product.arithmetic.dtype
    left, right = product.left, product.right

    def several(fixed: Index, first: Index, many: int) -> None:
        if product.n == 1:
            place, stride, shared = first.times(left.row), left.row, right.pointer
            origin = moved(builder, left.pointer, place.value(builder), dtype)
        else:
            origin = moved(builder, right.pointer, first.times(right.column).value(builder), dtype)
            stride = right.column
            shared = moved(builder, left.pointer, fixed.times(left.row).value(builder), dtype)
        totals = _along(builder, product, machine, origin, tuple(n * stride for n in range(many)), shared)
        for number, total in enumerate(totals):
            at = first.plus(number)
            product.epilogue(*((at, Index()) if product.n == 1 else (fixed, at)), total, 1)

    if product.n == 1:
        steps(builder, product.m, AT_ONCE, lambda first, many: several(Index(), first, many), product.rows)
        return

    def row(at: list[Index], values: list[ir.Value]) -> list[ir.Value]:
        steps(builder, product.n, AT_ONCE, lambda first, many: several(at[0], first, many), product.columns)
        return values

    loops(builder, [product.m], row)


def _along(
    builder: ir.IRBuilder,
    product: Product,
    machine: Machine,
    origin: ir.Value,
    offsets: Sequence[int],
    shared: ir.Value,
) -> list[ir.Value]:
    """Products of some vectors in memory, `offsets` from an address, with one that they share."""
    arithmetic, k = product.arithmetic, product.k
    dtype = arithmetic.dtype
    width = min(machine.lanes(DTYPES[dtype].itemsize), 1 << max(k - 1, 0).bit_length())
    chains = 2 * LATENCY // max(AT_ONCE, len(offsets))

    def add(at: Index, chain: int, lanes: int, sums: list[ir.Value]) -> None:
        place = at.value(builder)
        factor = load(builder, moved(builder, shared, place, dtype), dtype, width, lanes)
        for number, offset in enumerate(offsets):
            pointer = moved(builder, moved(builder, origin, place, dtype), offset, dtype)
            found = load(builder, pointer, dtype, width, lanes)
            slot = number * chains + chain
            sums[slot] = arithmetic.multiply_add(builder, found, factor, sums[slot])

    sums: list[ir.Value] = [constant(dtype, 0, width)] * (len(offsets) * chains)
    step = width * chains
    whole = k // step * step
    if whole:
        with counted(builder, ir.Constant(I64, 0), ir.Constant(I64, whole), step, carried=sums) as loop:
            inner = list(loop.values)
            for chain in range(chains):
                add(variable(loop.index).plus(chain * width), chain, width, inner)
            loop.results = inner
        sums = list(loop.values)
    for number, first in enumerate(range(whole, k, width)):
        add(Index(first), number % chains, min(width, k - first), sums)

    def plus(a: ir.Value, b: ir.Value) -> ir.Value:
        return arithmetic.add(builder, a, b)

    totals = []
    for number in range(len(offsets)):
        first_part, *others = sums[number * chains : (number + 1) * chains]
        for other in others:
            first_part = plus(first_part, other)
        totals.append(horizontal(builder, first_part, plus))
    return totals
