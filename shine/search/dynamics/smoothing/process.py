"""States and rates of noisy readings: Gaussian processes whose scale of time and noise are the likeliest.

The covariance is the rational quadratic one, ``1 / (1 + (t - s)**2 / (2 * scale**2))``: a mixture of smooth functions
of all scales of time around `scale`, for motions with fast and slow parts (Rasmussen and Williams 2006, 4.2.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import dot, exp, inner, log

SCALES, RATIOS = 12, 14
"""Scales of time that are tried, from two steps to the whole run, and ratios of the noise to the motion."""

LEAST_RATIO = 1e-4
"""Least standard deviation of the noise, as a share of the motion's: rounding allows no less."""

MARGIN = 24
"""Readings beyond the ends of a block that its curve is smoothed with."""

BLOCK = 128
"""Readings of a run that are smoothed together: the time grows with their cube."""

LEARNED, MOST_LEARNED = 64, 5
"""Neighbouring readings that tell the scales together, and most such parts of all runs."""

PART_SECONDS = 0.06
"""Time that a part takes."""

BEGINNINGS = (0.01, 0.1)
"""Lengths of fast beginnings that are tried, as shares of the longest run: from there on, motion slows down with the
logarithm of the time."""

SMALL = 0.1
"""Least noise of a reading, as a share of the mean reading's, where noise grows with the values."""

CONVINCING = 3.0
"""Nats by which noise that grows with the values must explain the readings better."""

Run = tuple[Floats, Floats]
"""Times and readings."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A state, its rate and the rate of that at some times.

    Parameters
    ----------
    values, rates, bends : ndarray of shape (n_times,)
    value_errors, rate_errors, bend_errors : ndarray of shape (n_times,)
        Standard errors.
    independent : float
        Number of independent rates among them: fewer than the readings if these are smoothed.
    """

    values: Floats
    rates: Floats
    bends: Floats
    value_errors: Floats
    rate_errors: Floats
    bend_errors: Floats
    independent: float


@dataclass(frozen=True, eq=False)
class Process:
    """Motion and noise of a state, estimated from its readings in all runs.

    Parameters
    ----------
    mean : float
        Of all readings.
    scale : float
        Scale of time.
    motion : float
        Standard deviation of the motion.
    noise : float
        Standard deviation of the readings' noise; its root mean square if it grows with the values.
    grows : bool
        Whether the noise grows with the values.
    size : float
        Root mean square of the readings.
    beginning : float
        Length of the fast beginning of each run; inf for motions that stay as fast as they are. Scales of time are
        those of ``log(1 + t/beginning)`` then.
    """

    mean: float
    scale: float
    motion: float
    noise: float
    grows: bool = False
    size: float = 1.0
    beginning: float = math.inf

    def noise_at(self, values: Floats) -> Floats:
        """Standard deviation of the noise of readings of some values."""
        return self.noise * _levels(values, self.size) if self.grows else np.full(len(values), self.noise)

    def curve(self, times: Floats, readings: Floats, at: Floats) -> Curve:
        """The state and its rates at some times of a run, by its readings; shapes (n_readings,) and (n_times,)."""
        first, slope = float(times[0]), _speed(at - times[0], self.beginning)
        turn = np.zeros(len(at)) if self.beginning == math.inf else -slope * slope
        times, at = (_warped(each - first, self.beginning) for each in (times, at))
        pieces = [self._piece(times, readings, at, first) for first in range(0, len(times), BLOCK)]
        values, rates, bends, value_errors, rate_errors, bend_errors = (
            np.concatenate(each) for each in zip(*(piece[:6] for piece in pieces), strict=True)
        )
        bends = bends * slope**2 + rates * turn
        bend_errors = np.sqrt((bend_errors * slope**2) ** 2 + (rate_errors * turn) ** 2)
        independent = float(sum(piece[6] for piece in pieces))
        return Curve(values, rates * slope, bends, value_errors, rate_errors * slope, bend_errors, independent)

    def left_out_errors(self, times: Floats, readings: Floats) -> Floats:
        """Errors of the readings as the others predict them, shape (n_readings,)."""
        found, times = [], _warped(times - times[0], self.beginning)
        for first in range(0, len(times), BLOCK):
            block = slice(first, first + BLOCK)
            inverse = _inverse(self._covariance(times[block], readings[block]))[0]
            found.append(dot(inverse, readings[block] - self.mean) / np.diagonal(inverse))
        return np.abs(np.concatenate(found))

    def _covariance(self, times: Floats, readings: Floats) -> Floats:
        noise = self.noise_at(readings)
        return self.motion**2 * _smooth(times, self.scale) + np.diag(noise**2)

    def _piece(self, times: Floats, readings: Floats, at: Floats, first: int) -> tuple[Floats, ...]:
        """Values, two derivatives, standard errors and independent number in a block, by it and the margins around."""
        last = min(first + BLOCK, len(times))
        start = -math.inf if first == 0 else times[first]
        end = math.inf if last == len(times) else times[last]
        near = slice(max(first - MARGIN, 0), last + MARGIN)
        at = at[(at >= start) & (at < end)]
        times, readings = times[near], readings[near]
        own = self._covariance(times, readings)
        for grown in (1.0, 1e2, 1e4):  # rounding may make an almost singular matrix indefinite
            inverse, logarithm = _inverse(
                own + np.diag(np.full(len(own), (grown - 1) * (LEAST_RATIO * self.motion) ** 2))
            )
            if math.isfinite(logarithm):
                break
        kernel, slope, bend = _kernel(at, times, self.scale)
        square = self.motion**2
        weights = dot(inverse, (readings - self.mean))
        # Covariances of a value and its derivatives with the readings, and their variances before any reading.
        parts = (1 + kernel, 2.0), (slope, 1 / self.scale**2), (bend, 6 / (self.scale**2) ** 2)
        variances = [square * before - square**2 * dot(inner(own, inverse), own) for own, before in parts]
        # Smoothing is a projection on about so many directions.
        share = dot(inverse, square * _smooth(times, self.scale))
        kept = float(np.add.reduce(share)) * (last - first) / len(times)
        value, rate, second = (square * dot(own, weights) for own, _ in parts)
        return (self.mean + value, rate, second, *(np.sqrt(np.maximum(each, 0)) for each in variances), np.array(kept))


def process_of(runs: Sequence[Run], sigma: float | None = None, parts: int = MOST_LEARNED) -> Process:
    """The likeliest process of some runs' readings of a state.

    Parameters
    ----------
    runs : sequence of (ndarray, ndarray)
        Times and readings of each.
    sigma : float, optional
        Known standard deviation of the noise.
    parts : int
        Most parts of all runs that tell the scales.
    """
    readings = np.concatenate([values for _, values in runs])
    mean = float(np.add.reduce(readings) / len(readings))
    size = math.sqrt(float(np.add.reduce(readings**2)) / len(readings))
    blocks = [(times, values - mean) for times, values in _parts(runs, parts)]
    longest = max(float(times[-1] - times[0]) for times, _ in runs)
    found: list[tuple[float, Process]] = []
    for beginning in (math.inf, *(share * longest for share in BEGINNINGS)):
        even, nats = _likeliest([(_warped(times, beginning), values) for times, values in blocks], None, sigma)
        price = 0.0 if beginning == math.inf else CONVINCING
        found.append((nats + price, Process(mean, *even, size=size, beginning=beginning)))
    least, process = min(found, key=lambda each: each[0])
    if sigma is not None or not readings.min() < readings.max():
        return process
    beginning = process.beginning
    warped = [(_warped(times, beginning), values) for times, values in blocks]
    plain = replace(process, beginning=math.inf)
    smoothed = [plain.curve(times, values + mean, times).values for times, values in warped]
    growing, nats = _likeliest(warped, [_levels(values, size) for values in smoothed])
    return Process(mean, *growing, True, size, beginning) if nats < least - CONVINCING else process


def saved_nats(runs: Sequence[Run], noise: float, least: float, parts: int) -> list[float]:
    """Nats of a reading that two kinds of curve save, where each reading is foretold by those before it: smooth curves,
    and such as follow their last value and chance (Uhlenbeck and Ornstein 1930).

    Parameters
    ----------
    runs : sequence of (ndarray, ndarray)
        Times, and readings with the mean 0 and the variance 1.
    noise : float
        Standard deviation of their noise about a smooth curve.
    least : float
        The least one that counts.
    parts : int
        As of `process_of`.
    """
    blocks = _parts(runs, parts)
    count = sum(len(values) for _, values in blocks)
    kinds = (_smooth, max(noise, least)), (_rough, least)
    return [0.5 - _likeliest(blocks, None, own, kernel)[1] / count for kernel, own in kinds]


def _parts(runs: Sequence[Run], most: int) -> list[Run]:
    """At most so many parts of all runs, which tell the scales; times since the run began."""
    pieces = [(run, slice(first, first + LEARNED)) for run in runs for first in range(0, len(run[0]), LEARNED)]
    chosen = np.unique(np.linspace(0, len(pieces) - 1, most).astype(int)).tolist()
    return [(times[part] - times[0], values[part]) for (times, values), part in map(pieces.__getitem__, chosen)]


def _warped(since: Floats, beginning: float) -> Floats:
    """Times since the beginning of a run on the scale on which the motion keeps its pace."""
    return since if beginning == math.inf else log(1 + np.maximum(since, 0.0) / beginning)


def _speed(since: Floats, beginning: float) -> Floats:
    """Derivative of `_warped`."""
    return np.ones(len(since)) if beginning == math.inf else 1 / (beginning + np.maximum(since, 0.0))


def _levels(values: Floats, size: float) -> Floats:
    """Noise at some values in units of that at the root mean square."""
    return np.sqrt(((values / size) ** 2 + SMALL**2) / (1 + SMALL**2))


def _smooth(times: Floats, scale: float) -> Floats:
    """Covariances of a smooth motion about an unknown mean."""
    return 1 + _kernel(times, times, scale)[0]


def _rough(times: Floats, scale: float) -> Floats:
    """Those of one that follows its last value and chance."""
    return 1 + exp(-np.abs(times[:, None] - times) / scale)


def _likeliest(
    blocks: Sequence[Run],
    levels: Sequence[Floats] | None,
    sigma: float | None = None,
    kernel: Callable[[Floats, float], Floats] = _smooth,
) -> tuple[tuple[float, float, float], float]:
    """Scale of time, motion and noise, and the nats of the readings with them; levels of the noise are 1 by default."""
    levels = [np.ones(len(values)) for _, values in blocks] if levels is None else levels
    longest = max(float(times[-1] - times[0]) for times, _ in blocks)
    steps = np.sort(np.concatenate([times[1:] - times[:-1] for times, _ in blocks]))
    shortest = min(2 * float(steps[len(steps) // 2]), longest)
    scales = shortest * exp(np.linspace(0.0, math.log(2 * longest / shortest), SCALES))
    ratios = exp(np.linspace(math.log(LEAST_RATIO), math.log(2.0), RATIOS))
    nats, squares = _nats(blocks, levels, scales, ratios, sigma, kernel)
    at, number = divmod(int(nats.argmin()), len(ratios))
    found = float(nats[at, number]), float(scales[at]), float(ratios[number]), float(squares[at, number])
    # Once more, between the neighbours of the best.
    scales = scales[at] * exp(np.linspace(-1.0, 1.0, 5) * math.log(scales[1] / scales[0]))
    ratios = ratios[number] * exp(np.linspace(-1.0, 1.0, 5) * math.log(ratios[1] / ratios[0]))
    nats, squares = _nats(blocks, levels, scales, ratios, sigma, kernel)
    at, number = divmod(int(nats.argmin()), len(ratios))
    if nats[at, number] < found[0]:
        found = float(nats[at, number]), float(scales[at]), float(ratios[number]), float(squares[at, number])
    nats_found, scale, ratio, square = found
    motion = math.sqrt(square)
    return (scale, motion, ratio * motion), nats_found


def _nats(
    blocks: Sequence[Run],
    levels: Sequence[Floats],
    scales: Floats,
    ratios: Floats,
    sigma: float | None,
    kernel: Callable[[Floats, float], Floats],
) -> tuple[Floats, Floats]:
    """Negative log-likelihoods for each scale and ratio of noise to motion, and the squares of the motion."""
    shape = len(scales), len(ratios)
    quadratic, logarithms, count = np.zeros(shape), np.zeros(shape), 0
    for (times, values), level in zip(blocks, levels, strict=True):
        # In units of the noise, the ratio is on the diagonal alone.
        motions = np.stack([kernel(times, scale) for scale in scales.tolist()])
        rests, logs = _whitened(motions / (level[:, None] * level), values / level, ratios**2)
        quadratic, logarithms = quadratic + rests, logarithms + logs + 2 * float(np.add.reduce(log(level)))
        count += len(times)
    squares = quadratic / count if sigma is None else np.broadcast_to((sigma / ratios) ** 2, shape)
    with np.errstate(all="ignore"):
        nats = 0.5 * (count * log(squares) + logarithms + quadratic / squares)
    return np.where(np.isfinite(nats), nats, np.inf), squares


def _kernel(at: Floats, times: Floats, scale: float) -> tuple[Floats, Floats, Floats]:
    """Covariances of the motion at some times with that at others, and their derivatives by the first times."""
    distance = (at[:, None] - times) / scale
    kernel = 1 / (1 + 0.5 * distance * distance)
    square = kernel * kernel / scale
    return kernel, -distance * square, (2 * distance * distance * kernel - 1) * square / scale


def _whitened(matrices: Floats, values: Floats, ridges: Floats) -> tuple[Floats, Floats]:
    """``values @ inverse(matrix + ridge) @ values`` and the logarithm of the determinant of ``matrix + ridge``, both of
    shape (n_matrices, n_ridges); NaN if it is not positive definite.

    Each matrix is made tridiagonal once (Householder 1958), and is then eliminated for all ridges at once.
    """
    size = len(values)
    rest = np.concatenate([matrices, np.broadcast_to(values, (len(matrices), size))[:, :, None]], axis=2)
    own, beside = np.empty((size, len(matrices), 1)), np.zeros((size, len(matrices), 1))
    turned = np.empty((size, len(matrices), 1))
    for k in range(size):
        own[k], turned[k] = rest[:, 0, :1], rest[:, 0, -1:]
        if k == size - 1:
            break
        column, rest = rest[:, 1:, 0].copy(), rest[:, 1:, 1:]
        length = np.sqrt(np.add.reduce(column * column, axis=1))
        beside[k + 1] = np.where(column[:, 0] > 0, -length, length)[:, None]
        normal = column
        normal[:, 0] -= beside[k + 1, :, 0]
        square = np.add.reduce(normal * normal, axis=1)
        factor = np.where(square > 0, 2 / np.where(square > 0, square, 1.0), 0.0)[:, None]
        across = factor * np.add.reduce(rest * normal[:, :, None], axis=1)
        shift = 0.5 * factor * np.add.reduce(normal * across[:, :-1], axis=1)[:, None]
        across[:, :-1] -= shift * normal
        rest -= normal[:, :, None] * across[:, None, :]
        rest[:, :, :-1] -= across[:, :-1, None] * normal[:, None, :]
    pivots = np.empty((size, len(matrices), len(ridges)))
    pivot, value, total = np.ones(pivots.shape[1:]), np.zeros(pivots.shape[1:]), np.zeros(pivots.shape[1:])
    with np.errstate(all="ignore"):
        for k in range(size):
            share = beside[k] / pivot
            pivot, value = own[k] + ridges - share * beside[k], turned[k] - share * value
            pivots[k] = pivot
            total += value * value / pivot
        logarithms = np.add.reduce(log(np.where(pivots > 0, pivots, np.nan)), axis=0)
    return total, logarithms


def _inverse(matrix: Floats) -> tuple[Floats, float]:
    """The inverse of a positive definite matrix, and the logarithm of its determinant; that is NaN if it is not."""
    size = len(matrix)
    rest, pivots = np.concatenate([matrix, np.eye(size)], axis=1), np.empty(size)
    for k in range(size):
        pivots[k] = rest[k, k]
        row = rest[k] / rest[k, k]
        column = rest[:, k].copy()
        rest -= column[:, None] * row
        rest[k] = row
    positive = bool((pivots > 0).all())
    return rest[:, size:], float(np.add.reduce(log(pivots))) if positive else math.nan
