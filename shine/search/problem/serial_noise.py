"""Whether the errors of rows that follow one another are alike, as those of logs are (Cochrane and Orcutt 1949).

Misfit looks like it if rows are sorted by a feature, or lie on a grid, or if features are slow: then neighbours in the
order are neighbours in the features, too. So no formula is trusted. The target is a Gaussian process over the features,
rough or smooth, beside a line and a few products (O'Hagan 1978); its rest is independent, correlates along the order of
the rows, or along the order of a feature. The order must explain the target better than all others do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import Regression, dot, exp, inner, log, power
from shine.data.datasets.dataset import Dataset
from shine.data.datasets.serial import Serial

ROWS, FEWEST = 250, 40
"""Most rows that are looked at, in the middle of the table, and fewest."""

SCREENED, LAGS = 2.5, 5
"""Standard errors that the correlation of a line's errors must have, over the next row or over some, to look on."""

CONVINCING = 8.0
"""Nats by which the order of the rows must explain the target better than anything else."""

CORRELATIONS, FEW = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95), (0.2, 0.5, 0.95)
"""Correlations over one step, and those of a feature's order beside the one of the rows."""

LENGTHS, SIZES = (0.2, 0.6, 2.0), (0.3, 3.0, 30.0, 1e3, 1e6)
"""Lengths of a process over the features, in standard deviations; and its variances, in those of the rest."""

BEST, SHARES = 2, (1.0, 0.1, 0.01)
"""Number of these that are tried beside a correlated rest, and what is left of their variances."""

NEAR = 0.02
"""Share of a feature's values that lie between successive rows, at most, if their order may be that of the feature."""

BLOCK = 32
"""Rows that are eliminated together."""

ROUNDING = 1e-6
"""Variance of what no order explains, as a share: equal values of a feature do not make equal targets."""


@np.errstate(all="ignore")
def with_serial_noise(dataset: Dataset) -> Dataset:
    """The data set, with the weights of its noise, with the correlation of the errors of successive rows, if any.

    Nothing is looked for if the user says how many rows the data are worth.
    """
    serial = dataset.serial or Serial.of(dataset.n_rows, dataset.groups, dataset.times)
    order = serial.order[dataset.row_weights[serial.order] > 0]
    at = order[max((len(order) - ROWS) // 2, 0) :][:ROWS]
    known = dataset.worth is not None or dataset.all_rows is not None
    rows = None if known else _Rows.of(dataset, at, serial.places[at])
    correlation = 0.0 if rows is None else rows.correlation()
    return replace(dataset, serial=replace(serial, correlation=correlation) if correlation > 0 else None)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Some successive rows: features of variance 1, places, columns of a regression, target and scales of the noise."""

    features: Floats
    gaps: Floats
    fixed: Floats
    target: Floats
    scales: Floats

    @classmethod
    def of(cls, dataset: Dataset, at: Indices, places: Floats) -> _Rows | None:
        """None if there are too few rows for so many features, or the errors of a regression do not look alike."""
        columns = np.array([column[at] for column in dataset.columns])
        columns = columns[columns.std(axis=1) > 0]
        if len(at) < max(FEWEST, 4 * len(columns)) or not len(columns):
            return None
        columns = (columns - columns.mean(axis=1)[:, None]) / columns.std(axis=1)[:, None]
        scales = np.sqrt(dataset.row_weights[at] / np.max(dataset.row_weights[at]))
        target = dataset.target[at]
        target = scales * (target - target.mean()) / (target.std() or 1.0)
        fixed = scales * np.vstack([np.ones(len(at)), columns])
        fixed = fixed[Regression.of(fixed, ROUNDING).kept]
        pairs = np.array([scales * one * other for place, one in enumerate(columns) for other in columns[place:]])
        for _ in range(5):  # the line, and products of two features
            regression = Regression.of(fixed)
            errors, along = regression.rest(target), inner(pairs, regression.basis)
            square, sizes = float(dot(errors, errors)), dot(pairs, pairs) - dot(along, along)
            gains = np.where(sizes > ROUNDING * len(at), dot(pairs, errors) ** 2 / sizes, 0.0)
            if gains.max() <= 4 * math.log(1 + len(pairs)) * square / len(at):
                break
            fixed = np.vstack([fixed, pairs[int(np.argmax(gains))]])
        if not square > 0:
            return None
        lags = [float(dot(errors[lag:], errors[:-lag])) / square for lag in range(1, LAGS + 1)]
        if not max(lags[0], sum(lags) / math.sqrt(LAGS)) * math.sqrt(len(at)) > SCREENED:
            return None
        return cls(columns, np.abs(places[:, None] - places), fixed, target, scales)

    def correlation(self) -> float:
        """The correlation over one step of the order; 0 if something else explains the target as well."""
        processes = sorted(self._processes(), key=lambda found: -found[0])
        tried = [process for _, process in processes[:BEST]]
        nats, variance, correlation = self._along(self.gaps, tried)
        # Least variance of errors that follow one another, as a share of the target's: smaller ones may be misfit
        if not nats >= processes[0][0] + CONVINCING or variance < 0.01:
            return 0.0
        levels = [np.unique(column, return_inverse=True)[1].astype(np.float64) for column in self.features]
        jumps = [float(np.median(np.abs(np.diff(each)))) for each in levels]
        still = [each for each, jump in zip(levels, jumps, strict=True) if jump == 0]
        near = [[each] for each, jump in zip(levels, jumps, strict=True) if jump <= max(NEAR * each.max(), 1.0)]
        for rival in (levels, still, *near):
            distances = sum(map(_distances, rival), np.zeros_like(self.gaps))
            if not nats >= self._along(distances, tried, (correlation, *FEW))[0] + CONVINCING:
                return 0.0
        return correlation

    def _along(
        self, distances: Floats, processes: list[Floats], correlations: Sequence[float] = CORRELATIONS
    ) -> tuple[float, float, float]:
        """Nats of the target if the rest correlates over some distances, its variance, and the correlation over one."""
        beside = [share * process for process in processes for share in SHARES] + [np.zeros_like(distances)]
        rests = [(each, (1 - ROUNDING) * exp(math.log(each) * distances)) for each in correlations]
        return max((*self._nats(process + rest, ROUNDING), each) for process in beside for each, rest in rests)

    def _processes(self) -> Iterator[tuple[float, Floats]]:
        """Nats of the target by processes over the features with an independent rest, and their covariances."""
        farther = np.sqrt(sum((_distances(each) ** 2 for each in self.features), np.zeros_like(self.gaps)))
        for length in LENGTHS:
            for order in (1, 2):  # rough, and smooth
                whole = exp(-(power(farther / length, float(order)) / order / math.pow(len(self.features), order / 2)))
                for each in self.features:
                    whole += exp(-power(_distances(each) / length, float(order)) / order) / len(self.features)
                whole *= self.scales * self.scales[:, None]
                yield from ((self._nats(size * whole, 1.0)[0], size * whole) for size in SIZES)
        yield self._nats(np.zeros_like(farther), 1.0)[0], np.zeros_like(farther)

    def _nats(self, covariance: Floats, own: float) -> tuple[float, float]:
        """Logarithm of the residual likelihood of the target, and the scale, which is estimated; `own` is the variance
        that each row has alone."""
        count, fixed = len(covariance), len(self.fixed)
        whitened = _whitened(covariance + own * np.eye(count), np.vstack([self.fixed, self.target]))
        if whitened is None:
            return -math.inf, 0.0
        sizes, columns = whitened
        regression = Regression.of(columns)
        triangle = np.diagonal(regression.triangle) * regression.scale
        nats = np.sum(log(sizes)) + np.sum(log(triangle[:fixed])) + (count - fixed) * log(triangle[fixed])
        return (-float(nats), triangle[fixed] ** 2 / (count - fixed)) if math.isfinite(nats) else (-math.inf, 0.0)


def _whitened(covariance: Floats, columns: Floats) -> tuple[Floats, Floats] | None:
    """The diagonal of the covariance's triangle, and its inverse times the columns; None if it has none.

    A library's kernels differ between processors, and its threads wait for one another on a busy machine.
    """
    count, left = len(covariance), np.hstack([covariance, columns.T])
    for begin in range(0, count, BLOCK):
        end = min(begin + BLOCK, count)
        for row in range(begin, end):
            if not left[row, row] > 0:
                return None
            left[row, row:] /= np.sqrt(left[row, row])
            left[row + 1 : end, row + 1 :] -= left[row, row + 1 : end, None] * left[row, row + 1 :]
        left[end:, end:] -= inner(left[begin:end, end:count].T, left[begin:end, end:].T)
    return np.diagonal(left), left[:, count:].T


def _distances(column: Floats) -> Floats:
    return np.abs(column[:, None] - column)
