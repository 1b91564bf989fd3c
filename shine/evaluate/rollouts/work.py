"""Input and working memory of a rollout, and what all methods compute there.

An extended state is a vector of doubles: the states, padded to whole vectors, and then a row for each state with its
sensitivities: its derivatives by the constants and by the initial states, padded too.

Functions of words, numbers and arrays are kernels (see `shine.compiler.kernels`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import sqrt

import numpy as np

from shine.base.typing import Floats, Indices, Words

MEMORY = (
    "sizes", "inputs", "slopes", "floors", "vectors",
    "matrix", "rights", "shifts", "stage_rates", "jacobians", "by_constants",
    "first_rates", "first_jacobian",
)  # fmt: skip
"""Words of a system: where its arrays begin in the memory of a thread. Largest size of each state so far; arguments and
derivatives of the functions of the states; sizes below which errors of sensitivities are not relative; `VECTORS`
extended states; and what an implicit step needs (see `shine.evaluate.rollouts.implicit`)."""

SYSTEM = ("states", "controls", "constants", "width", "rows", "extended", "functions", "counts", *MEMORY)
"""Words of a system: numbers of states, controls and constants; padded number of the sensitivities of a state, 0 if
none are wanted; padded number of states; size of an extended state; addresses of the functions of the states, two each
(see `shine.evaluate.rollouts.rates`); number of constants in each state's function; and those of `MEMORY`."""

ITEM = (
    "given", "start", "times", "count", "breaks", "pieces", "last_break", "kinked", "scales", "states_out",
    "slopes_out", "progress", "tolerance", "most_steps", "method", "readings",
    "sharpness", "weights", "own", "equations",
)  # fmt: skip
"""Words of a rollout.

============================== ========================================================================
``given`` ``start``            constants; states at the first time
``times`` ``count``            times of the output, and their number
``breaks`` ``last_break``      times between which controls are polynomials; place of the last one
``pieces`` ``kinked``          coefficients of the polynomials, 4 a control, from the constant on; whether
                               steps must end at breaks
``scales``                     typical sizes of the states
``states_out`` ``slopes_out``  where states and sensitivities go
``progress``                   where the first four numbers of the progress go
``tolerance`` ``most_steps``   where the relative error of a step is; largest number of steps
``method``                     `AUTOMATIC`, `EXPLICIT`, `IMPLICIT` or `MAP`
``readings`` ``sharpness``     readings of the states at the times, and one over the sizes of their errors; 0 if
                               no equations are wanted
``weights``                    of the squared residuals of the states
``own``                        number of times whose residuals count in the plain sums
``equations``                  where the normal equations go (see `shine.evaluate.rollouts.native`)
============================== ========================================================================
"""

WORDS = (*ITEM, *SYSTEM)
"""Words of an item: of a rollout and of its system."""

ITEM_SIZE = len(WORDS)

AUTOMATIC, EXPLICIT, IMPLICIT, MAP = range(4)
"""Methods of an item: explicit steps, and implicit ones once the system turns out to be stiff; one of both; a map."""

REACHED, STATUS, STEPS, STIFF, PIECE = range(5)
"""Numbers of the progress: of times reached, which is the output that comes next; the status; of steps so far; whether
an implicit method was taken; the piece of the controls."""

TIME, STEP = range(2)
"""Numbers of the clock: the time reached, the step to try."""

DONE, TOO_SMALL, TOO_MANY, IS_STIFF = range(4)
"""Status of a method: all times reached; steps too small, as in front of a pole; too many steps; a stiff system, where
an explicit method is the wrong one."""

WIDTH = 4
"""Lanes of a vector; rows of matrices are padded to whole vectors."""

FLOOR = 1e-3
"""Share of the largest size of a state so far below which its error is not relative to its own size any more."""

LOOSER = 1e3
"""Tolerance of sensitivities in units of that of states: they direct a fit, and states tell how well it does."""

VECTORS = 10
"""Extended states in the memory of a thread."""

Rate = Callable[[Floats, Floats, Floats], float]
"""A function of a state (see `shine.evaluate.rollouts.rates`)."""


def padded(count: int) -> int:
    """A number of doubles that fills vectors."""
    return -(-count // WIDTH) * WIDTH


def system_words(states: int, controls: int, constants: int, functions: int, counts: int, wanted: bool) -> list[int]:
    """The words of a system, for rollouts whose sensitivities are wanted or not; then the doubles of a thread's memory.

    `functions` and `counts` are addresses.
    """
    width, rows, stages = padded(states + constants) if wanted else 0, padded(states), 3 * states
    extended = rows + states * width
    small = rows, states + controls + 1, states + constants, width, VECTORS * extended
    implicit = stages * stages, stages * max(width, WIDTH), stages, stages, stages * states, stages * width
    places = accumulate(map(padded, (*small, *implicit, states, states * states)), initial=0)
    return [states, controls, constants, width, rows, extended, functions, counts, *places]


def rates(item: Words, memory: Floats, progress: Indices, time: float, source: Floats, target: Floats) -> None:
    """Write the time derivative of an extended state.

    That of the sensitivities is the Jacobian times them, and the derivatives by the constants.
    """
    fill_inputs(item, memory, progress, time, source)
    states, width, rows = item["states"], item["width"], item["rows"]
    functions: Indices = item["functions"]
    counts: Indices = item["counts"]
    constants: Floats = item["given"]
    inputs, slopes = memory[item["inputs"] :], memory[item["slopes"] :]
    first = 0
    for state in range(states):
        function: Rate = functions[2 * state + (width > 0)]
        target[state] = function(inputs, constants[first:], slopes)
        if width:
            row = target[rows + state * width :]
            for column in range(0, width, WIDTH):
                total = np.zeros(WIDTH)
                for other in range(states):
                    total = total + slopes[other] * source[rows + other * width + column :][:WIDTH]
                row[column:][:WIDTH] = total
            for constant in range(counts[state]):
                row[first + constant] += slopes[states + constant]
        first += counts[state]


def fill_inputs(item: Words, memory: Floats, progress: Indices, time: float, source: Floats) -> None:
    """Write states, controls and time to where the functions of the states read them."""
    states, controls = item["states"], item["controls"]
    inputs = memory[item["inputs"] :]
    for state in range(states):
        inputs[state] = source[state]
    if controls:
        if not item["kinked"]:
            find_piece(item, progress, time)
        breaks: Floats = item["breaks"]
        pieces: Floats = item["pieces"]
        since = min(max(time, breaks[0]), breaks[item["last_break"]]) - breaks[progress[PIECE]]
        for control in range(controls):
            own = pieces[(progress[PIECE] * controls + control) * 4 :]
            inputs[states + control] = ((own[3] * since + own[2]) * since + own[1]) * since + own[0]
    inputs[states + controls] = time


def find_piece(item: Words, progress: Indices, time: float) -> None:
    """Let the piece of the controls be the one that begins at a time or contains it; the search starts at the last."""
    breaks: Floats = item["breaks"]
    while progress[PIECE] < item["last_break"] - 1 and breaks[progress[PIECE] + 1] <= time:
        progress[PIECE] += 1
    while progress[PIECE] > 0 and time < breaks[progress[PIECE]]:
        progress[PIECE] -= 1


def error_norm(item: Words, memory: Floats, before: Floats, after: Floats, error: Floats) -> float:
    """The error of a step in units of what is allowed; NaN if a state is not finite."""
    states, width, rows = item["states"], item["width"], item["rows"]
    sizes, floors = memory[item["sizes"] :], memory[item["floors"] :]
    tolerance: Floats = item["tolerance"]
    total = 0.0
    for state in range(states):
        size = max(abs(before[state]), abs(after[state]))
        size = max(size, max(sizes[state], size) * FLOOR)
        # The state itself must be finite: NaN would be no larger than anything.
        ratio = error[state] / (size * tolerance[0] + 1e-300) + (after[state] - after[state])
        total += ratio * ratio
    total = sqrt(total / states)
    worst = np.zeros(WIDTH)
    for column in range(0, width, WIDTH):
        largest, wrong = np.zeros(WIDTH), np.zeros(WIDTH)
        for state in range(states):
            place = rows + state * width + column
            unit = 1.0 / (max(sizes[state], abs(after[state])) + 1e-300)
            largest = larger(largest, abs(after[place:][:WIDTH]) * unit)
            wrong = larger(wrong, abs(error[place:][:WIDTH]) * unit)
        allowed = larger(largest, floors[column:][:WIDTH]) * (tolerance[0] * LOOSER) + 1e-300
        worst = larger(worst, wrong / allowed)
    lanes = np.empty(4)
    lanes[:WIDTH] = worst
    for lane in (0, 1, 2, 3):
        total = max(total, lanes[lane])
    return total


def larger(a: Floats, b: Floats) -> Floats:
    """The larger numbers; those of `a` where `b` is NaN."""
    return np.where(b > a, b, a)


def note_sizes(item: Words, memory: Floats, state: Floats) -> None:
    """Keep the largest size of each state so far."""
    sizes = memory[item["sizes"] :]
    for place in range(item["states"]):
        sizes[place] = max(sizes[place], abs(state[place]))


def copy(source: Floats, target: Floats, count: int) -> None:
    """Copy an extended state."""
    for place in range(0, count, WIDTH):
        target[place:][:WIDTH] = source[place:][:WIDTH]


def write(item: Words, row: int, source: Floats) -> None:
    """Write an extended state to a row of the output."""
    states, width = item["states"], item["width"]
    states_out: Floats = item["states_out"]
    for state in range(states):
        states_out[row * states + state] = source[state]
    if width:
        columns = item["constants"] + states
        slopes_out: Floats = item["slopes_out"]
        for state in range(states):
            own, to = source[item["rows"] + state * width :], slopes_out[(row * states + state) * columns :]
            for column in range(columns):
                to[column] = own[column]


def write_reached(item: Words, progress: Indices, time: float, source: Floats) -> None:
    """Write an extended state to all rows of the output that come next and whose times are reached: times may
    repeat."""
    times: Floats = item["times"]
    while progress[REACHED] < item["count"] and times[progress[REACHED]] <= time:
        write(item, progress[REACHED], source)
        progress[REACHED] += 1
