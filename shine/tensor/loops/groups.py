"""Groups of nests: each kind's emission, memory, and description."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, Variables, counted, declare, number
from shine.compiler.processor import Machine
from shine.tensor.form.module import Instruction
from shine.tensor.form.types import DTYPES, FLOATS
from shine.tensor.loops.division import Part, shared_loops
from shine.tensor.loops.fusion import Group, Nest
from shine.tensor.loops.index import Index, applied, cast, variable
from shine.tensor.loops.lanes import BIT, load, store
from shine.tensor.loops.nest import Site, emit_nest, loops
from shine.tensor.loops.placement import Placement
from shine.tensor.loops.products.convolution import convolution_of, emit_convolution, emit_padding, rooms_of
from shine.tensor.loops.products.dot import dot_of, emit_dot
from shine.tensor.loops.products.kernel import moved


def is_before(builder: ir.IRBuilder, dtype: str, a: ir.Value, b: ir.Value, descending: bool) -> ir.Value:
    """Whether a must come before b; NaN is the largest number, and equal to itself."""
    if descending:
        a, b = b, a
    if dtype not in FLOATS:
        return (builder.icmp_unsigned if dtype == "u8" else builder.icmp_signed)("<", a, b)
    only_b = builder.and_(builder.fcmp_ordered("ord", a, a), builder.fcmp_unordered("uno", b, b))
    return builder.or_(builder.fcmp_ordered("<", a, b), only_b)


def emit_arg_reduction(site: Site, maker: Instruction, scratch: ir.Value) -> None:
    """The first of equals, and the first NaN."""
    builder, operand = site.builder, maker.operands[0]
    axis, dtype = _axis(maker), operand.type.dtype
    shape = operand.type.shape
    kept = [*shape[:axis], *shape[axis + 1 :]]
    operator = "gt" if maker.operation == "argmax" else "lt"

    def line(at: list[Index], values: list[ir.Value]) -> list[ir.Value]:
        def element(place: Index) -> ir.Value:
            return site.scope().at(operand, [*at[:axis], place, *at[axis:]])

        start = [element(Index()), ir.Constant(I64, 0)]
        with counted(builder, ir.Constant(I64, 1), ir.Constant(I64, shape[axis]), carried=start) as loop:
            best, where = loop.values
            found = element(variable(loop.index))
            wins = applied(builder, operator, dtype, [found, best], 1, "bool")
            if dtype in FLOATS:
                wins = builder.or_(wins, builder.fcmp_unordered("uno", found, found))
                wins = builder.and_(wins, builder.fcmp_ordered("ord", best, best))
            loop.results = [builder.select(wins, found, best), builder.select(wins, loop.index, where)]
        site.scope().store(maker.result, at, loop.values[1])
        return values

    loops(builder, kept, line)


def sort_scratch_bytes(maker: Instruction) -> int:
    """Bytes for two copies of a line and its places."""
    operand = maker.operands[0].type
    return 2 * (operand.shape[_axis(maker)] + 8) * (8 + operand.numpy.itemsize) + 64


def emit_sort(site: Site, maker: Instruction, scratch: ir.Value) -> None:
    """Each line is copied, sorted there, and copied back: all of it, or the first k."""
    builder, operand = site.builder, maker.operands[0]
    axis, dtype, size = _axis(maker), operand.type.dtype, operand.type.shape[_axis(maker)]
    descending = maker.operation == "top_k" or bool(maker.attributes["descending"])
    step = -(-(size * DTYPES[dtype].itemsize) // 8) * 8
    rooms = [scratch]
    for room in (step, size * 8, step):
        rooms.append(builder.gep(rooms[-1], [ir.Constant(I64, room)], source_etype=ir.IntType(8)))
    keys, places, spare_keys, spare_places = rooms
    kept = [*operand.type.shape[:axis], *operand.type.shape[axis + 1 :]]
    sort = _sort_function(builder.module, dtype, descending)

    def line(at: list[Index], carried: list[ir.Value]) -> list[ir.Value]:
        with counted(builder, number(0), number(size)) as loop:
            found = site.scope().at(operand, [*at[:axis], variable(loop.index), *at[axis:]])
            store(builder, found, moved(builder, keys, loop.index, dtype), dtype)
            store(builder, loop.index, moved(builder, places, loop.index, "i64"), "i64")
        swapped = builder.call(sort, [keys, places, spare_keys, spare_places, number(size)])
        sorted_keys = builder.select(swapped, spare_keys, keys)
        sorted_places = builder.select(swapped, spare_places, places)
        with counted(builder, number(0), number(maker.results[0].type.shape[axis])) as loop:
            indices = [*at[:axis], variable(loop.index), *at[axis:]]
            for result, room, kind in zip(maker.results, (sorted_keys, sorted_places), (dtype, "i64"), strict=True):
                value = load(builder, moved(builder, room, loop.index, kind), kind)
                site.scope().store(result, indices, value)
        return carried

    loops(builder, kept, line)


def _sort_function(module: ir.Module, dtype: str, descending: bool) -> ir.Function:
    """Merge sort from the bottom up, stable: ``i1 f(keys, places, spare keys, spare places, count)``.

    Returns whether the sorted line is in the spare memory.
    """
    name = f"shine.sort.{dtype}.{'down' if descending else 'up'}"
    if name in module.globals:
        return module.globals[name]
    labels = ("keys", "places", "spare_keys", "spare_places", "count")
    function = declare(module, name, BIT, [POINTER] * 4 + [I64], labels)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    count = function.args[4]
    state = Variables(builder, run=1, start=0, left=0, right=0, out=0, swapped=0)

    def smaller(a: ir.Value, b: ir.Value) -> ir.Value:
        return builder.select(builder.icmp_signed("<", a, b), a, b)

    def copy(place: ir.Value, rooms: list[ir.Value]) -> None:
        for source, target, kind in ((rooms[0], rooms[2], dtype), (rooms[1], rooms[3], "i64")):
            store(
                builder,
                load(builder, moved(builder, source, place, kind), kind),
                moved(builder, target, state["out"], kind),
                kind,
            )

    with _loop(builder, lambda: builder.icmp_signed("<", state["run"], count)):
        swapped = builder.icmp_signed("!=", state["swapped"], number(0))
        first = [builder.select(swapped, b, a) for a, b in zip(function.args[:2], function.args[2:4], strict=True)]
        second = [builder.select(swapped, a, b) for a, b in zip(function.args[:2], function.args[2:4], strict=True)]
        rooms = [*first, *second]
        state["start"] = 0
        with _loop(builder, lambda: builder.icmp_signed("<", state["start"], count)):
            middle = smaller(builder.add(state["start"], state["run"]), count)
            end = smaller(builder.add(middle, state["run"]), count)
            state["left"], state["right"], state["out"] = state["start"], middle, state["start"]
            with _loop(builder, lambda: builder.icmp_signed("<", state["out"], end)):
                has_left = builder.icmp_signed("<", state["left"], middle)
                has_right = builder.icmp_signed("<", state["right"], end)
                # An index of a side that is used up is not read: the other side's stands in.
                left = builder.select(has_left, state["left"], state["right"])
                right = builder.select(has_right, state["right"], state["left"])
                a = load(builder, moved(builder, first[0], left, dtype), dtype)
                b = load(builder, moved(builder, first[0], right, dtype), dtype)
                later = builder.or_(builder.not_(has_left), is_before(builder, dtype, b, a, descending))
                takes_right = builder.and_(has_right, later)
                copy(builder.select(takes_right, right, left), rooms)
                by = builder.zext(takes_right, I64)
                state["right"] = builder.add(state["right"], by)
                state["left"] = builder.add(state["left"], builder.sub(number(1), by))
                state["out"] = builder.add(state["out"], number(1))
            state["start"] = end
        state["run"] = builder.mul(state["run"], number(2))
        state["swapped"] = builder.sub(number(1), state["swapped"])
    builder.ret(builder.icmp_signed("!=", state["swapped"], number(0)))
    return function


@contextmanager
def _loop(builder: ir.IRBuilder, condition: Callable[[], ir.Value]) -> Iterator[None]:
    """``while condition():``"""
    head, body, done = (builder.append_basic_block(label) for label in ("while", "do", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    builder.cbranch(condition(), body, done)
    builder.position_at_end(body)
    yield
    builder.branch(head)
    builder.position_at_end(done)


def emit_scatter(site: Site, maker: Instruction, scratch: ir.Value) -> None:
    """A copy of the operand plus slices, added in the order of their indices."""
    builder, result = site.builder, maker.result
    operand, places, slices = maker.operands
    axis, dtype = _axis(maker), result.type.dtype
    size = result.type.shape[axis]

    def copy(at: list[Index], values: list[ir.Value]) -> list[ir.Value]:
        site.scope().store(result, at, site.scope().at(operand, at))
        return values

    loops(builder, result.type.shape, copy)
    before, after = result.type.shape[:axis], result.type.shape[axis + 1 :]

    def add(at: list[Index], values: list[ir.Value]) -> list[ir.Value]:
        which = at[: places.type.rank]
        found = site.scope().at(places, which)
        place = cast(builder, found, places.type.dtype, "i64", 1)
        inside = builder.and_(
            builder.icmp_signed(">=", place, number(0)), builder.icmp_signed("<", place, number(size))
        )
        with builder.if_then(inside):

            def element(rest: list[Index], values: list[ir.Value]) -> list[ir.Value]:
                first, last = rest[: len(before)], rest[len(before) :]
                scope, target = site.scope(), [*first, variable(place), *last]
                more = scope.at(slices, [*first, *which, *last])
                scope.store(
                    result, target, applied(builder, "add", dtype, [scope.load(result, target), more], 1, dtype)
                )
                return values

            loops(builder, [*before, *after], element)
        return values

    loops(builder, places.type.shape, add)


def _axis(maker: Instruction) -> int:
    if maker.operation == "top_k":
        return maker.operands[0].type.rank - 1
    axis: Any = maker.attributes["axis"]
    assert isinstance(axis, int)
    return axis


SPECIAL: dict[str, Callable[[Site, Instruction, ir.Value], None]] = {
    "argmax": emit_arg_reduction,
    "argmin": emit_arg_reduction,
    "sort": emit_sort,
    "top_k": emit_sort,
    "scatter_add": emit_scatter,
}
"""Operations whose loops are written element by element."""


def scratch_bytes(machine: Machine, placed: Placement, nest: Nest) -> int:
    """Bytes that a nest without calls needs while it runs."""
    maker = nest.maker
    if maker is None:
        return 0
    if nest.kind == "dot":
        return dot_of(machine, placed, maker).scratch_bytes
    if nest.kind == "convolve":
        return convolution_of(machine, maker).scratch_bytes
    return sort_scratch_bytes(maker) if SPECIAL[nest.kind] is emit_sort else 0


def emit_paddings(site: Site, group: Group, scratch: ir.Value) -> None:
    """Emit the copies that must be whole before a group is divided."""
    for nest in group.nests:
        if nest.kind == "convolve":
            emit_padding(site, nest, scratch)


def needs_padding(machine: Machine, group: Group) -> bool:
    """Whether `emit_paddings` emits anything."""
    makers = [nest.maker for nest in group.nests if nest.kind == "convolve"]
    return any(maker is not None and convolution_of(machine, maker).padded_bytes for maker in makers)


def emit_group(site: Site, group: Group, scratch: ir.Value, part: Part | None = None) -> str:
    """Emit the nests of a group inside their common loops, or a part of them; return their description."""
    said = [_described(site, nest) for nest in group.nests]
    own = part.scratch if part else None
    rooms = {id(nest): rooms_of(site, nest, scratch, own) for nest in group.nests if nest.kind == "convolve"}
    if part is None:
        emit_paddings(site, group, scratch)
    some = part.span if part and part.sharing.over == "filters" else None

    def inside(outer: list[Index], values: list[ir.Value]) -> list[ir.Value]:
        for nest in group.nests:
            if nest.kind == "dot":
                emit_dot(site, nest, scratch, part)
            elif nest.kind == "convolve":
                emit_convolution(site, nest, rooms[id(nest)], outer, some)
            elif nest.kind in SPECIAL:
                assert nest.maker is not None
                SPECIAL[nest.kind](site, nest.maker, scratch)
            else:
                emit_nest(site, nest, outer)
        return values

    if part is not None and part.sharing.outer:
        shared_loops(site.builder, group.nests[0].shape[: part.sharing.outer], part.span, inside)
    else:
        loops(site.builder, group.nests[0].shape[: group.outer], inside)
    shared = f"in {group.outer} common loops: " if group.outer else ""
    return shared + "; ".join(said) + (f", {part.sharing}" if part else "")


def _described(site: Site, nest: Nest) -> str:
    """A nest in words."""
    maker = nest.maker
    made_here = () if maker is None else maker.results
    fused = [str(store.value) for store in nest.stores if store.is_written and store.value not in made_here]
    if nest.kind == "dot" and maker is not None:
        return f"dot {dot_of(site.machine, site.placed, maker)}" + (f", fused with {', '.join(fused)}" if fused else "")
    if nest.kind == "convolve" and maker is not None:
        return f"convolve {convolution_of(site.machine, maker)}" + (f", fused with {', '.join(fused)}" if fused else "")
    made = fused + [f"{reduction.result} ({reduction.operation})" for reduction in nest.reductions]
    return f"{nest.kind} {' x '.join(map(str, nest.shape)) or '1'}: {', '.join(made)}"
