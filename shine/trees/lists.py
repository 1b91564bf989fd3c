"""Code of a tree that is a list of comparisons with words: all of them for some vectors of rows."""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, broadcast, counted, declare, element_pointer, load
from shine.trees.parts import I32, Plan, add_values, every, has_bit, number, tree_fields


def emit_list(module: ir.Module, plan: Plan, vectors: int) -> ir.Function:
    """Emit ``void f(tree, tile, acc, thresholds, words, places, values, sets)`` for some vectors of rows."""
    labels = ("tree", "tile", "acc", "thresholds", "words", "places", "values", "sets")
    function = declare(module, f"ensemble.list.{vectors}", ir.VoidType(), [POINTER] * len(labels), labels)
    function.linkage = "internal"
    tree, tile, acc, thresholds, words, places, values, sets = function.args
    acc.add_attribute("noalias")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    fields = tree_fields(build, tree)
    word, real = plan.vector(plan.word), plan.vector(plan.real)
    left: list[ir.Value] = [every(word, -1)] * vectors
    start = fields["first"]
    for kind in ("missing_right", "missing_left", *(["by_set"] if plan.shape.has_sets else [])):
        stop = build.add(start, fields[kind])
        with counted(build, start, stop, carried=left) as node:
            pair = build.shl(node.index, number(1))
            feature = build.zext(load(build, places, pair, I32, I32), I64)
            column = element_pointer(build, tile, build.mul(feature, number(plan.block)), plan.real)
            kept = broadcast(build, load(build, words, node.index, plan.word, plan.word), word)
            if kind == "by_set":
                own = load(build, places, build.add(pair, number(1)), I32, I32)
                first = broadcast(build, own, plan.vector(I32))
            else:
                threshold = broadcast(build, load(build, thresholds, node.index, plan.real, plan.real), real)
            for vector, before in enumerate(node.values):
                x = load(build, column, number(vector * plan.lanes), plan.real, real)
                if kind == "by_set":
                    found = has_bit(build, sets, first, build.fptosi(x, plan.vector(I32)))
                    goes_right = build.not_(found)
                else:
                    # In this order the processor compares with x in memory.
                    compare = build.fcmp_unordered if kind == "missing_right" else build.fcmp_ordered
                    goes_right = compare("<", threshold, x)
                node.results.append(build.select(goes_right, build.and_(before, kept), before))
        left, start = node.values, stop
    width = broadcast(build, build.trunc(fields["width"], I32), plan.vector(I32))
    add_values(build, plan, fields, values, [build.mul(_first_bit(build, plan, each), width) for each in left], acc)
    build.ret_void()
    return function


def _first_bit(build: ir.IRBuilder, plan: Plan, words: ir.Value) -> ir.Value:
    """Positions of the highest bits of words, which are not 0, as i32."""
    kind = plan.vector(plan.word)
    name = f"llvm.ctlz.v{plan.lanes}i{plan.word.width}"
    flag = ir.IntType(1)
    function = build.module.globals.get(name) or ir.Function(build.module, ir.FunctionType(kind, [kind, flag]), name)
    zeros = build.call(function, [words, ir.Constant(flag, 1)])
    return zeros if plan.word.width == 32 else build.trunc(zeros, plan.vector(I32))
