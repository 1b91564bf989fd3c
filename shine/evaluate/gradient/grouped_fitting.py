"""Levenberg-Marquardt (Marquardt 1963) with unknowns by group, within bounds, as native code.

The matrix of an individual's normal equations is a border of the shared unknowns around one block for each group::

    [ A1          C1 ]         A: a group's own unknowns
    [     A2      C2 ]         C: products of a group's own unknowns and the shared ones
    [         ... .. ]         S: shared unknowns
    [ C1' C2' ..  S  ]

Eliminating the groups leaves the Schur complement ``S - sum(C' A^-1 C)``: the cost is linear in their number. Each
group has a block ``[[A, C, a], [C', S, s], [a', s', e]]`` of its rows; a, s and e are products with the residual.

Damping is relative to the diagonal. An unknown does not move if it is fixed, has no influence, or is at a bound and
would be pushed across it; other steps end at the bounds. Where weights stand for curvatures, a step shows how much
longer the next one should be, as in `constant_fitting`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from llvmlite import ir

from shine.base.typing import Floats, Indices, Mask, Words
from shine.compiler.kernels import emit_kernel
from shine.evaluate.gradient.constant_fitting import (
    AFTER_BETTER,
    AFTER_WORSE,
    FIRST_DAMPING,
    LEAST_DAMPING,
    LONGEST,
    MOST_DAMPING,
)
from shine.evaluate.gradient.job import GROUPED_JOB
from shine.evaluate.machine.job import emit_worker_loop

FIT_GROUPED, REDUCE_GROUPED = "fit_grouped", "reduce_grouped"
"""Names of the functions of a job: one fits its individuals, the other eliminates their groups once."""

Measure = Callable[[Words, int, Floats, float, Floats, int], float]
"""Measures an individual: ``measure(job, individual, unknowns, limit, blocks, wanted)`` (see `grouped`)."""


def emit_grouped_fitting() -> ir.Module:
    """The module of `FIT_GROUPED` and `REDUCE_GROUPED`, which take a pointer to the words of `GROUPED_JOB`, and of the
    worker loop.

    The latter writes to ``out`` for each individual the upper triangle of the equations of the shared unknowns, the
    groups eliminated, with the products with the residual in the last column.
    """
    module = ir.Module(name="grouped_fitting")
    for kernel in (reduce_blocks, solve_blocks):
        emit_kernel(module, kernel, GROUPED_JOB)
    for entry in (fit_grouped, reduce_grouped):
        emit_kernel(module, entry, GROUPED_JOB, "external")
    emit_worker_loop(module)
    return module


def grouped_scratch(groups: int, own: int, shared: int, constants: int, fixed_columns: int) -> dict[str, int]:
    """Bytes of the memory of one thread, by word of a job."""
    size = own + shared
    blocks, unknowns = groups * (size + 1) ** 2, groups * own + shared
    numbers = {
        "state": 1 + (constants + fixed_columns) ** 2, "kept": blocks, "fresh": blocks, "work": blocks,
        "reduced": (shared + 1) ** 2, "trial": unknowns, "totals": 2 * size, "flags": unknowns, "step": size + 1,
    }  # fmt: skip
    return {name: 8 * count for name, count in numbers.items()}


def fit_grouped(job: Words) -> None:
    """Fit each individual of the job."""
    count = job["n_groups"] * job["own"] + job["shared"]
    numbers = job["n_groups"] * (job["own"] + job["shared"] + 1) * (job["own"] + job["shared"] + 1)
    errors: Floats = job["errors"]
    tolerance: Floats = job["tolerance"]
    trial: Floats = job["trial"]
    measure: Measure = job["grouped"]
    for individual in range(job["first"], job["last"]):
        unknowns: Floats = job["unknowns"]
        best = unknowns[individual * count :]
        kept: Floats = job["kept"]
        fresh: Floats = job["fresh"]
        damping = FIRST_DAMPING
        _copy(best, trial, count)
        going = 1
        for step in range(job["steps"] + 1):
            if going:
                not_last = step < job["steps"]
                _zero(fresh, numbers)
                found = measure(job, individual, trial, errors[individual], fresh, not_last)
                found += _penalty(job, individual, trial, fresh)
                # A loss without a least error must not run away to minus infinity.
                better = -inf < found < errors[individual]
                if step:
                    damping = damping * (AFTER_BETTER if better else AFTER_WORSE)
                    damping = max(LEAST_DAMPING, min(MOST_DAMPING, damping))
                length = 1.0
                if job["reweighted"] and not_last and step and better:
                    length = _right_length(job, best, trial, kept, fresh)
                if better:
                    errors[individual] = found
                    _copy(trial, best, count)
                    kept, fresh = fresh, kept
                error = abs(errors[individual])
                going = 0
                if 0.0 < error < inf and not_last:
                    going = solve_blocks(job, individual, kept, best, damping, length) > tolerance[0] * error


def reduce_grouped(job: Words) -> None:
    """Eliminate the groups of each individual of the job."""
    count = job["n_groups"] * job["own"] + job["shared"]
    numbers = job["n_groups"] * (job["own"] + job["shared"] + 1) * (job["own"] + job["shared"] + 1)
    cells = (job["shared"] + 1) * (job["shared"] + 1)
    errors: Floats = job["errors"]
    unknowns: Floats = job["unknowns"]
    blocks: Floats = job["fresh"]
    reduced: Floats = job["reduced"]
    out: Floats = job["out"]
    measure: Measure = job["grouped"]
    for individual in range(job["first"], job["last"]):
        best = unknowns[individual * count :]
        _zero(blocks, numbers)
        found = measure(job, individual, best, inf, blocks, 1)
        errors[individual] = found + _penalty(job, individual, best, blocks)
        reduce_blocks(job, individual, blocks, best, 0.0)
        _copy(reduced, out[individual * cells :], cells)
        if job["blocks"]:
            every: Floats = job["blocks"]
            _copy(blocks, every[individual * numbers :], numbers)


def _right_length(job: Words, best: Floats, trial: Floats, kept: Floats, fresh: Floats) -> float:
    """The factor of the next step: the right one for the step to this trial, in hindsight (see `constant_fitting`)."""
    size = job["own"] + job["shared"]
    stride = size + 1
    slope, slope_there, bending = 0.0, 0.0, 0.0
    for group in range(job["n_groups"]):
        before, after = kept[group * stride * stride :], fresh[group * stride * stride :]
        for row in range(size):
            place = _place(job, group, row)
            move = trial[place] - best[place]
            bent = 0.0
            for column in range(size):
                there = _place(job, group, column)
                other = trial[there] - best[there]
                bent += 0.0 if other == 0.0 else before[row * stride + column] * other
            slope += 0.0 if move == 0.0 else before[row * stride + size] * move
            slope_there += 0.0 if move == 0.0 else after[row * stride + size] * move
            bending += 0.0 if move == 0.0 else move * bent
    return min(LONGEST, max(1.0, bending / (slope - slope_there)))


def _penalty(job: Words, individual: int, trial: Floats, blocks: Floats) -> float:
    """The penalties of a trial, added to its blocks too."""
    own, stride = job["own"], job["own"] + job["shared"] + 1
    total = 0.0
    if job["prior"]:
        prior: Floats = job["prior"]
        precisions = prior[2 * individual * own :]
        centers = precisions[own:]
        for group in range(job["n_groups"]):
            block = blocks[group * stride * stride :]
            for k in range(own):
                away = centers[k] - trial[group * own + k]
                pull = precisions[k] * away
                block[k * stride + k] += precisions[k]
                block[k * stride + stride - 1] += pull
                total += pull * away
    return total


def reduce_blocks(job: Words, individual: int, blocks: Floats, best: Floats, damping: float) -> None:
    """Eliminate the groups: write ``work``, ``reduced``, ``totals`` of the shared unknowns, and ``flags``."""
    own, shared, size = job["own"], job["shared"], job["own"] + job["shared"]
    stride, width = size + 1, shared + 1
    every: Floats = job["work"]
    reduced: Floats = job["reduced"]
    diagonals: Floats = job["totals"]
    slants = diagonals[size:]
    _zero(diagonals, 2 * size)
    for k in range(own, size):
        for group in range(job["n_groups"]):
            block = blocks[group * stride * stride :]
            diagonals[k] += block[k * stride + k]
            slants[k] += block[k * stride + size]
        _mark(job, individual, _place(job, 0, k), k, best)
    _zero(reduced, width * width)
    for group in range(job["n_groups"]):
        block, work = blocks[group * stride * stride :], every[group * stride * stride :]
        _read_own(job, block)
        for k in range(own):
            _mark(job, individual, _place(job, group, k), k, best)
        for row in range(size):
            stays = _stays(job, group, row)
            for column in range(row, stride):
                value = block[row * stride + column]
                left_out = stays or _stays(job, group, column) or not abs(value) < inf
                work[row * stride + column] = 0.0 if left_out else value
        _eliminate(work, own, size, damping, diagonals)
        for row in range(shared):
            for column in range(row, width):
                reduced[row * width + column] += work[(own + row) * stride + own + column]


def solve_blocks(job: Words, individual: int, blocks: Floats, best: Floats, damping: float, length: float) -> float:
    """Write the next trial.

    It returns the promise: how far the errors would fall if the formula were linear in its unknowns.
    """
    own, shared, size = job["own"], job["shared"], job["own"] + job["shared"]
    stride = size + 1
    every: Floats = job["work"]
    reduced: Floats = job["reduced"]
    totals: Floats = job["totals"]
    step: Floats = job["step"]
    reduce_blocks(job, individual, blocks, best, damping)
    _eliminate(reduced, shared, shared, damping, totals[own:])
    promise = _substitute(0.0, reduced, shared, shared, damping, totals[own:], step[own:], size)
    _move(job, individual, _place(job, 0, own), own, shared, best, length)
    for group in range(job["n_groups"]):
        _read_own(job, blocks[group * stride * stride :])
        work = every[group * stride * stride :]
        promise = _substitute(promise, work, own, size, damping, totals, step, size)
        _move(job, individual, group * own, 0, own, best, length)
    return promise


def _read_own(job: Words, block: Floats) -> None:
    """Read the diagonal and the products with the residual of a group's own unknowns, as they are in its block."""
    size = job["own"] + job["shared"]
    diagonals: Floats = job["totals"]
    for k in range(job["own"]):
        diagonals[k] = block[k * (size + 1) + k]
        diagonals[size + k] = block[k * (size + 1) + size]


def _place(job: Words, group: int, k: int) -> int:
    """The place among all unknowns of one of a group's own or of the shared ones."""
    own = job["own"]
    return group * own + k if k < own else (job["n_groups"] - 1) * own + k


def _mark(job: Words, individual: int, place: int, k: int, best: Floats) -> None:
    """Note whether an unknown stays where it is."""
    size, count = job["own"] + job["shared"], job["n_groups"] * job["own"] + job["shared"]
    fixed: Mask = job["fixed"]
    lows: Floats = job["lows"]
    highs: Floats = job["highs"]
    flags: Indices = job["flags"]
    diagonals: Floats = job["totals"]
    diagonal, slant, bound = diagonals[k], diagonals[size + k], individual * size + k
    free = 0.0 < diagonal < inf and abs(slant) < inf and not fixed[individual * count + place]
    below = best[place] <= lows[bound] and slant < 0.0
    above = best[place] >= highs[bound] and slant > 0.0
    flags[place] = not free or below or above


def _stays(job: Words, group: int, k: int) -> int:
    """Whether an unknown of a block stays; the residual does not."""
    flags: Indices = job["flags"]
    return k < job["own"] + job["shared"] and flags[_place(job, group, k)]


def _eliminate(matrix: Floats, count: int, size: int, damping: float, diagonals: Floats) -> None:
    """Eliminate the first unknowns from an upper triangle of equations, with the right sides after its columns.

    `diagonals` are those before any elimination.
    """
    stride = size + 1
    for k in range(count):
        undamped, whole = matrix[k * stride + k], diagonals[k]
        pivot = undamped + damping * whole
        # An unknown whose pivot is at most this share of its diagonal depends on those before it: it does not move.
        # A row of zeros is that of an unknown that stays.
        pivot = pivot if pivot > 1e-14 * whole and undamped > 0.0 else inf
        matrix[k * stride + k] = pivot
        for row in range(k + 1, size):
            factor = matrix[k * stride + row] / pivot
            for column in range(row, stride):
                matrix[row * stride + column] -= factor * matrix[k * stride + column]


def _substitute(
    promise: float,
    matrix: Floats,
    count: int,
    size: int,
    damping: float,
    diagonals: Floats,
    step: Floats,
    all_unknowns: int,
) -> float:
    """Compute the steps of unknowns, from the last one up; add what they promise.

    `diagonals`, and behind those of all unknowns the products with the residual, are those before any elimination.
    """
    for back in range(count):
        k = count - 1 - back
        row = matrix[k * (size + 1) :]
        total = row[size]
        for column in range(k + 1, size):
            total -= row[column] * step[column]
        usable = abs(row[k]) < inf
        step[k] = total / row[k] if usable else 0.0
        promise += step[k] * (diagonals[all_unknowns + k] + damping * diagonals[k] * step[k]) if usable else 0.0
    return promise


def _move(job: Words, individual: int, place: int, first: int, count: int, best: Floats, length: float) -> None:
    """Write the trial of some unknowns, within their bounds."""
    bound = individual * (job["own"] + job["shared"]) + first
    trial: Floats = job["trial"]
    step: Floats = job["step"]
    lows: Floats = job["lows"]
    highs: Floats = job["highs"]
    for k in range(count):
        moved = best[place + k] + length * step[first + k]
        trial[place + k] = max(lows[bound + k], min(highs[bound + k], moved))


def _zero(array: Floats, count: int) -> None:
    """Fill an array with zeros."""
    for place in range(count):
        array[place] = 0.0


def _copy(source: Floats, target: Floats, count: int) -> None:
    """Copy an array."""
    for place in range(count):
        target[place] = source[place]
