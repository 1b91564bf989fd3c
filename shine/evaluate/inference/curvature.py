"""Second derivatives of the sum of errors by the constants, and the squared slopes of its rows.

The second derivatives are differences of exact slopes. If a likelihood's curvature is a line in the target, as that of
counts is, its expectation is the curvature where target and prediction are equal; then that is taken (Fisher scoring,
as in generalized linear models: McCullagh and Nelder 1989). Errors with kinks, such as absolute ones, have a curvature
only in the mean over the noise: the change of their slopes over a window of residuals, which narrows with the number of
rows (Powell 1991, with the bandwidth of Hall and Sheather 1988 for the median). The window of a row is in proportion to
its noise: the less, the larger the jump of its slope at the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

import numpy as np

from shine.base.typing import Floats
from shine.evaluate.inference.likelihood import Block, Derivatives, Likelihood, Local, derivatives_of, gram
from shine.evaluate.losses.form import RowLoss

STEP = 1e-3
"""Steps of differences, in what a constant may change until the errors have grown by their mean."""

STRAIGHT = 1e-6
"""Largest relative difference of the curvature from a line in the target that rounding explains."""

KINKED = 0.5
"""Share of the smoothed curvature below which the pointwise one leaves out kinks; and share of the rows with a positive
second derivative from which no kinks are looked for."""

NEAR, JUMP = 1e-6, 10.0
"""Distance from the target, as a share of it, over which the slope of an error jumps if it changes by so many times
more than the second derivatives there say."""


@dataclass(frozen=True, eq=False)
class Curvature:
    """The sum of errors around its least value.

    Parameters
    ----------
    hessian : ndarray of shape (n_constants, n_constants)
        Not exact to the last digits: it contains differences.
    convex : ndarray of shape (n_constants, n_constants)
        The same without the second derivatives of the formula, exact.
    dispersion : float
        Mean curvature of the rows' errors over their mean squared slope, doubled; inf if all slopes are 0.
    smoothed : bool
        Whether the errors have kinks.
    likelihood : Likelihood
    constants : ndarray of shape (n_constants,)
    """

    hessian: Floats
    convex: Floats
    dispersion: float
    smoothed: bool
    likelihood: Likelihood
    constants: Floats

    @classmethod
    def of(cls, likelihood: Likelihood, constants: Floats) -> Self:
        """The curvature at some constants."""
        error = likelihood.error
        slopes, kinks = derivatives_of(error), not error.follows_from_moments
        width = _window(likelihood, constants) if kinks else 0.0
        pointwise, smooth, squares, weighted, counted, bend, usable, rows = np.zeros(8).tolist()
        kinked, expected = np.zeros((2, len(constants), len(constants)))
        unit = 0.0  # of slopes: squares of tiny ones would be 0
        with np.errstate(all="ignore"):
            for block in likelihood.blocks(constants):
                at = slopes.slopes(block.arguments)
                unit = unit or float(np.max(np.abs(at.first), initial=0.0)) or 1.0
                pointwise += float(block.counts @ at.second)
                squares += float(block.weights @ (at.first / unit) ** 2)
                if not kinks:
                    continue
                sizes, jumps = _sizes(slopes, block, error)
                widened = _smoothed(slopes, block, width * sizes)
                usable += float(block.counts @ ((at.second > 0) & ~(jumps > 0)))
                smooth += float(block.counts @ widened)
                rows += float(np.sum(block.counts))
                weighted += float(block.weights @ widened)
                # The mean change of a slope is its jump times the density of residuals, 1 over their size.
                steep = block.weights * (np.where(jumps > 0, jumps, 1.0) / unit) / (sizes * unit)
                counted += float(np.sum(steep))
                kinked += gram(block.partials, steep)
                mean = slopes.slopes(_with_target(block, 1.0)).second
                expected += gram(block.partials, block.weights * mean)
                halfway = slopes.slopes(_with_target(block, 0.5)).second
                bend += float(np.sum(np.abs(halfway - (mean + at.second) / 2)))
        smoothed = kinks and usable < KINKED * rows and abs(pointwise) < KINKED * abs(smooth)
        dispersion = 2 * ((smooth if smoothed else pointwise) / unit) / squares / unit if squares > 0 else np.inf
        if smoothed:
            exact = kinked * (weighted / counted)
        elif error.log_likelihood is not None and bend <= STRAIGHT * abs(pointwise) and np.isfinite(expected).all():
            exact = expected
        else:
            local = likelihood.local(constants)
            hessian = _differences(likelihood, constants, local)
            return cls(hessian, local.curvature, dispersion, False, likelihood, constants)
        return cls(exact, exact, dispersion, smoothed, likelihood, constants)

    def sandwich(self, inverse: Floats) -> tuple[Floats, Floats]:
        """The covariance of the constants by the rows' squared slopes, and the degrees of freedom of each variance.

        A squared slope tells a row's variance with one degree of freedom, so that the variance of a constant, their
        weighted sum, has few if few rows make it (Satterthwaite 1946; Imbens and Kolesár 2016). The expected fourth
        power of a normal slope is three times the squared variance.

        Parameters
        ----------
        inverse : ndarray of shape (n_constants, n_constants)
            Of the second derivatives; squared errors need it for the leverages, too.

        Returns
        -------
        ndarray of shape (n_constants, n_constants), ndarray of shape (n_constants,)
        """
        likelihood, count = self.likelihood, len(self.constants)
        slopes, found = derivatives_of(likelihood.error), np.zeros((count, count))
        sums, squared = np.zeros((2, count))
        unit = 1 / likelihood.rows.rows_by_weight
        with np.errstate(all="ignore"):
            for block in likelihood.blocks(self.constants):
                first, moved = block.precisions * slopes.first(block.arguments), inverse @ block.partials
                if likelihood.error.follows_from_moments:
                    # The second derivative of a square is 2.
                    leverage = 2 * unit * block.precisions * np.einsum("ir,ir->r", block.partials, moved)
                    # Leverages above this count as this: a row that determines a constant alone says nothing about its
                    # noise.
                    first = first / (1 - np.minimum(leverage, 0.99))
                found += gram(block.partials, block.counts * first**2)
                parts = (moved * first) ** 2
                sums += parts @ block.counts
                squared += parts**2 @ block.counts
            freedoms = 3.0 * sums**2 / squared  # mean fourth power of normal numbers of variance 1
        return inverse @ found @ inverse, np.where(np.isfinite(freedoms), freedoms, np.inf)


def _differences(likelihood: Likelihood, constants: Floats, local: Local) -> Floats:
    """The second derivatives by differences of slopes."""
    count = len(constants)
    found = np.zeros((count, count))
    mean = local.total / likelihood.rows.effective_rows
    with np.errstate(all="ignore"):
        reach = np.sqrt(mean / np.diagonal(local.curvature))
    for index in range(count):
        size = STEP * reach[index] if np.isfinite(reach[index]) else 0.0
        # Least step as a share of the constant: smaller ones lose digits.
        size = max(size, 1e-6 * abs(constants[index]), np.finfo(np.float64).tiny)
        above, below = constants.copy(), constants.copy()
        above[index] += size
        below[index] -= size
        width = above[index] - below[index]
        found[index] = (likelihood.local(above).gradient - likelihood.local(below).gradient) / width
    found = (found + found.T) / 2
    # At the end of a domain, the part that is exact does.
    return found if np.isfinite(found).all() else local.curvature


def _with_target(block: Block, share: float) -> list[Floats]:
    """The arguments of the error, the target moved by a share of the way to the prediction."""
    prediction, target, *others = block.arguments
    return [prediction, target + share * (prediction - target), *others]


def _sizes(slopes: Derivatives, block: Block, error: RowLoss) -> tuple[Floats, Floats]:
    """Size of each row's noise up to a common factor, by its weight and the jump of its slope; and that jump, or 0."""
    prediction, target, *others = block.arguments
    near = NEAR * np.where(target != 0, np.abs(target), np.abs(prediction))
    above, below = (slopes.slopes([target + sign * near, target, *others]) for sign in (1, -1))
    change, smooth = above.first - below.first, near * (np.abs(above.second) + np.abs(below.second))
    jumps = np.where(np.isfinite(change) & (change > JUMP * smooth), change, 0.0)
    sizes: Floats = block.precisions ** (-1 / (error.degree or 2.0)) / np.where(jumps > 0, jumps, 1.0)
    return sizes, jumps


def _window(likelihood: Likelihood, constants: Floats) -> float:
    """Half the width of the window that slopes of errors are compared over, in sizes of each row's noise."""
    slopes = derivatives_of(likelihood.error)
    with np.errstate(all="ignore"):
        residuals = np.concatenate(
            [np.abs(block.arguments[1] - block.predictions) / _sizes(slopes, block, likelihood.error)[0]
             for block in likelihood.blocks(constants)]
        )  # fmt: skip
    normal, rows = NormalDist(), likelihood.rows.effective_rows
    share = min((normal.inv_cdf(0.975) ** 2 * 1.5 * normal.pdf(0.0) ** 2 / rows) ** (1 / 3), 0.4)
    spread = float(np.median(residuals)) / 0.6744897501960817  # median absolute value of normal numbers
    return spread * normal.inv_cdf(0.5 + share)


def _smoothed(slopes: Derivatives, block: Block, half: Floats) -> Floats:
    """Mean change of the rows' slopes with their predictions, over windows of half these widths."""
    above, below = ([block.predictions + sign * half, *block.arguments[1:]] for sign in (1, -1))
    found: Floats = (slopes.first(above) - slopes.first(below)) / (2 * half)
    return np.where(half > 0, found, 0.0)
