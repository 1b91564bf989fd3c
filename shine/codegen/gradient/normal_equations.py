"""The epilogue of constant fitting: it adds a tile of rows to the normal equations of a least squares fit.

Its columns c are the residual r, 1, the prediction, and the columns of the Jacobian J. It adds up all products
``sum(w * c_i * c_j)``: J^T J, J^T r and the sum of squares are entries of this one matrix, and the Jacobian itself
never leaves the cache. Sums are float64 in a fixed number of lanes, in the order of the rows.

Absolute errors are fitted by iteratively reweighted least squares (Lawson 1961): the weight of each row is divided by
its error.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from shine.codegen.blocks import (
    I64,
    POINTER,
    broadcast,
    counted,
    declare,
    element_pointer,
    horizontal_sum,
    load,
    store,
)
from shine.codegen.gradient.instructions import OPERAND_BYTES, tile_operand
from shine.codegen.moments import LANES, checked_kind, error_rule
from shine.codegen.numbers import splat

FIXED_COLUMNS = 3
"""The first columns of the normal equations, before those of the constants: the residual, 1, and the prediction."""

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZERO = ir.Constant(I64, 0)
_BYTE = ir.IntType(8)

_PREDICTION = 2


def _by_inverse(build: ir.IRBuilder, error: ir.Value, least: ir.Value, weight: ir.Value | None) -> ir.Value:
    most = build.select(build.fcmp_ordered(">", error, least), error, least)
    return build.fdiv(weight or splat(_VECTOR, 1.0), most)


REWEIGHTINGS: dict[str, Callable[[ir.IRBuilder, ir.Value, ir.Value, ir.Value | None], ir.Value] | None] = {
    "squared": None,
    "absolute": _by_inverse,
}
"""How rows are weighted so that least squares minimizes each kind of errors in `shine.codegen.moments.ERRORS`: a
function of the errors, the least error that counts, and the rows' own weights; None leaves the rows' own weights."""


def checked_error_kind(kind: str) -> str:
    """`kind`, if it is a name of `REWEIGHTINGS`; else a `ValueError`."""
    return checked_kind(kind, REWEIGHTINGS, "fits constants by")


def normal_function(module: ir.Module, kind: str, *, weighted: bool) -> ir.Function:
    """Internal function ``normal(columns, count, offset, rows, target, weights, line, floor, residual, scratch, state,
    stride)``.

    Parameters
    ----------
    module : ir.Module
    kind : str
        One of `REWEIGHTINGS`.
    weighted : bool
        Whether `weights` are read.

    Notes
    -----
    `columns` points to `count` operands as the assembler of the gradient machine writes them; `offset` is the offset of
    the tile in a column of the data, in bytes. `rows` is a multiple of `LANES`. `line` is the slope and the intercept
    of the model. Errors below `floor` count as `floor` in the weights. `residual` and `scratch` are tiles. The state is
    the sum of errors and a matrix with `stride` entries per row; the function adds to its lower triangle, and leaves
    meaningless entries above the diagonal.
    """
    reweighting, emit_error = REWEIGHTINGS[checked_error_kind(kind)], error_rule(kind)
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
    slope, intercept = (
        broadcast(build, load(build, line, ir.Constant(I64, i), _DOUBLE, _DOUBLE), _VECTOR) for i in (0, 1)
    )
    least = broadcast(build, load(build, floor, _ZERO, _DOUBLE, _DOUBLE), _VECTOR)
    prediction, step_mask = tile_operand(build, columns, OPERAND_BYTES * _PREDICTION, offset)
    with counted(build, _ZERO, rows, LANES, [splat(_VECTOR, 0.0)]) as loop:
        value = _lanes(build, prediction, loop.index, step_mask)
        model = build.fadd(intercept, build.fmul(slope, value))
        left = build.fsub(load(build, target, loop.index, _DOUBLE, _VECTOR), model)
        store(build, left, residual, loop.index, _DOUBLE)
        weight = load(build, weights, loop.index, _DOUBLE, _VECTOR) if weighted else None
        error = emit_error(build, left)
        if reweighting is not None:
            store(build, reweighting(build, error, least, weight), scratch, loop.index, _DOUBLE)
        error = error if weight is None else build.fmul(weight, error)
        loop.results = [build.fadd(loop.values[0], error)]
    _add(build, horizontal_sum(build, loop.values[0]), state, _ZERO)
    weighing = scratch if reweighting is not None else weights if weighted else None
    products = _Products(build, columns, offset, rows, weighing, state, stride)
    two = ir.Constant(I64, 2)
    pairs = build.and_(count, ir.Constant(I64, -2))
    with counted(build, _ZERO, pairs, 2) as row, counted(build, _ZERO, build.add(row.index, two), 2) as column:
        products.add(row.index, 2, column.index, 2)
    with build.if_then(build.icmp_unsigned("!=", pairs, count)):
        with counted(build, _ZERO, pairs, 2) as column:
            products.add(pairs, 1, column.index, 2)
        products.add(pairs, 1, pairs, 1)
    build.ret_void()
    return function


class _Products:
    """Sums of products of columns, a block of two by two entries of the matrix at a time.

    Each value that is loaded is used twice, and no sum waits for another. Each sum keeps its own lanes and the order of
    the rows, so the blocks change no bit.
    """

    def __init__(
        self,
        build: ir.IRBuilder,
        columns: ir.Value,
        offset: ir.Value,
        rows: ir.Value,
        weighing: ir.Value | None,
        state: ir.Value,
        stride: ir.Value,
    ) -> None:
        self.build, self.columns, self.offset, self.rows = build, columns, offset, rows
        self.weighing, self.state, self.stride = weighing, state, stride

    def add(self, row: ir.Value, height: int, column: ir.Value, width: int) -> None:
        """Add to a block of `height` by `width` entries of the matrix that begins at `row` and `column`."""
        build = self.build
        own, other = self._operands(row, height), self._operands(column, width)
        none = [splat(_VECTOR, 0.0)] * (height * width)
        with counted(build, _ZERO, self.rows, LANES, none) as loop:
            left = [_lanes(build, base, loop.index, mask) for base, mask in own]
            right = [_lanes(build, base, loop.index, mask) for base, mask in other]
            found = [build.fmul(a, b) for a in left for b in right]
            if self.weighing is not None:
                weight = load(build, self.weighing, loop.index, _DOUBLE, _VECTOR)
                found = [build.fmul(weight, product) for product in found]
            loop.results = [build.fadd(total, each) for total, each in zip(loop.values, found, strict=True)]
        for i in range(height):
            begin = build.add(build.mul(build.add(row, ir.Constant(I64, i)), self.stride), column)
            for j in range(width):
                index = build.add(begin, ir.Constant(I64, 1 + j))
                _add(build, horizontal_sum(build, loop.values[i * width + j]), self.state, index)

    def _operands(self, first: ir.Value, count: int) -> list[tuple[ir.Value, ir.Value]]:
        build = self.build
        places = [
            build.mul(build.add(first, ir.Constant(I64, i)), ir.Constant(I64, OPERAND_BYTES)) for i in range(count)
        ]
        return [tile_operand(build, self.columns, place, self.offset) for place in places]


def _lanes(build: ir.IRBuilder, base: ir.Value, row: ir.Value, step_mask: ir.Value) -> ir.Value:
    step = build.and_(build.mul(row, ir.Constant(I64, 8)), step_mask)
    return build.load(element_pointer(build, base, step, _BYTE), typ=_VECTOR, align=8)


def _add(build: ir.IRBuilder, value: ir.Value, state: ir.Value, index: ir.Value) -> None:
    before = load(build, state, index, _DOUBLE, _DOUBLE)
    store(build, build.fadd(before, value), state, index, _DOUBLE)
