"""The protocols of evaluators of populations, and the data of constant fitting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from shine.base.typing import AnyArray, Floats, Indices, Mask
from shine.evaluate.scores import Scores
from shine.lang.population import Population


class PickledByArguments:
    """Base of classes with compiled code and addresses of data, which mean nothing to another process, nor to a copy.

    Pickling such an object keeps the arguments of its class; reading it makes it anew.
    """

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        self = super().__new__(cls)
        self._arguments = arguments, named
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), *self._arguments)


def _rebuilt(cls: type[PickledByArguments], arguments: tuple[Any, ...], named: Mapping[str, Any]) -> PickledByArguments:
    return cls(*arguments, **named)


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """The equations that a step of a least squares fit of constants solves, for each individual of a population.

    Parameters
    ----------
    errors : ndarray of shape (n_individuals,)
        Weighted sum of the errors of ``intercept + slope * individual``; inf where it exceeds the limit or is not
        finite.
    matrices : ndarray of shape (n_individuals, 3 + n_constants, 3 + n_constants)
        Weighted sums over the rows of the products of any two of: the residual, 1, the prediction, and its derivative
        by each constant in the order of the tape; 0 after an individual's last constant. The residual of a row is the
        step of the model that its error asks for, and its weight is also multiplied by half the curvature of its error
        (see `shine.evaluate.gradient.working_residuals`): 1 for squared errors. Meaningless where the errors are
        infinite.
    counts : ndarray of shape (n_individuals,), int64
        Constants of each individual.
    """

    errors: Floats
    matrices: Floats
    counts: Indices


@dataclass(frozen=True, eq=False)
class FirstLines:
    """The lines that a fit of constants begins with, and how low its errors must come.

    Parameters
    ----------
    slopes, intercepts : ndarray of shape (n_individuals,)
    fitted : bool
        Whether they are fitted, too.
    goals : ndarray of shape (n_individuals,), optional
        Share of its first error below which each individual must come: a fit that hardly will may end early.
    """

    slopes: Floats
    intercepts: Floats
    fitted: bool = False
    goals: Floats | None = None


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


class ConstantFitter(Protocol):
    """Population -> the same with better constants, over a data set it holds."""

    def fit(
        self,
        population: Population,
        steps: int,
        *,
        tolerance: float,
        lines: FirstLines | None = None,
        fixed: Mask | None = None,
    ) -> Fit:
        """Fit the constants of each individual by a few steps of Levenberg-Marquardt; no individual becomes worse.

        Parameters
        ----------
        population : Population
        steps : int
            Most steps of an individual.
        tolerance : float
            A fit stops once the next step promises to remove less than this share of the error.
        lines : FirstLines, optional
            By default, an individual's value is its prediction.
        fixed : ndarray of shape (n_individuals, n_constants), bool, optional
            Whether each constant, in the order of the tape, keeps its value.
        """


class Linearizer(ConstantFitter, Protocol):
    """Population -> normal equations, over a data set it holds."""

    def normal_equations(
        self, population: Population, slopes: Floats, intercepts: Floats, limits: Floats
    ) -> NormalEquations:
        """Errors and normal equations at the population's constants, for given lines; evaluation of an individual ends
        as soon as its errors exceed its limit."""


class PopulationEvaluator(Protocol):
    """Population -> scores, over a data set it holds."""

    def score(self, population: Population, threshold: float | Floats = np.inf) -> Scores:
        """Loss and scaling of each individual; losses above the threshold, or above its own, become inf."""

    def predict(self, population: Population) -> AnyArray:
        """Predictions, shape (n_individuals, n_rows), in the evaluator's number type."""
