"""Runs an individual's instructions over rows, and adds each tile to the normal equations of a least squares fit.

The columns c of the equations are the residual r, 1, the prediction, and the columns of the Jacobian J. All products
``sum(w * c_i * c_j)`` are added up: J^T J, J^T r and the sum of squares are entries of this one matrix, and the
Jacobian itself never leaves the cache. Sums are float64 in a fixed number of lanes, in the order of the rows. Residuals
and weights are those of `working_residuals`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from llvmlite import ir

from shine.base.typing import Address, Codes, Floats, Indices, Words
from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    counted,
    declare,
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
    BROADCAST_BYTES,
    LISTS,
    OPERAND_BYTES,
    OPERAND_WORDS,
    tile_lanes,
    tile_operand,
)
from shine.evaluate.machine.assembler import Handler
from shine.evaluate.machine.tiles import ROW_GROUP, padded_rows, tile_length
from shine.lang.forms.primitives import CONSTANT

FIXED_COLUMNS = 3
"""The first columns of the normal equations, before those of the constants: the residual, 1, and the prediction."""

SHORTEST_TILE = ROW_GROUP * 8
"""Bytes of the shortest tile."""

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZERO = ir.Constant(I64, 0)

WHOLE_BYTES = 1 << 19
"""Bytes of the memory that keeps the values of an individual for all rows: they should stay in the second cache."""

ALONE, FIRST, LATER, LAST = range(4)
"""What an evaluation is: one alone, which keeps no values; the first, a later, or the last one of a fit, of whose
normal equations only the error is wanted."""

Assembler = Callable[..., None]
"""`shine.evaluate.gradient.assembler.assemble` without the tables."""

Residuals = Callable[..., float]
"""Working residuals of a loss (see `working_residuals`)."""

Products = Callable[..., None]
"""A function of `emit_products`."""

_LENGTH, COLUMNS, _AGAIN, _MASK, _RESIDUAL, _WEIGHTS, _APART = range(7)
"""The plan of a run: bytes of a tile; number of columns of the normal equations; whether values are kept and this is
not the first evaluation; the mask of a tile's offset in memory that may keep all tiles, and where residuals and weights
are there; and words from one list of instructions to the next."""

_COPIES, _LAST_LIST = BROADCAST_BYTES // 8, LISTS - 1


def plan_run(
    job: Words,
    codes: Codes,
    values: Floats,
    count: int,
    columns: Indices,
    most: int,
    kind: int,
    plan: Indices,
    assembler: Assembler,
    slopes: Indices,
    size: int,
) -> None:
    """Assemble a tape of `count` nodes, and plan its run.

    A fit to few rows keeps all values: those that no constant changes are computed once, and the adjoints only after
    the sum of errors has shown that the trial is better.
    """
    instructions: Indices = job["instructions"]
    nodes: Indices = job["nodes"]
    normal: Indices = job["normal"]
    copies: Floats = job["constants"]
    kept, adjoints, numbers = 0, 0, 0
    for node in range(count):
        code = codes[node]
        if code >= job["functions"]:
            kept += 1 + slopes[code - job["functions"]]
            adjoints += 1
        if code == CONSTANT:
            adjoints += 1
            numbers += 1
            write_constant(copies, node, values[node])
    length = tile_length(kept + adjoints, SHORTEST_TILE)
    # Columns that begin a tile apart do not meet in the same lines of the cache.
    stride = padded_rows(job["rows"]) * 8 + length
    keeps = kind != ALONE and job["full"] == 0 and (kept + 2) * stride <= WHOLE_BYTES
    plan[_LENGTH], plan[COLUMNS], plan[_APART] = length, min(numbers, most) + FIXED_COLUMNS, (count + 1) * size
    plan[_AGAIN], plan[_MASK] = keeps and kind != FIRST, -1 if keeps else 0
    # The residuals and the weights come first, then the values.
    plan[_RESIDUAL] = job["whole"] if keeps else job["residual"]
    plan[_WEIGHTS] = job["whole"] + stride if keeps else job["scratch"]
    own = job["whole"] + 2 * stride if keeps else job["tiles"]
    if not plan[_AGAIN]:
        apart = stride if keeps else length
        assembler(
            codes, count, job["functions"], columns, job["derived"], instructions, nodes, job["constants"],
            job["tiles"], length, own, apart, plan[_MASK], normal, most, plan[_RESIDUAL],
        )  # fmt: skip


def write_constant(copies: Floats, node: int, value: float) -> None:
    """Write the copies of a node's constant."""
    copies[node * _COPIES :][:_COPIES] = value


def run_tiles(
    job: Words,
    plan: Indices,
    target: Address,
    weights: Address,
    loss_columns: Indices,
    origin: int,
    begin: int,
    end: int,
    line: Floats,
    limit: float,
    state: Floats,
    stride: int,
    kind: int,
    plain: Products,
    weighted: Products,
) -> int:
    """Run the instructions over some rows, tile after tile, until the errors exceed the limit; whether they do not.

    `origin` is the row that the columns of the data begin with; `line` is slope and intercept, `state` the sum of
    errors and the matrix of the normal equations, which are added to.
    """
    lists: Indices = job["instructions"]
    functions: Indices = job["residuals"]
    scales: Floats = job["scales"]
    normal: Indices = job["normal"]
    step = plan[_LENGTH] >> 3
    # The second pass adds the products of kept values.
    further = 1
    for again in range(1 + (plan[_AGAIN] and kind != LAST)):
        first = begin
        while first < end and further:
            rows = min(end - first, step)
            padded = (rows + (LANES - 1)) & -LANES
            # Padding rows have weight 0.
            weighs = (job["weighted"] | (padded - rows)) != 0
            offset, length = (first - origin) * 8, padded_rows(rows) * 8
            own_weights: Floats = weights + first * 8
            own_target: Floats = target + first * 8
            residual: Floats = plan[_RESIDUAL] + (offset & plan[_MASK])
            working: Floats = plan[_WEIGHTS] + (offset & plan[_MASK])
            if not again:
                if not plan[_AGAIN]:
                    run_list(lists, offset, length)
                run_list(lists[plan[_APART] :], offset, length)
                base, offset_mask, step_mask = normal[2 * OPERAND_WORDS :][:3]
                prediction: Floats = base + (offset & offset_mask)
                errors: Residuals = functions[weighs]
                state[0] += errors(
                    prediction, step_mask, own_target, own_weights, padded, line, loss_columns, first, scales,
                    residual, working,
                )  # fmt: skip
            if again or not (plan[_AGAIN] or kind == LAST):
                run_list(lists[_LAST_LIST * plan[_APART] :], offset, length)
                weighing = working if job["reweighted"] else own_weights
                if weighs or job["reweighted"]:
                    weighted(normal, plan[COLUMNS], offset, padded, weighing, state, stride)
                else:
                    plain(normal, plan[COLUMNS], offset, padded, weighing, state, stride)
            # A NaN sum also ends the evaluation: it stays NaN.
            further = state[0] <= (limit if job["bounded"] else inf)
            first += step
    return further


def run_list(instructions: Indices, offset: int, length: int) -> None:
    """Run a list of instructions over a tile."""
    handler: Handler = instructions[0]
    handler(instructions, offset, length)


def emit_products(module: ir.Module, *, weighted: bool) -> ir.Function:
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
