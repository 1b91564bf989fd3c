"""The implicit method for stiff systems: Radau IIA with three stages, of order 5.

The method and its error estimate are those of Hairer and Wanner, *Solving Ordinary Differential Equations II* (1996),
section IV.8. Systems have few states, so Newton's method solves the equations of all stages together, with exact
Jacobians; the sensitivities of a step solve the same equations, linearized where it ended. Steps end at the times of
the output: the polynomial between them has a lower order.

Each stage has a shift of the states from those before the step, rates, a Jacobian and derivatives by the constants. The
matrix and the right sides are those of the equations to solve.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from shine.base.typing import Floats, Indices, Words
from shine.evaluate.rollouts.explicit import first_step, is_too_small, next_stop, power
from shine.evaluate.rollouts.work import (
    DONE,
    FLOOR,
    REACHED,
    STEP,
    STEPS,
    TIME,
    TOO_MANY,
    TOO_SMALL,
    WIDTH,
    Rate,
    copy,
    error_norm,
    fill_inputs,
    find_piece,
    note_sizes,
    rates,
    write_reached,
)

_ROOT = sqrt(6)
TIMES = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0])
STAGES = np.array([
    (88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225,
    (296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225,
    (16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9,
])  # fmt: skip
"""Times and weights of the stages, a row each."""

REAL = 1 / (3 + 3 ** (2 / 3) - 3 ** (1 / 3))
"""The real eigenvalue of the weights."""
ERROR = np.array([REAL * part / 3 for part in (-13 - 7 * _ROOT, -13 + 7 * _ROOT, -1)])
"""Weights of the stages in the error estimate."""

CONVERGED = 1e-3
"""Last correction of Newton's method, in units of the allowed error."""

SAFETY, LEAST, MOST = 0.9, 0.2, 8.0


def implicit(item: Words, memory: Floats, clock: Floats, progress: Indices) -> int:
    """Take up a rollout where the clock and the first vector have it, and write the output; the status."""
    states, extended, count = item["states"], item["extended"], item["count"]
    times: Floats = item["times"]
    end, span = times[count - 1], times[count - 1] - times[0]
    state = memory[item["vectors"] :]
    error, after = state[7 * extended :], state[9 * extended :]
    shifts = memory[item["shifts"] :]
    status, most = DONE, MOST
    for place in range(extended):
        error[place] = 0.0
    if not clock[STEP] > 0.0:
        rates(item, memory, progress, clock[TIME], state, state[extended:])
        clock[STEP] = first_step(item, state, state[extended:], span)
    while progress[REACHED] < count:
        if progress[STEPS] >= item["most_steps"]:
            status = TOO_MANY
            break
        progress[STEPS] += 1
        now, step = clock[TIME], clock[STEP]
        goal = min(next_stop(item, progress, end), times[progress[REACHED]])
        reaches = goal - now <= step * 1.01
        h = goal - now if reaches else step
        if not h > 0.0 or (is_too_small(h, now, span) and not reaches):
            status = TOO_SMALL
            break
        converged = find_shifts(item, memory, progress, now, h)
        for place in range(states):
            after[place] = state[place] + shifts[2 * states + place]
        norm = estimated(item, memory, progress, now, h)
        factor = max(power(norm, -0.25) * SAFETY, LEAST)
        if norm <= 1.0 and converged:
            then = goal if reaches else now + h
            if item["width"] > 0:
                advance_sensitivities(item, memory, progress, now, h)
            note_sizes(item, memory, after)
            copy(after, state, extended)
            clock[TIME] = then
            if item["controls"]:
                find_piece(item, progress, then)
            write_reached(item, progress, then, state)
            grown = h * min(factor, most)
            clock[STEP] = max(grown, step) if reaches and h < step else grown
            most = MOST
        else:
            clock[STEP] = h * (factor if converged and factor <= 1.0 else LEAST)
            most = 1.0
    return status


def find_shifts(item: Words, memory: Floats, progress: Indices, now: float, h: float) -> int:
    """Find the shifts of the stages by Newton's method; whether it converged."""
    states = item["states"]
    state, sizes = memory[item["vectors"] :], memory[item["sizes"] :]
    matrix, rights, shifts = memory[item["matrix"] :], memory[item["rights"] :], memory[item["shifts"] :]
    stage_rates = memory[item["stage_rates"] :]
    tolerance: Floats = item["tolerance"]
    for place in range(3 * states):
        shifts[place] = 0.0
    correction, iterations = 1.0, 0
    # When a number is missing, it ends, too.
    while iterations < 12 and correction > CONVERGED:
        iterations += 1
        linearize_stages(item, memory, progress, now, h)
        fill_matrix(item, memory, h)
        for place in range(states):
            for stage in (0, 1, 2):
                total = 0.0
                for other in (0, 1, 2):
                    total += stage_rates[other * states + place] * STAGES[3 * stage + other]
                own = stage * states + place
                # One right side fills a vector.
                rights[own * WIDTH :][:WIDTH] = 0.0
                rights[own * WIDTH] = h * total - shifts[own]
        solve(matrix, rights, 3 * states, WIDTH)
        total = 0.0
        for stage in (0, 1, 2):
            for place in range(states):
                own = stage * states + place
                change = rights[own * WIDTH]
                shifts[own] += change
                size = max(abs(state[place]), max(sizes[place], abs(state[place])) * FLOOR)
                size = max(size, abs(shifts[own]))
                ratio = change / (size * tolerance[0] + 1e-300)
                total += ratio * ratio
        correction = sqrt(total / (3 * states))
    return correction <= CONVERGED


def linearize_stages(item: Words, memory: Floats, progress: Indices, now: float, h: float) -> None:
    """Write the rates, Jacobians and derivatives of all stages."""
    states, width = item["states"], item["width"]
    state = memory[item["vectors"] :]
    argument, shifts = state[8 * item["extended"] :], memory[item["shifts"] :]
    for stage in (0, 1, 2):
        for place in range(states):
            argument[place] = state[place] + shifts[stage * states + place]
        stage_rates = memory[item["stage_rates"] + stage * states :]
        jacobian = memory[item["jacobians"] + stage * states * states :]
        by_constants = memory[item["by_constants"] + stage * states * width :]
        linearize(item, memory, progress, now + h * TIMES[stage], argument, stage_rates, jacobian, by_constants)


def linearize(
    item: Words,
    memory: Floats,
    progress: Indices,
    time: float,
    state: Floats,
    state_rates: Floats,
    jacobian: Floats,
    by_constants: Floats,
) -> None:
    """Write the rates of the states, their derivatives by the states, shape (states, states), and by the constants,
    shape (states, width); the latter are left out if no sensitivities are wanted."""
    fill_inputs(item, memory, progress, time, state)
    states, width = item["states"], item["width"]
    functions: Indices = item["functions"]
    counts: Indices = item["counts"]
    constants: Floats = item["given"]
    inputs, slopes = memory[item["inputs"] :], memory[item["slopes"] :]
    first = 0
    for row in range(states):
        function: Rate = functions[2 * row + 1]
        state_rates[row] = function(inputs, constants[first:], slopes)
        for other in range(states):
            jacobian[row * states + other] = slopes[other]
        own = by_constants[row * width :]
        for column in range(width):
            own[column] = 0.0
        if width:
            for constant in range(counts[row]):
                own[first + constant] += slopes[states + constant]
        first += counts[row]


def fill_matrix(item: Words, memory: Floats, h: float) -> None:
    """Write the matrix of the equations of all stages: ones less the weighted Jacobians."""
    states = item["states"]
    matrix, jacobians = memory[item["matrix"] :], memory[item["jacobians"] :]
    for stage in (0, 1, 2):
        for other in (0, 1, 2):
            jacobian = jacobians[other * states * states :]
            weight = h * STAGES[3 * stage + other]
            for row in range(states):
                entries = matrix[((stage * states + row) * 3 + other) * states :]
                for column in range(states):
                    one = 1.0 if stage == other and row == column else 0.0
                    entries[column] = one - weight * jacobian[row * states + column]


def estimated(item: Words, memory: Floats, progress: Indices, now: float, h: float) -> float:
    """The norm of the error estimate; one that is too large is filtered once more, as for stiff systems it must."""
    states, extended = item["states"], item["extended"]
    state = memory[item["vectors"] :]
    error, argument, after = state[7 * extended :], state[8 * extended :], state[9 * extended :]
    first_rates, stage_rates = memory[item["first_rates"] :], memory[item["stage_rates"] :]
    first_jacobian, by_constants = memory[item["first_jacobian"] :], memory[item["by_constants"] :]
    linearize(item, memory, progress, now, state, first_rates, first_jacobian, by_constants)
    estimate(item, memory, h, first_rates, error)
    norm = error_norm(item, memory, state, after, error)
    if norm > 1.0:
        for place in range(states):
            argument[place] = state[place] + error[place]
        linearize(item, memory, progress, now, argument, stage_rates, memory[item["jacobians"] :], by_constants)
        estimate(item, memory, h, stage_rates, error)
        norm = error_norm(item, memory, state, after, error)
    return norm


def estimate(item: Words, memory: Floats, h: float, state_rates: Floats, error: Floats) -> None:
    """Write the error estimate that rates lead to."""
    states = item["states"]
    matrix, rights, shifts = memory[item["matrix"] :], memory[item["rights"] :], memory[item["shifts"] :]
    first_jacobian = memory[item["first_jacobian"] :]
    scaled = h * REAL
    for row in range(states):
        for column in range(states):
            one = 1.0 if row == column else 0.0
            matrix[row * states + column] = one - scaled * first_jacobian[row * states + column]
        total = scaled * state_rates[row]
        for stage in (0, 1, 2):
            total += shifts[stage * states + row] * ERROR[stage]
        rights[row * WIDTH :][:WIDTH] = 0.0
        rights[row * WIDTH] = total
    solve(matrix, rights, states, WIDTH)
    for row in range(states):
        error[row] = rights[row * WIDTH]


def advance_sensitivities(item: Words, memory: Floats, progress: Indices, now: float, h: float) -> None:
    """Write the sensitivities after a step: the derivatives of the equations that its stages solve."""
    states, width, block = item["states"], item["width"], item["states"] * item["width"]
    state = memory[item["vectors"] + item["rows"] :]
    after = state[9 * item["extended"] :]
    rights, by_constants = memory[item["rights"] :], memory[item["by_constants"] :]
    linearize_stages(item, memory, progress, now, h)
    fill_matrix(item, memory, h)
    for row in range(3 * states):
        jacobian = memory[item["jacobians"] + row * states :]
        own = by_constants[row * width :]
        for column in range(0, width, WIDTH):
            total = own[column:][:WIDTH]
            for other in range(states):
                total = total + jacobian[other] * state[other * width + column :][:WIDTH]
            own[column:][:WIDTH] = total
    for stage in (0, 1, 2):
        first, second, third = h * STAGES[3 * stage], h * STAGES[3 * stage + 1], h * STAGES[3 * stage + 2]
        for place in range(0, block, WIDTH):
            total = first * by_constants[place:][:WIDTH] + second * by_constants[block + place :][:WIDTH]
            rights[stage * block + place :][:WIDTH] = total + third * by_constants[2 * block + place :][:WIDTH]
    solve(memory[item["matrix"] :], rights, 3 * states, width)
    for place in range(0, block, WIDTH):
        after[place:][:WIDTH] = state[place:][:WIDTH] + rights[2 * block + place :][:WIDTH]


def solve(matrix: Floats, rights: Floats, size: int, width: int) -> None:
    """Gaussian elimination with partial pivoting.

    `matrix` is overwritten, `rights` of shape (size, width) becomes the solution; it is not finite if the matrix is
    singular.
    """
    for pivot in range(size):
        own = matrix[pivot * size :]
        best, most = pivot, 0.0
        for row in range(pivot, size):
            here = abs(matrix[row * size + pivot])
            if here > most:
                best, most = row, here
        if best > pivot:
            exchange(own, matrix[best * size :], size)
            exchange(rights[pivot * width :], rights[best * width :], width)
        inverse = 1.0 / own[pivot]
        for row in range(pivot + 1, size):
            below = matrix[row * size :]
            factor = below[pivot] * inverse
            for column in range(pivot + 1, size):
                below[column] -= factor * own[column]
            subtract(rights[row * width :], factor, rights[pivot * width :], width)
    for back in range(size):
        row = size - 1 - back
        found = rights[row * width :]
        for column in range(row + 1, size):
            subtract(found, matrix[row * size + column], rights[column * width :], width)
        inverse = 1.0 / matrix[row * size + row]
        for place in range(0, width, WIDTH):
            found[place:][:WIDTH] = found[place:][:WIDTH] * inverse


def exchange(a: Floats, b: Floats, count: int) -> None:
    """Exchange two rows."""
    for place in range(count):
        a[place], b[place] = b[place], a[place]


def subtract(row: Floats, factor: float, other: Floats, count: int) -> None:
    """Subtract a multiple of another row from a row."""
    for place in range(0, count, WIDTH):
        row[place:][:WIDTH] = row[place:][:WIDTH] - factor * other[place:][:WIDTH]
