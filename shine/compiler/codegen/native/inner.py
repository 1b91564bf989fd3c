"""Inner products of rows with rows, each added up in the order of its elements.

Numeric libraries add the products in an order that suits the processor. Here an element of the result is a plain sum
from the first product to the last, in one lane of a vector: the same bits on every host.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, broadcast, counted, declare, element_pointer, load, store
from shine.compiler.codegen.native.loops import row_numbers
from shine.compiler.codegen.numbers import Numbers

AT_ONCE = 6
"""Rows of the first matrix that use each load from the second: their sums just fit into the 16 registers of AVX2."""

_ZERO = ir.Constant(I64, 0)


def panel_width(dtype: str) -> int:
    """Rows of the second matrix that lie side by side in a panel."""
    return row_numbers(dtype).width


def emit_inner(module: ir.Module, name: str, dtype: str) -> None:
    """Emit ``void name(a, panels, out, rows, length, count)``.

    ``a`` has `rows` rows of `length` numbers. ``panels`` holds the other matrix in `count` panels of `panel_width`
    rows; a panel has the first elements of its rows, then the second elements, and so on. ``out`` has `rows` rows of
    ``count * panel_width`` numbers.
    """
    numbers = row_numbers(dtype)
    labels = ("a", "panels", "out", "rows", "length", "count")
    function = declare(module, name, ir.VoidType(), [POINTER] * 3 + [I64] * 3, labels)
    a, panels, out, rows, length, count = function.args
    out.add_attribute("noalias")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    width = ir.Constant(I64, numbers.width)
    stride = build.mul(count, width)
    whole = build.sub(rows, build.urem(rows, ir.Constant(I64, AT_ONCE)))
    with counted(build, _ZERO, count) as panel:
        column = build.mul(panel.index, width)
        own = element_pointer(build, panels, build.mul(column, length), numbers.element)
        for first, last, step in ((_ZERO, whole, AT_ONCE), (whole, rows, 1)):
            with counted(build, first, last, step) as group:
                lines = [build.add(group.index, ir.Constant(I64, i)) for i in range(step)]
                sums = _sums(build, numbers, a, own, [build.mul(line, length) for line in lines], length)
                for line, total in zip(lines, sums, strict=True):
                    at = build.add(build.mul(line, stride), column)
                    store(build, total, out, at, numbers.element)
    build.ret_void()


def _sums(
    build: ir.IRBuilder,
    numbers: Numbers,
    a: ir.Value,
    panel: ir.Value,
    starts: Sequence[ir.Value],
    length: ir.Value,
) -> list[ir.Value]:
    """Inner products of some rows with all rows of a panel, one vector per row."""
    width, zero = ir.Constant(I64, numbers.width), ir.Constant(numbers.type, None)
    with counted(build, _ZERO, length, carried=[zero] * len(starts)) as loop:
        others = load(build, panel, build.mul(loop.index, width), numbers.element, numbers.type)
        for start, total in zip(starts, loop.values, strict=True):
            one = load(build, a, build.add(start, loop.index), numbers.element, numbers.element)
            loop.results.append(build.fadd(total, build.fmul(broadcast(build, one, numbers.type), others)))
    return loop.values
