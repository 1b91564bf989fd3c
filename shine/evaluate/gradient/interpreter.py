"""The gradient machine: normal equations, and fits of the constants of a whole population, in one native call.

For each individual, always in float64::

    tape --assembler--> instructions: values upwards, then adjoints downwards
                            |
    columns ----+           v            +-> a tile for each value and each adjoint, in the cache
    (a tile of  +--> handler, handler, ... --+
     each)                                   v
                          next tile <-- normal equations: products of all columns of the Jacobian

The assembler is in `assembler`, the handlers in `instructions`, the residuals in `working_residuals`, which are code of
their own for each loss, the products in `normal_equations`, and the steps of a fit in `constant_fitting`; the input is
in `job`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, Variables, counted, declare, load, number
from shine.compiler.codegen.moments import LANES
from shine.evaluate.gradient.assembler import emit_gradient_assembler
from shine.evaluate.gradient.constant_fitting import advance_function, emit_advances, emit_fit
from shine.evaluate.gradient.grouped import GroupedEquations
from shine.evaluate.gradient.instructions import OPERAND_BYTES, gradient_instruction_bytes, tile_operand
from shine.evaluate.gradient.job import GRADIENT_JOB
from shine.evaluate.gradient.normal_equations import PREDICTION, add_to, products_function
from shine.evaluate.gradient.tables import emit_gradient_tables, most_arguments
from shine.evaluate.gradient.working_residuals import RESIDUALS
from shine.evaluate.machine.instructions import HANDLER_POINTER
from shine.evaluate.machine.job import Job, job_entry, job_fields
from shine.evaluate.machine.tiles import ROW_GROUP, over_parts, tile_length, whole_groups
from shine.evaluate.machine.worker_loop import emit_worker_loop
from shine.lang.forms.primitives import CONSTANT
from shine.lang.forms.tree import Primitive

SHORTEST_TILE = ROW_GROUP * 8
"""Bytes of the shortest tile."""

_BYTE, _DOUBLE = ir.IntType(8), ir.DoubleType()


NORMAL, FIT, ADVANCE = "normal", "fit", "advance"
"""Names of the functions of a job: normal equations; whole fits; and those that take each individual from one trial of
a fit to the next."""

GROUPED = "grouped"
"""Name of the function that measures normal equations with groups (see `grouped`)."""


def emit_gradient_machine(functions: Sequence[Primitive]) -> ir.Module:
    """The gradient machine of some primitives, in one module.

    It defines ``void normal(job)``, which takes a pointer to the words of `GRADIENT_JOB` and adds to the results of
    each individual: its sum of errors, then the lower triangle of the matrix of its normal equations. `FIT` and
    `ADVANCE` take a pointer to the words of `FIT_JOB` and fit constants (see `constant_fitting`); `GROUPED` is for fits
    with groups. The module also defines the worker loop (`shine.evaluate.machine.worker_loop`).
    """
    module = ir.Module(name="gradient_machine")
    size = gradient_instruction_bytes(most_arguments(functions))
    assemble = emit_gradient_assembler(module, emit_gradient_tables(module, functions, size), size)
    advance = advance_function(module)
    _emit_drivers(module, assemble, advance)
    function, build = _entry(module, ADVANCE)
    emit_advances(build, function.args[0], advance)
    build.ret_void()
    emit_worker_loop(module)
    return module


def _emit_drivers(module: ir.Module, assemble: ir.Function, advance: ir.Function) -> None:
    """Emit the functions of normal equations and of fits."""
    evaluate = _emit_evaluate(module, assemble)
    function, build = _entry(module, NORMAL)
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
    function, build = _entry(module, FIT)
    pointer = function.args[0]
    emit_fit(build, pointer, lambda *arguments: build.call(evaluate, [pointer, *arguments]), advance)
    build.ret_void()
    GroupedEquations(
        module,
        GROUPED,
        lambda build, *arguments: _assemble(build, assemble, *arguments),
        lambda build, *arguments: _run(build, module, *arguments),
    ).emit()


def _entry(module: ir.Module, name: str) -> tuple[ir.Function, ir.IRBuilder]:
    """A new function that takes a job, and a builder at its start."""
    function = declare(module, name, ir.VoidType(), [POINTER], ["job"])
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def _emit_evaluate(module: ir.Module, assemble: ir.Function) -> ir.Function:
    """Internal function ``evaluate(job, individual, line, limit, state, most)``: assemble a tape, then run all tiles.

    The job is one of `GRADIENT_JOB` or of `FIT_JOB`, which begin alike. `line` points to slope and intercept, `state`
    to the sum of errors and the matrix that the function adds to; the matrix has the first `most` constants. The
    function stops once the sum exceeds the limit, if errors are never negative.
    """
    labels = ("job", "individual", "line", "limit", "state", "most")
    kinds = [POINTER, I64, POINTER, _DOUBLE, POINTER, I64]
    function = declare(module, "shine.evaluate", ir.VoidType(), kinds, labels)
    function.linkage = "internal"
    function.attributes.add("noinline")
    pointer, individual, line, limit, state, most = function.args
    build = ir.IRBuilder(function.append_basic_block("entry"))
    job = job_fields(build, pointer, GRADIENT_JOB[:-2]) | {"most": most}
    wanted = Variables(build, further=1, tiles=0)
    with over_parts(build, job, wanted) as (here, begin, end):
        columns, length = _assemble(build, assemble, here, individual, wanted)
        _run(build, module, here, begin, begin, end, columns, length, line, limit, state, wanted)
    build.ret_void()
    return function


def _assemble(
    build: ir.IRBuilder, assemble: ir.Function, job: Job, individual: ir.Value, wanted: Variables
) -> tuple[ir.Value, ir.Value]:
    """Assemble a tape; return the number of columns of its normal equations, and the bytes of a tile."""
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
    length = tile_length(build, wanted["tiles"], SHORTEST_TILE)
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
    job: Job,
    origin: ir.Value,
    begin: ir.Value,
    end: ir.Value,
    columns: ir.Value,
    length: ir.Value,
    line: ir.Value,
    limit: ir.Value,
    state: ir.Value,
    wanted: Variables,
) -> None:
    """Run the instructions over some rows, tile after tile, until the errors exceed the limit.

    `origin` is the row that the columns begin with.
    """
    first = build.inttoptr(job["instructions"], POINTER)
    handler = load(build, first, number(0), _BYTE, HANDLER_POINTER, 8)
    step = build.udiv(length, number(8))
    with (
        counted(build, begin, end, step) as tile,
        build.if_then(build.icmp_unsigned("!=", wanted["further"], number(0))),
    ):
        left = build.sub(end, tile.index)
        rows = build.select(build.icmp_unsigned("<", left, step), left, step)
        offset = build.mul(build.sub(tile.index, origin), number(8))
        build.call(handler, [first, offset, build.mul(whole_groups(build, rows), number(8))])
        _add_tile(build, module, job, tile.index, offset, rows, columns, line, state)
        total = load(build, state, number(0), _DOUBLE, _DOUBLE)
        # A NaN sum also ends the evaluation: it stays NaN.
        most = build.select(build.icmp_unsigned("!=", job["bounded"], number(0)), limit, ir.Constant(_DOUBLE, math.inf))
        wanted["further"] = build.zext(build.fcmp_ordered("<=", total, most), I64)


def _add_tile(
    build: ir.IRBuilder,
    module: ir.Module,
    job: Job,
    first: ir.Value,
    offset: ir.Value,
    rows: ir.Value,
    columns: ir.Value,
    line: ir.Value,
    state: ir.Value,
) -> None:
    """Add the errors and the normal equations of a tile to the state; its first row is the row `first`."""
    padded = build.and_(build.add(rows, number(LANES - 1)), number(-LANES))
    # Padding rows have weight 0.
    own = build.icmp_unsigned("!=", build.or_(job["weighted"], build.sub(padded, rows)), number(0))
    reweighted = build.icmp_unsigned("!=", job["reweighted"], number(0))
    target, weights = (job_entry(build, job, name, first, 8) for name in ("target", "weights"))
    beside, scales, residual, scratch, normal, table = (
        build.inttoptr(job[name], POINTER)
        for name in ("beside", "scales", "residual", "scratch", "normal", "residuals")
    )
    prediction, mask = tile_operand(build, normal, OPERAND_BYTES * PREDICTION, offset)
    residuals = load(build, table, build.zext(own, I64), POINTER, RESIDUALS, 8)
    arguments = [prediction, mask, target, weights, padded, line, beside, first, scales, residual, scratch]
    add_to(build, build.call(residuals, arguments), state, number(0))
    weighs = build.or_(own, reweighted)
    weighing = build.select(reweighted, scratch, weights)
    for weighted in (False, True):
        with build.if_then(weighs if weighted else build.not_(weighs)):
            add = products_function(module, weighted=weighted)
            build.call(add, [normal, columns, offset, padded, weighing, state, job["stride"]])
