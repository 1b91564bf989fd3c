"""Constraints compiled for a primitive set: which individuals of a population are allowed, and what they pay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from shine.fitness import PopulationEvaluator, Scores
from shine.gp.complexity import CONSTANT_NAME
from shine.gp.constraints.constraints import Constraints
from shine.gp.constraints.dimensions import Dimensions
from shine.gp.constraints.units import parse_unit
from shine.gp.structure import Structure
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT, PrimitiveSet
from shine.typing import Floats, Indices, Mask

Scaling = Literal["none", "implied", "written"]
"""Whether a slope and an intercept come on top of an individual, or are part of it already."""

WrongShares = Callable[[Population, Floats], Floats]
"""Population, slopes of linear scaling -> shares of pairs of rows in which monotonicity is violated, added up over the
features."""


class Rules:
    """Constraints compiled for a primitive set.

    A name that the primitive set lacks constrains nothing: no individual has it. Only a required feature must be there.

    Parameters
    ----------
    constraints : Constraints
    primitives : PrimitiveSet
    scaling : {"none", "implied", "written"}
        With "implied", a slope and an intercept will be put on top of the individuals: they are constants, and may turn
        any unit into that of the target. With "written", individuals may have them, and are not charged for them.
    wrong_shares : callable, optional
        Measures violations of monotonicity; without it there are no penalties.
    """

    def __init__(
        self,
        constraints: Constraints,
        primitives: PrimitiveSet,
        scaling: Scaling = "none",
        wrong_shares: WrongShares | None = None,
    ) -> None:
        self.constraints, self.primitives = constraints, primitives
        self._scaling, self._wrong_shares = scaling, wrong_shares
        codes = {**primitives.function_codes, **primitives.feature_codes, CONSTANT_NAME: CONSTANT}
        self._limits = [(codes[name], most) for name, most in constraints.limits.items() if name in codes]
        self._nesting = [
            (codes[outer], codes[name], most)
            for outer, inner in constraints.nesting.items()
            for name, most in inner.items()
            if outer in codes and name in codes
        ]
        self._required = [codes[name] for name in constraints.required]
        self._forbidden = [codes[name] for name in constraints.forbidden if name in codes]
        self._target = None
        if constraints.units:
            free = not constraints.dimensionless_constants
            units = {name: parse_unit(unit) for name, unit in constraints.units.items()}
            self._dimensions = Dimensions(primitives, units, free)
            if not (free and scaling == "implied"):
                self._target = parse_unit(constraints.target_unit or "1")

    def allowed(self, population: Population) -> Mask:
        """Whether each individual keeps to the constraints on what it is made of, shape (n_individuals,), bool.

        Parameters
        ----------
        population : Population
            Of the primitive set.
        """
        allowed = np.ones(len(population), np.bool_)
        inside = np.arange(population.width) < population.sizes[:, None]
        for code in self._required:
            allowed &= (population.codes == code).any(axis=1)
        for code in self._forbidden:
            allowed &= ~(population.codes == code).any(axis=1)
        # What costs more is looked at where nothing is decided yet.
        self._narrow(allowed, population, lambda some: self._within_counts(some, inside[allowed]))
        if self.constraints.units:
            self._narrow(allowed, population, lambda some: self._dimensions.consistent(some, self._target))
        return allowed

    def penalties(self, population: Population, slopes: Floats) -> Floats:
        """What the loss of each individual is multiplied with, at least 1, shape (n_individuals,).

        Parameters
        ----------
        population : Population
        slopes : ndarray of shape (n_individuals,)
            Of linear scaling: a negative one turns the direction around.
        """
        if self._wrong_shares is None or not self.constraints.monotonic:
            return np.ones(len(population))
        factors: Floats = 1 + self.constraints.penalty * self._wrong_shares(population, slopes)
        return factors

    def charged(self, population: Population, losses: Floats, slopes: Floats) -> Floats:
        """Losses with their penalties; inf for individuals that are not allowed.

        Parameters
        ----------
        population : Population
        losses, slopes : ndarray of shape (n_individuals,)
            As evaluated.
        """
        which = np.flatnonzero(np.isfinite(losses) & self.allowed(population))
        charged = np.full(len(population), np.inf)
        charged[which] = losses[which] * self.penalties(population.take(which), slopes[which])
        return charged

    @staticmethod
    def _narrow(allowed: Mask, population: Population, decide: Callable[[Population], Mask]) -> None:
        if allowed.any():
            allowed[allowed] = decide(population.take(allowed))

    def _within_counts(self, population: Population, inside: Mask) -> Mask:
        """Whether each individual keeps to the limits and the nesting, as it is or without a slope and intercept."""
        n = len(population)
        if not (self._limits or self._nesting):
            return np.ones(n, np.bool_)
        if not self._nesting and self._scaling != "written":
            return self._within_limits(population, inside)
        structure = Structure.of(population)
        within = self._kept(population, structure, inside)
        if self._scaling == "written":
            begin, end = _unscaled(population, structure)
            positions = np.arange(population.width)
            own = (positions >= begin[:, None]) & (positions < end[:, None])
            within |= self._kept(population, structure, own)
        return within

    def _within_limits(self, population: Population, counted: Mask) -> Mask:
        within = np.ones(len(population), np.bool_)
        for code, most in self._limits:
            within &= np.count_nonzero((population.codes == code) & counted, axis=1) <= most
        return within

    def _kept(self, population: Population, structure: Structure, counted: Mask) -> Mask:
        kept = self._within_limits(population, counted)
        for outer, inner, most in self._nesting:
            rows, positions = np.nonzero((population.codes == outer) & counted)
            before = np.zeros((len(population), population.width + 1), np.int64)
            np.cumsum((population.codes == inner) & counted, axis=1, out=before[:, 1:])
            begin = positions + 1 - structure.sizes[rows, positions]
            np.logical_and.at(kept, rows, before[rows, positions] - before[rows, begin] <= most)
        return kept


def _unscaled(population: Population, structure: Structure) -> tuple[Indices, Indices]:
    """Where each individual begins and ends without an intercept and a slope written around it.

    An intercept is a constant that is added or subtracted last, a slope one that is multiplied or divided with before.
    """
    individuals = np.arange(len(population))
    begin, end = np.zeros(len(population), np.int64), population.sizes.astype(np.int64)
    names = population.primitives.function_codes
    for applied in (("add", "sub"), ("mul", "div")):
        codes = [names[name] for name in applied if name in names]
        root = end - 1
        scaled = np.isin(population.codes[individuals, root], codes) & (end - begin > 1)
        # The second argument is a constant, or the first one is: then the second begins right behind it.
        second = structure.sizes[individuals, np.maximum(root - 1, 0)]
        last = scaled & (second == 1) & (population.codes[individuals, np.maximum(root - 1, 0)] == CONSTANT)
        first = scaled & ~last & (root - second - begin == 1) & (population.codes[individuals, begin] == CONSTANT)
        end = np.where(last, root - 1, np.where(first, root, end))
        begin = np.where(first, begin + 1, begin)
    return begin, end


class ConstrainedEvaluator:
    """An evaluator that does not look at individuals that are not allowed, and charges the others for what they do.

    Whatever evaluates through it keeps to the constraints: new individuals, those to start from, and those with fitted
    constants.

    Parameters
    ----------
    evaluator : PopulationEvaluator
    rules : Rules
    """

    def __init__(self, evaluator: PopulationEvaluator, rules: Rules) -> None:
        self._evaluator, self._rules = evaluator, rules

    def score(self, population: Population, threshold: float = np.inf) -> Scores:
        """Scores with the penalties in their losses; inf for individuals that are not allowed."""
        n = len(population)
        scores = Scores(np.full(n, np.inf), np.ones(n), np.zeros(n))
        allowed = np.flatnonzero(self._rules.allowed(population))
        if not len(allowed):
            return scores
        found = self._evaluator.score(population.take(allowed), threshold)
        finite = np.flatnonzero(np.isfinite(found.losses))
        losses = found.losses.copy()
        losses[finite] *= self._rules.penalties(population.take(allowed[finite]), found.slopes[finite])
        return scores.replaced(allowed, replace(found, losses=losses)).within(threshold)

    def predict(self, population: Population) -> Floats:
        """Predictions of all individuals, also of those that are not allowed."""
        return self._evaluator.predict(population)
