"""The function of an ensemble: blocks of rows are put into a tile, all trees are added up, and the results written."""

from __future__ import annotations

from collections.abc import Callable

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
from shine.compiler.codegen.vecmath import functions as vecmath
from shine.trees.form import CODES
from shine.trees.layout import (
    CATEGORICAL,
    COUNTS,
    DOUBLE,
    FLOAT,
    I1,
    I32,
    MISSING_LEFT,
    TABLES,
    TREE_FIELDS,
    Plan,
    add_values,
    every,
    gather,
    has_bit,
    number,
    tree_fields,
)


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


def emit_walk(module: ir.Module, plan: Plan, vectors: int) -> ir.Function:
    """Emit ``void f(tree, tile, acc, nodes, leaves, values, sets)`` for some vectors of rows."""
    labels = ("tree", "tile", "acc", "nodes", "leaves", "values", "sets")
    function = declare(module, f"ensemble.walk.{vectors}", ir.VoidType(), [POINTER] * len(labels), labels)
    function.linkage = "internal"
    tree, tile, acc, nodes, leaves, values, sets = function.args
    acc.add_attribute("noalias")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    fields = tree_fields(build, tree)
    # A node has two words of 64 bits.
    thresholds = element_pointer(build, nodes, build.shl(fields["first"], number(1)), I64)
    ways = element_pointer(build, thresholds, number(1), I64)
    index = plan.vector(I64)
    root: ir.Value = ir.Constant(index, None)
    before = build.block
    loop = build.append_basic_block("level")
    done = build.append_basic_block("leaves")
    build.branch(loop)
    build.position_at_end(loop)
    at = [build.phi(index) for _ in range(vectors)]
    following = []
    moved: ir.Value | None = None
    for vector, place in enumerate(at):
        place.add_incoming(root, before)
        column = element_pointer(build, tile, number(vector * plan.lanes), plan.real)
        new = _step(build, plan, thresholds, ways, column, sets, place)
        following.append(new)
        differs = build.icmp_unsigned("!=", new, place)
        moved = differs if moved is None else build.or_(moved, differs)
    for place, new in zip(at, following, strict=True):
        place.add_incoming(new, build.block)
    build.cbranch(any_lane(build, moved), loop, done)
    build.position_at_end(done)
    own = element_pointer(build, leaves, fields["first"], I64)
    add_values(build, plan, fields, values, [gather(build, own, new, I64) for new in following], acc)
    build.ret_void()
    return function


def _step(
    build: ir.IRBuilder,
    plan: Plan,
    thresholds: ir.Value,
    ways: ir.Value,
    column: ir.Value,
    sets: ir.Value,
    place: ir.Value,
) -> ir.Value:
    """The next nodes of a vector of rows."""
    index, doubles = plan.vector(I64), plan.vector(DOUBLE)
    twice = build.shl(place, every(index, 1))
    threshold = gather(build, thresholds, twice, DOUBLE)
    way = gather(build, ways, twice, I64)
    feature = build.and_(way, every(index, MISSING_LEFT - 1))
    lane = ir.Constant(index, list(range(plan.lanes)))
    cell = build.add(build.mul(feature, every(index, plan.block)), lane)
    x = gather(build, column, cell, plan.real)
    if plan.real != DOUBLE:
        x = build.fpext(x, doubles)

    def has(flag: int) -> ir.Value:
        return build.icmp_unsigned("!=", build.and_(way, every(index, flag)), every(index, 0))

    missing = build.and_(build.fcmp_unordered("uno", x, x), has(MISSING_LEFT))
    goes_left = build.or_(build.fcmp_ordered("<=", x, threshold), missing)
    if plan.shape.has_sets:
        by_set, none = has(CATEGORICAL), every(doubles, 0.0)
        first, code = (build.fptosi(build.select(by_set, each, none), index) for each in (threshold, x))
        found = has_bit(build, sets, first, code, by_set)
        goes_left = build.select(by_set, found, goes_left)
    one = build.select(goes_left, every(index, 0), every(index, 1))
    return build.add(build.lshr(way, every(index, 32)), one)


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
    arguments = dict(zip(CORE, function.args, strict=True))
    arguments["y"].add_attribute("noalias")
    arguments["arena"].add_attribute("noalias")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    tile = arguments["arena"]
    sums = element_pointer(build, tile, build.mul(arguments["n_features"], number(plan.block)), plan.real)
    loader = _emit_load(module, plan)
    finish = emit_link(module, plan)
    with counted(build, number(0), arguments["n_rows"], plan.block, carried=[ir.Constant(I32, 0)]) as block:
        left = build.sub(arguments["n_rows"], block.index)
        rows = build.select(build.icmp_signed("<", left, number(plan.block)), left, number(plan.block))
        is_short = build.icmp_signed("<=", rows, number(plan.lanes))
        padded = build.select(is_short, number(plan.lanes), number(plan.block))
        flags = build.call(
            loader,
            [
                *(arguments[name] for name in ("X", "row_stride", "column_stride", "is_single", "features")),
                *(arguments[name] for name in ("n_features", "n_numeric")),
                *(block.index, rows, padded, tile),
            ],
        )
        block.results.append(build.or_(block.values[0], flags))
        _fill(build, plan, arguments, sums)
        with build.if_else(is_short) as (short, whole):
            with short:
                _add_trees(build, plan, arguments, tile, sums, 1)
            with whole:
                _add_trees(build, plan, arguments, tile, sums, plan.block // plan.lanes)
        build.call(finish, [sums, arguments["y"], block.index, rows, arguments["n_outputs"], arguments["divisor"]])
    build.ret(block.values[0])
    return function


def _fill(build: ir.IRBuilder, plan: Plan, arguments: dict[str, ir.Value], sums: ir.Value) -> None:
    """Begin each sum with its base."""
    kind = plan.vector(DOUBLE)
    with counted(build, number(0), arguments["n_outputs"]) as output:
        base = broadcast(build, load(build, arguments["base"], output.index, DOUBLE, DOUBLE), kind)
        start = build.mul(output.index, number(plan.block))
        for vector in range(plan.block // plan.lanes):
            store(build, base, sums, build.add(start, number(vector * plan.lanes)), DOUBLE)


def _add_trees(
    build: ir.IRBuilder, plan: Plan, arguments: dict[str, ir.Value], tile: ir.Value, sums: ir.Value, vectors: int
) -> None:
    """Add all trees, in order."""
    shape, module = plan.shape, build.module
    with counted(build, number(0), arguments["n_trees"]) as each:
        tree = element_pointer(build, arguments["trees"], build.mul(each.index, number(len(TREE_FIELDS))), I64)

        def listed() -> None:
            function = emit_list(module, plan, vectors)
            names = ("thresholds", "words", "places", "values", "sets")
            build.call(function, [tree, tile, sums, *(arguments[name] for name in names)])

        def walked() -> None:
            function = emit_walk(module, plan, vectors)
            names = ("nodes", "leaves", "values", "sets")
            build.call(function, [tree, tile, sums, *(arguments[name] for name in names)])

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
    arguments = dict(zip(labels, function.args, strict=True))
    arguments["tile"].add_attribute("noalias")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    real, vector = plan.real, plan.vector(plan.real)
    offset = build.mul(arguments["first"], arguments["row_stride"])
    with build.if_else(arguments["is_single"]) as (single, double):
        for branch, element in ((single, FLOAT), (double, DOUBLE)):
            with branch, counted(build, number(0), arguments["n_features"]) as feature:
                position = load(build, arguments["features"], feature.index, I64, I64)
                start = build.add(offset, build.mul(position, arguments["column_stride"]))
                column = element_pointer(build, arguments["X"], start, element)
                own = element_pointer(build, arguments["tile"], build.mul(feature.index, number(plan.block)), real)
                with counted(build, number(0), arguments["rows"]) as row:
                    x = load(build, column, build.mul(row.index, arguments["row_stride"]), element, element)
                    if element != real:
                        x = (build.fptrunc if real == FLOAT else build.fpext)(x, real)
                    store(build, x, own, row.index, real)
                with counted(build, arguments["rows"], arguments["padded"]) as row:
                    store(build, ir.Constant(real, 0.0), own, row.index, real)
    masks = plan.vector(I1)
    with counted(build, number(0), arguments["n_features"], carried=[ir.Constant(masks, None)] * 2) as feature:
        own = element_pointer(build, arguments["tile"], build.mul(feature.index, number(plan.block)), real)
        with counted(build, number(0), arguments["padded"], plan.lanes, carried=feature.values) as group:
            x = load(build, own, group.index, real, vector)
            infinite = build.fcmp_ordered("==", _absolute(build, plan, x), every(vector, float("inf")))
            found = (build.fcmp_unordered("uno", x, x), infinite)
            group.results += [build.or_(before, now) for before, now in zip(group.values, found, strict=True)]
        feature.results += group.values
    found_any = [any_lane(build, mask) for mask in feature.values]
    if plan.shape.has_sets:
        with counted(build, arguments["n_numeric"], arguments["n_features"]) as feature:
            own = element_pointer(build, arguments["tile"], build.mul(feature.index, number(plan.block)), real)
            with counted(build, number(0), arguments["padded"], plan.lanes) as group:
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
