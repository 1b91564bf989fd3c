"""From the measurements of a tier to losses and lines of a population.

Every loss follows from one sum over the rows, and linear scaling from the moments of predictions and target. Each tier
measures those (`Measure`); everything else is done here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from shine.fitness.losses import loss_of
from shine.typing import Floats, Indices


@dataclass(frozen=True)
class Scores:
    """Losses and lines of a population, each of shape (n_individuals,), float64.

    Parameters
    ----------
    losses : ndarray
        inf where any prediction is not finite; never NaN.
    slopes, intercepts : ndarray
        Linear scaling: the model is ``intercept + slope * individual``; 1 and 0 without it.
    """

    losses: Floats
    slopes: Floats
    intercepts: Floats

    def within(self, threshold: float) -> Scores:
        """The scores with losses above a threshold turned into inf."""
        return replace(self, losses=np.where(self.losses <= threshold, self.losses, np.inf))

    def take(self, indices: ArrayLike) -> Scores:
        """The scores at some indices, or where a mask holds."""
        at = np.asarray(indices)
        return Scores(self.losses[at], self.slopes[at], self.intercepts[at])

    def replaced(self, indices: ArrayLike, others: Scores) -> Scores:
        """A copy with other scores at some indices, or where a mask holds."""
        at = np.asarray(indices)
        copy = Scores(self.losses.copy(), self.slopes.copy(), self.intercepts.copy())
        copy.losses[at], copy.slopes[at], copy.intercepts[at] = others.losses, others.slopes, others.intercepts
        return copy

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Scores of several populations, in order."""
        empty = np.empty(0)
        return cls(
            np.concatenate([empty, *(part.losses for part in parts)]),
            np.concatenate([empty, *(part.slopes for part in parts)]),
            np.concatenate([empty, *(part.intercepts for part in parts)]),
        )


@dataclass(frozen=True)
class Products:
    """Moments of predictions p and target y for linear scaling, each of shape (n_individuals,).

    Parameters
    ----------
    mean, square, product : ndarray
        Weighted mean of p; weighted sums of (p - mean(p))^2 and of (p - mean(p)) * (y - mean(y)).
    """

    mean: Floats
    square: Floats
    product: Floats


class Measure(Protocol):
    """Measurements of a tier on the individuals at some positions of a population, one pass over the rows each."""

    def errors(self, which: Indices, kind: str, slopes: Floats, intercepts: Floats) -> Floats:
        """Weighted sums of the errors of ``intercept + slope * p``, of a kind named in `ERROR_KINDS`."""
        ...

    def products(self, which: Indices) -> Products:
        """Moments for linear scaling."""
        ...


@dataclass(frozen=True)
class Target:
    """The numbers that losses need of the target.

    Parameters
    ----------
    weight : float
        Sum of the sample weights.
    mean : float
        Weighted mean.
    square : float
        Weighted sum of squared deviations from the mean.
    epsilon : float
        Machine epsilon of the predictions' number type.
    """

    weight: float
    mean: float
    square: float
    epsilon: float = float(np.finfo(np.float64).eps)


def best_lines(products: Products, target: Target) -> tuple[Floats, Floats]:
    """Slopes and intercepts that minimize the weighted squared error (Keijzer 2003).

    A prediction that varies by no more than rounding counts as constant: slope 0, intercept mean(y).
    """
    constant = ~(products.square > target.weight * (64 * target.epsilon * products.mean) ** 2)
    slopes = np.where(constant, 0.0, products.product / np.where(constant, 1.0, products.square))
    return slopes, target.mean - slopes * products.mean


_NEARLY_PERFECT = 1e-4
"""Share of unexplained variance below which the scaled error is measured again instead of derived."""


def score(measure: Measure, count: int, target: Target, loss: str, linear_scaling: bool) -> Scores:
    """Losses of `count` individuals.

    With linear scaling, the squared error of the scaled prediction follows from the moments of the unscaled one, in
    the same pass. Individuals are measured a second time, with their slope and intercept, if the errors do not follow
    from moments, or if the fit is nearly perfect: the difference of moments would cancel.

    Raises
    ------
    ValueError
        If there is no such loss.
    """
    of_loss, everyone = loss_of(loss), np.arange(count)
    kind = of_loss.kind
    slopes, intercepts = np.ones(count), np.zeros(count)
    with np.errstate(all="ignore"):
        if linear_scaling:
            products = measure.products(everyone)
            slopes, intercepts = best_lines(products, target)
            totals = target.square - slopes * products.product
            again = np.isfinite(totals)
            if kind.follows_from_moments:
                again &= totals < _NEARLY_PERFECT * target.square
            if again.any():
                totals[again] = measure.errors(everyone[again], kind.name, slopes[again], intercepts[again])
        else:
            totals = measure.errors(everyone, kind.name, slopes, intercepts)
        losses = of_loss.of_sum(totals, target.weight, target.square)
    finite = np.isfinite(losses) & np.isfinite(slopes) & np.isfinite(intercepts)
    return Scores(np.where(finite, losses, np.inf), np.where(finite, slopes, 1.0), np.where(finite, intercepts, 0.0))
