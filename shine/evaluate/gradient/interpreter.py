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

import numpy as np
from llvmlite import ir

from shine.base.typing import Codes, Floats, Indices, Words
from shine.compiler.kernels import emit_kernel
from shine.evaluate.gradient.assembler import assemble
from shine.evaluate.gradient.constant_fitting import Evaluate, emit_fits
from shine.evaluate.gradient.grouped import grouped
from shine.evaluate.gradient.instructions import emit_gradient_tables, gradient_instruction_bytes, most_arguments
from shine.evaluate.gradient.job import GRADIENT_JOB, GROUPED_JOB
from shine.evaluate.gradient.normal_equations import (
    ALONE,
    Assembler,
    Products,
    emit_products,
    plan_run,
    run_tiles,
)
from shine.evaluate.machine.job import emit_worker_loop
from shine.lang.forms.tree import Primitive

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
    known = vars(emit_gradient_tables(module, functions, size)) | {
        "plain": emit_products(module, weighted=False),
        "weighted": emit_products(module, weighted=True),
    }
    known["assembler"] = emit_kernel(module, assemble, known=known)
    # Jobs begin alike.
    known["evaluate"] = emit_kernel(module, evaluate, GRADIENT_JOB[:-2], known=known)
    emit_kernel(module, normal, GRADIENT_JOB, "external", known)
    emit_fits(module, known["evaluate"])
    emit_kernel(module, grouped, GROUPED_JOB, "external", known)
    emit_worker_loop(module)
    return module


def normal(job: Words, evaluate: Evaluate) -> None:
    """Measure the normal equations of each individual of the job."""
    lines: Floats = job["lines"]
    limits: Floats = job["limits"]
    out: Floats = job["out"]
    for individual in range(job["first"], job["last"]):
        if limits[individual] >= 0.0:
            state = out[individual * (job["stride"] * job["stride"] + 1) :]
            evaluate(job, individual, lines[2 * individual :], limits[individual], state, job["most"], ALONE)


def evaluate(
    job: Words,
    individual: int,
    line: Floats,
    limit: float,
    state: Floats,
    most: int,
    kind: int,
    assembler: Assembler,
    slopes: Indices,
    size: int,
    plain: Products,
    weighted: Products,
) -> float:
    """Assemble a tape, then run all tiles; the sum of errors.

    `line` is slope and intercept, `state` the sum of errors and the matrix that are added to; the matrix has the first
    `most` constants. It stops once the sum exceeds the limit, if errors are never negative. `kind` is `ALONE`, ...
    """
    codes: Codes = job["codes"]
    values: Floats = job["values"]
    sizes: Indices = job["sizes"]
    row, count = individual * job["width"], sizes[individual]
    plan = np.empty(7, np.int64)
    further = 1
    for tail in range(2):
        begin, end = job["full"] if tail else 0, job["rows"] if tail else job["full"]
        if begin < end and further:
            columns: Indices = job["tail_columns"] if tail else job["columns"]
            loss_columns: Indices = job["tail_loss_columns"] if tail else job["loss_columns"]
            target = job["tail_target"] if tail else job["target"]
            weights = job["tail_weights"] if tail else job["weights"]
            plan_run(job, codes[row:], values[row:], count, columns, most, kind, plan, assembler, slopes, size)
            further = run_tiles(
                job, plan, target, weights, loss_columns, begin, begin, end, line, limit, state, job["stride"], kind,
                plain, weighted,
            )  # fmt: skip
    return state[0]
