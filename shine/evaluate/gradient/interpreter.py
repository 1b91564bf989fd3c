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

from collections.abc import Sequence

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, Variables, counted, declare, load, number
from shine.compiler.kernels import emit_kernel
from shine.evaluate.gradient.assembler import assemble
from shine.evaluate.gradient.constant_fitting import emit_fits
from shine.evaluate.gradient.grouped import GroupedEquations
from shine.evaluate.gradient.instructions import (
    emit_gradient_tables,
    gradient_instruction_bytes,
    most_arguments,
)
from shine.evaluate.gradient.job import GRADIENT_JOB
from shine.evaluate.gradient.normal_equations import ALONE, Assembled
from shine.evaluate.machine.job import emit_worker_loop, job_entry, job_fields
from shine.evaluate.machine.tiles import over_parts
from shine.lang.forms.tree import Primitive

_DOUBLE = ir.DoubleType()

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
    with groups. The module also defines the worker loop (`shine.evaluate.machine.job`).
    """
    module = ir.Module(name="gradient_machine")
    size = gradient_instruction_bytes(most_arguments(functions))
    tables = emit_gradient_tables(module, functions, size)
    _emit_drivers(module, emit_kernel(module, assemble, known=vars(tables)), size)
    emit_worker_loop(module)
    return module


def _emit_drivers(module: ir.Module, assembler: ir.Function, size: int) -> None:
    """Emit the functions of normal equations and of fits."""
    evaluate = _emit_evaluate(module, assembler, size)
    function = declare(module, NORMAL, ir.VoidType(), [POINTER], ["job"])
    build = ir.IRBuilder(function.append_basic_block("entry"))
    pointer = function.args[0]
    job = job_fields(build, pointer, GRADIENT_JOB)
    numbers = build.add(build.mul(job["stride"], job["stride"]), number(1))
    with counted(build, job["first"], job["last"]) as loop:
        line = job_entry(build, job, "lines", loop.index, 16)
        limit = load(build, job_entry(build, job, "limits", loop.index, 8), number(0), _DOUBLE, _DOUBLE)
        state = job_entry(build, job, "out", loop.index, build.mul(numbers, number(8)))
        with build.if_then(build.fcmp_ordered(">=", limit, ir.Constant(_DOUBLE, 0.0))):
            build.call(evaluate, [pointer, loop.index, line, limit, state, job["most"], number(ALONE)])
    build.ret_void()
    emit_fits(module, FIT, evaluate)
    GroupedEquations(module, GROUPED, assembler, size).emit()


def _emit_evaluate(module: ir.Module, assembler: ir.Function, size: int) -> ir.Function:
    """Internal function ``evaluate(job, individual, line, limit, state, most, kind)``: assemble a tape, then run all
    tiles.

    The job is one of `GRADIENT_JOB` or of `FIT_JOB`, which begin alike. `line` points to slope and intercept, `state`
    to the sum of errors and the matrix that the function adds to; the matrix has the first `most` constants. The
    function stops once the sum exceeds the limit, if errors are never negative. `kind` is `ALONE`, ...
    """
    labels = ("job", "individual", "line", "limit", "state", "most", "kind")
    kinds = [POINTER, I64, POINTER, _DOUBLE, POINTER, I64, I64]
    function = declare(module, "shine.evaluate", _DOUBLE, kinds, labels)
    function.linkage = "internal"
    function.attributes.add("noinline")
    pointer, individual, line, limit, state, most, kind = function.args
    build = ir.IRBuilder(function.append_basic_block("entry"))
    job = job_fields(build, pointer, GRADIENT_JOB[:-2]) | {"most": most}
    wanted = Variables(build, further=1, values=0, adjoints=0, numbers=0)
    with over_parts(build, job, wanted) as (here, begin, end):
        Assembled(build, assembler, here, individual, wanted, size, kind).run(begin, begin, end, line, limit, state)
    build.ret(load(build, state, number(0), _DOUBLE, _DOUBLE))
    return function
