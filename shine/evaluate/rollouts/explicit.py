"""The explicit method: Runge-Kutta of order 5 with an error estimate of order 4 and dense output.

The pair is that of Dormand and Prince (1980), the dense output of order 4, the choice of steps and the test for
stiffness are those of Hairer, Norsett and Wanner, *Solving Ordinary Differential Equations I* (1993), sections II.4 to
II.6, and II (1996), section IV.2. Sensitivities are integrated by the same steps, so that they are the derivatives of
what is computed.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from shine.base.typing import Floats, Indices, Words
from shine.evaluate.rollouts.work import (
    AUTOMATIC,
    DONE,
    IS_STIFF,
    PIECE,
    REACHED,
    STEP,
    STEPS,
    TIME,
    TOO_MANY,
    TOO_SMALL,
    WIDTH,
    copy,
    error_norm,
    find_piece,
    note_sizes,
    rates,
    write,
)

COUNT = 7
"""Number of stages; the last one is at the end of the step, and the first one of the next step."""

TIMES = np.array([0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0])
STAGES = np.array([
    0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
    1 / 5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
    3 / 40, 9 / 40, 0.0, 0.0, 0.0, 0.0, 0.0,
    44 / 45, -56 / 15, 32 / 9, 0.0, 0.0, 0.0, 0.0,
    19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0.0, 0.0, 0.0,
    9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0.0, 0.0,
    35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0,
])  # fmt: skip
"""Times and weights of the stages, a row each; the last row is the step."""

ERROR = np.array([71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
DENSE = np.array([
    -12715105075 / 11282082432, 0.0, 87487479700 / 32700410799, -10690763975 / 1880347072,
    701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423,
])  # fmt: skip
"""Weights of the stages in the error estimate, and in the last term of the dense output."""

STIFF_STEPS, CALM_STEPS = 15, 6
"""Steps near the border that make a system stiff, and steps away from it after which counting begins again."""

SAFETY, LEAST, MOST = 0.9, 0.2, 10.0


def explicit(item: Words, memory: Floats, clock: Floats, progress: Indices) -> int:
    """Take steps from the time of the clock, where the first vector is the extended state, and write the output; the
    status."""
    count, extended = item["count"], item["extended"]
    times: Floats = item["times"]
    end, span = times[count - 1], times[count - 1] - times[0]
    state = memory[item["vectors"] :]
    k = state[extended:]
    last_stage, argument, after = k[6 * extended :], k[7 * extended :], k[8 * extended :]
    status, near, calm, last, most = DONE, 0, 0, 1e-4, MOST
    rates(item, memory, progress, clock[TIME], state, k)
    if not clock[STEP] > 0.0:
        clock[STEP] = first_step(item, state, k, span)
    while progress[REACHED] < count:
        if progress[STEPS] >= item["most_steps"]:
            status = TOO_MANY
            break
        progress[STEPS] += 1
        now, step = clock[TIME], clock[STEP]
        goal = next_stop(item, progress, end)
        reaches = goal - now <= step * 1.01
        h = goal - now if reaches else step
        if not h > 0.0 or (is_too_small(h, now, span) and not reaches):
            status = TOO_SMALL
            break
        for stage in (1, 2, 3, 4, 5, 6):
            take_stage(item, memory, progress, now, h, stage, after if stage == 6 else argument)
        # The argument of the sixth stage is still there: the test for stiffness compares both at the end of the step.
        product = h * steepness(item, memory, after, argument, last_stage, k[5 * extended :])
        for place in range(0, extended, WIDTH):
            argument[place:][:WIDTH] = weighted(h, ERROR, k[place:], extended)
        error = error_norm(item, memory, state, after, argument)
        if error <= 1.0:
            then = goal if reaches else now + h
            write_dense(item, progress, state, argument, now, h, then)
            note_sizes(item, memory, after)
            copy(after, state, extended)
            clock[TIME] = then
            # Exponents of the error of a step and of the one before in the choice of the next step
            factor = power(error, -0.17) * power(last, 0.04) * SAFETY
            # A step that was cut short tells nothing about a larger one than the one before it.
            grown = h * min(max(factor, LEAST), most)
            clock[STEP] = max(grown, step) if reaches and h < step else grown
            last, most = max(error, 1e-4), MOST
            # Step times the largest eigenvalue near the border of stability, 3.3: steps of a stiff system hover below
            # it.
            calm = 0 if product > 2.0 else calm + 1
            near = near + 1 if product > 2.0 else (0 if calm >= CALM_STEPS else near)
            if item["controls"]:
                find_piece(item, progress, then)
                rates(item, memory, progress, then, state, k)
            else:
                copy(last_stage, k, extended)
        else:
            factor = max(power(error, -0.2) * SAFETY, LEAST)
            # After a failure, even one without a number, steps do not grow at once.
            clock[STEP] = h * (factor if factor <= 1.0 else LEAST)
            most = 1.0
        if near >= STIFF_STEPS and item["method"] == AUTOMATIC:
            status = IS_STIFF
            break
    return status


def take_stage(
    item: Words, memory: Floats, progress: Indices, now: float, h: float, stage: int, argument: Floats
) -> None:
    """Write the argument of a stage, and its rates."""
    extended = item["extended"]
    state = memory[item["vectors"] :]
    k = state[extended:]
    for place in range(0, extended, WIDTH):
        argument[place:][:WIDTH] = state[place:][:WIDTH] + weighted(h, STAGES[COUNT * stage :], k[place:], extended)
    rates(item, memory, progress, now + h * TIMES[stage], argument, k[stage * extended :])


def weighted(h: float, weights: Floats, k: Floats, extended: int) -> Floats:
    """A step times a weighted sum of the rates of the stages."""
    total = h * weights[0] * k[:WIDTH]
    for stage in (1, 2, 3, 4, 5, 6):
        if weights[stage] != 0.0:
            total = total + h * weights[stage] * k[stage * extended :][:WIDTH]
    return total


def is_too_small(h: float, now: float, span: float) -> int:
    """Whether a step leads nowhere."""
    # Smallest step in units of the time, and of the span
    return not h > max(abs(now) * 1e-15, span * 1e-20)


def next_stop(item: Words, progress: Indices, end: float) -> float:
    """The end, or the next break of controls that steps must not cross."""
    breaks: Floats = item["breaks"]
    stop = end
    if item["kinked"] and progress[PIECE] + 1 < item["last_break"]:
        stop = min(end, breaks[progress[PIECE] + 1])
    return stop


def first_step(item: Words, state: Floats, rate: Floats, span: float) -> float:
    """A hundredth of the shortest time in which a state changes by its own size."""
    step = span * 0.01
    for place in range(item["states"]):
        here = abs(state[place] / rate[place]) * 0.01
        step = min(step, here) if here > 0.0 else step
    return max(step, span * 1e-6)


def power(base: float, exponent: float) -> float:
    """A power; of 0 the one that makes a step grow."""
    return max(1e-10, base) ** exponent


def steepness(
    item: Words, memory: Floats, state: Floats, other: Floats, state_rates: Floats, other_rates: Floats
) -> float:
    """An estimate of the largest eigenvalue, from two states at the end of a step and their rates."""
    sizes = memory[item["sizes"] :]
    above, below = 0.0, 0.0
    for place in range(item["states"]):
        unit = 1.0 / (max(sizes[place], abs(state[place])) + 1e-300)
        faster, further = (state_rates[place] - other_rates[place]) * unit, (state[place] - other[place]) * unit
        above += faster * faster
        below += further * further
    return sqrt(above / (below + 1e-300))


def write_dense(
    item: Words, progress: Indices, state: Floats, found: Floats, now: float, h: float, then: float
) -> None:
    """Write the output at all times that a step has passed; `found` has room for it."""
    times: Floats = item["times"]
    extended = item["extended"]
    k = state[extended:]
    weights = np.empty(7)
    while progress[REACHED] < item["count"] and not times[progress[REACHED]] > then:
        share = (times[progress[REACHED]] - now) / h
        for stage in (0, 2, 3, 4, 5, 6):  # the second stage has no weight
            own, first = STAGES[COUNT * 6 + stage], 1.0 if stage == 0 else 0.0
            bent = 2.0 * own - first - (1.0 if stage == 6 else 0.0)
            inner = share * ((1.0 - share) * DENSE[stage] + bent) + (first - own)
            weights[stage] = h * share * ((1.0 - share) * inner + own)
        for place in range(0, extended, WIDTH):
            total = weights[0] * k[place:][:WIDTH]
            for stage in (2, 3, 4, 5, 6):
                total = total + weights[stage] * k[stage * extended + place :][:WIDTH]
            found[place:][:WIDTH] = state[place:][:WIDTH] + total
        write(item, progress[REACHED], found)
        progress[REACHED] += 1
