"""The function of an ensemble: blocks of rows are put into a tile, all trees are added up, and the results written."""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    any_lane,
    broadcast,
    counted,
    declare,
    element_pointer,
    intrinsic,
    load,
    store,
)
from shine.trees.form import CODES
from shine.trees.layout import TREE_FIELDS
from shine.trees.links import emit_link
from shine.trees.lists import emit_list
from shine.trees.parts import COUNTS, DOUBLE, FLOAT, I1, I32, TABLES, Plan, every, number
from shine.trees.walks import emit_walk

MISSING, INFINITE = 1, 2
"""Bits of the answer: whether a feature that is read was NaN, or not finite otherwise."""

_WRITTEN = ("X", "n_rows", "row_stride", "column_stride", "y", "arena", "is_single")

_PART = ("first", "rows", "padded", "tile")

CORE = (*_WRITTEN, *COUNTS, "divisor", *TABLES)
"""Arguments of the function that `emit_core` emits."""


def arena_bytes(plan: Plan, n_features: int, n_outputs: int, n_results: int) -> int:
    """Bytes of scratch memory, aligned to 64: the tile, then the sums."""
    size = plan.block * (8 if plan.real == DOUBLE else 4)
    return n_features * size + max(n_outputs, n_results) * plan.block * 8


def emit_core(module: ir.Module, plan: Plan) -> ir.Function:
    """Emit ``i32 ensemble(...)`` with the arguments `CORE`; it is internal.

    Feature j of row i is ``X[i * row_stride + j * column_stride]``, a float if `is_single`, else a double. Results go
    to `y` row by row. It returns `MISSING` and `INFINITE`.
    """
    kinds = {"n_rows": I64, "row_stride": I64, "column_stride": I64, "is_single": I1, "divisor": DOUBLE}
    kinds |= dict.fromkeys(COUNTS, I64)
    types = [kinds.get(name, POINTER) for name in CORE]
    function = declare(module, "ensemble", I32, types, CORE)
    function.linkage = "internal"
    given = dict(zip(CORE, function.args, strict=True))
    given["y"].add_attribute("noalias")
    given["arena"].add_attribute("noalias")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    tile = given["arena"]
    sums = element_pointer(build, tile, build.mul(given["n_features"], number(plan.block)), plan.real)
    loader = _emit_load(module, plan)
    finish = emit_link(module, plan)
    with counted(build, number(0), given["n_rows"], plan.block, carried=[ir.Constant(I32, 0)]) as block:
        left = build.sub(given["n_rows"], block.index)
        rows = build.select(build.icmp_signed("<", left, number(plan.block)), left, number(plan.block))
        is_short = build.icmp_signed("<=", rows, number(plan.lanes))
        padded = build.select(is_short, number(plan.lanes), number(plan.block))
        flags = build.call(
            loader,
            [
                *(given[name] for name in ("X", "row_stride", "column_stride", "is_single", "features")),
                *(given[name] for name in ("n_features", "n_numeric")),
                *(block.index, rows, padded, tile),
            ],
        )
        block.results.append(build.or_(block.values[0], flags))
        _fill(build, plan, given, sums)
        with build.if_else(is_short) as (short, whole):
            with short:
                _add_trees(build, plan, given, tile, sums, 1)
            with whole:
                _add_trees(build, plan, given, tile, sums, plan.block // plan.lanes)
        build.call(finish, [sums, given["y"], block.index, rows, given["n_outputs"], given["divisor"]])
    build.ret(block.values[0])
    return function


def _fill(build: ir.IRBuilder, plan: Plan, given: dict[str, ir.Value], sums: ir.Value) -> None:
    """Begin each sum with its base."""
    kind = plan.vector(DOUBLE)
    with counted(build, number(0), given["n_outputs"]) as output:
        base = broadcast(build, load(build, given["base"], output.index, DOUBLE, DOUBLE), kind)
        start = build.mul(output.index, number(plan.block))
        for vector in range(plan.block // plan.lanes):
            store(build, base, sums, build.add(start, number(vector * plan.lanes)), DOUBLE)


def _add_trees(
    build: ir.IRBuilder, plan: Plan, given: dict[str, ir.Value], tile: ir.Value, sums: ir.Value, vectors: int
) -> None:
    """Add all trees, in order."""
    shape, module = plan.shape, build.module
    with counted(build, number(0), given["n_trees"]) as each:
        tree = element_pointer(build, given["trees"], build.mul(each.index, number(len(TREE_FIELDS))), I64)

        def listed() -> None:
            function = emit_list(module, plan, vectors)
            names = ("thresholds", "words", "places", "values", "sets")
            build.call(function, [tree, tile, sums, *(given[name] for name in names)])

        def walked() -> None:
            function = emit_walk(module, plan, vectors)
            names = ("nodes", "leaves", "values", "sets")
            build.call(function, [tree, tile, sums, *(given[name] for name in names)])

        if shape.has_lists and shape.has_walks:
            depth = load(build, tree, number(len(TREE_FIELDS) - 1), I64, I64)
            with build.if_else(build.icmp_signed("==", depth, number(0))) as (is_list, is_walk):
                with is_list:
                    listed()
                with is_walk:
                    walked()
        elif shape.has_walks:
            walked()
        else:
            listed()


def _emit_load(module: ir.Module, plan: Plan) -> ir.Function:
    """Emit the function that puts the features of some rows into the tile, column by column.

    Rows up to `padded` become 0. Codes of categories become 0 to 256, 256 for unknown ones.
    """
    labels = ("X", "row_stride", "column_stride", "is_single", "features", "n_features", "n_numeric", *_PART)
    kinds = [POINTER, I64, I64, I1, POINTER, *[I64] * 5, POINTER]
    function = declare(module, "ensemble.load", I32, kinds, labels)
    function.linkage = "internal"
    given = dict(zip(labels, function.args, strict=True))
    given["tile"].add_attribute("noalias")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    real, vector = plan.real, plan.vector(plan.real)
    offset = build.mul(given["first"], given["row_stride"])
    with build.if_else(given["is_single"]) as (single, double):
        for branch, element in ((single, FLOAT), (double, DOUBLE)):
            with branch, counted(build, number(0), given["n_features"]) as feature:
                position = load(build, given["features"], feature.index, I64, I64)
                start = build.add(offset, build.mul(position, given["column_stride"]))
                column = element_pointer(build, given["X"], start, element)
                own = element_pointer(build, given["tile"], build.mul(feature.index, number(plan.block)), real)
                with counted(build, number(0), given["rows"]) as row:
                    x = load(build, column, build.mul(row.index, given["row_stride"]), element, element)
                    if element != real:
                        x = (build.fptrunc if real == FLOAT else build.fpext)(x, real)
                    store(build, x, own, row.index, real)
                with counted(build, given["rows"], given["padded"]) as row:
                    store(build, ir.Constant(real, 0.0), own, row.index, real)
    masks = plan.vector(I1)
    with counted(build, number(0), given["n_features"], carried=[ir.Constant(masks, None)] * 2) as feature:
        own = element_pointer(build, given["tile"], build.mul(feature.index, number(plan.block)), real)
        with counted(build, number(0), given["padded"], plan.lanes, carried=feature.values) as group:
            x = load(build, own, group.index, real, vector)
            infinite = build.fcmp_ordered("==", _absolute(build, plan, x), every(vector, float("inf")))
            found = (build.fcmp_unordered("uno", x, x), infinite)
            group.results += [build.or_(before, now) for before, now in zip(group.values, found, strict=True)]
        feature.results += group.values
    found_any = [any_lane(build, mask) for mask in feature.values]
    if plan.shape.has_sets:
        with counted(build, given["n_numeric"], given["n_features"]) as feature:
            own = element_pointer(build, given["tile"], build.mul(feature.index, number(plan.block)), real)
            with counted(build, number(0), given["padded"], plan.lanes) as group:
                x = load(build, own, group.index, real, vector)
                above = build.fcmp_ordered(">=", x, every(vector, 0.0))
                known = build.and_(above, build.fcmp_ordered("<", x, every(vector, float(CODES))))
                store(build, build.select(known, x, every(vector, float(CODES))), own, group.index, real)
    none = ir.Constant(I32, 0)
    bits = (ir.Constant(I32, MISSING), ir.Constant(I32, INFINITE))
    build.ret(build.or_(*[build.select(any_, bit, none) for any_, bit in zip(found_any, bits, strict=True)]))
    return function


def _absolute(build: ir.IRBuilder, plan: Plan, x: ir.Value) -> ir.Value:
    return build.call(intrinsic(build.module, "llvm.fabs", plan.vector(plan.real), 1), [x])
