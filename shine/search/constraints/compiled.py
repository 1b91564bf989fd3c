"""Constraints compiled for a primitive set: which individuals of a population are allowed, and their penalties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.compiler.tapes import Subtrees
from shine.evaluate.protocols import PopulationEvaluator
from shine.evaluate.scores import Scores
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.population import Population
from shine.search.constraints.constraints import Constraints
from shine.search.constraints.dimensional_analysis import DimensionalAnalysis
from shine.search.constraints.units import parse_unit
from shine.search.evolution.complexity import CONSTANT_NAME

Scaling = Literal["none", "implied", "written"]
"""Linear scaling: none; with a slope and an intercept around individuals (implied), or inside them (written)."""

WrongShares = Callable[[Population, Floats], Floats]
"""Population, slopes of linear scaling -> share of row pairs that violate monotonicity, summed over features."""


class CompiledConstraints:
    """Constraints compiled for a primitive set.

    Names that the primitive set lacks are ignored, as no individual has them. Only required features must be in it.

    Parameters
    ----------
    constraints : Constraints
    primitives : PrimitiveSet
    scaling : {"none", "implied", "written"}
        With "implied", linear scaling will add a slope and an intercept to the individuals: these are constants, and
        may turn any unit into the unit of the target. With "written", individuals may contain them; limits, nesting
        and sizes of arguments do not count them.
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
        if scaling not in get_args(Scaling):
            raise ValueError(f"scaling must be one of {', '.join(get_args(Scaling))}, is {scaling!r}")
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
        self._arguments = [
            (codes[name], len(limits) - place, limit)
            for name, limits in constraints.arguments_by_place.items()
            for place, limit in enumerate(limits)
            if name in codes and limit is not None
        ]
        self._required = [codes[name] for name in constraints.required]
        self._forbidden = [codes[name] for name in constraints.forbidden if name in codes]
        self._target = None
        if constraints.units:
            free = not constraints.dimensionless_constants
            units = {name: parse_unit(unit) for name, unit in constraints.units.items()}
            self._analysis = DimensionalAnalysis(primitives, units, free)
            if not (free and scaling == "implied"):
                self._target = parse_unit(constraints.target_unit or "1")

    def allowed(self, population: Population, at_end: bool = False) -> Mask:
        """Whether each individual keeps the constraints on its nodes, shape (n_individuals,), bool.

        Parameters
        ----------
        population : Population
            Its primitive set must be that of the constraints.
        at_end : bool
            Whether features are not required, as the end judges what the rows see of them.
        """
        allowed = np.ones(len(population), np.bool_)
        inside = np.arange(population.width) < population.sizes[:, None]
        for code in () if at_end else self._required:
            allowed &= (population.codes == code).any(axis=1)
        for code in self._forbidden:
            allowed &= ~(population.codes == code).any(axis=1)
        # The expensive checks run only on individuals that passed the cheap ones.
        self._narrow(allowed, population, lambda some: self._within_counts(some, inside[allowed]))
        if self.constraints.units:
            self._narrow(allowed, population, lambda some: self._analysis.consistent(some, self._target))
        return allowed

    def penalties(self, population: Population, slopes: Floats) -> Floats:
        """Factor of each individual's loss, at least 1, shape (n_individuals,).

        Parameters
        ----------
        population : Population
        slopes : ndarray of shape (n_individuals,)
            Slopes of linear scaling; a negative slope reverses the direction.
        """
        if self._wrong_shares is None or not self.constraints.monotonic:
            return np.ones(len(population))
        factors: Floats = 1 + self.constraints.penalty * self._wrong_shares(population, slopes)
        return factors

    def charged(self, population: Population, losses: Floats, slopes: Floats) -> Floats:
        """Losses with their penalties at the end of a search; inf for individuals that are not allowed.

        Parameters
        ----------
        population : Population
        losses, slopes : ndarray of shape (n_individuals,)
            As the evaluator returns them.
        """
        which = np.flatnonzero(np.isfinite(losses) & self.allowed(population, at_end=True))
        charged = np.full(len(population), np.inf)
        charged[which] = losses[which] * self.penalties(population.take(which), slopes[which])
        return charged

    @staticmethod
    def _narrow(allowed: Mask, population: Population, decide: Callable[[Population], Mask]) -> None:
        if allowed.any():
            allowed[allowed] = decide(population.take(allowed))

    def _within_counts(self, population: Population, inside: Mask) -> Mask:
        """Whether each individual keeps limits, nesting and sizes of arguments; a written slope and intercept need not
        be counted."""
        n = len(population)
        if not (self._limits or self._nesting or self._arguments):
            return np.ones(n, np.bool_)
        if not (self._nesting or self._arguments) and self._scaling != "written":
            return self._within_limits(population, inside)
        subtrees = Subtrees.of(population)
        within = self._kept(population, subtrees, inside)
        if self._scaling == "written":
            begin, end = _unscaled(population, subtrees)
            positions = np.arange(population.width)
            own = (positions >= begin[:, None]) & (positions < end[:, None])
            within |= self._kept(population, subtrees, own)
        return within

    def _within_limits(self, population: Population, counted: Mask) -> Mask:
        within = np.ones(len(population), np.bool_)
        for code, most in self._limits:
            within &= np.count_nonzero((population.codes == code) & counted, axis=1) <= most
        return within

    def _kept(self, population: Population, subtrees: Subtrees, counted: Mask) -> Mask:
        kept = self._within_limits(population, counted)
        for outer, inner, most in self._nesting:
            rows, positions = np.nonzero((population.codes == outer) & counted)
            before = np.zeros((len(population), population.width + 1), np.int64)
            np.cumsum((population.codes == inner) & counted, axis=1, out=before[:, 1:])
            begin = positions + 1 - subtrees.sizes[rows, positions]
            np.logical_and.at(kept, rows, before[rows, positions] - before[rows, begin] <= most)
        for code, from_last, limit in self._arguments:
            rows, positions = np.nonzero((population.codes == code) & counted)
            # The last argument ends right before the function, each other one right before the next.
            ends = positions - 1
            for _ in range(from_last - 1):
                ends = ends - subtrees.sizes[rows, ends]
            if isinstance(limit, int):
                fits = subtrees.sizes[rows, ends] <= limit
            else:
                fits = population.codes[rows, ends] == CONSTANT
            np.logical_and.at(kept, rows, fits)
        return kept


def _unscaled(population: Population, subtrees: Subtrees) -> tuple[Indices, Indices]:
    """Begin and end of each individual on its tape, without a written intercept and slope.

    An intercept is a constant that the last operation adds or subtracts; a slope is a constant that the operation
    before it multiplies or divides by.
    """
    individuals = np.arange(len(population))
    begin, end = np.zeros(len(population), np.int64), population.sizes.astype(np.int64)
    names = population.primitives.function_codes
    for applied in (("add", "sub"), ("mul", "div")):
        codes = [names[name] for name in applied if name in names]
        root = end - 1
        scaled = np.isin(population.codes[individuals, root], codes) & (end - begin > 1)
        # Either argument may be the constant. If the first is, the second begins right after it.
        second = subtrees.sizes[individuals, np.maximum(root - 1, 0)]
        last = scaled & (second == 1) & (population.codes[individuals, np.maximum(root - 1, 0)] == CONSTANT)
        first = scaled & ~last & (root - second - begin == 1) & (population.codes[individuals, begin] == CONSTANT)
        end = np.where(last, root - 1, np.where(first, root, end))
        begin = np.where(first, begin + 1, begin)
    return begin, end


class ConstrainedEvaluator:
    """An evaluator that skips individuals that are not allowed, and multiplies the losses of the others by penalties.

    A search that evaluates all its individuals by it (guesses, offspring, fitted individuals) keeps the constraints.
    """

    def __init__(self, evaluator: PopulationEvaluator, constraints: CompiledConstraints) -> None:
        self._evaluator, self._constraints = evaluator, constraints

    def score(self, population: Population, threshold: float | Floats = np.inf) -> Scores:
        """Scores whose losses include the penalties; inf for individuals that are not allowed."""
        n = len(population)
        scores = Scores(np.full(n, np.inf), np.ones(n), np.zeros(n))
        allowed = np.flatnonzero(self._constraints.allowed(population))
        if not len(allowed):
            return scores
        found = self._evaluator.score(population.take(allowed), np.broadcast_to(threshold, n)[allowed])
        some, simpler = population.take(allowed), found.simpler
        charged = replace(self._charged(some, found), simpler=None)
        if simpler is not None:
            if self._constraints.constraints.units:
                # Only a slope gives individuals the unit of the target for certain.
                slopeless = (simpler.slopes == 1).all(axis=1, keepdims=True)
                simpler = replace(simpler, losses=np.where(slopeless, np.inf, simpler.losses))
            shape = len(simpler.losses), n
            scores = replace(scores, simpler=Scores(np.full(shape, np.inf), np.ones(shape), np.zeros(shape)))
            charged = replace(charged, simpler=self._charged(some, simpler))
        return scores.replaced(allowed, charged).within(threshold)

    def _charged(self, population: Population, scores: Scores) -> Scores:
        finite = np.nonzero(np.isfinite(scores.losses))
        losses = scores.losses.copy()
        losses[finite] *= self._constraints.penalties(population.take(finite[-1]), scores.slopes[finite])
        return replace(scores, losses=losses)

    def predict(self, population: Population) -> Floats:
        """Predictions of all individuals, allowed or not."""
        return self._evaluator.predict(population)
