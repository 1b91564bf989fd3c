"""Code of a tree that is walked from the root, by all rows of some vectors at once, until each is at a leaf."""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, any_lane, declare, element_pointer
from shine.trees.layout import CATEGORICAL, MISSING_LEFT
from shine.trees.parts import DOUBLE, Plan, add_values, every, gather, has_bit, number, tree_fields


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
