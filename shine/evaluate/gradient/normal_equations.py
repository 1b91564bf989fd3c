"""Runs an individual's instructions over rows, and adds each tile to the normal equations of a least squares fit.

The columns c of the equations are the residual r, 1, the prediction, and the columns of the Jacobian J. All products
``sum(w * c_i * c_j)`` are added up: J^T J, J^T r and the sum of squares are entries of this one matrix, and the
Jacobian itself never leaves the cache. Sums are float64 in a fixed number of lanes, in the order of the rows. Residuals
and weights are those of `working_residuals`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, Variables, counted, declare, horizontal_sum, load, number, store
from shine.compiler.codegen.moments import LANES, lanes
from shine.compiler.codegen.numbers import splat
from shine.evaluate.gradient.instructions import OPERAND_BYTES, tile_lanes, tile_operand
from shine.evaluate.gradient.working_residuals import RESIDUALS
from shine.evaluate.machine.instructions import HANDLER_POINTER
from shine.evaluate.machine.job import Job, job_entry
from shine.evaluate.machine.tiles import ROW_GROUP, padded_rows, tile_length
from shine.lang.forms.primitives import CONSTANT

FIXED_COLUMNS = 3
"""The first columns of the normal equations, before those of the constants: the residual, 1, and the prediction."""

PREDICTION = 2
"""Column of the prediction."""

SHORTEST_TILE = ROW_GROUP * 8
"""Bytes of the shortest tile."""

_BYTE, _DOUBLE = ir.IntType(8), ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZERO = ir.Constant(I64, 0)


@dataclass(frozen=True)
class Sums:
    """Running sums of a pass over rows.

    Parameters
    ----------
    line : ir.Value
        Address of the slope and the intercept.
    limit : ir.Value
        Sum of errors beyond which the run ends, if errors are never negative.
    state : ir.Value
        Address of the sum of errors and the matrix of the normal equations.
    """

    line: ir.Value
    limit: ir.Value
    state: ir.Value


class Assembled:
    """An individual whose tape is assembled when this is made.

    Parameters
    ----------
    build : ir.IRBuilder
    assemble : ir.Function
    job : Job
    individual : ir.Value
    wanted : Variables
        A run goes on while `further` is not 0; `tiles` is overwritten.
    """

    def __init__(
        self, build: ir.IRBuilder, assemble: ir.Function, job: Job, individual: ir.Value, wanted: Variables
    ) -> None:
        self.build, self.job, self.wanted = build, job, wanted
        row = build.mul(individual, job["width"])
        codes, values = job_entry(build, job, "codes", row, 2), job_entry(build, job, "values", row, 8)
        size = load(build, job_entry(build, job, "sizes", individual, 8), number(0), I64, I64)
        # A function needs two tiles, for its value and its adjoint; a constant needs one, for its adjoint.
        wanted["tiles"] = 0
        with counted(build, number(0), size) as node:
            code = build.zext(load(build, codes, node.index, ir.IntType(16), ir.IntType(16)), I64)
            is_function = build.zext(build.icmp_unsigned(">=", code, job["functions"]), I64)
            is_constant = build.zext(build.icmp_unsigned("==", code, number(CONSTANT)), I64)
            tiles = build.add(wanted["tiles"], build.add(is_constant, build.shl(is_function, number(1))))
            wanted["tiles"] = tiles
        length = self.length = tile_length(build, wanted["tiles"], SHORTEST_TILE)
        memory = ("columns", "derived", "instructions", "nodes", "constants", "tiles")
        pointers = [build.inttoptr(job[field], POINTER) for field in memory]
        normal = build.inttoptr(job["normal"], POINTER)
        rest = (*pointers, length, normal, job["most"], job["residual"])
        self.columns = build.call(assemble, [codes, values, size, job["functions"], *rest])
        """Number of columns of the normal equations."""

    def run(self, origin: ir.Value, begin: ir.Value, end: ir.Value, sums: Sums) -> None:
        """Run the instructions over some rows, tile after tile, until the errors exceed the limit.

        `origin` is the row that the columns of the data begin with.
        """
        build, job, length = self.build, self.job, self.length
        first = build.inttoptr(job["instructions"], POINTER)
        handler = load(build, first, number(0), _BYTE, HANDLER_POINTER, 8)
        step = build.udiv(length, number(8))
        with (
            counted(build, begin, end, step) as tile,
            build.if_then(build.icmp_unsigned("!=", self.wanted["further"], number(0))),
        ):
            left = build.sub(end, tile.index)
            rows = build.select(build.icmp_unsigned("<", left, step), left, step)
            offset = build.mul(build.sub(tile.index, origin), number(8))
            build.call(handler, [first, offset, build.mul(padded_rows(build, rows), number(8))])
            self._add_tile(tile.index, offset, rows, sums)
            total = load(build, sums.state, number(0), _DOUBLE, _DOUBLE)
            # A NaN sum also ends the evaluation: it stays NaN.
            bounded = build.icmp_unsigned("!=", job["bounded"], number(0))
            most = build.select(bounded, sums.limit, ir.Constant(_DOUBLE, math.inf))
            self.wanted["further"] = build.zext(build.fcmp_ordered("<=", total, most), I64)

    def _add_tile(self, first: ir.Value, offset: ir.Value, rows: ir.Value, sums: Sums) -> None:
        """Add the errors and the normal equations of a tile; its first row is the row `first`."""
        build, job = self.build, self.job
        padded = build.and_(build.add(rows, number(LANES - 1)), number(-LANES))
        # Padding rows have weight 0.
        own = build.icmp_unsigned("!=", build.or_(job["weighted"], build.sub(padded, rows)), number(0))
        reweighted = build.icmp_unsigned("!=", job["reweighted"], number(0))
        target, weights = (job_entry(build, job, name, first, 8) for name in ("target", "weights"))
        loss_columns, scales, residual, scratch, normal, table = (
            build.inttoptr(job[name], POINTER)
            for name in ("loss_columns", "scales", "residual", "scratch", "normal", "residuals")
        )
        prediction, mask = tile_operand(build, normal, OPERAND_BYTES * PREDICTION, offset)
        residuals = load(build, table, build.zext(own, I64), POINTER, RESIDUALS, 8)
        given = (target, weights, padded, sums.line, loss_columns, first, scales, residual, scratch)
        add_to(build, build.call(residuals, [prediction, mask, *given]), sums.state, number(0))
        weighs = build.or_(own, reweighted)
        weighing = build.select(reweighted, scratch, weights)
        for weighted in (False, True):
            with build.if_then(weighs if weighted else build.not_(weighs)):
                add = _products_function(build.module, weighted=weighted)
                build.call(add, [normal, self.columns, offset, padded, weighing, sums.state, job["stride"]])


def _products_function(module: ir.Module, *, weighted: bool) -> ir.Function:
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
    build, count = ir.IRBuilder(function.append_basic_block("entry")), function.args[1]
    products = _Products(build, function, weighted)
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

    def __init__(self, build: ir.IRBuilder, function: ir.Function, weighted: bool) -> None:
        self.build, self.weighted = build, weighted
        self.columns, _, self.offset, self.rows, self.weighing, self.state, self.stride = function.args

    def add(self, row: ir.Value, height: int, column: ir.Value, width: int) -> None:
        """Add to a block of `height` by `width` entries of the matrix that begins at `row` and `column`."""
        build = self.build
        own, other = self._operands(row, height), self._operands(column, width)
        none = [splat(_VECTOR, 0.0)] * (height * width)
        with counted(build, _ZERO, self.rows, LANES, none) as loop:
            left = [tile_lanes(build, base, loop.index, mask, _VECTOR) for base, mask in own]
            right = [tile_lanes(build, base, loop.index, mask, _VECTOR) for base, mask in other]
            found = [build.fmul(a, b) for a in left for b in right]
            if self.weighted:
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
