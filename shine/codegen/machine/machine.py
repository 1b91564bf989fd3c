"""The tile machine: an interpreter of tapes whose instructions work on tiles of rows, compiled once.

One native call evaluates a range of a population: each tape is assembled (`shine.codegen.machine.assembler`), then run
tile after tile (`shine.codegen.machine.instructions`), and every chunk of predictions goes to the epilogue
(`shine.codegen.moments`) while it is in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
from llvmlite import ir

from shine.codegen.blocks import (
    I64,
    POINTER,
    counted,
    declare,
    element_pointer,
    horizontal_sum,
    load,
    store,
)
from shine.codegen.machine.assembler import Tables, Variables, emit_assembler, number
from shine.codegen.machine.instructions import (
    ARITHMETIC,
    COMMUTATIVE,
    HANDLER_POINTER,
    Instruction,
    emit_handler,
    fused_instructions,
    handler_type,
    instruction_bytes,
    primitive_instructions,
)
from shine.codegen.machine.sharing import emit_sharing
from shine.codegen.moments import CHUNK, CHUNK_FIELDS, KINDS, LANES, PRODUCTS, errors_function, products_function
from shine.codegen.numbers import Numbers
from shine.lang.tree import Primitive

VECTOR_BYTES = 128
"""Bytes of an instruction's vector: two AVX-512 registers or four of AVX2, so that several are in flight."""

ROW_GROUP = 64
"""Rows that columns are filled up to a multiple of: every vector's width divides it."""

TILE_BYTES = 2048
"""Size of a tile: large enough to hide the jump to the next instruction, small enough for many in a 32 KiB cache."""

CACHE_BYTES = 24 * 1024
"""What the live tiles of a program may take together; a program with more of them works on shorter tiles."""

JOB = (
    "codes", "values", "sizes", "width", "functions", "rows", "full", "columns", "target", "weights", "tail_columns",
    "tail_target", "tail_weights", "weighted", "lines", "scaled", "known", "limits", "out", "derived", "nested",
    "program", "operands", "tiles", "result", "first", "last",
)  # fmt: skip
"""Fields of a job, a word each: addresses, or numbers.

The population's `codes`, `values` and `sizes` at their `width`; the code of the first of the `functions`; the number of
`rows`, of which the first `full` ones, whole tiles, are at `columns`, `target` and `weights`, and the others at
`tail_columns`, filled up to whole `ROW_GROUP`s, and at `tail_target` and `tail_weights`, filled up to whole chunks
with rows that weigh nothing, and given as if the first rows were before them; whether the weights are anything but 1
(`weighted`), else only those of the tail are read; slope and intercept of each individual (`lines`) and whether they
are anything but 1 and 0 (`scaled`); the `known` facts of each chunk; `limits` to give up at, a sum for each individual;
where results go, `out`; columns of functions of features, and of functions of those (`derived`, `nested`, see
`shine.codegen.machine.assembler`), or 0, as they have to be unless all rows are in the tail; the scratch memory of the
assembler (`program`, `operands`) and of the interpreter (`tiles`, `result`); the `first` individual to evaluate, and
the one after the `last`.
"""

SCRATCH = ("program", "operands", "tiles", "result")
"""Fields of a job that are memory of one thread."""

Job = dict[str, ir.Value]

_BYTE, _DOUBLE = ir.IntType(8), ir.DoubleType()


def operand_room(functions: Sequence[Primitive]) -> int:
    """Operands an instruction of these functions has room for: three are what fused pairs take."""
    return max([3, *(function.arity for function in functions)])


def tile_rows(dtype: str) -> int:
    """Rows of a tile."""
    return TILE_BYTES // np.dtype(dtype).itemsize


def emit_machine(functions: Sequence[Primitive], dtype: str) -> ir.Module:
    """The machine of some primitives, in one module.

    It defines ``void predict(job)`` and one ``void kind(job)`` for each of `shine.codegen.moments.KINDS`, where a job
    is a pointer to the fields of `JOB`. They write, for each individual, a row of `dtype` predictions, or add to
    `LANES` float64 of state. What lets threads share the individuals (`shine.codegen.machine.sharing`)
    is there as well.
    """
    module = ir.Module(name=f"machine.{dtype}")
    size = instruction_bytes(operand_room(functions))
    tables = _emit_tables(module, functions, dtype, size)
    assemble = emit_assembler(module, tables, dtype, len(functions), size, TILE_BYTES, VECTOR_BYTES)
    driver = _Driver(module, assemble, dtype)
    driver.emit("predict", driver.copy_predictions)
    for kind in KINDS:
        driver.emit(kind, driver.products if kind == PRODUCTS else driver.errors(kind))
    emit_sharing(module)
    return module


def _emit_tables(module: ir.Module, functions: Sequence[Primitive], dtype: str, size: int) -> Tables:
    """Emit all handlers, and the tables in which the assembler finds them."""

    def handler(instruction: Instruction) -> ir.Function:
        return emit_handler(module, instruction, dtype, VECTOR_BYTES, size)

    def identity(jit: object, value: ir.Value) -> ir.Value:
        return value

    end = declare(module, "shine.end", ir.VoidType(), handler_type().args, ("instruction", "offset", "bytes"))
    end.linkage = "internal"
    ir.IRBuilder(end.append_basic_block("entry")).ret_void()
    null = ir.Constant(POINTER, None)
    handlers: list[ir.Value] = []
    for function in functions:
        own = [handler(instruction) for instruction in primitive_instructions(function)]
        handlers += own + [null] * (3 - len(own))
    arithmetic = [ARITHMETIC.index(f.name) if f.name in ARITHMETIC else -1 for f in functions]
    fused: list[ir.Value] = [null] * (4 * 3 * 4 * 2 * 2)
    for (i, kind, j, side, constant), instruction in fused_instructions():
        if i in arithmetic and j in arithmetic:
            fused[(((i * 3 + kind) * 4 + j) * 2 + side) * 2 + constant] = handler(instruction)
    return Tables(
        arity=table(module, "arity", [number(f.arity) for f in functions]),
        arithmetic=table(module, "arithmetic", [number(i) for i in arithmetic]),
        handlers=table(module, "handlers", handlers),
        fused=table(module, "fused", fused),
        commutative=table(module, "commutative", [number(int(name in COMMUTATIVE)) for name in ARITHMETIC]),
        fill=handler(Instruction("shine.fill", (True,), identity)),
        copy=handler(Instruction("shine.copy", (False,), identity)),
        end=end,
    )


def table(module: ir.Module, name: str, entries: Sequence[ir.Value]) -> ir.GlobalVariable:
    """A constant array of words."""
    element = I64 if all(entry.type == I64 for entry in entries) else POINTER
    kind = ir.ArrayType(element, len(entries))
    table = ir.GlobalVariable(module, kind, f"shine.table.{name}")
    table.type, table.linkage, table.global_constant = POINTER, "internal", True
    table.initializer = ir.Constant(kind, list(entries))
    return table


@contextmanager
def over_parts(build: ir.IRBuilder, job: Job, wanted: Variables) -> Iterator[tuple[Job, ir.Value, ir.Value]]:
    """A loop over the two parts of the rows, those in place and the tail, while more are `wanted`: a job for the part,
    its first row and the row after its last."""
    with counted(build, number(0), number(2)) as part:
        tail = build.icmp_unsigned("==", part.index, number(1))
        here = job | {
            field: build.select(tail, job[f"tail_{field}"], job[field]) for field in ("columns", "target", "weights")
        }
        begin = build.select(tail, job["full"], number(0))
        end = build.select(tail, job["rows"], job["full"])
        exists = build.icmp_unsigned("<", begin, end)
        with build.if_then(build.and_(exists, build.icmp_unsigned("!=", wanted["further"], number(0)))):
            yield here, begin, end


class _Driver:
    """Functions that run a range of a population: for each individual assemble, then all tiles, then the epilogue."""

    def __init__(self, module: ir.Module, assemble: ir.Function, dtype: str) -> None:
        self.module, self.assemble, self.dtype = module, assemble, dtype
        self.numbers = Numbers(dtype)
        self.tile = tile_rows(dtype)

    def emit(self, name: str, epilogue: Callable[..., ir.Value]) -> None:
        """Emit the function of one kind of result.

        ``epilogue(build, job, individual, start, count)`` handles the rows from `start` on whose predictions are in
        the job's result buffer, and tells whether the individual is to be evaluated any further.
        """
        function = declare(self.module, name, ir.VoidType(), [POINTER], ["job"])
        build = ir.IRBuilder(function.append_basic_block("entry"))
        job = {field: load(build, function.args[0], number(position), I64, I64) for position, field in enumerate(JOB)}
        # Allocated once, at the entry: inside a loop the stack would grow.
        wanted = Variables(build, further=0)
        with counted(build, job["first"], job["last"]) as individual:
            wanted["further"] = 1
            with over_parts(build, job, wanted) as (here, begin, end):
                self._part(build, here, individual.index, begin, end, wanted, epilogue)
        build.ret_void()

    def _part(
        self,
        build: ir.IRBuilder,
        job: Job,
        individual: ir.Value,
        begin: ir.Value,
        end: ir.Value,
        wanted: Variables,
        epilogue: Callable[..., ir.Value],
    ) -> None:
        """Evaluate an individual over some rows, a tile of the result buffer at a time."""
        tile = number(self.tile)
        length = self._assemble(build, job, individual)
        with (
            counted(build, begin, end, self.tile) as block,
            build.if_then(build.icmp_unsigned("!=", wanted["further"], number(0))),
        ):
            left = build.sub(end, block.index)
            count = build.select(build.icmp_unsigned("<", left, tile), left, tile)
            self._run(build, job, build.sub(block.index, begin), count, length)
            further = epilogue(build, job, individual, block.index, count)
            wanted["further"] = build.zext(further, I64)

    def _pointer(self, build: ir.IRBuilder, job: Job, field: str, index: ir.Value, size: int) -> ir.Value:
        """Address of an entry of some bytes in an array of the job."""
        base = build.inttoptr(job[field], POINTER)
        return element_pointer(build, base, build.mul(index, number(size)), _BYTE)

    def _assemble(self, build: ir.IRBuilder, job: Job, individual: ir.Value) -> ir.Value:
        """Assemble a tape; the bytes of its tiles, shorter where many are alive."""
        row = build.mul(individual, job["width"])
        most = build.call(
            self.assemble,
            [
                self._pointer(build, job, "codes", row, 2),
                self._pointer(build, job, "values", row, 8),
                load(build, self._pointer(build, job, "sizes", individual, 8), number(0), I64, I64),
                job["functions"],
                *(build.inttoptr(job[field], POINTER) for field in ("columns", "derived", "nested", *SCRATCH)),
            ],
        )
        length: ir.Value = number(TILE_BYTES)
        shortest = ROW_GROUP * self.numbers.bytes
        for _ in range((TILE_BYTES // shortest).bit_length() - 1):
            too_much = build.icmp_unsigned(">", build.mul(most, length), number(CACHE_BYTES))
            length = build.select(too_much, build.lshr(length, number(1)), length)
        return length

    def _run(self, build: ir.IRBuilder, job: Job, start: ir.Value, count: ir.Value, length: ir.Value) -> None:
        """Run the program over some rows, tile after tile; their values go to the result buffer."""
        group, element = number(ROW_GROUP), number(self.numbers.bytes)
        whole = build.mul(build.udiv(build.add(count, number(ROW_GROUP - 1)), group), group)
        begin = build.mul(start, element)
        end = build.add(begin, build.mul(whole, element))
        program = build.inttoptr(job["program"], POINTER)
        handler = load(build, program, number(0), _BYTE, HANDLER_POINTER, 8)
        with counted(build, begin, end, length) as tile:
            left = build.sub(end, tile.index)
            short = build.select(build.icmp_unsigned("<", left, length), left, length)
            build.call(handler, [program, tile.index, short])

    def copy_predictions(
        self, build: ir.IRBuilder, job: Job, individual: ir.Value, start: ir.Value, count: ir.Value
    ) -> ir.Value:
        """Epilogue that writes the predictions to the individual's row of the output."""
        element = self.numbers.element
        first = build.add(build.mul(individual, job["rows"]), start)
        out = self._pointer(build, job, "out", first, self.numbers.bytes)
        result = build.inttoptr(job["result"], POINTER)
        with counted(build, number(0), count) as row:
            store(build, load(build, result, row.index, element, element), out, row.index, element)
        return ir.Constant(ir.IntType(1), 1)

    def errors(self, kind: str) -> Callable[..., ir.Value]:
        """Epilogue that adds up errors, and gives up once their sum exceeds the individual's limit."""

        def epilogue(build: ir.IRBuilder, job: Job, individual: ir.Value, start: ir.Value, count: ir.Value) -> ir.Value:
            state = self._pointer(build, job, "out", individual, 8 * LANES)
            line = self._pointer(build, job, "lines", individual, 16)
            # Errors are added row by row, whatever chunks these are in: all at once saves calls.
            with self._chunks(build, job, start, count, self.tile) as chunk:
                for scaled, applies in self._either(build, job["scaled"]):
                    with build.if_then(applies):
                        add = partial(errors_function, self.module, self.numbers, kind, scaled=scaled)
                        chunk.call(add, line, state)
            lanes = load(build, state, number(0), _DOUBLE, ir.VectorType(_DOUBLE, LANES))
            limit = load(build, self._pointer(build, job, "limits", individual, 8), number(0), _DOUBLE, _DOUBLE)
            # NaN is not below the limit either: nothing can make the sum a number again.
            return build.fcmp_ordered("<=", horizontal_sum(build, lanes), limit)

        return epilogue

    def products(
        self, build: ir.IRBuilder, job: Job, individual: ir.Value, start: ir.Value, count: ir.Value
    ) -> ir.Value:
        """Epilogue that adds up moments, and gives up once no line through the rows seen keeps within the limit."""
        state = self._pointer(build, job, "out", individual, 8 * LANES)
        with self._chunks(build, job, start, count, CHUNK) as chunk:
            add = partial(products_function, self.module, self.numbers)
            chunk.call(add, self._known(build, job, chunk.number), state)
        end = build.sub(build.add(start, count), number(1))
        last = build.udiv(end, number(CHUNK))
        square_seen = load(
            build, self._known(build, job, last), number(CHUNK_FIELDS.index("target_square")), _DOUBLE, _DOUBLE
        )
        weight = load(build, self._known(build, job, last), number(CHUNK_FIELDS.index("weight")), _DOUBLE, _DOUBLE)
        mean, square, product = (load(build, state, number(i), _DOUBLE, _DOUBLE) for i in range(3))
        explained = build.fmul(build.fdiv(product, square), product)
        # The moments are known up to rounding of the mean, so nothing is proved where the mean is much larger than what
        # varies about it; elsewhere the margin is far more than the rounding there can be.
        around = build.fmul(build.fmul(mean, mean), weight)
        certain = build.fcmp_ordered("<=", around, build.fmul(square, ir.Constant(_DOUBLE, 1e10)))
        margin = build.fmul(square_seen, ir.Constant(_DOUBLE, 1e-9))
        least = build.fsub(build.fsub(square_seen, explained), margin)
        limit = load(build, self._pointer(build, job, "limits", individual, 8), number(0), _DOUBLE, _DOUBLE)
        given_up = build.and_(certain, build.fcmp_ordered(">", least, limit))
        with build.if_then(given_up):
            store(build, ir.Constant(_DOUBLE, float("nan")), state, number(0), _DOUBLE)
        finite = build.fcmp_ordered("ord", square, square)
        return build.and_(build.not_(given_up), finite)

    def _known(self, build: ir.IRBuilder, job: Job, chunk: ir.Value) -> ir.Value:
        return self._pointer(build, job, "known", chunk, 8 * len(CHUNK_FIELDS))

    @staticmethod
    def _either(build: ir.IRBuilder, flag: ir.Value) -> Iterator[tuple[bool, ir.Value]]:
        """Both values of a flag of the job, with what tells that it has them."""
        for value in (False, True):
            yield value, build.icmp_unsigned("!=" if value else "==", flag, number(0))

    @contextmanager
    def _chunks(
        self, build: ir.IRBuilder, job: Job, start: ir.Value, count: ir.Value, size: int
    ) -> Iterator[_ChunkCall]:
        """A loop over the rows in the result buffer, so many at a time."""
        with counted(build, number(0), count, size) as chunk:
            row = build.add(start, chunk.index)
            left = build.sub(count, chunk.index)
            rows = build.select(build.icmp_unsigned("<", left, number(size)), left, number(size))
            padded = build.and_(build.add(rows, number(LANES - 1)), number(-LANES))
            result = build.inttoptr(job["result"], POINTER)
            predictions = element_pointer(build, result, chunk.index, self.numbers.element)
            target, weights = (self._pointer(build, job, name, row, 8) for name in ("target", "weights"))
            # Rows that only fill up the last lanes are to weigh nothing.
            weigh = build.or_(job["weighted"], build.sub(padded, rows))
            yield _ChunkCall(build, [predictions, target, weights, padded], weigh, build.udiv(row, number(CHUNK)))


class _ChunkCall:
    """A chunk of predictions: its `number`, and calls of the functions of `shine.codegen.moments` on it."""

    def __init__(self, build: ir.IRBuilder, arguments: list[ir.Value], weigh: ir.Value, chunk: ir.Value) -> None:
        self._build, self._arguments, self._weigh, self.number = build, arguments, weigh, chunk

    def call(self, function: Callable[..., ir.Function], extra: ir.Value, state: ir.Value) -> None:
        """Call ``function(weighted=...)``, with weights only where they matter."""
        for weighted in (False, True):
            applies = self._build.icmp_unsigned("!=" if weighted else "==", self._weigh, number(0))
            with self._build.if_then(applies):
                self._build.call(function(weighted=weighted), [*self._arguments, extra, state])
