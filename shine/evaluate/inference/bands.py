"""Bands of predictions: of the formula's value, and of new readings; and warnings where a feature leaves its range."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shine.base.errors import DataError, ExtrapolationWarning
from shine.base.typing import Floats
from shine.evaluate.inference.constants import Form
from shine.evaluate.inference.likelihood import Likelihood
from shine.evaluate.inference.quantiles import counts_between, two_sided
from shine.evaluate.inference.uncertainty import Uncertainty
from shine.lang.forms.names import listed, shown

Kind = Literal["mean", "prediction"]

SHARES = (0.0005, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.16, 0.25, 0.5)
SHARES = (*SHARES, *(1 - share for share in reversed(SHARES[:-1])))
"""Shares of the residuals below the quantiles that are kept."""

OVERDISPERSED, UNKNOWN = "overdispersed ", "unknown"
"""Noise of counts with the variance mean + alpha*mean**2, before alpha; and noise that the rows do not tell, as their
readings are not in the units of the formula."""

WITH_QUANTILES = ("squared", "poisson")
"""Errors whose noise has a distribution that is known; of others, the quantiles of the residuals are kept."""


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise around a formula (see `Uncertainty` for the parameters)."""

    scale: float
    residuals: Floats


def growth(noise: str, predictions: Floats) -> Floats:
    """Relative standard deviations of the noise, shape (n_rows,)."""
    if noise.startswith(OVERDISPERSED):
        mean, alpha = np.maximum(predictions, 0.0), float(noise.removeprefix(OVERDISPERSED))
        return np.sqrt(np.maximum(mean, np.finfo(np.float64).tiny) + alpha * mean**2)
    if noise in ("relative", "log"):
        return np.abs(predictions)
    if noise == "counts":
        return np.sqrt(np.maximum(predictions, 1.0))  # counts below this have its variance, as in the weights of counts
    return np.ones_like(predictions)


def noise_of(likelihood: Likelihood, constants: Floats, noise: str, taken: int) -> Noise:
    """The noise that a formula leaves.

    Parameters
    ----------
    likelihood : Likelihood
    constants : ndarray of shape (n_constants,)
    noise : str
        Growth of the noise.
    taken : int
        Constants that the rows determine.
    """
    ratios, counts = [np.zeros(0)], [np.zeros(0)]
    with np.errstate(all="ignore"):
        for block in likelihood.blocks(constants):
            sizes = growth(noise, block.predictions)
            ratios.append((block.arguments[1] - block.predictions) / np.where(sizes > 0, sizes, np.inf))
            counts.append(block.counts)
    each, weight = np.concatenate(ratios), np.concatenate(counts)
    there = np.isfinite(each)
    each, weight = each[there], weight[there]
    rows = likelihood.rows.effective_rows
    if not len(each) or rows <= taken:
        return Noise(float("inf"), np.full(len(SHARES), np.nan))
    size = float(np.max(np.abs(each)))
    square = float(np.mean((each / size) ** 2 * weight) / np.mean(weight)) if size > 0 else 0.0
    inflation = rows / (rows - taken)
    order = np.argsort(each, kind="stable")
    # Of n readings, the i-th leaves a share of i/(n + 1) of all new ones below it, in the mean.
    apart = float(np.mean(weight))
    shares = (np.cumsum(weight[order]) - 0.5 * weight[order] + 0.5 * apart) / (np.sum(weight) + apart)
    quantiles = np.interp(SHARES, shares, each[order])
    return Noise(size * float(np.sqrt(square * inflation)), quantiles * float(np.sqrt(inflation)))


class Bands:
    """Standard errors and intervals of a formula's predictions."""

    def __init__(self, form: Form, known: Uncertainty) -> None:
        self.form, self.known = form, known

    def of_mean(self, columns: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Values of the formula, and their standard errors, each of shape (n_rows,).

        The values are those of the formula as it is written. Where it has shorter numbers than the most likely ones,
        the difference that they make is part of the errors.

        Parameters
        ----------
        columns : sequence of ndarray of shape (n_rows,)
            One for each parameter of the formula.
        """
        likely, errors = self._likely(columns)
        if not (self._best != self.form.values).any():
            return likely, errors
        values, _ = self._at(self.form.values, columns)
        with np.errstate(all="ignore"):
            errors = np.hypot(errors, values - likely)
        return values, np.where(np.isfinite(values), errors, np.nan)

    @property
    def _best(self) -> Floats:
        return self.known.best if np.isfinite(self.known.best).all() else self.form.values

    def _at(self, constants: Floats, columns: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Values of the formula and their derivatives, shape (n_constants, n_rows), at some constants."""
        count = len(columns[0])
        given = self.form.kernel("O0")(*constants.tolist(), *columns)
        found = np.broadcast_to(np.array(given, np.float64).reshape(len(given), -1), (len(given), count))
        return found[0].copy(), found[1:]

    def _likely(self, columns: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Values with the most likely constants, and their standard errors by the delta method."""
        values, partials = self._at(self._best, columns)
        if not len(partials):
            return values, np.zeros(len(values))
        if not np.isfinite(self.known.covariance).all():
            return values, np.full(len(values), np.inf)
        with np.errstate(all="ignore"):
            variances = np.einsum("ir,ij,jr->r", partials, self.known.covariance, partials, optimize=True)
            errors = np.sqrt(np.maximum(variances, 0.0))
            for direction in self.known.directions:
                most = np.abs(direction) @ np.abs(partials)
                # Share of a gradient along a direction that the rows do not determine from which a prediction is not
                # determined.
                errors = np.where(np.abs(direction @ partials) > 1e-6 * most, np.inf, errors)
        return values, np.where(np.isfinite(values), errors, np.nan)

    def deviations(self, columns: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Values of the formula, and standard deviations of new readings, the uncertainty of the formula included."""
        self._check_known()
        values, errors = self.of_mean(columns)
        return values, np.hypot(errors, self._noise(values))

    def interval(self, columns: Sequence[Floats], level: float, kind: Kind) -> tuple[Floats, Floats]:
        """Ends of the interval of each row, each of shape (n_rows,); without a noise to be known, of infinite width."""
        if kind == "prediction":
            self._check_known()
        values, errors = self._likely(columns)
        known = self.known
        if not known.freedom > 0:
            unknown = np.where(np.isfinite(values), np.inf, np.nan)
            return -unknown, unknown
        few = known.kind == "dependent" and kind == "mean"
        half = two_sided(level, float(np.min(known.freedoms, initial=known.freedom)) if few else known.freedom)
        with np.errstate(all="ignore"):
            if kind == "mean":
                return values - half * errors, values + half * errors
            if known.error == "poisson":
                return counts_between(values, errors, level)
            if known.error == "squared":
                reach = half * np.hypot(errors, self._noise(values))
                return values - reach, values + reach
            grown = growth(known.noise, values)
            low, high = (np.interp(share, SHARES, known.residuals) for share in ((1 - level) / 2, (1 + level) / 2))
            return values + _farther(low * grown, -half * errors), values + _farther(high * grown, half * errors)

    def _check_known(self) -> None:
        if self.known.noise == UNKNOWN:
            raise DataError(
                f"the loss {self.known.error} does not say how new readings scatter around the formula's value, which "
                "is not in their units: ask for the value alone, by kind='mean' or return_std='mean'"
            )

    def _noise(self, values: Floats) -> Floats:
        if self.known.error == "poisson":
            return np.sqrt(np.maximum(values, 0.0))
        return self.known.scale * growth(self.known.noise, values)


def _farther(noise: Floats, own: Floats) -> Floats:
    """The end of the noise, moved outwards by the uncertainty of the formula."""
    return noise + np.sign(own) * (np.hypot(noise, own) - np.abs(noise))


MARGIN = 0.1
"""Margin of a range without a warning, as a share of it: new rows of the same kind often leave it a little."""


def outside(columns: Mapping[str, Floats], ranges: Mapping[str, tuple[float, float]]) -> dict[str, int]:
    """Number of rows in which each feature leaves its range by more than the margin; only features that do.

    Parameters
    ----------
    columns : mapping of str to ndarray of shape (n_rows,)
    ranges : mapping of str to (float, float)
    """
    found = {}
    for name, (low, high) in ranges.items():
        column, margin = columns[name], MARGIN * (high - low)
        count = int(np.count_nonzero((column < low - margin) | (column > high + margin)))
        if count:
            found[name] = count
    return found


def warn_of_extrapolation(
    found: Mapping[str, int], ranges: Mapping[str, tuple[float, float]], headings: Mapping[str, str], stacklevel: int
) -> None:
    """Warn of features that leave their ranges, as `outside` found them."""
    told = [
        f"{shown(headings.get(name, name))} ({ranges[name][0]:.4g} to {ranges[name][1]:.4g}) in {count} "
        f"row{'s' * (count != 1)}"
        for name, count in found.items()
    ]
    warnings.warn(
        f"the formula extrapolates: X leaves the range of the rows it was fitted to, of {listed(told)}; to silence "
        "this, warnings.simplefilter('ignore', shine.ExtrapolationWarning)",
        ExtrapolationWarning,
        stacklevel=stacklevel + 1,
    )
