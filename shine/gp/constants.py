"""Constant fitting: Levenberg-Marquardt on the constants of a whole population, in lock-step.

Marquardt (1963) with his scaling by the diagonal. The slope and intercept of linear scaling are unknowns like the
constants. Absolute errors are fitted through weights (see `shine.codegen.normal_equations`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shine.fitness import Linearizer, NormalEquations, Scores
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT

Array = NDArray[np.float64]

TOLERANCE = 1e-2
"""Share of its error that a step has to promise to take away, or an individual is left alone. Steps that promise little
keep little; near an exact fit every step promises nearly all."""

FIRST_DAMPING = 1e-2
"""Damping of the first step, relative to the diagonal of the normal equations."""

_LEAST_DAMPING, _MOST_DAMPING = 1e-12, 1e12
_LOWER, _RAISE = 0.1, 10.0
_LINE = 2
"""Unknowns before the constants: intercept and slope."""


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
    slopes: Array
    intercepts: Array
    errors: Array


def fit_constants(
    population: Population,
    slopes: Array,
    intercepts: Array,
    linearizer: Linearizer,
    steps: int,
    *,
    scaled: bool,
    fixed: NDArray[np.bool_] | None = None,
    tolerance: float = TOLERANCE,
) -> Fit:
    """Fit the constants of each individual by a few steps, none of which makes it worse.

    Parameters
    ----------
    population : Population
    slopes, intercepts : ndarray of shape (n_individuals,)
        Lines to start from.
    linearizer : Linearizer
    steps : int
        Most steps of an individual.
    scaled : bool
        Whether slope and intercept are fitted too.
    fixed : ndarray of shape (n_individuals, n_constants), bool, optional
        Constants, by their order on the tape, that are to stay what they are.
    tolerance : float
        An individual is left alone once a step promises to lower its error by less than this share.
    """
    point = _Point.of(population, slopes, intercepts)
    equations = linearizer.normal_equations(population, slopes, intercepts, np.full(len(population), np.inf))
    errors = equations.errors.copy()
    damping = np.full(len(population), FIRST_DAMPING)
    active = np.flatnonzero(np.isfinite(errors) & (errors > 0))
    free = _free(population, equations.matrices.shape[1] - 1, scaled, fixed)
    system = _System.of(equations, point, free).take(active)
    for _ in range(steps):
        step, gain = system.solved(damping[active])
        promising = gain > tolerance * errors[active]
        active, system, step = active[promising], system.take(promising), step[promising]
        if not len(active):
            break
        trial = point.take(active).moved(step)
        found = linearizer.normal_equations(
            trial.population(population.take(active)), trial.slopes, trial.intercepts, errors[active]
        )
        better = found.errors < errors[active]
        errors[active[better]] = found.errors[better]
        point.put(active[better], trial.take(better))
        system.put(better, _System.of(found, trial, free[active]).take(better))
        damping[active] = np.clip(damping[active] * np.where(better, _LOWER, _RAISE), _LEAST_DAMPING, _MOST_DAMPING)
    return Fit(point.population(population), point.slopes, point.intercepts, errors)


def fitter(linearizer: Linearizer, steps: int, *, scaled: bool) -> Callable[[Population, Scores], Population]:
    """What gives individuals better constants, if it finds any (see `fit_constants`)."""

    def fitted(population: Population, scores: Scores) -> Population:
        inside = np.arange(population.width) < population.sizes[:, None]
        has_constants = ((population.codes == CONSTANT) & inside).any(axis=1)
        which = np.flatnonzero(has_constants & np.isfinite(scores.losses))
        if not len(which):
            return population
        chosen, lines = population.take(which), scores.take(which)
        fit = fit_constants(chosen, lines.slopes, lines.intercepts, linearizer, steps, scaled=scaled)
        values = population.values.copy()
        values[which] = fit.population.values
        return replace(population, values=values)

    return fitted


@dataclass(frozen=True, eq=False)
class _Point:
    """Unknowns of some individuals: intercept, slope, constants; shape (n_individuals, 2 + n_constants)."""

    unknowns: Array

    @classmethod
    def of(cls, population: Population, slopes: Array, intercepts: Array) -> _Point:
        rows, columns, ranks = places(population)
        constants = np.zeros((len(population), 1 + int(ranks.max(initial=-1))))
        constants[rows, ranks] = population.values[rows, columns]
        return cls(np.column_stack([intercepts, slopes, constants]))

    @property
    def intercepts(self) -> Array:
        return self.unknowns[:, 0]

    @property
    def slopes(self) -> Array:
        return self.unknowns[:, 1]

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> _Point:
        return _Point(self.unknowns[which])

    def put(self, which: NDArray[np.int64], other: _Point) -> None:
        self.unknowns[which] = other.unknowns

    def moved(self, step: Array) -> _Point:
        unknowns = self.unknowns.copy()
        unknowns[:, : step.shape[1]] += step
        return _Point(unknowns)

    def population(self, population: Population) -> Population:
        """The individuals with these constants."""
        rows, columns, ranks = places(population)
        values = population.values.copy()
        values[rows, columns] = self.unknowns[rows, _LINE + ranks]
        return replace(population, values=values)


def places(population: Population) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Individual, position on the tape, and rank among the individual's constants, of every constant."""
    inside = np.arange(population.width) < population.sizes[:, None]
    constant = (population.codes == CONSTANT) & inside
    rows, columns = np.nonzero(constant)
    ranks = (np.cumsum(constant, axis=1) - 1)[rows, columns]
    return rows, columns, ranks


def _free(population: Population, unknowns: int, scaled: bool, fixed: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Which unknowns may move, shape (n_individuals, n_unknowns)."""
    free = np.ones((len(population), unknowns), np.bool_)
    free[:, :_LINE] = scaled
    if fixed is not None:
        fitted = min(fixed.shape[1], unknowns - _LINE)
        free[:, _LINE : _LINE + fitted] = ~fixed[:, :fitted]
    return free


@dataclass(frozen=True, eq=False)
class _System:
    """Normal equations scaled to a diagonal of ones: ``(matrix + damping) (scale * step) = gradient``.

    Unknowns without influence, or of an influence that is not finite, have a row of the unit matrix and gradient 0.
    """

    matrix: Array
    gradient: Array
    scale: Array

    @classmethod
    def of(cls, equations: NormalEquations, point: _Point, free: NDArray[np.bool_]) -> _System:
        count = equations.matrices.shape[1] - 1
        # The prediction's derivatives count as often as the slope says.
        factors = np.repeat(point.slopes[:, None], count, axis=1)
        factors[:, :_LINE] = 1.0
        with np.errstate(all="ignore"):
            matrix = equations.matrices[:, 1:, 1:] * factors[:, :, None] * factors[:, None, :]
            gradient = equations.matrices[:, 1:, 0] * factors
            scale = np.sqrt(np.einsum("ijj->ij", matrix))
            usable = (scale > 0) & np.isfinite(scale) & np.isfinite(gradient)
            usable &= free[:, :count]
            scale = np.where(usable, scale, 1.0)
            matrix = matrix / (scale[:, :, None] * scale[:, None, :])
            both = usable[:, :, None] & usable[:, None, :] & np.isfinite(matrix)
            matrix = np.where(both, matrix, 0.0)
            diagonal = np.einsum("ijj->ij", matrix)
            diagonal[:] = 1.0
            gradient = np.where(usable, gradient / scale, 0.0)
        return cls(matrix, gradient, scale)

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> _System:
        return _System(self.matrix[which], self.gradient[which], self.scale[which])

    def put(self, which: NDArray[np.bool_], other: _System) -> None:
        # Some individuals alone may have room for fewer constants than all; they have no more.
        count = other.matrix.shape[1]
        self.matrix[which, :count, :count] = other.matrix
        self.gradient[which, :count], self.scale[which, :count] = other.gradient, other.scale

    def solved(self, damping: Array) -> tuple[Array, Array]:
        """Steps, and the fall of the squared error that each promises, if the model were linear."""
        scaled_step = _solved(self.matrix, damping, self.gradient)
        gain = np.zeros(len(damping))
        for share in (scaled_step * (self.gradient + damping[:, None] * scaled_step)).T:
            gain += share
        with np.errstate(over="ignore"):
            return scaled_step / self.scale, gain


def _solved(matrices: Array, damping: Array, gradients: Array) -> Array:
    """Solutions of ``(matrix + damping) solution = gradient`` by the factors L D L^T, for all individuals in step.

    The matrices are positive semidefinite, so that no pivoting is needed. An individual's solution has the same bits
    whatever others it comes with: unknowns that only they have add exact zeros. LAPACK does not promise that, nor the
    same bits on every machine.
    """
    rest, solution = matrices.copy(), gradients.copy()
    count = rest.shape[1]
    diagonal = np.einsum("ijj->ij", rest)
    diagonal += damping[:, None]
    for k in range(count):
        # Rounding may leave an unknown that depends on those before it without a positive pivot; it stays where it is.
        np.copyto(diagonal[:, k], np.inf, where=~(diagonal[:, k] > 0))
        factors = rest[:, k + 1 :, k] / diagonal[:, k, None]
        rest[:, k + 1 :, k + 1 :] -= factors[:, :, None] * rest[:, k, None, k + 1 :]
        solution[:, k + 1 :] -= factors * solution[:, k, None]
    for k in reversed(range(count)):
        solution[:, k] /= diagonal[:, k]
        solution[:, :k] -= rest[:, :k, k] * solution[:, k, None]
    return solution
