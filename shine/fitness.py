"""Losses, and what an evaluator of populations promises.

Every loss follows from one sum over the rows; linear scaling from the moments of predictions and target. Each tier
measures those, and the rest is here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from shine.lang.population import Population
from shine.typing import AnyArray, Floats, Indices, Mask


@dataclass(frozen=True)
class Loss:
    """A loss that follows from one sum over the rows.

    Parameters
    ----------
    kind : {"squared", "absolute"}
        Which errors are added up.
    of_sum : callable
        ``of_sum(total, weight, target_square)``: the loss from the weighted sum of errors, the sum of the weights, and
        the weighted sum of the target's squared deviations from its mean.
    sum_of : callable
        ``sum_of(loss, weight, target_square)``: its inverse.
    degree : int
        The power of the target's unit that the loss has: 2 for squared errors, 0 for shares.
    """

    kind: str
    of_sum: Callable[[Floats, float, float], Floats]
    sum_of: Callable[[float, float, float], float]
    degree: int


def _over_weight(kind: str, degree: int) -> Loss:
    return Loss(kind, lambda total, weight, square: total / weight, lambda loss, weight, square: loss * weight, degree)


def _over_square(kind: str) -> Loss:
    return Loss(kind, lambda total, weight, square: total / square, lambda loss, weight, square: loss * square, 0)


LOSSES: dict[str, Loss] = {
    "mse": _over_weight("squared", 2),
    "rmse": Loss(
        "squared",
        lambda total, weight, square: np.sqrt(total / weight),
        lambda loss, weight, square: loss * loss * weight,
        1,
    ),
    "mae": _over_weight("absolute", 1),
    "nmse": _over_square("squared"),
    "r2": _over_square("squared"),
}
"""The losses by name. `nmse` is the squared error over the target's variance; `r2` names the same number, 1 - R^2,
because a loss is minimized."""


@dataclass(frozen=True)
class Scores:
    """What an evaluator says of a population, each of shape (n_individuals,), float64.

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
    """What a tier can measure of the individuals at some positions of a population, in a pass over the rows each."""

    def errors(self, which: Indices, kind: str, slopes: Floats, intercepts: Floats) -> Floats:
        """Weighted sums of "squared" or "absolute" errors of ``intercept + slope * p``."""
        ...

    def products(self, which: Indices) -> Products:
        """Moments for linear scaling."""
        ...


@dataclass(frozen=True)
class Target:
    """What the losses need to know of the target.

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

    A prediction that varies no more than rounding does counts as constant: slope 0, intercept mean(y).
    """
    constant = ~(products.square > target.weight * (64 * target.epsilon * products.mean) ** 2)
    slopes = np.where(constant, 0.0, products.product / np.where(constant, 1.0, products.square))
    return slopes, target.mean - slopes * products.mean


_NEARLY_PERFECT = 1e-4
"""Share of unexplained variance below which the scaled error is measured again instead of derived."""


def score(measure: Measure, count: int, target: Target, loss: str, linear_scaling: bool) -> Scores:
    """Losses of `count` individuals.

    With linear scaling, the squared error of the scaled prediction follows from the moments of the unscaled one, in
    the same pass. That difference cancels where the fit is nearly perfect, and absolute errors do not follow at all:
    those individuals are measured a second time, with their slope and intercept.

    Raises
    ------
    ValueError
        If there is no such loss.
    """
    if loss not in LOSSES:
        raise ValueError(f"unknown loss {loss!r}; use one of {', '.join(LOSSES)}")
    kind, everyone = LOSSES[loss].kind, np.arange(count)
    slopes, intercepts = np.ones(count), np.zeros(count)
    with np.errstate(all="ignore"):
        if linear_scaling:
            products = measure.products(everyone)
            slopes, intercepts = best_lines(products, target)
            totals = target.square - slopes * products.product
            again = np.isfinite(totals)
            if kind == "squared":
                again &= totals < _NEARLY_PERFECT * target.square
            if again.any():
                totals[again] = measure.errors(everyone[again], kind, slopes[again], intercepts[again])
        else:
            totals = measure.errors(everyone, kind, slopes, intercepts)
        losses = LOSSES[loss].of_sum(totals, target.weight, target.square)
    finite = np.isfinite(losses) & np.isfinite(slopes) & np.isfinite(intercepts)
    return Scores(np.where(finite, losses, np.inf), np.where(finite, slopes, 1.0), np.where(finite, intercepts, 0.0))


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """What a step of a least squares fit of constants follows from, for each individual of a population.

    Parameters
    ----------
    errors : ndarray of shape (n_individuals,)
        Weighted sum of the errors of ``intercept + slope * individual``; inf where it exceeds the limit or is not
        finite.
    matrices : ndarray of shape (n_individuals, 3 + n_constants, 3 + n_constants)
        Weighted sums over the rows of all products of two of: the residual, 1, the prediction, and its derivative by
        each constant in the order of the tape; 0 behind an individual's last constant. For absolute errors, each row
        weighs the inverse of its error besides. Meaningless where the errors are infinite.
    counts : ndarray of shape (n_individuals,), int64
        Constants of each individual.
    """

    errors: Floats
    matrices: Floats
    counts: Indices


@dataclass(frozen=True, eq=False)
class Fit:
    """Individuals with fitted constants.

    Parameters
    ----------
    population : Population
    slopes, intercepts : ndarray of shape (n_individuals,)
    errors : ndarray of shape (n_individuals,)
        Weighted sum of errors; inf where it was not finite to begin with.
    """

    population: Population
    slopes: Floats
    intercepts: Floats
    errors: Floats


class Linearizer(Protocol):
    """Population -> normal equations, over a data set it holds."""

    def normal_equations(
        self, population: Population, slopes: Floats, intercepts: Floats, limits: Floats
    ) -> NormalEquations:
        """Errors and normal equations at the constants the population has, for given lines; an individual is left as
        soon as its errors exceed its limit."""
        ...

    def fit(
        self,
        population: Population,
        slopes: Floats,
        intercepts: Floats,
        steps: int,
        *,
        tolerance: float,
        scaled: bool,
        fixed: Mask | None = None,
    ) -> Fit:
        """Fit the constants of each individual by a few steps of Levenberg-Marquardt; none becomes worse.

        Parameters
        ----------
        population : Population
        slopes, intercepts : ndarray of shape (n_individuals,)
            Lines to start from.
        steps : int
            Most steps of an individual.
        tolerance : float
            A fit stops once the next step promises to take away less than this share of the error.
        scaled : bool
            Whether slope and intercept are fitted too.
        fixed : ndarray of shape (n_individuals, n_constants), bool, optional
            Constants, by their order on the tape, that keep their values.
        """
        ...


class PopulationEvaluator(Protocol):
    """Population -> scores, over a data set it holds."""

    def score(self, population: Population, threshold: float = np.inf) -> Scores:
        """Loss and scaling of each individual; a loss above the threshold may be, and is, reported as inf."""
        ...

    def predict(self, population: Population) -> AnyArray:
        """Predictions, shape (n_individuals, n_rows), in the evaluator's number type."""
        ...
