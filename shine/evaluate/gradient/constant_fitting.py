"""Levenberg-Marquardt (Marquardt 1963) on the constants of each individual, as native code around the gradient machine.

The fit of an individual alternates between two calls until it stops::

    evaluate   the error and the normal equations of the trial, which is written on the tape       (`interpreter`)
    advance    keep the trial if its error is lower, else go back; adapt the damping; solve for a step,
               and write the next trial on the tape -- or stop, and write the best one there        (here)

It stops after a given number of steps, when a step promises too little, or when its goal is out of reach.
`fit` runs this loop to its end, while the individual's rows and instructions are in the cache. Where that
would take too long for one call, or the rows come in several blocks, Python runs the loop: it evaluates all individuals
block by block, then calls `advance` for all of them. Both take the same steps, to the last bit.

The slope and intercept of linear scaling are unknowns like the constants. Losses other than squared errors are fitted
through weights (see `working_residuals`), which are new at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from llvmlite import ir

from shine.base.typing import Codes, Floats, Indices, Mask, Words
from shine.compiler.kernels import emit_kernel
from shine.evaluate.gradient.damped_equations import LINE, scale_equations, solve_equations
from shine.evaluate.gradient.job import FIT_JOB
from shine.evaluate.gradient.normal_equations import FIRST, LAST, LATER
from shine.lang.forms.primitives import CONSTANT

FIRST_DAMPING = 1e-2
"""Damping of the first step; every damping is relative to the diagonal of the normal equations."""

LEAST_DAMPING, MOST_DAMPING = 1e-12, 1e12
"""Limits of the damping: below, it changes no bit of a step; above, no step gets anywhere."""

AFTER_BETTER, AFTER_WORSE = 0.1, 10.0
"""Factors of the damping after a step that lowered the error, and after one that did not."""

LONGEST = 8.0
"""Largest factor of a step."""

HOPE = 8.0
"""A fit ends once its next step would miss the goal even if it removed this many times what it promises. With 8, runs
find as many formulas in as many generations as without goals; with 4, fewer."""

Evaluate = Callable[[Words, int, Floats, float, Floats, int, int], float]
"""Measures the normal equations of an individual: ``evaluate(job, individual, line, limit, state, most, kind)``."""


def _state_numbers(unknowns: int) -> int:
    """Numbers of a state: the sum of errors, then the matrix of products of the residual and the unknowns."""
    return 1 + (1 + unknowns) * (1 + unknowns)


def _record_numbers(unknowns: int) -> int:
    """Numbers of a record: the damping; the best unknowns so far, intercept and slope first; gradient, scale and matrix
    of the scaled normal equations there."""
    return 1 + (3 + unknowns) * unknowns


def record_numbers(most: int) -> int:
    """Numbers in the record of an individual with up to `most` fitted constants."""
    return _record_numbers(most + LINE)


def _step_numbers(unknowns: int) -> int:
    """Numbers of memory of one thread for a step: the trial, the step, and work of the size of a matrix."""
    return (2 + unknowns) * unknowns


def fitting_numbers(most: int) -> int:
    """Numbers of memory of one thread: those for a step; then a state and a record, for fits within one call."""
    unknowns = most + LINE
    return _step_numbers(unknowns) + _state_numbers(unknowns) + _record_numbers(unknowns)


def emit_fits(module: ir.Module, evaluate: ir.Function) -> None:
    """Emit `fit` and `advance` of a job of `FIT_JOB`."""
    emit_kernel(module, take_step, FIT_JOB).attributes.add("noinline")
    emit_kernel(module, advance, FIT_JOB, "external")
    emit_kernel(module, fit, FIT_JOB, "external", {"evaluate": evaluate})


def fit(job: Words, evaluate: Evaluate) -> None:
    """The whole fit of each individual of the job."""
    unknowns = job["most"] + LINE
    lines: Floats = job["lines"]
    errors: Floats = job["errors"]
    going: Indices = job["going"]
    memory: Floats = job["fitting"]
    state = memory[_step_numbers(unknowns) :]
    record = state[_state_numbers(unknowns) :]
    for individual in range(job["first"], job["last"]):
        for step in range(job["steps"] + 1):
            if going[individual]:
                for place in range(_state_numbers(unknowns)):
                    state[place] = 0.0
                # No step follows the last trial: only its error is measured.
                last = step == job["steps"]
                most = 0 if last else job["most"]
                kind = FIRST if step == 0 else (LAST if last else LATER)
                evaluate(job, individual, lines[2 * individual :], errors[individual], state, most, kind)
                take_step(job, individual, state, record, last)


def advance(job: Words) -> None:
    """Take each individual of the job from one trial to the next; the states are the results at ``out``."""
    unknowns = job["most"] + LINE
    going: Indices = job["going"]
    states: Floats = job["out"]
    records: Floats = job["records"]
    for individual in range(job["first"], job["last"]):
        if going[individual]:
            state = states[individual * _state_numbers(unknowns) :]
            record = records[individual * _record_numbers(unknowns) :]
            take_step(job, individual, state, record, job["steps"] == 0)


def take_step(job: Words, individual: int, state: Floats, record: Floats, last: int) -> None:
    """Take the individual from one trial to the next, or stop its fit.

    `state` holds the results of evaluating the trial; its matrix is not read if this is the `last` trial.
    """
    size = job["most"] + LINE
    errors: Floats = job["errors"]
    goals: Floats = job["goals"]
    going: Indices = job["going"]
    fixed: Mask = job["fixed"]
    trial: Floats = job["fitting"]
    best = record[1:]
    gradient = best[size:]
    scale = gradient[size:]
    matrix = scale[size:]
    unknowns = _read_trial(job, individual, trial)
    found = state[0]
    first = errors[individual] == inf
    # A loss without a least error must not run away to minus infinity.
    better = -inf < found < errors[individual]
    length = 1.0
    if job["reweighted"] and not last and better and not first:
        length = _right_length(trial, best, state[1:], matrix, gradient, scale, unknowns, size)
    if first or better:
        for k in range(unknowns):
            best[k] = trial[k]
    if first:
        goals[individual] = found * goals[individual]
    damping = record[0] * (AFTER_BETTER if better else AFTER_WORSE)
    record[0] = FIRST_DAMPING if first else max(min(damping, MOST_DAMPING), LEAST_DAMPING)
    if better:
        errors[individual] = found
        if not last:
            own = fixed[individual * job["most"] :]
            scale_equations(state[1:], matrix, gradient, scale, own, best[1], unknowns, size, job["scaled"])
    error = abs(errors[individual])
    going[individual] = 0
    if 0.0 < error < inf and not last:
        tolerance: Floats = job["tolerance"]
        step = trial[size:]
        promise = solve_equations(matrix, gradient, scale, step[size:], step, unknowns, size, record[0])
        # A goal that is NaN is none.
        in_reach = not error - promise * HOPE > goals[individual]
        if promise > tolerance[0] * error and in_reach:
            going[individual] = 1
            for k in range(unknowns):
                trial[k] = best[k] + length * step[k]
            _write(job, individual, trial)
    if not going[individual]:
        _write(job, individual, best)


def _right_length(
    trial: Floats,
    best: Floats,
    products: Floats,
    matrix: Floats,
    gradient: Floats,
    scale: Floats,
    unknowns: int,
    size: int,
) -> float:
    """The factor of the next step: the right one for the step to this trial, in hindsight.

    Weights stand for curvatures that may be too large, as for errors with a kink. The slope of the error along the
    step, before and after it, shows by how much.
    """
    before, after, bending = 0.0, 0.0, 0.0
    for row in range(unknowns):
        move = trial[row] - best[row]
        scaled = move * scale[row]
        before += gradient[row] * scaled
        # The products are those of derivatives of the prediction; those of the model are slope times as large.
        slant = products[(row + 1) * (size + 1)] * (trial[1] if row >= LINE else 1.0)
        after += 0.0 if move == 0.0 else slant * move
        total = scaled
        for column in range(row + 1, unknowns):
            other = (trial[column] - best[column]) * scale[column]
            total += matrix[row * size + column] * other * 2.0
        bending += scaled * total
    return min(max(1.0, bending / (before - after)), LONGEST)


# The line has the slope first, the unknowns have the intercept first.


def _read_trial(job: Words, individual: int, trial: Floats) -> int:
    """Read the trial from the line and the tape; return its number of unknowns."""
    lines: Floats = job["lines"]
    codes: Codes = job["codes"]
    values: Floats = job["values"]
    sizes: Indices = job["sizes"]
    trial[0], trial[1] = lines[2 * individual + 1], lines[2 * individual]
    count, size = LINE, job["most"] + LINE
    first = individual * job["width"]
    for node in range(first, first + sizes[individual]):
        if codes[node] == CONSTANT and count < size:
            trial[count] = values[node]
            count += 1
    return count


def _write(job: Words, individual: int, unknowns: Floats) -> None:
    """Write unknowns to the line and the tape."""
    lines: Floats = job["lines"]
    codes: Codes = job["codes"]
    values: Floats = job["values"]
    sizes: Indices = job["sizes"]
    lines[2 * individual], lines[2 * individual + 1] = unknowns[1], unknowns[0]
    count, size = LINE, job["most"] + LINE
    first = individual * job["width"]
    for node in range(first, first + sizes[individual]):
        if codes[node] == CONSTANT and count < size:
            values[node] = unknowns[count]
            count += 1
