"""The gradient machine: the normal equations of fitting the constants of a whole population, in one native call.

Each tape is assembled into a program of its value and its derivatives (`shine.codegen.gradient.assembler`), which runs
tile after tile; the epilogue (`shine.codegen.gradient.normal_equations`) takes the Jacobian of a tile while it is in
the cache. In float64 always.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from shine.codegen.blocks import I64, POINTER, Variables, counted, declare, load, number
from shine.codegen.gradient.assembler import (
    NO_PARTIAL,
    UNCHANGED,
    GradientTables,
    emit_gradient_assembler,
)
from shine.codegen.gradient.constant_fitting import advance_function, emit_advances, emit_fit
from shine.codegen.gradient.instructions import (
    BROADCAST_BYTES,
    emit_adjoint,
    emit_value,
    gradient_instruction_bytes,
)
from shine.codegen.gradient.job import GRADIENT_JOB
from shine.codegen.gradient.normal_equations import REWEIGHTED, normal_function
from shine.codegen.machine.instructions import HANDLER_POINTER, emit_end
from shine.codegen.machine.interpreter import CACHE_BYTES, ROW_GROUP, TILE_BYTES, over_parts, table
from shine.codegen.machine.job import Job, job_entry, job_fields
from shine.codegen.moments import LANES
from shine.lang.derivative import partials
from shine.lang.tree import Primitive, Tree

SHORTEST_TILE = ROW_GROUP * 8
"""Bytes of the shortest tile."""

_BYTE, _DOUBLE = ir.IntType(8), ir.DoubleType()


ADVANCE = "advance"
"""Name of the function that takes the fits of a population from one trial to the next."""


def fit_name(kind: str) -> str:
    """Name of the function that fits constants by one kind of errors."""
    return f"fit_{kind}"


def emit_gradient_machine(functions: Sequence[Primitive]) -> ir.Module:
    """The gradient machine of some primitives, in one module.

    It defines ``void kind(job)`` for each of `ERROR_KINDS`, where a job is a pointer to the fields of `GRADIENT_JOB`.
    They add to each individual's numbers of the output its sum of errors, then the normal equations: the lower triangle
    of a square matrix with a row for each column of the fit (see `gradient_assembler`). The functions `fit_name` of
    each kind take a job of `FIT_JOB` and fit the constants of each individual (see `constant_fitting`).
    """
    module = ir.Module(name="gradient_machine")
    size = gradient_instruction_bytes(most_arguments(functions))
    assemble = emit_gradient_assembler(module, _tables(module, functions, size), size)
    advance = advance_function(module)
    for kind in REWEIGHTED:
        _emit_drivers(module, assemble, advance, kind)
    function, build = _entry(module, ADVANCE)
    emit_advances(build, function.args[0], advance)
    build.ret_void()
    return module


def most_arguments(functions: Sequence[Primitive]) -> int:
    """Arguments that a function of these has at most, and at least 1."""
    return max([1, *(function.arity for function in functions)])


def _tables(module: ir.Module, functions: Sequence[Primitive], size: int) -> GradientTables:
    most = most_arguments(functions)
    forward, adjoint = [], []
    for function in functions:
        forward.append(emit_value(module, function, size))
        found = [
            _adjoint_entry(module, function, argument, partial, size)
            for argument, partial in enumerate(partials(function))
        ]
        adjoint += found + [_table_entry(NO_PARTIAL)] * (most - len(found))
    return GradientTables(
        arity=table(module, "arity", [number(function.arity) for function in functions]),
        forward=table(module, "forward", forward),
        adjoint=table(module, "adjoint", adjoint),
        most_arguments=most,
        zeros=_broadcast_table(module, "zeros", 0.0),
        ones=_broadcast_table(module, "ones", 1.0),
        end=emit_end(module),
    )


def _adjoint_entry(module: ir.Module, function: Primitive, argument: int, partial: Tree | None, size: int) -> ir.Value:
    if partial is None:
        return _table_entry(NO_PARTIAL)
    if partial.tokens[1:] in ((("constant", "1"),), (("constant", "1.0"),)):
        return _table_entry(UNCHANGED)
    return emit_adjoint(module, function, argument, partial, size)


def _table_entry(code: int) -> ir.Value:
    """A small number in the place of an address."""
    return ir.Constant(I64, code).inttoptr(POINTER)


def _broadcast_table(module: ir.Module, name: str, value: float) -> ir.GlobalVariable:
    kind = ir.ArrayType(_DOUBLE, BROADCAST_BYTES // 8)
    variable = ir.GlobalVariable(module, kind, f"shine.table.{name}")
    variable.type, variable.linkage, variable.global_constant = POINTER, "internal", True
    variable.initializer = ir.Constant(kind, [ir.Constant(_DOUBLE, value)] * kind.count)
    return variable


def _emit_drivers(module: ir.Module, assemble: ir.Function, advance: ir.Function, kind: str) -> None:
    """Emit the functions of one kind of errors: the normal equations of each individual, and the fit of each."""
    evaluate = _emit_evaluate(module, assemble, kind)
    function, build = _entry(module, kind)
    pointer = function.args[0]
    job = job_fields(build, pointer, GRADIENT_JOB)
    numbers = build.add(build.mul(job["stride"], job["stride"]), number(1))
    with counted(build, job["first"], job["last"]) as loop:
        line = job_entry(build, job, "lines", loop.index, 16)
        limit = load(build, job_entry(build, job, "limits", loop.index, 8), number(0), _DOUBLE, _DOUBLE)
        state = job_entry(build, job, "out", loop.index, build.mul(numbers, number(8)))
        with build.if_then(build.fcmp_ordered(">=", limit, ir.Constant(_DOUBLE, 0.0))):
            build.call(evaluate, [pointer, loop.index, line, limit, state, job["most"]])
    build.ret_void()
    function, build = _entry(module, fit_name(kind))
    pointer = function.args[0]
    emit_fit(build, pointer, lambda *arguments: build.call(evaluate, [pointer, *arguments]), advance)
    build.ret_void()


def _entry(module: ir.Module, name: str) -> tuple[ir.Function, ir.IRBuilder]:
    """A new function that takes a job, and a builder at its start."""
    function = declare(module, name, ir.VoidType(), [POINTER], ["job"])
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def _emit_evaluate(module: ir.Module, assemble: ir.Function, kind: str) -> ir.Function:
    """Internal function ``evaluate(job, individual, line, limit, state, most)``: assemble, then run all tiles.

    The fields of the job up to the memory of a thread are where `GRADIENT_JOB` has them. `line` points to slope and
    intercept, `state` to the sum of errors and the matrix that are added to, for the first `most` constants.
    """
    labels = ("job", "individual", "line", "limit", "state", "most")
    kinds = [POINTER, I64, POINTER, _DOUBLE, POINTER, I64]
    function = declare(module, f"shine.evaluate.{kind}", ir.VoidType(), kinds, labels)
    function.linkage = "internal"
    function.attributes.add("noinline")
    pointer, individual, line, limit, state, most = function.args
    build = ir.IRBuilder(function.append_basic_block("entry"))
    job = job_fields(build, pointer, GRADIENT_JOB[:-2]) | {"most": most}
    wanted = Variables(build, further=1, tiles=0)
    with over_parts(build, job, wanted) as (here, begin, end):
        columns, length = _assemble(build, assemble, here, individual, wanted)
        _run(build, module, kind, here, begin, end, columns, length, line, limit, state, wanted)
    build.ret_void()
    return function


def _assemble(
    build: ir.IRBuilder, assemble: ir.Function, job: Job, individual: ir.Value, wanted: Variables
) -> tuple[ir.Value, ir.Value]:
    """Assemble a tape; its columns, and the bytes of its tiles, shorter where there are many."""
    row = build.mul(individual, job["width"])
    codes, values = job_entry(build, job, "codes", row, 2), job_entry(build, job, "values", row, 8)
    size = load(build, job_entry(build, job, "sizes", individual, 8), number(0), I64, I64)
    # A function takes a tile for its value and one for its adjoint, a constant one for its adjoint.
    wanted["tiles"] = 0
    with counted(build, number(0), size) as node:
        code = build.zext(load(build, codes, node.index, ir.IntType(16), ir.IntType(16)), I64)
        is_function = build.zext(build.icmp_unsigned(">=", code, job["functions"]), I64)
        is_constant = build.zext(build.icmp_unsigned("==", code, number(0)), I64)
        tiles = build.add(wanted["tiles"], build.add(is_constant, build.shl(is_function, number(1))))
        wanted["tiles"] = tiles
    length: ir.Value = number(TILE_BYTES)
    for _ in range((TILE_BYTES // SHORTEST_TILE).bit_length() - 1):
        too_much = build.icmp_unsigned(">", build.mul(wanted["tiles"], length), number(CACHE_BYTES))
        length = build.select(too_much, build.lshr(length, number(1)), length)
    memory = ("columns", "derived", "instructions", "nodes", "constants", "tiles")
    pointers = [build.inttoptr(job[field], POINTER) for field in memory]
    normal = build.inttoptr(job["normal"], POINTER)
    columns = build.call(
        assemble, [codes, values, size, job["functions"], *pointers, length, normal, job["most"], job["residual"]]
    )
    return columns, length


def _run(
    build: ir.IRBuilder,
    module: ir.Module,
    kind: str,
    job: Job,
    begin: ir.Value,
    end: ir.Value,
    columns: ir.Value,
    length: ir.Value,
    line: ir.Value,
    limit: ir.Value,
    state: ir.Value,
    wanted: Variables,
) -> None:
    """Run the instructions over some rows, tile after tile, until the errors exceed the limit."""
    first = build.inttoptr(job["instructions"], POINTER)
    handler = load(build, first, number(0), _BYTE, HANDLER_POINTER, 8)
    step = build.udiv(length, number(8))
    with (
        counted(build, begin, end, step) as tile,
        build.if_then(build.icmp_unsigned("!=", wanted["further"], number(0))),
    ):
        left = build.sub(end, tile.index)
        rows = build.select(build.icmp_unsigned("<", left, step), left, step)
        offset = build.mul(build.sub(tile.index, begin), number(8))
        group = number(ROW_GROUP)
        whole = build.mul(build.udiv(build.add(rows, number(ROW_GROUP - 1)), group), group)
        build.call(handler, [first, offset, build.mul(whole, number(8))])
        padded = build.and_(build.add(rows, number(LANES - 1)), number(-LANES))
        # Rows that only fill up the last lanes are to weigh nothing.
        weigh = build.icmp_unsigned("!=", build.or_(job["weighted"], build.sub(padded, rows)), number(0))
        target, weights = (job_entry(build, job, name, tile.index, 8) for name in ("target", "weights"))
        tiles = [build.inttoptr(job[name], POINTER) for name in ("floor", "residual", "scratch")]
        for weighted in (False, True):
            with build.if_then(weigh if weighted else build.not_(weigh)):
                add = normal_function(module, kind, weighted=weighted)
                normal = build.inttoptr(job["normal"], POINTER)
                build.call(add, [normal, columns, offset, padded, target, weights, line, *tiles, state, job["stride"]])
        total = load(build, state, number(0), _DOUBLE, _DOUBLE)
        # NaN is not below the limit either: nothing can make the sum a number again.
        wanted["further"] = build.zext(build.fcmp_ordered("<=", total, limit), I64)
