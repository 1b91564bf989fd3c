"""From the measurements of a tier to losses and lines of a population.

Every loss follows from one sum over the rows, and linear scaling from the moments of predictions and target. Each tier
measures those (`Measure`); everything else is done here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from shine.base.typing import Floats, Indices, Mask
from shine.compiler.tapes import choose_scales, fit_lines, keep_finite
from shine.evaluate.losses.form import Loss, RowLoss, loss_of


@dataclass(frozen=True)
class Scores:
    """Losses and lines of a population, each of shape (n_individuals,), float64.

    Parameters
    ----------
    losses : ndarray
        inf where any prediction is not finite; never NaN.
    slopes, intercepts : ndarray
        Linear scaling: the model is ``intercept + slope * individual``; 1 and 0 without it.
    simpler : Scores, optional
        With linear scaling: the same individuals with simpler lines, each of shape (n_lines, n_individuals): as they
        are, with an intercept only, and with a slope only. None if they were not measured.
    """

    losses: Floats
    slopes: Floats
    intercepts: Floats
    simpler: Scores | None = None

    @property
    def every(self) -> Scores:
        """The scores with each kind of line, of shape (n_lines, n_individuals), the simplest first."""
        own = Scores(self.losses[None], self.slopes[None], self.intercepts[None])
        if (few := self.simpler) is None:
            return own
        return Scores(
            np.concatenate([few.losses, own.losses]),
            np.concatenate([few.slopes, own.slopes]),
            np.concatenate([few.intercepts, own.intercepts]),
        )

    def within(self, threshold: float | Floats) -> Scores:
        """The scores with losses above a threshold, or one for each individual, turned into inf."""
        if np.ndim(threshold) == 0 and threshold == np.inf:
            return self
        simpler = self.simpler and self.simpler.within(threshold)
        return replace(self, losses=np.where(self.losses <= threshold, self.losses, np.inf), simpler=simpler)

    def without(self, mask: Mask) -> Scores:
        """The scores with losses of inf where a mask over the individuals holds."""
        return replace(
            self,
            losses=np.where(mask, np.inf, self.losses),
            simpler=self.simpler and self.simpler.without(mask),
        )

    def take(self, indices: ArrayLike) -> Scores:
        """The scores at some indices, or where a mask holds."""
        at = np.asarray(indices)
        at = np.flatnonzero(at) if at.dtype == np.bool_ else at
        losses, slopes, intercepts = (each.take(at, axis=-1) for each in (self.losses, self.slopes, self.intercepts))
        return Scores(losses, slopes, intercepts, self.simpler and self.simpler.take(at))

    def replaced(self, indices: ArrayLike, others: Scores) -> Scores:
        """A copy with other scores at some indices, or where a mask holds."""
        at = np.asarray(indices)
        simpler = self.simpler and others.simpler and self.simpler.replaced(at, others.simpler)
        copy = Scores(self.losses.copy(), self.slopes.copy(), self.intercepts.copy(), simpler)
        copy.losses[..., at], copy.slopes[..., at] = others.losses, others.slopes
        copy.intercepts[..., at] = others.intercepts
        return copy

    @classmethod
    def concatenate(cls, parts: Sequence[Scores]) -> Scores:
        """Scores of several populations, in order."""
        if len(parts) < 2:
            return parts[0] if parts else cls(*np.empty((3, 0)))
        simpler = [each.simpler for each in parts if each.simpler is not None]
        return cls(
            np.concatenate([each.losses for each in parts], axis=-1),
            np.concatenate([each.slopes for each in parts], axis=-1),
            np.concatenate([each.intercepts for each in parts], axis=-1),
            cls.concatenate(simpler) if len(simpler) == len(parts) else None,
        )


SCALE = 2.0**600
"""Factor of predictions whose squares would be subnormal, its inverse that of those whose squares would overflow. Of
every finite prediction, at one of the three scales, the squares have all their digits."""

SMALL_SQUARE, LARGE_SQUARE = 2.0**-900, 2.0**960
"""Sums of squared deviations between these have all their digits, whatever the number and the weights of the rows."""

SMALL_MEAN, LARGE_MEAN = 2.0**-400, 2.0**480
"""A mean of at least the first varies by no more than rounding if its sum of squares is small; squares of means up to
the second are finite."""


_LIMITS = {
    "float64": np.array([SMALL_SQUARE, LARGE_SQUARE, SMALL_MEAN, LARGE_MEAN, SCALE]),
    "float32": np.array([0, np.inf, 0, np.inf, 1]),  # squares of them fit into float64
}
"""What `choose_scales` takes, by the number type of predictions: squares of others never leave float64's range."""


@dataclass(frozen=True)
class Products:
    """Moments of predictions p and target y for linear scaling.

    Parameters
    ----------
    moments : ndarray of shape (3, n_individuals)
        Weighted mean of p; weighted sums of (p - mean(p))^2 and of (p - mean(p)) * (y - mean(y)).
    scale : ndarray of shape (n_individuals,)
        Power of two that p was multiplied by: without it, sums of squares would leave float64's normal range.
    """

    moments: Floats
    scale: Floats


class Measure(Protocol):
    """Measurements of a tier on the individuals at some positions of a population, one pass over the rows each;
    `dtype` is the number type of the predictions."""

    dtype: str

    def errors(self, which: Indices, kind: RowLoss, slopes: Floats, intercepts: Floats) -> Floats:
        """Weighted sums of the errors of ``intercept + slope * p``."""

    def moments(self, which: Indices, scales: Floats | None = None) -> Floats:
        """Mean, square, product (see `Products`) and perhaps more of each individual's predictions, times a scale."""


def products_of(measure: Measure, which: Indices) -> Products:
    """The moments of individuals, at a scale at which they have all their digits."""
    states = measure.moments(which)
    moments, scale = np.empty((3, len(which))), np.empty(len(which))
    choose_scales(len(which), states.shape[1], states, _LIMITS[measure.dtype], moments, scale)
    extreme = np.flatnonzero(scale != 1)
    if len(extreme):
        moments[:, extreme] = measure.moments(which[extreme], scale[extreme])[:, :3].T
    return Products(moments, scale)


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
    epsilon, tiny : float
        Machine epsilon and smallest normal number of the predictions' number type.
    """

    weight: float
    mean: float
    square: float
    epsilon: float = float(np.finfo(np.float64).eps)
    tiny: float = float(np.finfo(np.float64).tiny)


_MOSTLY_ROUNDING = 1e-9
"""Share of the target's sum of squares below which the error of a simpler line is measured again. It is smaller than
the share above: these errors only decide which individuals the archive keeps, and later fits measure them anew."""


def best_lines(products: Products, target: Target, from_moments: bool = True) -> tuple[Floats, Floats, Floats, Mask]:
    """The lines that minimize the weighted squared error (Keijzer 2003).

    A prediction that varies by no more than rounding counts as constant: slope 0, intercept mean(y). The error of a
    simpler line is inf if it is not less than that of a constant, or if the prediction is one; that of any line if its
    slope is subnormal.

    Returns
    -------
    slopes, intercepts, errors : ndarray of shape (4, n_individuals)
        Of no line, an intercept only, a slope only, and both; with the squared errors.
    again : ndarray of shape (4, n_individuals), bool
        Which errors must be measured: those of nearly perfect lines, those that the rounding of the line adds to, or
        all finite ones if not `from_moments`.
    """
    n, whole = len(products.scale), target.square + target.weight * target.mean * target.mean
    # Share of unexplained variance below which the scaled error is measured again instead of derived.
    limits = (_MOSTLY_ROUNDING * whole, 1e-4 * target.square) if from_moments else (np.inf, np.inf)
    rounding = 64 * target.epsilon
    facts = np.array([target.weight, target.mean, target.square, rounding, whole, *limits, rounding * target.tiny])
    slopes, intercepts, errors = np.empty((3, 4, n))
    again = np.empty((4, n), np.bool_)
    fit_lines(n, products.moments, products.scale, facts, slopes, intercepts, errors, again)
    return slopes, intercepts, errors, again


def lines_like(forms: Scores, products: Products, target: Target) -> tuple[Floats, Floats]:
    """Slopes and intercepts of the same forms, fitted to other rows.

    Parameters
    ----------
    forms : Scores
        A slope of 1 and an intercept of 0 stay.
    products : Products
        Moments of the same individuals over the other rows.
    target : Target
    """
    slopes, intercepts, *_ = best_lines(products, target)
    which = 2 * (forms.slopes != 1) + (forms.intercepts != 0), np.arange(len(forms.losses))
    return slopes[which], intercepts[which]


def score(measure: Measure, count: int, target: Target, loss: str | Loss, linear_scaling: bool) -> Scores:
    """Losses of `count` individuals; a `ValueError` if there is no such loss.

    With linear scaling, the squared errors of the scaled prediction, and of simpler lines, follow from the moments of
    the unscaled one, in the same pass. Individuals are measured a second time, with their line, if the errors do not
    follow from moments, or if the fit is nearly perfect: the difference of moments would cancel.
    """
    of_loss = loss_of(loss)
    kind = of_loss.kind
    with np.errstate(all="ignore"):
        if linear_scaling:
            slopes, intercepts, errors, again = best_lines(
                products_of(measure, np.arange(count)), target, kind.follows_from_moments
            )
            for form in np.flatnonzero(again.any(axis=1)):
                which = np.flatnonzero(again[form])
                errors[form, which] = measure.errors(which, kind, slopes[form, which], intercepts[form, which])
        else:
            slopes, intercepts = np.ones((1, count)), np.zeros((1, count))
            errors = measure.errors(np.arange(count), kind, slopes[0], intercepts[0])[None]
        return scores_of(of_loss.of_sum(errors, target.weight, target.square), slopes, intercepts)


def scores_of(losses: Floats, slopes: Floats, intercepts: Floats) -> Scores:
    """Scores whose losses are finite or inf, of arrays of shape (n_lines, n_individuals), the simplest line first.

    It writes to the arrays.
    """
    keep_finite(losses.size, losses, slopes, intercepts)
    simpler = Scores(losses[:-1], slopes[:-1], intercepts[:-1]) if len(losses) > 1 else None
    return Scores(losses[-1], slopes[-1], intercepts[-1], simpler)
