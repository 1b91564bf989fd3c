"""Code that makes results of sums and writes them: means, probabilities."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, broadcast, counted, declare, element_pointer, load, store
from shine.compiler.codegen.vecmath import functions as vecmath
from shine.trees.parts import DOUBLE, Plan, every, number


def emit_link(module: ir.Module, plan: Plan) -> ir.Function:
    """Emit ``void f(sums, y, first, rows, n_outputs, divisor)``: results of a block, written row by row."""
    labels = ("sums", "y", "first", "rows", "n_outputs", "divisor")
    kinds = [POINTER, POINTER, I64, I64, I64, DOUBLE]
    function = declare(module, "ensemble.finish", ir.VoidType(), kinds, labels)
    function.linkage = "internal"
    sums, y, first, rows, n_outputs, divisor = function.args
    y.add_attribute("noalias")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    kind, link = plan.vector(DOUBLE), plan.shape.link
    by = broadcast(build, divisor, kind)
    with counted(build, number(0), rows, plan.lanes) as group:

        def cell(output: ir.Value) -> ir.Value:
            at = build.add(build.mul(output, number(plan.block)), group.index)
            return element_pointer(build, sums, at, DOUBLE)

        with counted(build, number(0), n_outputs) as output:
            total = build.fdiv(build.load(cell(output.index), typ=kind, align=8), by)
            build.store(vecmath.call(build, "exp", total) if link == "exp" else total, cell(output.index), align=8)
        if link.startswith("expit"):
            total = build.load(cell(number(0)), typ=kind, align=8)
            scaled = build.fmul(total, every(kind, -2.0 if link == "expit2" else -1.0))
            second = build.fdiv(every(kind, 1.0), build.fadd(every(kind, 1.0), vecmath.call(build, "exp", scaled)))
            build.store(build.fsub(every(kind, 1.0), second), cell(number(0)), align=8)
            build.store(second, cell(number(1)), align=8)
        if link == "softmax":
            _softmax(build, kind, n_outputs, cell)
    count = number(2) if link.startswith("expit") else n_outputs
    own = element_pointer(build, y, build.mul(first, count), DOUBLE)
    with counted(build, number(0), count) as output:
        column = element_pointer(build, sums, build.mul(output.index, number(plan.block)), DOUBLE)
        with counted(build, number(0), rows) as row:
            at = build.add(build.mul(row.index, count), output.index)
            store(build, load(build, column, row.index, DOUBLE, DOUBLE), own, at, DOUBLE)
    build.ret_void()
    return function


def _softmax(
    build: ir.IRBuilder, kind: ir.VectorType, n_outputs: ir.Value, cell: Callable[[ir.Value], ir.Value]
) -> None:
    """Softmax over the outputs; the largest is subtracted first, so that no power overflows."""
    start = build.load(cell(number(0)), typ=kind, align=8)
    with counted(build, number(1), n_outputs, carried=[start]) as output:
        total = build.load(cell(output.index), typ=kind, align=8)
        larger = build.fcmp_unordered(">", total, output.values[0])
        output.results.append(build.select(larger, total, output.values[0]))
    (largest,) = output.values
    with counted(build, number(0), n_outputs, carried=[every(kind, 0.0)]) as output:
        total = build.load(cell(output.index), typ=kind, align=8)
        power = vecmath.call(build, "exp", build.fsub(total, largest))
        build.store(power, cell(output.index), align=8)
        output.results.append(build.fadd(output.values[0], power))
    (whole,) = output.values
    with counted(build, number(0), n_outputs) as output:
        power = build.load(cell(output.index), typ=kind, align=8)
        build.store(build.fdiv(power, whole), cell(output.index), align=8)
