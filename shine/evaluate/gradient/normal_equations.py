"""Runs an individual's instructions over rows, and adds each tile to the normal equations of a least squares fit.

The columns c of the equations are the residual r, 1, the prediction, and the columns of the Jacobian J. All products
``sum(w * c_i * c_j)`` are added up: J^T J, J^T r and the sum of squares are entries of this one matrix, and the
Jacobian itself never leaves the cache. Sums are float64 in a fixed number of lanes, in the order of the rows. Residuals
and weights are those of `working_residuals`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from llvmlite import ir

from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    Variables,
    counted,
    declare,
    element_pointer,
    horizontal_sums,
    load,
    number,
    store,
)
from shine.compiler.codegen.moments import LANES, lanes
from shine.compiler.codegen.numbers import splat
from shine.compiler.codegen.vecmath.lanes import FusingBuilder, Lanes
from shine.compiler.llvm.target import register_bytes
from shine.evaluate.gradient.instructions import (
    LISTS,
    OPERAND_BYTES,
    list_bytes,
    slopes_of,
    tile_lanes,
    tile_operand,
    write_constant,
)
from shine.evaluate.gradient.working_residuals import RESIDUALS
from shine.evaluate.machine.instructions import HANDLER_POINTER
from shine.evaluate.machine.job import Job, job_entry
from shine.evaluate.machine.tiles import ROW_GROUP, padded_rows, tile_length
from shine.lang.forms.primitives import CONSTANT

FIXED_COLUMNS = 3
"""The first columns of the normal equations, before those of the constants: the residual, 1, and the prediction."""

SHORTEST_TILE = ROW_GROUP * 8
"""Bytes of the shortest tile."""

_BYTE, _DOUBLE = ir.IntType(8), ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZERO = ir.Constant(I64, 0)


WHOLE_BYTES = 1 << 19
"""Bytes of the memory that keeps the values of an individual for all rows: they should stay in the second cache."""

ALONE, FIRST, LATER, LAST = range(4)
"""What an evaluation is: one alone, which keeps no values; the first, a later, or the last one of a fit, of whose
normal equations only the error is wanted."""


@dataclass(frozen=True)
class _Tile:
    """A tile: its first row, its offset in bytes, its rows, padded to whole lanes, and whether they have weights."""

    first: ir.Value
    offset: ir.Value
    rows: ir.Value
    padded: ir.Value
    weighted: ir.Value


class Assembled:
    """An individual whose tape is assembled when this is made.

    Parameters
    ----------
    build : ir.IRBuilder
    assembler : ir.Function
    job : Job
    individual : ir.Value
    wanted : Variables
        A run goes on while `further` is not 0; `values`, `adjoints` and `numbers` are overwritten.
    instruction_bytes : int
    kind : ir.Value
        `ALONE`, ...

    Notes
    -----
    A fit to few rows keeps all values: those that no constant changes are computed once, and the adjoints only after
    the sum of errors has shown that the trial is better.
    """

    def __init__(
        self,
        build: ir.IRBuilder,
        assembler: ir.Function,
        job: Job,
        individual: ir.Value,
        wanted: Variables,
        instruction_bytes: int,
        kind: ir.Value | int = ALONE,
    ) -> None:
        self.build, self.job, self.wanted, self.kind = build, job, wanted, number(kind)
        row = build.mul(individual, job["width"])
        codes, constants = job_entry(build, job, "codes", row, 2), job_entry(build, job, "values", row, 8)
        size = load(build, job_entry(build, job, "sizes", individual, 8), number(0), I64, I64)
        columns, instructions, nodes, copies, normal = (
            build.inttoptr(job[field], POINTER) for field in ("columns", "instructions", "nodes", "constants", "normal")
        )
        wanted["values"], wanted["adjoints"], wanted["numbers"] = 0, 0, 0

        def count(what: str, more: ir.Value) -> None:
            wanted[what] = build.add(wanted[what], more)

        with counted(build, number(0), size) as node:
            code = build.zext(load(build, codes, node.index, ir.IntType(16), ir.IntType(16)), I64)
            with build.if_then(build.icmp_unsigned(">=", code, job["functions"])):
                count("values", build.add(number(1), slopes_of(build, build.sub(code, job["functions"]))))
                count("adjoints", number(1))
            with build.if_then(build.icmp_unsigned("==", code, number(CONSTANT))):
                count("adjoints", number(1))
                count("numbers", number(1))
                write_constant(build, copies, node.index, load(build, constants, node.index, _DOUBLE, _DOUBLE))
        values, numbers = wanted["values"], wanted["numbers"]
        length = self.length = tile_length(build, build.add(values, wanted["adjoints"]), SHORTEST_TILE)
        fitted = build.select(build.icmp_unsigned("<", numbers, job["most"]), numbers, job["most"])
        self.columns = build.add(fitted, number(FIXED_COLUMNS))
        """Number of columns of the normal equations."""
        # Columns that begin a tile apart do not meet in the same lines of the cache.
        stride = build.add(build.mul(padded_rows(build, job["rows"]), number(8)), length)
        fits = build.icmp_unsigned("<=", build.mul(build.add(values, number(2)), stride), number(WHOLE_BYTES))
        in_one_place = build.icmp_unsigned("==", job["full"], number(0))
        keeps = build.and_(build.and_(fits, in_one_place), build.icmp_unsigned("!=", self.kind, number(ALONE)))
        self.again = build.and_(keeps, build.icmp_unsigned("!=", self.kind, number(FIRST)))
        """Whether values are kept and this is not the first evaluation."""
        self.mask = build.select(keeps, number(-1), number(0))
        # The residuals and the weights come first, then the values.
        whole = [build.add(job["whole"], build.mul(number(i), stride)) for i in range(3)]
        self.residual, self.weights, own = (
            build.select(keeps, there, job[name])
            for there, name in zip(whole, ("residual", "scratch", "tiles"), strict=True)
        )
        with build.if_then(build.not_(self.again)):
            memory = columns, job["derived"], instructions, nodes, job["constants"], job["tiles"]
            rest = length, own, build.select(keeps, stride, length), self.mask, normal, job["most"], self.residual
            build.call(assembler, [codes, size, job["functions"], *memory, *rest])
        apart = list_bytes(build, size, instruction_bytes)
        self.lists = [element_pointer(build, instructions, build.mul(apart, number(i)), _BYTE) for i in range(LISTS)]

    def run(
        self, origin: ir.Value, begin: ir.Value, end: ir.Value, line: ir.Value, limit: ir.Value, state: ir.Value
    ) -> None:
        """Run the instructions over some rows, tile after tile, until the errors exceed the limit.

        `origin` is the row that the columns of the data begin with; `line` points to slope and intercept, `state` to
        the sum of errors and the matrix of the normal equations, which are added to.
        """
        build, job = self.build, self.job
        still, varying, _ = self.lists
        wanted = build.icmp_unsigned("!=", self.kind, number(LAST))
        with self._tiles(origin, begin, end) as tile:
            with build.if_then(build.not_(self.again)):
                self._call(still, tile)
            self._call(varying, tile)
            self._add_errors(tile, line, state)
            with build.if_then(build.and_(wanted, build.not_(self.again))):
                self._add_products(tile, state)
            total = load(build, state, number(0), _DOUBLE, _DOUBLE)
            # A NaN sum also ends the evaluation: it stays NaN.
            bounded = build.icmp_unsigned("!=", job["bounded"], number(0))
            most = build.select(bounded, limit, ir.Constant(_DOUBLE, math.inf))
            self.wanted["further"] = build.zext(build.fcmp_ordered("<=", total, most), I64)
        with build.if_then(build.and_(wanted, self.again)), self._tiles(origin, begin, end) as tile:
            self._add_products(tile, state)

    @contextmanager
    def _tiles(self, origin: ir.Value, begin: ir.Value, end: ir.Value) -> Iterator[_Tile]:
        """A loop over the tiles as long as the run goes on."""
        build, step = self.build, self.build.udiv(self.length, number(8))
        with (
            counted(build, begin, end, step) as tile,
            build.if_then(build.icmp_unsigned("!=", self.wanted["further"], number(0))),
        ):
            left = build.sub(end, tile.index)
            rows = build.select(build.icmp_unsigned("<", left, step), left, step)
            padded = build.and_(build.add(rows, number(LANES - 1)), number(-LANES))
            # Padding rows have weight 0.
            own = build.icmp_unsigned("!=", build.or_(self.job["weighted"], build.sub(padded, rows)), number(0))
            yield _Tile(tile.index, build.mul(build.sub(tile.index, origin), number(8)), rows, padded, own)

    def _call(self, first: ir.Value, tile: _Tile) -> None:
        """Run a list of instructions over a tile."""
        build = self.build
        handler = load(build, first, number(0), _BYTE, HANDLER_POINTER, 8)
        build.call(handler, [first, tile.offset, build.mul(padded_rows(build, tile.rows), number(8))])

    def _kept(self, address: ir.Value, tile: _Tile) -> ir.Value:
        """The place of a tile in memory that may keep all tiles."""
        build = self.build
        return build.inttoptr(build.add(address, build.and_(tile.offset, self.mask)), POINTER)

    def _add_errors(self, tile: _Tile, line: ir.Value, state: ir.Value) -> None:
        """Add the errors of a tile, and write its residuals."""
        build, job = self.build, self.job
        target, weights = (job_entry(build, job, name, tile.first, 8) for name in ("target", "weights"))
        loss_columns, scales, normal, table = (
            build.inttoptr(job[name], POINTER) for name in ("loss_columns", "scales", "normal", "residuals")
        )
        prediction, mask = tile_operand(build, normal, OPERAND_BYTES * 2, tile.offset)  # column of the prediction
        residuals = load(build, table, build.zext(tile.weighted, I64), POINTER, RESIDUALS, 8)
        given = (target, weights, tile.padded, line, loss_columns, tile.first, scales)
        written = (self._kept(self.residual, tile), self._kept(self.weights, tile))
        add_to(build, build.call(residuals, [prediction, mask, *given, *written]), state, number(0))

    def _add_products(self, tile: _Tile, state: ir.Value) -> None:
        """Compute the adjoints of a tile, and add its normal equations."""
        build, job = self.build, self.job
        self._call(self.lists[-1], tile)
        reweighted = build.icmp_unsigned("!=", job["reweighted"], number(0))
        weighs = build.or_(tile.weighted, reweighted)
        own = job_entry(build, job, "weights", tile.first, 8)
        weighing = build.select(reweighted, self._kept(self.weights, tile), own)
        columns = build.inttoptr(job["normal"], POINTER)
        for weighted in (False, True):
            with build.if_then(weighs if weighted else build.not_(weighs)):
                add = _products_function(build.module, weighted=weighted)
                given = (columns, self.columns, tile.offset, tile.padded, weighing, state, job["stride"])
                build.call(add, given)


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
    build, count = FusingBuilder(function.append_basic_block("entry")), function.args[1]
    products = _Products(build, function, weighted)
    with counted(build, _ZERO, count, products.side) as row:
        with counted(build, _ZERO, row.index, products.side) as column:
            products.add(row.index, column.index)
        products.add(row.index, row.index, on_diagonal=True)
    build.ret_void()
    return function


class _Products:
    """Sums of products of columns, a square block of the matrix at a time.

    Each value that is loaded is used several times, and no sum waits for another. Each sum keeps its own lanes and the
    order of the rows, so the blocks change no bit: their side is what the registers hold.
    """

    def __init__(self, build: ir.IRBuilder, function: ir.Function, weighted: bool) -> None:
        self.build, self.weighted = build, weighted
        self.columns, self.count, self.offset, self.rows, self.weighing, self.state, self.stride = function.args
        self.side = 4 if register_bytes() == 8 * LANES else 2

    def add(self, row: ir.Value, column: ir.Value, *, on_diagonal: bool = False) -> None:
        """Add to the block of the matrix that begins at `row` and `column`, on the diagonal to its lower triangle."""
        build, side = self.build, self.side
        own = self._operands(row)
        other = own if on_diagonal else self._operands(column)
        places = [(i, j) for i in range(side) for j in range(i + 1 if on_diagonal else side)]
        none = [splat(_VECTOR, 0.0)] * len(places)
        with counted(build, _ZERO, self.rows, LANES, none) as loop:
            left, right = (
                [tile_lanes(build, base, loop.index, mask, _VECTOR) for base, mask in each] for each in (own, other)
            )
            if self.weighted:
                weight = lanes(build, self.weighing, loop.index)
                left = [build.fmul(weight, each) for each in left]
            loop.results = [
                Lanes(build, left[i]).times_plus(Lanes(build, right[j]), Lanes(build, total)).value
                for (i, j), total in zip(places, loop.values, strict=True)
            ]
        sums = horizontal_sums(build, loop.values)
        for i in range(side):
            # Rows beyond the last column repeat it.
            with build.if_then(build.icmp_unsigned("<", build.add(row, number(i)), self.count)):
                begin = build.add(build.mul(build.add(row, number(i)), self.stride), build.add(column, number(1)))
                for (at, j), total in zip(places, sums, strict=True):
                    if at == i:
                        add_to(build, total, self.state, build.add(begin, number(j)))

    def _operands(self, first: ir.Value) -> list[tuple[ir.Value, ir.Value]]:
        build, last = self.build, self.build.sub(self.count, number(1))
        found = []
        for i in range(self.side):
            place = build.add(first, number(i))
            place = build.select(build.icmp_unsigned("<", place, last), place, last)
            found.append(tile_operand(build, self.columns, build.mul(place, number(OPERAND_BYTES)), self.offset))
        return found


def add_to(build: ir.IRBuilder, value: ir.Value, state: ir.Value, index: ir.Value) -> None:
    """Add a number to an entry of a state."""
    before = load(build, state, index, _DOUBLE, _DOUBLE)
    store(build, build.fadd(before, value), state, index, _DOUBLE)
