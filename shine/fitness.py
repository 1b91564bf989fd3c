"""Losses, and what an evaluator of populations promises.

Every loss follows from a few moments of the predictions and the target, which each evaluator collects in one pass
over the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from shine.lang.population import Population

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Weighted moments of predictions p and target y, each of shape (n_individuals,).

    Parameters
    ----------
    weight : float
        Sum of the sample weights.
    target_square : float
        Weighted sum of (y - mean(y))^2.
    target_mean : float
    squared_error, absolute_error : ndarray
        Weighted sums of (y - p)^2 and of abs(y - p).
    mean, square, product : ndarray
        Weighted mean of p, weighted sums of (p - mean(p))^2 and of (p - mean(p)) * (y - mean(y)).
    epsilon : float
        Machine epsilon of the predictions' number type.
    """

    weight: float
    target_mean: float
    target_square: float
    squared_error: Array
    absolute_error: Array
    mean: Array
    square: Array
    product: Array
    epsilon: float = float(np.finfo(np.float64).eps)

    def scaling(self) -> tuple[Array, Array]:
        """Slopes and intercepts that minimize the weighted squared error (Keijzer 2003).

        A prediction that varies no more than rounding does counts as constant: slope 0, intercept mean(y).
        """
        constant = ~(self.square > self.weight * (64 * self.epsilon * self.mean) ** 2)
        slope = np.where(constant, 0.0, self.product / np.where(constant, 1.0, self.square))
        return slope, self.target_mean - slope * self.mean


LOSSES: dict[str, Callable[[Moments], Array]] = {
    "mse": lambda m: m.squared_error / m.weight,
    "rmse": lambda m: np.sqrt(m.squared_error / m.weight),
    "mae": lambda m: m.absolute_error / m.weight,
    "nmse": lambda m: m.squared_error / m.target_square,
    "r2": lambda m: m.squared_error / m.target_square,
}
"""Each loss from the moments. `nmse` is the squared error over the target's variance; `r2` names the same number,
1 - R^2, because a loss is minimized."""


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

    losses: Array
    slopes: Array
    intercepts: Array

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Scores of several populations, in order."""
        empty = np.empty(0)
        return cls(
            np.concatenate([empty, *(part.losses for part in parts)]),
            np.concatenate([empty, *(part.slopes for part in parts)]),
            np.concatenate([empty, *(part.intercepts for part in parts)]),
        )


Measure = Callable[[NDArray[np.int64], Array, Array], Moments]
"""Moments of some individuals, given their positions and the slope and intercept their errors are measured with."""

_NEARLY_PERFECT = 1e-4
"""Share of unexplained variance below which the scaled loss is measured again instead of derived."""


def score(measure: Measure, count: int, loss: str, linear_scaling: bool) -> Scores:
    """Losses of `count` individuals from their moments.

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
    everyone = np.arange(count)
    slopes, intercepts = np.ones(count), np.zeros(count)
    with np.errstate(all="ignore"):
        moments = measure(everyone, slopes, intercepts)
        if linear_scaling:
            slopes, intercepts = moments.scaling()
            squared = moments.target_square - slopes * moments.product
            again = np.isfinite(squared)
            if loss != "mae":
                again &= squared < _NEARLY_PERFECT * moments.target_square
            errors = np.where(np.isfinite(squared), np.maximum(squared, 0.0), np.inf)
            moments = replace(moments, squared_error=errors)
            if again.any():
                second = measure(everyone[again], slopes[again], intercepts[again])
                moments.squared_error[again] = second.squared_error
                moments.absolute_error[again] = second.absolute_error
        losses = LOSSES[loss](moments)
    finite = np.isfinite(losses) & np.isfinite(slopes) & np.isfinite(intercepts)
    return Scores(np.where(finite, losses, np.inf), np.where(finite, slopes, 1.0), np.where(finite, intercepts, 0.0))


class PopulationEvaluator(Protocol):
    """Population -> scores, over a data set it holds."""

    def score(self, population: Population) -> Scores:
        """Loss and scaling of each individual."""
        ...
