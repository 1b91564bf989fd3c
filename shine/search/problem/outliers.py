"""Gross outliers of the target: rows that no neighbour and no model of the noise expects.

One of them decides a search by squared errors: nothing short explains it, and beside it nothing else counts. Losses
that are made for outliers, such as absolute errors, see only on which side of a formula it lies. But their loss is
then that of the outliers: formulas that bend towards one of them seem better, and the law seems inexact. So rows that
are far from their neighbours take no part in a search, nor in the losses of its front, and the reason of its choice
names them.
"""

from __future__ import annotations

import math

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import log
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.losses.form import ABSOLUTE, SIGMA, Loss
from shine.evaluate.losses.reading import built_in_of
from shine.evaluate.losses.rows import takes_noise
from shine.search.problem.noise import smallest

GROSS, DOUBTFUL = 5.0, 3.0
"""Distance from the neighbours' median, in spreads of the target, of gross outliers, and of rows that a search by
squared errors does better without. The spread is the upper quartile of the distance from the median; 5 of them are
six standard deviations of normal values."""

SCATTERS, OF_LOGARITHMS = 4.0, 3.0
"""Distance in units of the scatter of the inner half of the neighbours, from which a row is far from them."""

TINY = float(np.finfo(np.float64).tiny)
"""Stands for targets of the other sign, which are far from all."""

GAP = 1.5
"""Ratio of the distances of two rows, one after the other in their order, from which the farther one stands apart."""

MOST_JUDGED = 2000
"""Most rows that are compared with their neighbours at a time, the farthest ones, to bound the time: half a second."""

MOST = 0.15
"""Largest share of rows that are outliers; more of them are the tail of a wide target."""

LOW, MIDDLE, HIGH = 2, 5, 8
"""Places of targets among those of a row's neighbours, in order: their median, and the ends of their inner half."""

FEWEST_ROWS = 20
"""Rows below which nothing is said about outliers."""

_AT_ONCE = 1000
"""Rows whose neighbours are looked for at a time, to bound memory."""


def gross_outliers(dataset: Dataset, loss: Loss, outliers: str = "auto") -> Indices:
    """Places of the gross outliers, if the loss is made for them or squares errors; none if they are to be kept.

    With known deviations, a row that is far off may be an uncertain one. Streamed rows, of which these are a sample,
    are judged all together.
    """
    known = dataset.deviations is not None or dataset.all_rows is not None
    sought = _bears_outliers(loss) or (takes_noise(loss) and not known)
    return _far_off(dataset, GROSS) if sought and outliers == "auto" else np.zeros(0, np.int64)


def named(targets: Floats) -> str:
    """What a user is told of outliers, by their targets; nothing if there are none."""
    many = len(targets) > 1
    first = ", ".join(f"{value:.6g}" for value in targets[:3]) + ", ..." * (len(targets) > 3)
    return f"; {len(targets)} gross outlier{'s' * many} took no part (target{'s' * many} {first})" * bool(len(targets))


def rows_of_seeding(sample: Dataset, loss: Loss, noise: str) -> tuple[Dataset, str]:
    """The rows that the seeding looks at, with the model of their noise: it knows squared errors only, which do better
    without rows that are doubtful."""
    rows = without(sample, _far_off(sample, DOUBTFUL)) if _bears_outliers(loss) else sample
    if SIGMA in loss.kind.columns:
        return rows.with_deviations(rows.loss_columns[SIGMA]), SIGMA
    return rows, noise


def without(dataset: Dataset, rows: Indices) -> Dataset:
    """A data set without some rows; itself if there are none."""
    return dataset.take(np.delete(np.arange(dataset.n_rows), rows)) if len(rows) else dataset


def _bears_outliers(loss: Loss) -> bool:
    """Whether a row that is far off counts little: the loss adds absolute errors, or others that grow slowly."""
    built_in = built_in_of(loss)
    return loss.kind == ABSOLUTE or (built_in is not None and built_in.robust)


def _far_off(dataset: Dataset, spreads: float) -> Indices:
    """Places of the rows that are so many spreads away from their neighbours."""
    rows, rest = np.arange(dataset.n_rows), dataset
    # Rounds of the search for outliers: neighbours that are outliers themselves may hide some at first.
    for _ in range(4):
        outliers = _outliers(rest, spreads)
        if not len(outliers):
            break
        rows, rest = np.delete(rows, outliers), without(rest, outliers)
    found = np.setdiff1d(np.arange(dataset.n_rows), rows)
    return np.setdiff1d(found, _together(dataset, found)) if len(found) <= MOST * dataset.n_rows else found[:0]


def _together(dataset: Dataset, rows: Indices) -> Indices:
    """Those of some rows that stand together in the order of a feature: a law that jumps, or peaks, puts them there."""
    count, features = max(3, -(-4 * len(rows) // 5)), len(dataset.columns)
    for column in dataset.columns if len(rows) >= count else ():
        own, every = np.sort(column[rows]), np.sort(column)
        least, most = own[: len(own) - count + 1], own[count - 1 :]
        between = np.searchsorted(every, most, side="right") - np.searchsorted(every, least)
        at = int(np.argmin(between))
        width = int(between[at])
        # Expected number of such places, in all features, where rows are far off by chance; in whole numbers, exact.
        chances = math.comb(len(rows), count) * count * features * (width - 1) ** (count - 1)
        if width <= 4 * count and 100 * chances < (dataset.n_rows - 1) ** (count - 1):
            return rows[(column[rows] >= least[at]) & (column[rows] <= most[at])]
    return rows[:0]


def _outliers(dataset: Dataset, spreads: float) -> Indices:
    """Rows that are so many spreads away from their neighbours."""
    target, none = dataset.target, np.zeros(0, np.int64)
    if dataset.n_rows < FEWEST_ROWS:
        return none
    distances = np.abs(target - _quantile(target, 0.5))
    least = spreads * _quantile(distances, 0.75)
    # Rows within half of it are hardly ever so far from their neighbours' median.
    far = np.flatnonzero(distances > least / 2)
    if not 0 < least < np.inf or not len(far):
        return none
    far = np.sort(far[np.argsort(-distances[far], kind="stable")[:MOST_JUDGED]])
    low, expected, high = _neighbours(dataset, far)
    away = np.abs(target[far] - expected)
    # The tail of a wide target thins out evenly; errors stand apart from it.
    steps = np.sort(np.r_[least / 2, np.maximum(away, least / 2)])
    apart = steps[1:][(steps[1:] > least) & (steps[1:] >= GAP * steps[:-1])]
    # They are far in units of the neighbours' own scatter, too, so that the peaks of a steep law are no outliers; if
    # nearly all targets have one sign, also in logarithms, as those of a law over decades are.
    found = (away >= min(apart, default=np.inf)) & (away > SCATTERS * (high - low))
    sign = np.sign(_quantile(target, 0.5))
    if np.count_nonzero(sign * target > 0) >= (1 - MOST) * len(target):
        own, low, expected, high = log(np.maximum(sign * np.stack([target[far], low, expected, high]), TINY))
        found &= np.abs(own - expected) > OF_LOGARITHMS * np.abs(high - low)
    return far[found]


def _neighbours(dataset: Dataset, rows: Indices) -> Floats:
    """Targets at the places `LOW`, `MIDDLE`, `HIGH` of the nearest other rows of some rows, shape (3, n_rows)."""
    # Most rows among which neighbours are looked for.
    compared = np.sort(np.random.default_rng(0).permutation(dataset.n_rows)[:2000])
    columns = []
    for column in dataset.columns:
        mean = float(stable_sum(column)) / dataset.n_rows
        spread = float(np.sqrt(stable_sum((column - mean) ** 2)))
        if 0 < spread < np.inf:
            columns.append(column / spread)
    found = [np.zeros((3, 0))]
    for start in range(0, len(rows), _AT_ONCE):
        own = rows[start : start + _AT_ONCE]
        squares = np.zeros((len(own), len(compared)))
        for column in columns:
            squares += (column[own, None] - column[compared]) ** 2
        squares[own[:, None] == compared] = np.inf
        # Nearest rows whose median says what to expect, and whose inner half how much it scatters. Of a tenth of
        # outliers, these few rarely have more than two on one side.
        near = smallest(squares, 11)
        found.append(np.sort(dataset.target[compared][near], axis=1)[:, [LOW, MIDDLE, HIGH]].T)
    return np.concatenate(found, axis=1)


def _quantile(values: Floats, share: float) -> float:
    return float(np.sort(values)[int(share * (len(values) - 1))])
