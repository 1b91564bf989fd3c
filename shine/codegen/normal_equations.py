"""The epilogue of constant fitting: what a tile of rows adds to the normal equations of a least squares fit.

For the columns c of the Jacobian, extended by the residual r, by 1 and by the prediction, it adds up all products
``sum(w * c_i * c_j)``: J^T J, J^T r and the sum of squares are entries of this one matrix, and the Jacobian itself
never leaves the cache. Sums are float64 in a fixed number of lanes, in the order of the rows.

Absolute errors are fitted by iteratively reweighted least squares: a row weighs 1 / \\|r\\| besides (Lawson 1961).
"""

from __future__ import annotations

from llvmlite import ir

from shine.codegen.blocks import (
    I64,
    POINTER,
    counted,
    declare,
    element_pointer,
    horizontal_sum,
    intrinsic,
    load,
    store,
)
from shine.codegen.gradient_instructions import OPERAND_BYTES, tile_operand
from shine.codegen.moments import LANES
from shine.codegen.numbers import splat

ERROR_KINDS = ("squared", "absolute")
"""Errors whose sum is minimized."""

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZERO = ir.Constant(I64, 0)
_BYTE = ir.IntType(8)

_PREDICTION = 2


def normal_function(module: ir.Module, kind: str, *, weighted: bool) -> ir.Function:
    """Internal function ``normal(columns, count, offset, rows, target, weights, line, floor, residual, scratch, state,
    stride)``.

    Parameters
    ----------
    module : ir.Module
    kind : {"squared", "absolute"}
    weighted : bool
        Whether `weights` are read.

    Notes
    -----
    `columns` are `count` operands as the gradient machine's assembler writes them, and `offset` is the tile's place in
    a column of the data, in bytes. `rows` is a multiple of `LANES`. `line` is the intercept and slope of the model,
    the slope first; residuals below `floor` weigh no more than if they were that large. `residual` and `scratch` are
    tiles. The state is the sum of errors and a matrix with `stride` entries a row, whose lower triangle is added to.
    """
    name = f"shine.normal.{kind}.{'weighted' if weighted else 'plain'}"
    labels = (
        "columns", "count", "offset", "rows", "target", "weights", "line", "floor", "residual", "scratch", "state",
        "stride",
    )  # fmt: skip
    if name in module.globals:
        return module.globals[name]
    kinds: list[ir.Type] = [I64 if label in ("count", "offset", "rows", "stride") else POINTER for label in labels]
    function = declare(module, name, ir.VoidType(), kinds, labels)
    function.linkage = "internal"
    function.attributes.add("noinline")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    columns, count, offset, rows, target, weights, line, floor, residual, scratch, state, stride = function.args
    slope, intercept = (_broadcast(build, load(build, line, ir.Constant(I64, i), _DOUBLE, _DOUBLE)) for i in (0, 1))
    least = _broadcast(build, load(build, floor, _ZERO, _DOUBLE, _DOUBLE))
    prediction, step_mask = tile_operand(build, columns, OPERAND_BYTES * _PREDICTION, offset)
    with counted(build, _ZERO, rows, LANES, [splat(_VECTOR, 0.0)]) as loop:
        value = _lanes(build, prediction, loop.index, step_mask)
        model = build.fadd(intercept, build.fmul(slope, value))
        left = build.fsub(load(build, target, loop.index, _DOUBLE, _VECTOR), model)
        store(build, left, residual, loop.index, _DOUBLE)
        weight = load(build, weights, loop.index, _DOUBLE, _VECTOR) if weighted else None
        if kind == "squared":
            error = build.fmul(left, left)
        else:
            error = build.call(intrinsic(module, "llvm.fabs", _VECTOR, 1), [left])
            most = build.select(build.fcmp_ordered(">", error, least), error, least)
            store(build, build.fdiv(weight or splat(_VECTOR, 1.0), most), scratch, loop.index, _DOUBLE)
        error = error if weight is None else build.fmul(weight, error)
        loop.results = [build.fadd(loop.values[0], error)]
    _add(build, horizontal_sum(build, loop.values[0]), state, _ZERO)
    weighing = scratch if kind == "absolute" else weights if weighted else None
    with counted(build, _ZERO, count) as row:
        own = tile_operand(build, columns, build.mul(row.index, ir.Constant(I64, OPERAND_BYTES)), offset)
        begin = build.add(build.mul(row.index, stride), ir.Constant(I64, 1))
        with counted(build, _ZERO, build.add(row.index, ir.Constant(I64, 1))) as column:
            other = tile_operand(build, columns, build.mul(column.index, ir.Constant(I64, OPERAND_BYTES)), offset)
            with counted(build, _ZERO, rows, LANES, [splat(_VECTOR, 0.0)]) as loop:
                product = build.fmul(*(_lanes(build, base, loop.index, mask) for base, mask in (own, other)))
                if weighing is not None:
                    product = build.fmul(load(build, weighing, loop.index, _DOUBLE, _VECTOR), product)
                loop.results = [build.fadd(loop.values[0], product)]
            _add(build, horizontal_sum(build, loop.values[0]), state, build.add(begin, column.index))
    build.ret_void()
    return function


def _lanes(build: ir.IRBuilder, base: ir.Value, row: ir.Value, step_mask: ir.Value) -> ir.Value:
    step = build.and_(build.mul(row, ir.Constant(I64, 8)), step_mask)
    return build.load(element_pointer(build, base, step, _BYTE), typ=_VECTOR, align=8)


def _add(build: ir.IRBuilder, value: ir.Value, state: ir.Value, index: ir.Value) -> None:
    before = load(build, state, index, _DOUBLE, _DOUBLE)
    store(build, build.fadd(before, value), state, index, _DOUBLE)


def _broadcast(build: ir.IRBuilder, value: ir.Value) -> ir.Value:
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = build.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return build.shuffle_vector(first, undefined, splat(ir.VectorType(ir.IntType(32), LANES), 0))
