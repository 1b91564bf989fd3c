"""The tile machine: an interpreter of tapes whose instructions work on tiles of rows, compiled once.

One native call evaluates a range of a population. For each individual::

    tape --assembler--> instructions
                            |
    columns ----+           v            +-> stack of tiles, in the cache
    (a tile of  +--> handler, handler, ... --+
     each)                                   v
                                        result buffer --epilogue--> sums of errors, moments
                          next tile <--'               (or the predictions are copied)

The assembler is in `assembler`, the handlers in `instructions`, and the input in `job`. The epilogue of linear scaling
is in `shine.compiler.codegen.moments`, that of losses, which is compiled apart, in
`shine.evaluate.losses.row_errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    Variables,
    counted,
    declare,
    element_pointer,
    horizontal_sum,
    load,
    number,
    store,
)
from shine.compiler.codegen.moments import (
    CHUNK,
    CHUNK_FIELDS,
    FIT,
    LANES,
    LINE_FIELDS,
    LINE_FORMS,
    products_function,
    scale_rows,
)
from shine.compiler.codegen.numbers import Numbers
from shine.compiler.kernels import emit_kernel
from shine.evaluate.losses.row_errors import variant_of
from shine.evaluate.machine.assembler import emit_assembler
from shine.evaluate.machine.instructions import HANDLER_POINTER, emit_tables
from shine.evaluate.machine.job import JOB, Job, emit_worker_loop, job_entry, job_fields
from shine.evaluate.machine.tiles import ROW_GROUP, over_parts, padded_rows, tile_length, tile_rows
from shine.evaluate.scores import LARGE_SQUARE, SMALL_SQUARE
from shine.lang.forms.tree import Primitive

PREDICT, ERRORS, PRODUCTS, LINES = RESULTS = ("predict", "errors", "products", "lines")
"""Names of the machine's functions."""

_BYTE, _DOUBLE = ir.IntType(8), ir.DoubleType()


def emit_machine(functions: Sequence[Primitive], dtype: str) -> ir.Module:
    """The machine of some primitives, in one module.

    It defines functions that take a job, a pointer to the words of `JOB`: ``void predict(job)`` writes a row of `dtype`
    predictions for each individual; ``errors`` and ``products`` add to `LANES` float64 of state. It also defines the
    worker loop (`shine.evaluate.machine.job`).
    """
    module = ir.Module(name=f"machine.{dtype}")
    assemble = emit_assembler(module, emit_tables(module, functions, dtype), dtype)
    driver = _Driver(module, assemble, dtype)
    epilogues = (driver.copy_predictions, driver.errors, driver.products, driver.lines)
    for name, epilogue in zip(RESULTS, epilogues, strict=True):
        driver.emit(name, epilogue)
    emit_worker_loop(module)
    return module


class _Driver:
    """Functions that take a job: for each individual they assemble its tape, then run tiles and the epilogue."""

    def __init__(self, module: ir.Module, assemble: ir.Function, dtype: str) -> None:
        self.module, self.assemble, self.dtype = module, assemble, dtype
        self.numbers = Numbers(dtype)
        self.tile = tile_rows(dtype)
        self.tile_length, self.padded_rows = (emit_kernel(module, each) for each in (tile_length, padded_rows))
        for function in (self.tile_length, self.padded_rows):
            function.attributes.add("alwaysinline")

    def emit(self, name: str, epilogue: Callable[..., ir.Value]) -> None:
        """Emit the function of one kind of result.

        ``epilogue(build, job, individual, start, count)`` takes `count` predictions from the result buffer, those of
        the rows from `start` on; it returns whether to evaluate more rows of the individual.
        """
        function = declare(self.module, name, ir.VoidType(), [POINTER], ["job"])
        build = ir.IRBuilder(function.append_basic_block("entry"))
        job = job_fields(build, function.args[0], JOB)
        wanted, tile = Variables(build, further=0), number(self.tile)
        with counted(build, job["first"], job["last"]) as individual:
            wanted["further"] = 1
            with over_parts(build, job, wanted) as (here, begin, end):
                length = self._assemble(build, here, individual.index)
                with (
                    counted(build, begin, end, self.tile) as block,
                    build.if_then(build.icmp_unsigned("!=", wanted["further"], number(0))),
                ):
                    left = build.sub(end, block.index)
                    count = build.select(build.icmp_unsigned("<", left, tile), left, tile)
                    self._run(build, here, build.sub(block.index, begin), count, length)
                    further = epilogue(build, here, individual.index, block.index, count)
                    wanted["further"] = build.zext(further, I64)
        build.ret_void()

    def _assemble(self, build: ir.IRBuilder, job: Job, individual: ir.Value) -> ir.Value:
        """Assemble a tape; return the bytes of a tile: less if many are alive."""
        row = build.mul(individual, job["width"])
        tape = job_entry(build, job, "codes", row, 2), job_entry(build, job, "values", row, 8)
        size = load(build, job_entry(build, job, "sizes", individual, 8), number(0), I64, I64)
        columns, instructions, operands = (
            build.inttoptr(job[field], POINTER) for field in ("columns", "instructions", "operands")
        )
        known, memory = (job["derived"], job["nested"]), (job["tiles"], job["result"])
        given = [*tape, size, job["functions"], columns, *known, instructions, operands, *memory]
        most = build.call(self.assemble, given)
        return build.call(self.tile_length, [most, number(ROW_GROUP * self.numbers.bytes)])

    def _run(self, build: ir.IRBuilder, job: Job, start: ir.Value, count: ir.Value, length: ir.Value) -> None:
        """Run the instructions over some rows, tile after tile; the values go to the result buffer."""
        element = number(self.numbers.bytes)
        begin = build.mul(start, element)
        end = build.add(begin, build.mul(build.call(self.padded_rows, [count]), element))
        first = build.inttoptr(job["instructions"], POINTER)
        handler = load(build, first, number(0), _BYTE, HANDLER_POINTER, 8)
        with counted(build, begin, end, length) as tile:
            left = build.sub(end, tile.index)
            short = build.select(build.icmp_unsigned("<", left, length), left, length)
            build.call(handler, [first, tile.index, short])

    def copy_predictions(
        self, build: ir.IRBuilder, job: Job, individual: ir.Value, start: ir.Value, count: ir.Value
    ) -> ir.Value:
        """Epilogue that writes the predictions to the individual's row of the output."""
        element = self.numbers.element
        first = build.add(build.mul(individual, job["rows"]), start)
        out = job_entry(build, job, "out", first, self.numbers.bytes)
        result = build.inttoptr(job["result"], POINTER)
        with counted(build, number(0), count) as row:
            store(build, load(build, result, row.index, element, element), out, row.index, element)
        return ir.Constant(ir.IntType(1), 1)

    def errors(self, build: ir.IRBuilder, job: Job, individual: ir.Value, start: ir.Value, count: ir.Value) -> ir.Value:
        """Epilogue that adds up errors, and gives up once their sum exceeds the individual's limit."""
        state = job_entry(build, job, "out", individual, 8 * LANES)
        line = job_entry(build, job, "lines", individual, 16)
        total = self._add_errors(build, job, start, count, line, state)
        limit = load(build, job_entry(build, job, "limits", individual, 8), number(0), _DOUBLE, _DOUBLE)
        # A NaN sum also ends the evaluation: it stays NaN.
        return build.fcmp_ordered("<=", total, limit)

    def lines(self, build: ir.IRBuilder, job: Job, individual: ir.Value, start: ir.Value, count: ir.Value) -> ir.Value:
        """Epilogue that fits lines to the first rows, then adds up the errors of each line as long as it is finite."""
        lines = job_entry(build, job, "lines", individual, 8 * len(LINE_FORMS) * len(LINE_FIELDS))
        states = job_entry(build, job, "out", individual, 8 * len(LINE_FORMS) * LANES)
        fits = build.and_(build.icmp_unsigned("==", start, number(0)), build.icmp_unsigned("!=", job["fit"], number(0)))
        with build.if_then(fits):
            arguments = [build.inttoptr(job[name], POINTER) for name in ("result", "fitting")]
            build.call(build.inttoptr(job["fit"], FIT), [*arguments, lines])
        finite: ir.Value = number(0)
        for form in range(len(LINE_FORMS)):
            line = element_pointer(build, lines, number(form * len(LINE_FIELDS)), _DOUBLE)
            error = load(build, line, number(LINE_FIELDS.index("error")), _DOUBLE, _DOUBLE)
            before = build.block
            with build.if_then(_is_finite(build, error)):
                state = element_pointer(build, states, number(form * LANES), _DOUBLE)
                total = self._add_errors(build, job, start, count, line, state)
                store(build, total, line, number(LINE_FIELDS.index("error")), _DOUBLE)
                more, after = build.add(finite, build.zext(_is_finite(build, total), I64)), build.block
            merged = build.phi(I64)
            merged.add_incoming(finite, before)
            merged.add_incoming(more, after)
            finite = merged
        return build.icmp_unsigned("!=", finite, number(0))

    def _add_errors(
        self,
        build: ir.IRBuilder,
        job: Job,
        start: ir.Value,
        count: ir.Value,
        line: ir.Value,
        state: ir.Value,
    ) -> ir.Value:
        """Add the errors of a line to a state; return its sum."""
        table, loss_columns = (build.inttoptr(job[name], POINTER) for name in ("errors", "loss_columns"))
        # Chunks do not matter to errors: one call for all rows.
        with self._chunks(build, job, start, count, self.tile) as (arguments, weigh, row):
            weighted = build.zext(build.icmp_unsigned("!=", weigh, number(0)), I64)
            add = variant_of(build, table, weighted, job["scaled"])
            build.call(add, [*arguments, line, loss_columns, row, state])
        return horizontal_sum(build, load(build, state, number(0), _DOUBLE, ir.VectorType(_DOUBLE, LANES)))

    def products(
        self, build: ir.IRBuilder, job: Job, individual: ir.Value, start: ir.Value, count: ir.Value
    ) -> ir.Value:
        """Epilogue that adds up moments, and gives up once even the best line for the rows so far exceeds the limit."""
        state = job_entry(build, job, "out", individual, 8 * LANES)
        if self.dtype == "float64":
            with build.if_then(build.icmp_unsigned("!=", job["scaled"], number(0))):
                factor = load(build, job_entry(build, job, "lines", individual, 16), number(0), _DOUBLE, _DOUBLE)
                rows = build.call(self.padded_rows, [count])
                scale_rows(build, build.inttoptr(job["result"], POINTER), rows, factor)
        with self._chunks(build, job, start, count, CHUNK) as (arguments, weigh, row):
            known = self._known(build, job, build.udiv(row, number(CHUNK)))
            for weighted in (False, True):
                applies = build.icmp_unsigned("!=" if weighted else "==", weigh, number(0))
                with build.if_then(applies):
                    add = products_function(self.module, self.numbers, weighted=weighted)
                    build.call(add, [*arguments, known, state])
        end = build.sub(build.add(start, count), number(1))
        last = build.udiv(end, number(CHUNK))
        square_seen = load(
            build, self._known(build, job, last), number(CHUNK_FIELDS.index("target_square")), _DOUBLE, _DOUBLE
        )
        weight = load(build, self._known(build, job, last), number(CHUNK_FIELDS.index("weight")), _DOUBLE, _DOUBLE)
        mean, square, product = (load(build, state, number(i), _DOUBLE, _DOUBLE) for i in range(3))
        explained = build.fmul(build.fdiv(product, square), product)
        around = build.fmul(build.fmul(mean, mean), weight)
        # The moments bound the error only while the weighted square of the mean is at most this multiple of the squared
        # deviations from it: beyond, the rounding of the mean spoils them.
        certain = build.fcmp_ordered("<=", around, build.fmul(square, ir.Constant(_DOUBLE, 1e10)))
        for comparison, most in ((">=", SMALL_SQUARE), ("<=", LARGE_SQUARE)):
            certain = build.and_(certain, build.fcmp_ordered(comparison, square, ir.Constant(_DOUBLE, most)))
        # Share of the target's squared deviations that is allowed for rounding: far more than rounding can cause.
        margin = build.fmul(square_seen, ir.Constant(_DOUBLE, 1e-9))
        least = build.fsub(build.fsub(square_seen, explained), margin)
        limit = load(build, job_entry(build, job, "limits", individual, 8), number(0), _DOUBLE, _DOUBLE)
        given_up = build.and_(certain, build.fcmp_ordered(">", least, limit))
        with build.if_then(given_up):
            store(build, ir.Constant(_DOUBLE, float("nan")), state, number(0), _DOUBLE)
        finite = build.fcmp_ordered("ord", square, square)
        return build.and_(build.not_(given_up), finite)

    def _known(self, build: ir.IRBuilder, job: Job, chunk: ir.Value) -> ir.Value:
        return job_entry(build, job, "known", chunk, 8 * len(CHUNK_FIELDS))

    @contextmanager
    def _chunks(
        self, build: ir.IRBuilder, job: Job, start: ir.Value, count: ir.Value, size: int
    ) -> Iterator[tuple[list[ir.Value], ir.Value, ir.Value]]:
        """A loop over the rows in the result buffer, `size` at a time.

        Yields predictions, target, weights and the number of rows with padding; what is not 0 if the weights matter;
        and the first row.
        """
        with counted(build, number(0), count, size) as chunk:
            row = build.add(start, chunk.index)
            left = build.sub(count, chunk.index)
            rows = build.select(build.icmp_unsigned("<", left, number(size)), left, number(size))
            padded = build.and_(build.add(rows, number(LANES - 1)), number(-LANES))
            result = build.inttoptr(job["result"], POINTER)
            predictions = element_pointer(build, result, chunk.index, self.numbers.element)
            target, weights = (job_entry(build, job, name, row, 8) for name in ("target", "weights"))
            # Padding rows have weight 0.
            weigh = build.or_(job["weighted"], build.sub(padded, rows))
            yield [predictions, target, weights, padded], weigh, row


def _is_finite(build: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return build.fcmp_ordered("==", build.fsub(value, value), ir.Constant(_DOUBLE, 0.0))
