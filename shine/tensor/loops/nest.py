"""Loop nests of elementwise chains and reductions: loops, vectors, unrolling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from llvmlite import ir

from shine.compiler.codegen.blocks import I64, counted
from shine.compiler.codegen.numbers import ELEMENTARY
from shine.compiler.processor import Machine
from shine.tensor.form.module import Instruction, Value
from shine.tensor.form.types import DTYPES, FLOATS
from shine.tensor.loops.fusion import Nest, Store, computed, lane_axis, reads
from shine.tensor.loops.index import LANE, Index, applied, linear, row_major, variable
from shine.tensor.loops.lanes import constant, horizontal, mask, transposed, widened
from shine.tensor.loops.placement import Placement, symbols
from shine.tensor.loops.scope import Scope, aligned

SMALL = 24
"""Operations of a small body."""

Values = list[ir.Value]

_COMBINE = {"reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "max", "reduce_min": "min"}


@dataclass(frozen=True)
class Site:
    """The function that takes the code of nests.

    Parameters
    ----------
    builder : ir.IRBuilder
    machine : Machine
    placed : Placement
    pointers : mapping of Value to ir.Value
        Addresses of the values in memory.
    """

    builder: ir.IRBuilder
    machine: Machine
    placed: Placement
    pointers: Mapping[Value, ir.Value]

    def scope(self, width: int = 1, count: int = 1) -> Scope:
        """Values where the builder stands now."""
        return Scope(self.builder, self.pointers, self.placed.makers, width, count)


@dataclass(frozen=True)
class Shape:
    """The loops of a nest.

    Parameters
    ----------
    lane : int
        The axis of the vectors.
    extents : tuple of int
        Iterations of each axis; neighbouring axes that memory runs through alike are one loop, in the place of the
        last.
    width : int
        Lanes along the last axis.
    unrolled : int
        Vectors in one turn.
    """

    lane: int
    extents: tuple[int, ...]
    width: int
    unrolled: int


def shape_of(machine: Machine, placed: Placement, nest: Nest, outer: int) -> Shape:
    """The loops of a nest."""
    extents = list(nest.shape)
    accessed = _lines(placed, nest)
    lane = lane_axis(extents)
    long = [axis for axis in range(outer, len(extents)) if extents[axis] != 1]
    for axis, inner in pairwise(long):
        alike = all(line.get(f"axis{axis}", 0) == line.get(f"axis{inner}", 0) * nest.shape[inner] for line in accessed)
        if (axis in nest.axes) == (inner in nest.axes) and alike:
            extents[inner], extents[axis] = extents[inner] * extents[axis], 1
    operations = computed(placed, nest)
    itemsize = max([DTYPES[value.type.dtype].itemsize for value in _touched(placed, nest)], default=8)
    last = extents[lane] if extents else 1
    width = min(machine.lanes(itemsize), 1 << max(last - 1, 0).bit_length())
    is_long = any(instruction.operation in ELEMENTARY for instruction in operations)
    small = len(operations) + 2 * len(nest.written) <= SMALL and not is_long
    # Vectors in one turn of a loop whose body is small.
    return Shape(lane, tuple(extents), width, 4 if small else 2 if is_long and len(operations) < SMALL else 1)


def _lines(placed: Placement, nest: Nest) -> list[Mapping[Any, int]]:
    """Strides of memory accesses: multiples of the loops' variables, for each access."""
    found = [(leaf, at) for leaf, at in reads(placed, nest)]
    for store in nest.stores:
        places = [i.times(step) for i, step in zip(symbols(nest.shape), store.step, strict=True)]
        found.append((store.target, tuple(places)))
    for reduction in nest.reductions:
        found.append((reduction.result, tuple(_kept(reduction, symbols(nest.shape)))))
    return [linear(at, row_major(leaf.type.shape)).terms for leaf, at in found]


def _touched(placed: Placement, nest: Nest) -> set[Value]:
    """Values whose elements are in registers."""
    found = {result for instruction in computed(placed, nest) for result in instruction.results}
    found |= {leaf for leaf, _ in reads(placed, nest) if leaf.type.elements > 1}
    return {value for value in found if value.type.dtype != "bool"} | nest.written


def loops(
    builder: ir.IRBuilder,
    extents: Sequence[int],
    body: Callable[[list[Index], Values], Values],
    values: Values | None = None,
    indices: Sequence[Index] = (),
) -> Values:
    """Emit nested loops that carry values; those of one turn are none."""
    values = values or []
    if not extents:
        return body(list(indices), values)
    if extents[0] == 1:
        return loops(builder, extents[1:], body, values, [*indices, Index()])
    with counted(builder, ir.Constant(I64, 0), ir.Constant(I64, extents[0]), carried=values) as loop:
        inside = [*indices, variable(loop.index)]
        loop.results = list(loops(builder, extents[1:], body, list(loop.values), inside))
    return loop.values


Piece = tuple[Index, int]
"""First index of a vector, and how many lanes are in use."""


def vectors(
    builder: ir.IRBuilder,
    extent: int,
    shape: Shape,
    body: Callable[[list[Piece], Values], Values],
    values: Values | None = None,
) -> Values:
    """Emit a loop over the vectors of an axis, some in each turn, and over the rest."""
    values = values or []
    step = shape.width * shape.unrolled
    turns = extent // step if extent // step > 1 else 0
    if turns:
        with counted(builder, ir.Constant(I64, 0), ir.Constant(I64, turns * step), step, carried=values) as loop:
            pieces = [(variable(loop.index).plus(at), shape.width) for at in range(0, step, shape.width)]
            loop.results = list(body(pieces, list(loop.values)))
        values = loop.values
    rest = range(turns * step, extent, shape.width)
    if rest:
        values = body([(Index(at), min(shape.width, extent - at)) for at in rest], values)
    return values


def emit_nest(site: Site, nest: Nest, outer: Sequence[Index]) -> Shape:
    """Emit a nest inside its outer loops."""
    shape = shape_of(site.machine, site.placed, nest, len(outer))
    if not nest.reductions:
        _emit_stores(site, nest, shape, outer)
    elif shape.lane in nest.axes or not nest.shape:
        _emit_along(site, nest, shape, outer)
    else:
        _emit_across(site, nest, shape, outer)
    return shape


def _emit_stores(site: Site, nest: Nest, shape: Shape, outer: Sequence[Index]) -> None:
    rank = len(nest.shape)
    if not rank:
        _store_all(site, nest, site.scope(), [])
        return
    turned = _turned(site, nest, shape, len(outer))
    around = [axis for axis in range(len(outer), rank) if axis not in (shape.lane, turned)]

    def line(found: list[Index], values: Values) -> Values:
        def body(pieces: list[Piece], values: Values) -> Values:
            for piece in pieces:
                indices = _indices(shape, outer, around, found, piece)
                if turned is None:
                    _store_all(site, nest, site.scope(shape.width, piece[1]), indices)
                else:
                    _store_turned(site, nest, shape, turned, indices, piece)
            return []

        return vectors(site.builder, shape.extents[shape.lane], shape, body)

    loops(site.builder, [shape.extents[axis] for axis in around], line)


def _turned(site: Site, nest: Nest, shape: Shape, outer: int) -> int | None:
    """An axis that runs through a value in memory whose neighbours in vectors are far apart, if there is one."""
    lane = f"axis{shape.lane}"
    for leaf, at in reads(site.placed, nest):
        line = linear(at, row_major(leaf.type.shape)).terms
        for axis in range(outer, len(nest.shape)):
            is_near = axis != shape.lane and line.get(f"axis{axis}") == 1
            if line.get(lane, 0) > 1 and is_near and shape.extents[axis] >= shape.width > 1:
                return axis
    return None


def _store_turned(site: Site, nest: Nest, shape: Shape, turned: int, indices: list[Index], piece: Piece) -> None:
    """Blocks of as many rows as a vector has lanes: their elements are loaded along the other axis, and transposed."""
    builder, width = site.builder, shape.width

    def at(row: Index) -> list[Index]:
        return [*indices[:turned], row, *indices[turned + 1 :]]

    def rows(row: Index, many: int) -> None:
        known: list[tuple[Value, list[tuple[Index, ...]], list[ir.Value]]] = []
        if many == width:
            first = dict(zip((f"axis{axis}" for axis in range(len(nest.shape))), at(row), strict=True))
            for leaf, symbolic in reads(site.placed, nest):
                known += _block(site, shape, turned, leaf, symbolic, first, piece)
        for number in range(many):
            scope = site.scope(width, piece[1])
            for leaf, places, columns in known:
                scope.define(leaf, places[number], columns[number])
            _store_all(site, nest, scope, at(row.plus(number)))

    extent = shape.extents[turned]
    whole = extent // width
    with counted(builder, ir.Constant(I64, 0), ir.Constant(I64, whole * width), width) as loop:
        rows(variable(loop.index), width)
    with counted(builder, ir.Constant(I64, whole * width), ir.Constant(I64, extent)) as loop:
        rows(variable(loop.index), 1)


def _block(
    site: Site,
    shape: Shape,
    turned: int,
    leaf: Value,
    symbolic: Sequence[Index],
    first: Mapping[str, Index],
    piece: Piece,
) -> list[tuple[Value, list[tuple[Index, ...]], list[ir.Value]]]:
    """A value in memory at a square block: where each row of the block reads it, and the vector there."""
    line = linear(symbolic, row_major(leaf.type.shape)).terms
    is_known = all(isinstance(term, str) and term in first for index in symbolic for term in index.terms)
    if not is_known or line.get(f"axis{turned}") != 1 or line.get(f"axis{shape.lane}", 0) <= 1:
        return []

    def places(row: int) -> tuple[Index, ...]:
        moved = {**first, f"axis{turned}": first[f"axis{turned}"].plus(row)}
        found = []
        for index in symbolic:
            total = Index(index.constant)
            for term, by in index.terms.items():
                total = total.plus(moved[str(term)], by)
            found.append(total)
        return tuple(found)

    start = places(0)
    along = Index(0, {LANE: 1})
    vectors = []
    for lane in range(shape.width):
        # Lanes that are not in use read the line of the last one that is.
        fixed = [index.at_lane(min(lane, piece[1] - 1)) for index in start]
        moving = [
            index.plus(along, by) if (by := symbol.terms.get(f"axis{turned}", 0)) else index
            for index, symbol in zip(fixed, symbolic, strict=True)
        ]
        vectors.append(site.scope(shape.width, shape.width).load(leaf, moving))
    return [(leaf, [places(row) for row in range(shape.width)], transposed(site.builder, vectors))]


def _indices(
    shape: Shape, outer: Sequence[Index], axes: Sequence[int], found: Sequence[Index], piece: Piece | None
) -> list[Index]:
    """Indices of all axes: outer ones, others that loops give, and the lane's."""
    into = [*outer, *[Index()] * (len(shape.extents) - len(outer))]
    for axis, index in zip(axes, found, strict=True):
        into[axis] = index
    if piece is not None and into:
        into[shape.lane] = piece[0].plus(Index(0, {LANE: 1})) if shape.width > 1 else piece[0]
    return into


def _store_all(site: Site, nest: Nest, scope: Scope, indices: list[Index]) -> None:
    for store in nest.stores:
        put(scope, store, indices)


def put(scope: Scope, store: Store, indices: Sequence[Index]) -> None:
    """Compute and store one element, or one vector."""
    own = aligned(indices, store.value.type.shape)
    known = scope.knows(store.value, own)
    found = scope.made(store.value, own) if store.is_computed and not known else scope.at(store.value, own)
    scope.define(store.value, own, found)
    if not store.is_written:
        return
    places = [i.times(step).plus(start) for i, step, start in zip(indices, store.step, store.start, strict=True)]
    scope.store(store.target, places, found)


def _kept(reduction: Instruction, indices: Sequence[Index]) -> list[Index]:
    """Indices of the result of a reduction."""
    axes: Any = reduction.attributes["axes"]
    if reduction.attributes["keep"]:
        return [Index() if axis in axes else index for axis, index in enumerate(indices)]
    return [index for axis, index in enumerate(indices) if axis not in axes]


def combined(builder: ir.IRBuilder, reduction: Instruction, a: ir.Value, b: ir.Value) -> ir.Value:
    """Two parts of a reduction in one."""
    width = a.type.count if isinstance(a.type, ir.VectorType) else 1
    dtype = reduction.result.type.dtype
    return applied(builder, _COMBINE[reduction.operation], dtype, [a, b], width, dtype)


def neutral(reduction: Instruction, width: int) -> ir.Constant:
    """The initial value of a reduction."""
    dtype = reduction.result.type.dtype
    if reduction.operation in ("reduce_sum", "reduce_prod"):
        return constant(dtype, int(reduction.operation == "reduce_prod"), width)
    highest = reduction.operation == "reduce_min"
    if dtype in FLOATS:
        return constant(dtype, np.inf if highest else -np.inf, width)
    limits = np.iinfo(DTYPES[dtype])
    return constant(dtype, limits.max if highest else limits.min, width)


def _emit_along(site: Site, nest: Nest, shape: Shape, outer: Sequence[Index]) -> None:
    """Reductions over the axis of the vectors, and others: vectors of partial results, combined at the end."""
    builder, rank, width, parts = site.builder, len(nest.shape), shape.width, shape.unrolled
    kept = [axis for axis in range(len(outer), rank) if axis not in nest.axes]
    reduced = [axis for axis in nest.axes if axis != shape.lane]
    start = [neutral(reduction, width) for reduction in nest.reductions for _ in range(parts)]

    def point(fixed: list[Index], _: Values) -> Values:
        def line(inner: list[Index], values: Values) -> Values:
            def body(pieces: list[Piece], values: Values) -> Values:
                for number, piece in enumerate(pieces):
                    scope = site.scope(width, piece[1])
                    indices = _indices(shape, outer, [*kept, *reduced], [*fixed, *inner], piece)
                    _store_all(site, nest, scope, indices)
                    for place, reduction in enumerate(nest.reductions):
                        at = place * parts + number % parts
                        found = widened(builder, scope.at(reduction.operands[0], indices), width)
                        if piece[1] < width:
                            found = builder.select(mask(width, piece[1]), found, neutral(reduction, width))
                        values[at] = combined(builder, reduction, values[at], found)
                return values

            return vectors(builder, shape.extents[shape.lane] if rank else 1, shape, body, list(values))

        values = loops(builder, [shape.extents[axis] for axis in reduced], line, list(start))
        indices = _indices(shape, outer, kept, fixed, None)
        for place, reduction in enumerate(nest.reductions):
            found = _total(builder, reduction, values[place * parts : (place + 1) * parts])
            site.scope().store(reduction.result, _kept(reduction, indices), found)
        return []

    loops(builder, [shape.extents[axis] for axis in kept], point)


def _total(builder: ir.IRBuilder, reduction: Instruction, parts: Values) -> ir.Value:
    """Partial results, in vectors, combined."""
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [combined(builder, reduction, a, b) for a, b in zip(parts[:half], parts[half:], strict=True)]
    return horizontal(builder, parts[0], lambda a, b: combined(builder, reduction, a, b))


def _emit_across(site: Site, nest: Nest, shape: Shape, outer: Sequence[Index]) -> None:
    """Reductions over other axes than that of the vectors: a vector of results at a time."""
    builder, rank, width = site.builder, len(nest.shape), shape.width
    kept = [axis for axis in range(len(outer), rank) if axis not in nest.axes and axis != shape.lane]

    def point(fixed: list[Index], _: Values) -> Values:
        def body(pieces: list[Piece], _: Values) -> Values:
            start = [neutral(reduction, width) for reduction in nest.reductions for _ in pieces]

            def term(inner: list[Index], values: Values) -> Values:
                for number, piece in enumerate(pieces):
                    scope = site.scope(width, piece[1])
                    indices = _indices(shape, outer, [*kept, *nest.axes], [*fixed, *inner], piece)
                    _store_all(site, nest, scope, indices)
                    for place, reduction in enumerate(nest.reductions):
                        slot = place * len(pieces) + number
                        found = widened(builder, scope.at(reduction.operands[0], indices), width)
                        values[slot] = combined(builder, reduction, values[slot], found)
                return values

            values = loops(builder, [shape.extents[axis] for axis in nest.axes], term, start)
            for number, piece in enumerate(pieces):
                scope = site.scope(width, piece[1])
                indices = _indices(shape, outer, kept, fixed, piece)
                for place, reduction in enumerate(nest.reductions):
                    scope.store(reduction.result, _kept(reduction, indices), values[place * len(pieces) + number])
            return []

        return vectors(builder, shape.extents[shape.lane], shape, body)

    loops(builder, [shape.extents[axis] for axis in kept], point)
