"""Constant fitting: Levenberg-Marquardt on the constants of a whole population.

Marquardt (1963) with his scaling by the diagonal. The slope and intercept of linear scaling are unknowns like the
constants. Absolute errors are fitted through weights (see `shine.codegen.gradient.normal_equations`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from shine.arrays.linear_systems import solved_together
from shine.fitness.protocols import Damping, Fit, Linearizer, NormalEquations
from shine.fitness.scores import Scores
from shine.gp.scoring import Fitter
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT
from shine.typing import Floats, Indices, Mask

TOLERANCE = 1e-2
"""Share of its error that a step has to promise to take away, or an individual is left alone. Steps that promise little
keep little; near an exact fit every step promises nearly all."""

DAMPING = Damping()
"""How the damping of a step follows from the one before."""

_LINE = 2
"""Unknowns before the constants: intercept and slope."""


def fit_constants(
    population: Population,
    slopes: Floats,
    intercepts: Floats,
    linearizer: Linearizer,
    steps: int,
    *,
    scaled: bool,
    fixed: Mask | None = None,
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

    Notes
    -----
    A linearizer that can takes an individual through all of its steps natively; otherwise all individuals take each
    step together, in array code, between two passes of the linearizer over the rows.
    """
    found = linearizer.fit(population, slopes, intercepts, steps, tolerance, DAMPING, scaled=scaled, fixed=fixed)
    if found is not None:
        return found
    return _fitted_in_step(population, slopes, intercepts, linearizer, steps, scaled, fixed, tolerance)


def _fitted_in_step(
    population: Population,
    slopes: Floats,
    intercepts: Floats,
    linearizer: Linearizer,
    steps: int,
    scaled: bool,
    fixed: Mask | None,
    tolerance: float,
) -> Fit:
    constants = _Constants.of(population)
    order = constants.individuals
    individuals, unknowns = population.take(order), constants.unknowns(population, slopes, intercepts)
    equations = linearizer.normal_equations(individuals, slopes[order], intercepts[order], np.full(len(order), np.inf))
    count = equations.matrices.shape[1] - 1
    errors, damping = equations.errors.copy(), np.full(len(order), DAMPING.first)
    free = _free(len(order), count, scaled, None if fixed is None else fixed[order])
    active = np.flatnonzero(np.isfinite(errors) & (errors > 0))
    system = _System.of(equations, unknowns[1], free).take(active, constants.counts[active])
    for _ in range(steps):
        step, gain = system.solved(damping[active])
        promising = np.flatnonzero(gain > tolerance * errors[active])
        active, least = active[promising], errors[active[promising]]
        if not len(active):
            break
        counts = constants.counts[active]
        system, step = system.take(promising, counts), step.take(promising, axis=1)
        before = unknowns.take(active, axis=1)
        trial = before.copy()
        trial[: len(step)] += step
        trial_values = constants.placed(trial, individuals.values[active], active)
        moved = Population(individuals.codes[active], trial_values, individuals.sizes[active], population.primitives)
        found = linearizer.normal_equations(moved, trial[1], trial[0], least)
        better = found.errors < least
        errors[active] = np.where(better, found.errors, least)
        unknowns[:, active] = np.where(better, trial, before)
        system = system.replaced(better, _System.of(found, trial[1], free.take(active, axis=1)))
        changed = damping[active] * np.where(better, DAMPING.lower, DAMPING.higher)
        damping[active] = np.clip(changed, DAMPING.least, DAMPING.most)
    values = constants.placed(unknowns, individuals.values, np.arange(len(order)))
    # Back into the order in which they came.
    where = np.argsort(order)
    return Fit(replace(population, values=values[where]), unknowns[1, where], unknowns[0, where], errors[where])


def fitter(linearizer: Linearizer, steps: int, *, scaled: bool) -> Fitter:
    """What gives individuals better constants, if it finds any, by a few steps each (see `fit_constants`)."""

    def fitted(population: Population, scores: Scores) -> Population:
        has_constants = np.zeros(len(population), np.bool_)
        has_constants[places(population)[0]] = True
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
class _Constants:
    """Where the constants of a population are; those who have most come first.

    So those who have a k-th constant are always the first few, of whatever part of the population.

    Parameters
    ----------
    individuals : ndarray of shape (n_individuals,), int64
        In this order.
    counts : ndarray of shape (n_individuals,), int64
        Constants of each, in this order.
    columns : ndarray of shape (most constants, n_individuals), int64
        Position of each constant on the tape; arbitrary behind the last one.
    """

    individuals: Indices
    counts: Indices
    columns: Indices

    @classmethod
    def of(cls, population: Population) -> _Constants:
        rows, positions, ranks = places(population)
        counts = np.bincount(rows, minlength=len(population))
        individuals = np.argsort(-counts, kind="stable")
        columns = np.zeros((int(counts.max(initial=0)), len(population)), np.int64)
        columns[ranks, rows] = positions
        return cls(individuals, counts[individuals], columns[:, individuals])

    def unknowns(self, population: Population, slopes: Floats, intercepts: Floats) -> Floats:
        """Intercept, slope and constants, shape (2 + most constants, n_individuals), in this order."""
        order = self.individuals
        constants = population.values[order, self.columns]
        constants[np.arange(len(constants))[:, None] >= self.counts] = 0.0
        return np.concatenate([intercepts[None, order], slopes[None, order], constants])

    def placed(self, unknowns: Floats, values: Floats, which: Indices) -> Floats:
        """Values of the tapes of some individuals with their unknowns in place of their constants."""
        values, counts = values.copy(), self.counts[which]
        most = int(counts.max(initial=0))
        there = np.arange(most)[:, None] < counts
        cells = (self.columns[:most, which] + values.shape[1] * np.arange(len(which)))[there]
        values.reshape(-1)[cells] = unknowns[_LINE : _LINE + most][there]
        return values


def places(population: Population) -> tuple[Indices, Indices, Indices]:
    """Individual, position on the tape, and rank among the individual's constants, of every constant."""
    inside = np.arange(population.width) < population.sizes[:, None]
    rows, columns = np.nonzero((population.codes == CONSTANT) & inside)
    # They come individual by individual.
    ranks = np.arange(len(rows)) - np.searchsorted(rows, rows)
    return rows, columns, ranks


def _free(individuals: int, unknowns: int, scaled: bool, fixed: Mask | None) -> Mask:
    """Which unknowns may move, shape (n_unknowns, n_individuals)."""
    free = np.ones((unknowns, individuals), np.bool_)
    free[:_LINE] = scaled
    if fixed is not None:
        fitted = min(fixed.shape[1], unknowns - _LINE)
        free[_LINE : _LINE + fitted] = ~fixed[:, :fitted].T
    return free


@dataclass(frozen=True, eq=False)
class _System:
    """Normal equations scaled to a diagonal of ones: ``(matrix + damping) (scale * step) = gradient``.

    Unknowns without influence, or of an influence that is not finite, have a row of the unit matrix and gradient 0.
    The individuals are the last axis, along which everything is done at once.

    Parameters
    ----------
    matrix : ndarray of shape (n_unknowns, n_unknowns, n_individuals)
    gradient, scale : ndarray of shape (n_unknowns, n_individuals)
    counts : ndarray of shape (n_unknowns,), int64
        How many individuals, which are the first ones, have each unknown.
    """

    matrix: Floats
    gradient: Floats
    scale: Floats
    counts: Indices

    @classmethod
    def of(cls, equations: NormalEquations, slopes: Floats, free: Mask) -> _System:
        individuals, stride = equations.matrices.shape[:2]
        products = np.ascontiguousarray(equations.matrices.reshape(individuals, -1).T).reshape(stride, stride, -1)
        matrix, gradient = products[1:, 1:], products[1:, 0]
        with np.errstate(all="ignore"):
            # The prediction's derivatives count as often as the slope says.
            matrix[_LINE:] *= slopes
            matrix[:, _LINE:] *= slopes
            gradient[_LINE:] *= slopes
            scale = np.sqrt(np.einsum("jji->ji", matrix))
            usable = (scale > 0) & np.isfinite(scale) & np.isfinite(gradient)
            usable &= free[: stride - 1]
            unusable = ~usable
            scale[unusable] = 1.0
            matrix /= scale[:, None] * scale
            left_out = ~np.isfinite(matrix)
            left_out |= unusable[:, None]
            left_out |= unusable
            np.copyto(matrix, 0.0, where=left_out)
            np.einsum("jji->ji", matrix)[:] = 1.0
            gradient /= scale
            gradient[unusable] = 0.0
        return cls(matrix, gradient, scale, np.full(stride - 1, individuals))

    def take(self, which: Indices, constants: Indices) -> _System:
        """The systems of some individuals, with so many constants each, in descending order."""
        count = min(len(self.scale), _LINE + int(constants.max(initial=0)))
        counts = np.searchsorted(-constants, _LINE - np.arange(count), side="left")
        counts[:_LINE] = len(which)
        # Not by indices in brackets, which would make the individuals the first axis of the memory.
        return _System(
            self.matrix[:count, :count].take(which, axis=-1),
            self.gradient[:count].take(which, axis=-1),
            self.scale[:count].take(which, axis=-1),
            counts,
        )

    def replaced(self, which: Mask, other: _System) -> _System:
        """These systems, but others of as many individuals where a mask holds."""
        return _System(
            np.where(which, other.matrix, self.matrix),
            np.where(which, other.gradient, self.gradient),
            np.where(which, other.scale, self.scale),
            self.counts,
        )

    def solved(self, damping: Floats) -> tuple[Floats, Floats]:
        """Steps, and the fall of the squared error that each promises, if the model were linear."""
        scaled_step = solved_together(self.matrix, damping, self.gradient, self.counts)
        gain = np.zeros(len(damping))
        for share in scaled_step * (self.gradient + damping * scaled_step):
            gain += share
        with np.errstate(over="ignore"):
            return scaled_step / self.scale, gain
