"""The epilogue of constant fitting: it adds a tile of rows to the normal equations of a least squares fit.

Its columns c are the residual r, 1, the prediction, and the columns of the Jacobian J. It adds up all products
``sum(w * c_i * c_j)``: J^T J, J^T r and the sum of squares are entries of this one matrix, and the Jacobian itself
never leaves the cache. Sums are float64 in a fixed number of lanes, in the order of the rows. Residuals and weights are
those of `working_residuals`.
"""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, counted, declare, horizontal_sum, load, store
from shine.compiler.codegen.moments import LANES, lanes
from shine.compiler.codegen.numbers import splat
from shine.evaluate.gradient.instructions import OPERAND_BYTES, tile_lanes, tile_operand

FIXED_COLUMNS = 3
"""The first columns of the normal equations, before those of the constants: the residual, 1, and the prediction."""

PREDICTION = 2
"""Column of the prediction."""

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZERO = ir.Constant(I64, 0)


def products_function(module: ir.Module, *, weighted: bool) -> ir.Function:
    """Internal function ``products(columns, count, offset, rows, weighing, state, stride)``.

    Parameters
    ----------
    module : ir.Module
    weighted : bool
        Whether the rows' weights `weighing` are read.

    Notes
    -----
    `columns` points to `count` operands as the assembler of the gradient machine writes them; `offset` is the offset of
    the tile in a column of the data, in bytes. `rows` is a multiple of `LANES`. The state is the sum of errors and a
    matrix with `stride` entries per row; the function adds to its lower triangle, and leaves meaningless entries above
    the diagonal.
    """
    name = f"shine.normal.{'weighted' if weighted else 'plain'}"
    labels = ("columns", "count", "offset", "rows", "weighing", "state", "stride")
    if name in module.globals:
        return module.globals[name]
    kinds: list[ir.Type] = [I64 if label in ("count", "offset", "rows", "stride") else POINTER for label in labels]
    function = declare(module, name, ir.VoidType(), kinds, labels)
    function.linkage = "internal"
    function.attributes.add("noinline")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    columns, count, offset, rows, weighing, state, stride = function.args
    products = _Products(build, columns, offset, rows, weighing if weighted else None, state, stride)
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
            left = [tile_lanes(build, base, loop.index, mask, _VECTOR) for base, mask in own]
            right = [tile_lanes(build, base, loop.index, mask, _VECTOR) for base, mask in other]
            found = [build.fmul(a, b) for a in left for b in right]
            if self.weighing is not None:
                weight = lanes(build, self.weighing, loop.index)
                found = [build.fmul(weight, product) for product in found]
            loop.results = [build.fadd(total, each) for total, each in zip(loop.values, found, strict=True)]
        for i in range(height):
            begin = build.add(build.mul(build.add(row, ir.Constant(I64, i)), self.stride), column)
            for j in range(width):
                index = build.add(begin, ir.Constant(I64, 1 + j))
                add_to(build, horizontal_sum(build, loop.values[i * width + j]), self.state, index)

    def _operands(self, first: ir.Value, count: int) -> list[tuple[ir.Value, ir.Value]]:
        build = self.build
        places = [
            build.mul(build.add(first, ir.Constant(I64, i)), ir.Constant(I64, OPERAND_BYTES)) for i in range(count)
        ]
        return [tile_operand(build, self.columns, place, self.offset) for place in places]


def add_to(build: ir.IRBuilder, value: ir.Value, state: ir.Value, index: ir.Value) -> None:
    """Add a number to an entry of a state."""
    before = load(build, state, index, _DOUBLE, _DOUBLE)
    store(build, build.fadd(before, value), state, index, _DOUBLE)
