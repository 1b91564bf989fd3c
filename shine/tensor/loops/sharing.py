"""Sharing of a function by threads: the division of each group of nests, and the code in which they take blocks."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shine.compiler.codegen.numbers import ELEMENTARY
from shine.compiler.processor import Machine
from shine.tensor.loops.division import MOST_BLOCKS, Sharing
from shine.tensor.loops.fusion import PRODUCTS, Group, Nest, computed, outermost
from shine.tensor.loops.placement import Placement
from shine.tensor.loops.products.convolution import convolution_of
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
        found = _of_loops(first, len(first.shape) - 2, 1)
        if done.is_streamed:
            found = Sharing("filters", -(-done.filters // (done.tiles.vectors * done.tiles.width)))
    else:
        found = _of_loops(first, group.outer, 1) if group.outer else _of_loops(first, _divisible(first), LINE)
    return found if found.blocks > 1 else None


def work_of(placed: Placement, group: Group) -> int:
    """Time, about, in multiply-adds of a product."""
    total = 0
    for nest in group.nests:
        # Multiply-adds of a product in the time of reading and writing an element.
        each = 16 + sum(_ELEMENTARY_COST if made.operation in ELEMENTARY else 1 for made in computed(placed, nest))
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


STATE_BYTES = 64
"""Bytes that threads share for each step, and once more for the request to stop."""

_TURNS = 20_000
"""Looks at a counter before a waiting thread yields its processor: some ten microseconds."""


def driver_ir(name: str, steps: Sequence[tuple[str, int]]) -> str:
    """LLVM IR of ``int32_t NAME.share(arguments, results, arena, scratch, state)``, which each thread calls.

    Threads take the blocks of a step until none is left, and go on when all are done. A thread that has waited for a
    while returns 1: it should yield its processor, and call again. One that returns 0 has seen the end, or the request
    to stop, a number other than 0 at the start of the state. No thread relies on another one to begin.

    Parameters
    ----------
    name : str
    steps : sequence of (str, int)
        Functions ``void f(arguments, results, arena, scratch, block)``, and how many blocks they have.
    """
    count = len(steps)
    functions = ", ".join(f'ptr @"{function}"' for function, _ in steps)
    blocks = ", ".join(f"i64 {number}" for _, number in steps)
    return f"""
@"{name}.steps" = internal constant [{count} x ptr] [{functions}]
@"{name}.blocks" = internal constant [{count} x i64] [{blocks}]
define i32 @"{name}.share"(ptr %arguments, ptr %results, ptr %arena, ptr %scratch, ptr %state) {{
entry:
  br label %step
step:
  %s = phi i64 [0, %entry], [%after, %next]
  %more = icmp ult i64 %s, {count}
  br i1 %more, label %begin, label %end
begin:
  %after = add i64 %s, 1
  %at = mul i64 %after, {STATE_BYTES}
  %taken = getelementptr i8, ptr %state, i64 %at
  %done = getelementptr i8, ptr %taken, i64 8
  %blocks_place = getelementptr i64, ptr @"{name}.blocks", i64 %s
  %blocks = load i64, ptr %blocks_place
  %function_place = getelementptr ptr, ptr @"{name}.steps", i64 %s
  %function = load ptr, ptr %function_place
  br label %take
take:
  %stops = load atomic i64, ptr %state acquire, align 8
  %stopped = icmp ne i64 %stops, 0
  br i1 %stopped, label %end, label %try
try:
  %seen = load atomic i64, ptr %done acquire, align 8
  %over = icmp uge i64 %seen, %blocks
  br i1 %over, label %next, label %ask
ask:
  %block = atomicrmw add ptr %taken, i64 1 acq_rel
  %free = icmp ult i64 %block, %blocks
  br i1 %free, label %run, label %wait
run:
  call void %function(ptr %arguments, ptr %results, ptr %arena, ptr %scratch, i64 %block)
  %was = atomicrmw add ptr %done, i64 1 acq_rel
  br label %take
wait:
  %turn = phi i64 [0, %ask], [%turns, %again]
  %ready = load atomic i64, ptr %done acquire, align 8
  %all = icmp uge i64 %ready, %blocks
  br i1 %all, label %next, label %again
again:
  %turns = add i64 %turn, 1
  %patient = icmp ult i64 %turns, {_TURNS}
  br i1 %patient, label %wait, label %pause
next:
  br label %step
pause:
  ret i32 1
end:
  ret i32 0
}}
"""
