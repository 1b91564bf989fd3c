"""The epilogue of constant fitting: what a tile of rows adds to the normal equations of a least squares fit.

For the columns c of the Jacobian, extended by the residual r, by 1 and by the prediction, it adds up all products
``sum(w * c_i * c_j)``: J^T J, J^T r and the sum of squares are entries of this one matrix, and the Jacobian itself
never leaves the cache. Sums are float64 in a fixed number of lanes, in the order of the rows.

Absolute errors are fitted by iteratively reweighted least squares: a row weighs 1 / \\|r\\| besides (Lawson 1961).
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from shine.codegen.blocks import I64, POINTER, counted, declare, element_pointer, horizontal_sum, load, store
from shine.codegen.gradient.instructions import OPERAND_BYTES, tile_operand
from shine.codegen.moments import ERRORS, LANES
from shine.codegen.numbers import splat

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
"""How rows are weighed for least squares to minimize each of `shine.codegen.moments.ERRORS`: a function of the errors,
the least error that counts, and the rows' own weights; None where the rows' own weights are right."""

ERROR_KINDS = tuple(REWEIGHTINGS)
"""The kinds of errors that constants can be fitted by."""


def checked_error_kind(kind: str) -> str:
    """A name of `ERROR_KINDS`.

    Raises
    ------
    ValueError
        If it is none.
    """
    if kind not in ERROR_KINDS:
        raise ValueError(f"no code fits constants by {kind!r} errors; there is code for {', '.join(ERROR_KINDS)}")
    return kind


def normal_function(module: ir.Module, kind: str, *, weighted: bool) -> ir.Function:
    """Internal function ``normal(columns, count, offset, rows, target, weights, line, floor, residual, scratch, state,
    stride)``.

    Parameters
    ----------
    module : ir.Module
    kind : str
        One of `ERROR_KINDS`.
    weighted : bool
        Whether `weights` are read.

    Notes
    -----
    `columns` are `count` operands as the gradient machine's assembler writes them, and `offset` is the tile's place in
    a column of the data, in bytes. `rows` is a multiple of `LANES`. `line` is the intercept and slope of the model,
    the slope first; residuals below `floor` weigh no more than if they were that large. `residual` and `scratch` are
    tiles. The state is the sum of errors and a matrix with `stride` entries a row, whose lower triangle is added to;
    what is above the diagonal may be anything.

    Raises
    ------
    ValueError
        If constants cannot be fitted by the kind.
    """
    reweighting = REWEIGHTINGS[checked_error_kind(kind)]
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
        error = ERRORS[kind](build, left)
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
    """Sums of products of columns, some rows of the matrix by some columns at a time.

    Two by two: what is loaded is used twice, and one sum need not wait for another. Each sum keeps its own lanes and
    the order of the rows, so the blocks change no bit of it.
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
        """Add `height` by `width` sums to the matrix, from one of its entries on."""
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


def _broadcast(build: ir.IRBuilder, value: ir.Value) -> ir.Value:
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = build.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return build.shuffle_vector(first, undefined, splat(ir.VectorType(ir.IntType(32), LANES), 0))
