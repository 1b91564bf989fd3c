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
    simpler : tuple of Scores
        With linear scaling: the same individuals with simpler lines, that is with a slope only, with an intercept only,
        and as they are. Empty if they were not measured.
    """

    losses: Floats
    slopes: Floats
    intercepts: Floats
    simpler: tuple[Scores, ...] = ()

    @property
    def forms(self) -> tuple[Scores, ...]:
        """The scores with each kind of line, the simplest first."""
        return (*reversed(self.simpler), replace(self, simpler=()))

    def within(self, threshold: float) -> Scores:
        """The scores with losses above a threshold turned into inf."""
        if threshold == np.inf:
            return self
        simpler = tuple(form.within(threshold) for form in self.simpler)
        return replace(self, losses=np.where(self.losses <= threshold, self.losses, np.inf), simpler=simpler)

    def take(self, indices: ArrayLike) -> Scores:
        """The scores at some indices, or where a mask holds."""
        at = np.asarray(indices)
        simpler = tuple(form.take(at) for form in self.simpler)
        return Scores(self.losses[at], self.slopes[at], self.intercepts[at], simpler)

    def replaced(self, indices: ArrayLike, others: Scores) -> Scores:
        """A copy with other scores at some indices, or where a mask holds."""
        at = np.asarray(indices)
        simpler = tuple(form.replaced(at, other) for form, other in zip(self.simpler, others.simpler, strict=False))
        copy = Scores(self.losses.copy(), self.slopes.copy(), self.intercepts.copy(), simpler)
        copy.losses[at], copy.slopes[at], copy.intercepts[at] = others.losses, others.slopes, others.intercepts
        return copy

    @classmethod
    def concatenate(cls, parts: Sequence[Scores]) -> Scores:
        """Scores of several populations, in order."""
        if len(parts) == 1:
            return parts[0]
        empty = np.empty(0)
        simpler = zip(*(part.simpler for part in parts), strict=False) if parts else ()
        return cls(
            np.concatenate([empty, *(part.losses for part in parts)]),
            np.concatenate([empty, *(part.slopes for part in parts)]),
            np.concatenate([empty, *(part.intercepts for part in parts)]),
            tuple(cls.concatenate(forms) for forms in simpler),
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


@dataclass(frozen=True)
class Lines:
    """Lines ``intercept + slope * individual``, each of shape (n_individuals,), and the sums of their errors."""

    slopes: Floats
    intercepts: Floats
    errors: Floats


class Measure(Protocol):
    """Measurements of a tier on the individuals at some positions of a population, one pass over the rows each."""

    def errors(self, which: Indices, kind: RowLoss, slopes: Floats, intercepts: Floats) -> Floats:
        """Weighted sums of the errors of ``intercept + slope * p``."""
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
    constant = _constant(products, target)
    slopes = np.where(constant, 0.0, products.product / np.where(constant, 1.0, products.square))
    return slopes, target.mean - slopes * products.mean


def simpler_lines(products: Products, target: Target) -> tuple[Lines, ...]:
    """Lines with a slope only, with an intercept only, and none, with their squared errors.

    A prediction that varies by no more than rounding has none: its best form is a constant.
    """
    weight = target.weight
    square = products.square + weight * products.mean**2
    product = products.product + weight * products.mean * target.mean
    whole = target.square + weight * target.mean * target.mean  # a power of a float would raise where it overflows
    slopes, ones, shifts = product / square, np.ones_like(square), target.mean - products.mean
    shifted = target.square - 2 * products.product + products.square
    found = (
        Lines(slopes, 0 * ones, whole - slopes * product),
        Lines(ones, shifts, shifted),
        Lines(ones, 0 * ones, shifted + weight * shifts**2),
    )
    constant = _constant(products, target)
    return tuple(replace(lines, errors=np.where(constant, np.inf, lines.errors)) for lines in found)


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
    slopes, intercepts = best_lines(products, target)
    only_slope, only_intercept, _ = simpler_lines(products, target)
    has_slope, has_intercept = forms.slopes != 1, forms.intercepts != 0
    return (
        np.where(has_slope, np.where(has_intercept, slopes, only_slope.slopes), 1.0),
        np.where(has_intercept, np.where(has_slope, intercepts, only_intercept.intercepts), 0.0),
    )


def _constant(products: Products, target: Target) -> Mask:
    """Whether predictions vary by no more than rounding."""
    return ~(products.square > target.weight * (64 * target.epsilon * products.mean) ** 2)


_NEARLY_PERFECT = 1e-4
"""Share of unexplained variance below which the scaled error is measured again instead of derived."""

_MOSTLY_ROUNDING = 1e-9
"""Share of the target's sum of squares below which the error of a simpler line is measured again. It is smaller than
the share above: these errors only decide which individuals the archive keeps, and later fits measure them anew."""


def score(measure: Measure, count: int, target: Target, loss: str | Loss, linear_scaling: bool) -> Scores:
    """Losses of `count` individuals; a `ValueError` if there is no such loss.

    With linear scaling, the squared errors of the scaled prediction, and of simpler lines, follow from the moments of
    the unscaled one, in the same pass. Individuals are measured a second time, with their line, if the errors do not
    follow from moments, or if the fit is nearly perfect: the difference of moments would cancel.
    """
    of_loss, everyone = loss_of(loss), np.arange(count)
    kind = of_loss.kind
    slopes, intercepts = np.ones(count), np.zeros(count)
    simpler: tuple[Lines, ...] = ()
    with np.errstate(all="ignore"):
        if linear_scaling:
            products = measure.products(everyone)
            slopes, intercepts = best_lines(products, target)
            totals = target.square - slopes * products.product
            again = np.isfinite(totals)
            if kind.follows_from_moments:
                again &= totals < _NEARLY_PERFECT * target.square
            if again.any():
                totals[again] = measure.errors(everyone[again], kind, slopes[again], intercepts[again])
            simpler = tuple(_measured_again(lines, measure, target, kind) for lines in simpler_lines(products, target))
        else:
            totals = measure.errors(everyone, kind, slopes, intercepts)
        forms = [
            _scores(lines, of_loss.of_sum(lines.errors, target.weight, target.square))
            for lines in (*simpler, Lines(slopes, intercepts, totals))
        ]
    return replace(forms[-1], simpler=tuple(forms[:-1]))


def _measured_again(lines: Lines, measure: Measure, target: Target, kind: RowLoss) -> Lines:
    """Simpler lines with their errors of another kind, or without those that are worse than a constant."""
    errors = np.where(lines.errors < target.square, lines.errors, np.inf)
    again = np.isfinite(errors)
    if kind.follows_from_moments:
        again &= errors < _MOSTLY_ROUNDING * (target.square + target.weight * target.mean * target.mean)
    if again.any():
        which = np.flatnonzero(again)
        errors[again] = measure.errors(which, kind, lines.slopes[again], lines.intercepts[again])
    return replace(lines, errors=errors)


def _scores(lines: Lines, losses: Floats) -> Scores:
    """Scores whose losses are finite or inf."""
    finite = np.isfinite(losses) & np.isfinite(lines.slopes) & np.isfinite(lines.intercepts)
    return Scores(
        np.where(finite, losses, np.inf), np.where(finite, lines.slopes, 1.0), np.where(finite, lines.intercepts, 0.0)
    )
