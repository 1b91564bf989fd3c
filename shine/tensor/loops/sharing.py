"""Division of the work of a group of nests among threads, if that pays.

No element depends on the division: each is computed by the same operations in the same order, by whoever computes it.
So results have the same bits for any number of threads.
"""

from __future__ import annotations

from math import prod

from shine.compiler.codegen.operations import ELEMENTARY
from shine.compiler.processor import Machine
from shine.tensor.loops.division import MOST_BLOCKS, Sharing
from shine.tensor.loops.fusion import PRODUCTS, Group, Nest, computed, outermost
from shine.tensor.loops.placement import Placement
from shine.tensor.loops.products.convolution import Convolution, convolution_of
from shine.tensor.loops.products.dot import AT_ONCE, Dot, dot_of, shared_columns

SHARED_GROUP = 1 << 20
"""Least work of a divided group: some 20 us, as threads wait for one another after it."""

SHARED_CALL = 1 << 25
"""Least work in such groups for more threads than one: some 600 us. To start another one and to wait
for its end takes 200 us."""

ENOUGH = 8
"""Number of parts that is enough."""

LINE = 64
"""Elements of a line below which the axis around it is not divided."""

STREAM = 512
"""Columns of a streamed product that a block has at least: shorter pieces of rows are not fetched ahead."""

_ELEMENT_COST = 16
"""Multiply-adds of a product in the time of reading and writing an element."""

_ELEMENTARY_COST = 4


def sharing_of(machine: Machine, placed: Placement, group: Group) -> Sharing | None:
    """The division of a group; None if it is too small, or adds up one number, or moves elements in order."""
    if any(nest.kind not in {"loops", *PRODUCTS} for nest in group.nests) or work_of(placed, group) < SHARED_GROUP:
        return None
    first = group.nests[0]
    if first.kind == "dot" and first.maker is not None:
        found = _of_dot(dot_of(machine, placed, first.maker))
    elif first.kind == "convolve" and first.maker is not None and not group.outer:
        done = convolution_of(machine, first.maker)
        found = _of_filters(done) if done.is_streamed else _of_loops(first, len(first.shape) - 2, 1)
    else:
        found = _of_loops(first, group.outer, 1) if group.outer else _of_loops(first, _divisible(first), LINE)
    return found if found.blocks > 1 else None


def work_of(placed: Placement, group: Group) -> int:
    """Time, about, in multiply-adds of a product."""
    total = 0
    for nest in group.nests:
        each = _ELEMENT_COST + sum(
            _ELEMENTARY_COST if made.operation in ELEMENTARY else 1 for made in computed(placed, nest)
        )
        if nest.maker is not None:
            left, right = (operand.type for operand in nest.maker.operands)
            each += left.shape[-1] if nest.kind == "dot" else right.elements // max(right.shape[-1], 1)
        total += prod(nest.shape) * each
    return total


def scratch_bytes(machine: Machine, placed: Placement, group: Group) -> int:
    """Bytes that each thread needs for itself."""
    nest = group.nests[0]
    if nest.kind == "dot" and nest.maker is not None:
        return dot_of(machine, placed, nest.maker).scratch_bytes
    if nest.kind == "convolve" and nest.maker is not None:
        done = convolution_of(machine, nest.maker)
        return done.scratch_bytes - done.padded_bytes
    return 0


def _divisible(nest: Nest) -> int:
    """Outer loops whose turns write apart."""
    if not nest.shape or any(not store.is_computed for store in nest.stores):
        return 0
    return outermost(nest)


def _of_loops(nest: Nest, outer: int, line: int) -> Sharing:
    while outer and prod(nest.shape[outer:]) < line:
        outer -= 1
    extents = nest.shape[:outer]
    return Sharing(f"the outer loops {' x '.join(map(str, extents))}", prod(extents) if outer else 0, outer)


def _of_filters(done: Convolution) -> Sharing:
    return Sharing("filters", -(-done.filters // (done.tiles.vectors * done.tiles.width)))


def _of_dot(dot: Dot) -> Sharing:
    matrices = Sharing("matrices", prod(dot.batch))
    if matrices.units >= ENOUGH:
        return matrices
    if dot.tiles is not None and dot.tiles.terms:
        step = dot.tiles.vectors * dot.tiles.width
        streamed = Sharing("columns", -(-dot.n // step), most=min(MOST_BLOCKS, dot.n // STREAM))
        return max(streamed, matrices, key=lambda sharing: sharing.blocks)
    if dot.tiles is None:
        high = wide = AT_ONCE
        high, wide = (dot.m, wide) if dot.n > 1 else (high, 1)
    else:
        high, wide = dot.tiles.rows, dot.tiles.vectors * dot.tiles.width
        if dot.tiles.columns:
            wide = shared_columns(dot)
    rows, columns = Sharing("rows", -(-dot.m // high)), Sharing("columns", -(-dot.n // wide))
    if columns.units >= ENOUGH:
        return columns
    return max(columns, rows, matrices, key=lambda sharing: sharing.units)
