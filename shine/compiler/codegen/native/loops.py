"""The loop over the rows of a data set, compiled together with the formulas: predictions and fitness.

The loop takes a vector of rows at a time. The rows after the last full vector are copied into one first, so that one
body serves all rows, and a row gets the same bits at any position.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llvmlite import ir

from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    FunctionPointer,
    any_lane,
    counted,
    declare,
    element_pointer,
    load,
    stack,
    store,
)
from shine.compiler.codegen.moments import (
    CHUNK,
    CHUNK_FIELDS,
    ERRORS,
    LANES,
    TILE_BYTES,
    products_function,
    scale_rows,
)
from shine.compiler.codegen.native.astjit import AstJit
from shine.compiler.codegen.numbers import Numbers
from shine.lang.forms.tree import Tree

VECTOR_BYTES = 64
"""Bytes of a row vector: one AVX-512 register, two of AVX2 or four of NEON, so that several chains are in flight."""

STATE = LANES
"""Numbers in the state of an individual: the lanes of a sum of errors, or the moments and unused numbers."""

_BOOL, _BYTE = ir.IntType(1), ir.IntType(8)
_BODY = FunctionPointer(ir.FunctionType(_BOOL, [POINTER, I64, POINTER, I64]))
_SHARED = ("errors", "weighted", "columns", "target", "weights", "loss_columns", "rows")
_ZERO, _ONE = ir.Constant(I64, 0), ir.Constant(I64, 1)


def row_numbers(dtype: str) -> Numbers:
    """A number type at the width of a vector of rows."""
    return Numbers(dtype, VECTOR_BYTES // np.dtype(dtype).itemsize)


def emit_predict(module: ir.Module, tree: Tree, name: str, dtype: str) -> None:
    """Emit the function of all rows, ``i8 name(columns, out, rows)``; 1 if an integer division failed.

    ``columns`` points to a pointer for each parameter, to contiguous values.
    """
    body = _emit_body(module, tree, f"{name}.rows", row_numbers(dtype))
    function = declare(module, name, _BYTE, [POINTER, POINTER, I64], ("columns", "out", "rows"))
    columns, out, rows = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    tile = _tile_function(module, row_numbers(dtype), len(tree.parameters))
    builder.ret(builder.zext(builder.call(tile, [body, columns, _ZERO, out, rows]), _BYTE))


def emit_fitness(module: ir.Module, trees: Sequence[Tree], name: str, dtype: str) -> None:
    """Emit the fitness of some trees.

    ``i8 name(which, count, errors, weighted, columns, target, weights, loss_columns, rows, lines, known, states)`` runs
    the `count` trees at the i64 positions `which`, each in one pass over the data: it predicts a tile of rows, then
    adds it to the tree's state. `errors` has the addresses of the functions of `shine.evaluate.losses.row_errors`; if
    it is 0, moments are added up. `weighted` says whether any weight is not 1. `lines` holds a slope and an intercept
    for each of the `count`; the moments are those of float64 predictions times the slope. `known` holds the
    `shine.compiler.codegen.moments.CHUNK_FIELDS` of each chunk. Target, weights and the columns at the addresses
    `loss_columns` are float64, padded to a multiple of `LANES` rows with weights of 0. A state is `STATE` float64, zero
    at the start. All trees have the same parameters. The result is 1 if an integer division failed.
    """
    numbers = row_numbers(dtype)
    bodies = [_emit_body(module, tree, f"{name}.rows.{i}", numbers) for i, tree in enumerate(trees)]
    table_type = ir.ArrayType(POINTER, len(bodies))
    table = ir.GlobalVariable(module, table_type, f"{name}.individuals")
    table.type = POINTER
    table.linkage, table.global_constant = "internal", True
    table.initializer = ir.Constant(table_type, bodies)
    individual = _individual_function(module, numbers, len(trees[0].parameters))
    labels = ("which", "count", *_SHARED, "lines", "known", "states")
    kinds = [I64 if label in ("count", "weighted", "rows") else POINTER for label in labels]
    function = declare(module, name, _BYTE, kinds, labels)
    which, count, *shared, lines, known, states = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    with counted(builder, _ZERO, count, carried=[ir.Constant(_BOOL, 0)]) as loop:
        position = load(builder, which, loop.index, I64, I64)
        body = load(builder, table, position, POINTER, _BODY)
        line = _double_at(builder, lines, builder.mul(loop.index, ir.Constant(I64, 2)))
        state = _double_at(builder, states, builder.mul(loop.index, ir.Constant(I64, STATE)))
        failed = builder.call(individual, [body, *shared, line, known, state])
        loop.results = [builder.or_(loop.values[0], failed)]
    builder.ret(builder.zext(loop.values[0], _BYTE))


def _double_at(builder: ir.IRBuilder, pointer: ir.Value, index: ir.Value) -> ir.Value:
    return element_pointer(builder, pointer, index, ir.DoubleType())


def _emit_body(module: ir.Module, tree: Tree, name: str, numbers: Numbers) -> ir.Function:
    """Internal function of one formula over full vectors of rows: ``i1 name(columns, start, out, vectors)``."""
    labels = ("columns", "start", "out", "vectors")
    function = declare(module, name, _BOOL, [POINTER, I64, POINTER, I64], labels)
    function.linkage = "internal"
    # Nothing is read through this pointer, so LLVM may load the addresses of columns before the loop.
    function.args[2].add_attribute("noalias")
    columns, start, out, vectors = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    builder.ret(_emit_loop(builder, tree, numbers, columns, start, out, vectors))
    return function


def _emit_loop(
    builder: ir.IRBuilder,
    tree: Tree,
    numbers: Numbers,
    columns: ir.Value,
    start: ir.Value,
    out: ir.Value,
    vectors: ir.Value,
) -> ir.Value:
    """The loop over full vectors of rows, from row `start` on; whether an integer division failed."""
    pointers = {
        position: load(builder, columns, ir.Constant(I64, position), POINTER, POINTER)
        for position, name in enumerate(tree.parameters)
        if name in tree.used_parameters
    }
    width = ir.Constant(I64, numbers.width)
    with counted(builder, _ZERO, vectors, carried=[ir.Constant(_BOOL, 0)]) as loop:
        offset = builder.mul(loop.index, width)
        row = builder.add(start, offset)
        arguments = [
            load(builder, pointers[position], row, numbers.element, numbers.type)
            if position in pointers
            else ir.Constant(numbers.type, ir.Undefined)
            for position in range(len(tree.parameters))
        ]
        jit = AstJit(builder, numbers)
        store(builder, jit.lower(tree, arguments), out, offset, numbers.element)
        failed = loop.values[0]
        loop.results = [failed if jit.failed is None else builder.or_(failed, any_lane(builder, jit.failed))]
    return loop.values[0]


def _tile_function(module: ir.Module, numbers: Numbers, parameters: int) -> ir.Function:
    """Internal function that runs a body over any number of rows: ``i1 tile(body, columns, start, out, rows)``."""
    name = f"shine.tile.{numbers.dtype}"
    if name in module.globals:
        return module.globals[name]
    labels = ("body", "columns", "start", "out", "rows")
    function = declare(module, name, _BOOL, [_BODY, POINTER, I64, POINTER, I64], labels)
    function.linkage = "internal"
    body, columns, start, out, rows = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    width = ir.Constant(I64, numbers.width)
    vectors = builder.udiv(rows, width)
    failed = builder.call(body, [columns, start, out, vectors])
    done = builder.mul(vectors, width)
    rest = builder.sub(rows, done)
    some = builder.zext(builder.icmp_unsigned("!=", rest, _ZERO), I64)
    copy = _Remainder(builder, numbers, parameters)
    with counted(builder, _ZERO, some, carried=[failed]) as loop:
        copy.read(columns, builder.add(start, done), rest)
        failed_rest = builder.call(body, [copy.columns, _ZERO, copy.out, _ONE])
        copy.write(out, done, rest)
        loop.results = [builder.or_(loop.values[0], failed_rest)]
    builder.ret(loop.values[0])
    return function


class _Remainder:
    """The rows after the last full vector, copied into a vector whose free lanes repeat the last row."""

    def __init__(self, builder: ir.IRBuilder, numbers: Numbers, parameters: int) -> None:
        self.builder, self.numbers, self.parameters = builder, numbers, ir.Constant(I64, parameters)
        self.width = ir.Constant(I64, numbers.width)
        self.columns = stack(builder, POINTER, max(parameters, 1))
        self.values = stack(builder, numbers.element, max(parameters, 1) * numbers.width)
        self.out = stack(builder, numbers.element, numbers.width)

    def read(self, columns: ir.Value, first: ir.Value, rest: ir.Value) -> None:
        build, element = self.builder, self.numbers.element
        last = build.sub(rest, _ONE)
        with counted(build, _ZERO, self.parameters) as column:
            source = load(build, columns, column.index, POINTER, POINTER)
            copied = element_pointer(build, self.values, build.mul(column.index, self.width), element)
            store(build, copied, self.columns, column.index, POINTER)
            with counted(build, _ZERO, self.width) as lane:
                beyond = build.icmp_signed(">", lane.index, last)
                row = build.add(first, build.select(beyond, last, lane.index))
                store(build, load(build, source, row, element, element), copied, lane.index, element)

    def write(self, out: ir.Value, first: ir.Value, rest: ir.Value) -> None:
        build, element = self.builder, self.numbers.element
        with counted(build, _ZERO, rest) as lane:
            value = load(build, self.out, lane.index, element, element)
            store(build, value, out, build.add(first, lane.index), element)


def _individual_function(module: ir.Module, numbers: Numbers, parameters: int) -> ir.Function:
    """Internal function: adds all rows to the state of one individual; true if an integer division failed."""
    labels = ("body", *_SHARED, "line", "known", "state")
    special = {"body": _BODY, "weighted": I64, "rows": I64}
    kinds = [special.get(label, POINTER) for label in labels]
    function = declare(module, f"shine.individual.{numbers.dtype}", _BOOL, kinds, labels)
    function.linkage = "internal"
    body, errors, weighted, columns, target, weights, loss_columns, rows, line, known, state = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    step = TILE_BYTES // numbers.bytes
    buffer = stack(builder, numbers.element, step)
    tile = _tile_function(module, numbers, parameters)
    moments = builder.icmp_unsigned("==", builder.ptrtoint(errors, I64), _ZERO)
    with counted(builder, _ZERO, rows, step, [ir.Constant(_BOOL, 0)]) as loop:
        left = builder.sub(rows, loop.index)
        whole = builder.icmp_signed(">", left, ir.Constant(I64, step))
        count = builder.select(whole, ir.Constant(I64, step), left)
        failed = builder.call(tile, [body, columns, loop.index, buffer, count])
        padded = builder.and_(builder.add(count, ir.Constant(I64, LANES - 1)), ir.Constant(I64, -LANES))
        with counted(builder, count, padded) as lane:
            # The weight of padding is 0, so any finite number will do: the last prediction is finite if the loss is.
            last = load(builder, buffer, builder.sub(count, _ONE), numbers.element, numbers.element)
            store(builder, last, buffer, lane.index, numbers.element)
        with builder.if_else(moments) as (adds_moments, adds_errors):
            with adds_moments:
                if numbers.dtype == "float64":
                    scale_rows(builder, buffer, padded, load(builder, line, _ZERO, ir.DoubleType(), ir.DoubleType()))
                with counted(builder, _ZERO, padded, CHUNK) as chunk:
                    row = builder.add(loop.index, chunk.index)
                    rest = builder.sub(padded, chunk.index)
                    full = builder.icmp_signed(">", rest, ir.Constant(I64, CHUNK))
                    here = [_double_at(builder, pointer, row) for pointer in (target, weights)]
                    fields = builder.mul(
                        builder.udiv(row, ir.Constant(I64, CHUNK)), ir.Constant(I64, len(CHUNK_FIELDS))
                    )
                    own = [element_pointer(builder, buffer, chunk.index, numbers.element), *here]
                    own.append(builder.select(full, ir.Constant(I64, CHUNK), rest))
                    builder.call(products_function(module, numbers), [*own, _double_at(builder, known, fields), state])
            with adds_errors:
                here = [_double_at(builder, pointer, loop.index) for pointer in (target, weights)]
                # Of the functions with a line, the one with weights if there are any, or padding.
                weigh = builder.icmp_unsigned("!=", builder.or_(weighted, builder.sub(padded, count)), _ZERO)
                variant = builder.select(weigh, ir.Constant(I64, 3), _ONE)
                add = load(builder, errors, variant, POINTER, ERRORS, 8)
                builder.call(add, [buffer, *here, padded, line, loss_columns, loop.index, state])
        loop.results = [builder.or_(loop.values[0], failed)]
    builder.ret(loop.values[0])
    return function
