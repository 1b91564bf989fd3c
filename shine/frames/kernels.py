"""Functions of queries over many rows: masks of words, and the positions of the bits in them."""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, broadcast, counted, declare, element_pointer, load, store
from shine.frames.columns import BIT, BYTE, ELEMENTS, GROUP, Inputs, i64_intrinsic, lanes, size_of
from shine.frames.language.types import Plan
from shine.frames.steps import Number, Rows, Truth, emit_steps, slot_values

VECTOR_BYTES = 64
"""Bytes of a vector of the widest type."""

SELECT, COMPUTE, POSITIONS = "select", "compute", "positions"

_ZERO, _ONE = ir.Constant(I64, 0), ir.Constant(I64, 1)


def emit_query(module: ir.Module, plan: Plan, computes: bool) -> None:
    """Emit the function of a query over groups of 64 rows.

    ``i64 select(columns, offsets, slots, words, groups)`` writes a word for each group, whose bits are the rows where
    the condition is true, the first row being the lowest bit; it returns the number of these rows.

    ``i64 compute(columns, offsets, slots, words, groups, out)`` writes the values of all rows to `out`, words of bits
    for truth values; bits of `words` are the rows that have a value.
    """
    name = COMPUTE if computes else SELECT
    labels = ["columns", "offsets", "slots", "words", "groups"] + ["out"] * computes
    kinds = [I64 if label == "groups" else POINTER for label in labels]
    function = declare(module, name, I64, kinds, labels)
    columns, offsets, slots, words, groups = function.args[:5]
    words.add_attribute("noalias")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    inputs = Inputs(builder, plan.columns, columns, offsets)
    numbers = slot_values(builder, plan, slots)
    width = _width(plan)
    with counted(builder, _ZERO, groups, carried=[_ZERO]) as loop:
        inputs.begin(loop.index)
        first = builder.mul(loop.index, ir.Constant(I64, GROUP))

        def part(lane: ir.Value) -> tuple[ir.Value, ir.Value]:
            """Bits of the rows from a lane on: those of the result, and of what is not missing."""
            row = builder.add(first, lane)
            result = emit_steps(Rows(builder, inputs, numbers, row, lane, width, plan))
            if isinstance(result, Number):
                store(builder, result.value, function.args[5], row, ELEMENTS[plan.kind])
                full = ir.Constant(lanes(BIT, width), [1] * width)
                return _ZERO, _bits(builder, full if result.valid is None else result.valid, lane)
            true = _bits(builder, result.true, lane)
            return true, _bits(builder, _known(builder, result), lane) if computes else true

        with counted(builder, _ZERO, ir.Constant(I64, GROUP), width, [_ZERO, _ZERO]) as inner:
            found = part(inner.index)
            inner.results = [builder.or_(old, new) for old, new in zip(inner.values, found, strict=True)]
        bits = inner.values
        if computes and plan.kind == "bool":
            store(builder, bits[0], function.args[5], loop.index, I64)
        store(builder, bits[1], words, loop.index, I64)
        ones = builder.call(i64_intrinsic(module, "llvm.ctpop", 1), [bits[1]])
        loop.results = [builder.add(loop.values[0], ones)]
    builder.ret(loop.values[0])


def _width(plan: Plan) -> int:
    """Rows of a vector."""
    return VECTOR_BYTES // max(size_of(step.kind) for step in plan.steps)


def _known(builder: ir.IRBuilder, truth: Truth) -> ir.Value:
    if truth.false is None:
        return ir.Constant(truth.true.type, [1] * truth.true.type.count)
    return builder.or_(truth.true, truth.false)


def _bits(builder: ir.IRBuilder, mask: ir.Value, lane: ir.Value) -> ir.Value:
    """A mask of lanes as bits of a word, from a lane on."""
    word = builder.bitcast(mask, ir.IntType(mask.type.count))
    return builder.shl(builder.zext(word, I64) if mask.type.count < GROUP else word, lane)


def emit_positions(module: ir.Module, bits: int) -> None:
    """Emit ``i64 positions(words, count, first, out, room)`` for unsigned indices of 32 or 64 bits.

    It writes the rows of all bits in order, the first bit being row `first`, and returns their number, which must be
    `room`. A table has the positions of the bits of each byte; eight are stored at once, and the place of the next
    byte's moves on by the number of its bits, so that no branch depends on which bits are set.
    """
    index = ir.IntType(bits)
    table_type = ir.ArrayType(ir.ArrayType(BYTE, 8), 256)
    table = ir.GlobalVariable(module, table_type, "bits.of.bytes")
    table.type = POINTER
    table.linkage, table.global_constant = "internal", True
    table.initializer = ir.Constant(
        table_type,
        [[(*(bit for bit in range(8) if byte >> bit & 1), *[0] * 8)[i] for i in range(8)] for byte in range(256)],
    )
    function = declare(
        module, POSITIONS, I64, [POINTER, I64, I64, POINTER, I64], ("words", "count", "first", "out", "room")
    )
    words, count, first, out, room = function.args
    build = ir.IRBuilder(function.append_basic_block("entry"))
    ctpop = i64_intrinsic(module, "llvm.ctpop", 1)
    cttz = declare(module, "llvm.cttz.i64", I64, [I64, BIT], ("value", "is_zero_poison"))
    with counted(build, _ZERO, count, carried=[_ZERO]) as loop:
        word, at = load(build, words, loop.index, I64, I64), loop.values[0]
        row = build.add(first, build.mul(loop.index, ir.Constant(I64, GROUP)))
        after = build.add(at, build.call(ctpop, [word]))
        some = build.icmp_unsigned("!=", word, _ZERO)
        with build.if_then(some):
            fits = build.icmp_unsigned("<=", build.add(at, ir.Constant(I64, GROUP)), room)
            with build.if_else(fits) as (at_once, one_by_one):
                with at_once:
                    place = at
                    for byte in range(8):
                        piece = build.and_(build.lshr(word, ir.Constant(I64, 8 * byte)), ir.Constant(I64, 255))
                        entry = element_pointer(build, table, build.mul(piece, ir.Constant(I64, 8)), BYTE)
                        lower = build.zext(build.load(entry, typ=lanes(BYTE, 8), align=8), lanes(index, 8))
                        start = build.add(row, ir.Constant(I64, 8 * byte))
                        base = start if bits == 64 else build.trunc(start, index)
                        store(build, build.add(lower, broadcast(build, base, lanes(index, 8))), out, place, index)
                        place = build.add(place, build.call(ctpop, [piece]))
                with one_by_one, counted(build, at, after, carried=[word]) as inner:
                    left = inner.values[0]
                    found = build.add(row, build.call(cttz, [left, ir.Constant(BIT, 1)]))
                    store(build, found if bits == 64 else build.trunc(found, index), out, inner.index, index)
                    inner.results = [build.and_(left, build.sub(left, _ONE))]
        loop.results = [after]
    build.ret(loop.values[0])
