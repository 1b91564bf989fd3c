"""Gross outliers of the target, for losses of absolute errors and others that are made for outliers.

They see only on which side of a formula an outlier lies, so that outliers hardly move the best formula. But
its loss is then theirs: formulas that bend towards one of them seem better, and the law seems inexact. So rows that are
far from their neighbours take no part in the search; the losses of its front are measured on all rows.
"""

from __future__ import annotations

import numpy as np

from shine.base.typing import Floats, Indices
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.losses.form import ABSOLUTE, SIGMA, Loss
from shine.evaluate.losses.reading import built_in_of

GROSS, DOUBTFUL = 5.0, 3.0
"""Distance from the neighbours' median, in spreads of the target, of gross outliers, and of rows that a search by
squared errors does better without. The spread is the upper quartile of the distance from the median; 5 of them are
six standard deviations of normal values."""

SCATTERS = 4.0
"""The same in units of the neighbours' own scatter, so that the peaks of a steep law are no outliers."""

UPPER_QUARTILE = 0.75

MOST_OUTLIERS = 0.15
"""Largest share of rows that are outliers; more of them are the tail of a wide target."""

NEIGHBOURS = 11
"""Nearest rows whose median says what to expect, and whose inner half how much it scatters. Of a tenth of outliers,
these few rarely have more than two on one side."""

LOW, MIDDLE, HIGH = 2, 5, 8
"""Their places in order."""

PASSES = 4
"""Rounds of the search for outliers: neighbours that are outliers themselves may hide some at first."""

FEWEST_ROWS = 20
"""Rows below which nothing is said about outliers."""

COMPARED_ROWS = 2000
"""Most rows among which neighbours are looked for."""

_AT_ONCE = 1000
"""Rows whose neighbours are looked for at a time, to bound memory."""


def sees_outliers(loss: Loss) -> bool:
    """Whether a row that is far off counts little: the loss adds absolute errors, or others that grow slowly."""
    built_in = built_in_of(loss)
    return loss.kind == ABSOLUTE or (built_in is not None and built_in.robust)


def without_gross(dataset: Dataset, loss: Loss) -> Dataset:
    """The rows that are no gross outliers, if the loss is made for outliers; the same data set if there are none."""
    return _without(dataset, loss, GROSS)


def without_doubtful(dataset: Dataset, loss: Loss) -> Dataset:
    """The rows that lie within `DOUBTFUL` spreads of their neighbours, if the loss is made for outliers; else all."""
    return _without(dataset, loss, DOUBTFUL)


def _without(dataset: Dataset, loss: Loss, spreads: float) -> Dataset:
    if not sees_outliers(loss):
        return dataset
    rest = dataset
    for _ in range(PASSES):
        outliers = _outliers(rest, spreads)
        if not len(outliers):
            break
        rest = rest.take(np.setdiff1d(np.arange(rest.n_rows), outliers))
    return rest if rest.n_rows >= (1 - MOST_OUTLIERS) * dataset.n_rows else dataset


def _outliers(dataset: Dataset, spreads: float) -> Indices:
    """Rows that are so many spreads away from their neighbours."""
    target, none = dataset.target, np.zeros(0, np.int64)
    if dataset.n_rows < FEWEST_ROWS:
        return none
    distances = np.abs(target - _quantile(target, 0.5))
    least = spreads * _quantile(distances, UPPER_QUARTILE)
    # Rows within half of it are hardly ever so far from their neighbours' median.
    far = np.flatnonzero(distances > least / 2)
    if not 0 < least < np.inf or not len(far):
        return none
    low, expected, high = _neighbours(dataset, far)
    away = np.abs(target[far] - expected)
    return far[(away > least) & (away > SCATTERS * (high - low))]


def _neighbours(dataset: Dataset, rows: Indices) -> Floats:
    """Targets at the places `LOW`, `MIDDLE`, `HIGH` of the nearest other rows of some rows, shape (3, n_rows)."""
    compared = np.sort(np.random.default_rng(0).permutation(dataset.n_rows)[:COMPARED_ROWS])
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
        near = np.argsort(squares, axis=1, kind="stable")[:, :NEIGHBOURS]
        found.append(np.sort(dataset.target[compared][near], axis=1)[:, [LOW, MIDDLE, HIGH]].T)
    return np.concatenate(found, axis=1)


def _quantile(values: Floats, share: float) -> float:
    return float(np.sort(values)[int(share * (len(values) - 1))])


def rows_of_seeding(sample: Dataset, loss: Loss, noise: str) -> tuple[Dataset, str]:
    """The rows that the seeding looks at, with the model of their noise: it knows squared errors only."""
    if SIGMA in loss.kind.columns:
        return without_doubtful(sample, loss).with_deviations(without_doubtful(sample, loss).loss_columns[SIGMA]), SIGMA
    return without_doubtful(sample, loss), noise
