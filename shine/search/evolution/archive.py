"""The best formulas of each complexity, and the Pareto front of loss and complexity.

A formula is an individual with a line: with slope and intercept, with one of them, or with none. Its complexity
includes that of the line. So `x` as it is, `474.5*x` and `474.5*x + 1.0` compete, each at its own complexity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats, Hashes, Indices, Mask
from shine.compiler.tapes import constant_counts, find_coefficients, weigh_forms
from shine.evaluate.scores import Scores
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.population import Population
from shine.search.description import DescriptionLength
from shine.search.evolution.complexity import SLACK, code_weights, complexities, line_costs, weighed
from shine.search.evolution.memory import symbols
from shine.search.evolution.operators.slots import at_width

KEPT = 3
"""Formulas kept of each complexity. Where noise hides which is the law, the second or third best may be it; and as
people write them, they differ in complexity."""


@dataclass(frozen=True, eq=False)
class Archive:
    """The best formulas seen of each complexity, no two of the same symbols.

    Parameters
    ----------
    individuals : Population
        The best of each complexity 1, 2, ..., then the second best of each, and so on: `KEPT` times as many rows as
        there are complexities. A row is meaningless while its loss is infinite.
    scores : Scores
        Losses and lines. A slope of 1 and an intercept of 0 are not written, and cost nothing.
    weights : mapping of str to float
        Weights of complexity (see `shine.search.evolution.complexity.complexities`).
    """

    individuals: Population
    scores: Scores
    weights: Mapping[str, float]

    @classmethod
    def empty(cls, primitives: PrimitiveSet, width: int, weights: Mapping[str, float] | None = None) -> Self:
        """An empty archive for individuals of at most `width` nodes, and their lines."""
        weights = weights or {}
        slope, *intercepts = line_costs(weights)
        most = width - primitives.frame
        rows = KEPT * int(np.ceil(most * max(code_weights(primitives, weights).max(), 1) + slope + max(intercepts)))
        nobody = Population(
            np.zeros((rows, width), np.int16), np.zeros((rows, width)), np.ones(rows, np.int64), primitives
        )
        return cls(nobody, Scores(np.full(rows, np.inf), np.ones(rows), np.zeros(rows)), weights)

    @property
    def levels(self) -> int:
        """Number of complexities; row r has complexity ``1 + r % levels``."""
        return len(self.individuals) // KEPT

    @property
    def best_losses(self) -> Floats:
        """Loss of the best formula of each complexity, shape (levels,)."""
        return self.scores.losses[: self.levels]

    @cached_property
    def constants(self) -> Indices:
        """Number of constants of the best formula of each complexity, that of its line included."""
        best = np.arange(self.levels)
        individuals, scores = self.individuals.take(best), self.scores.take(best)
        slopes = (scores.slopes != 1) & ~_have_coefficient(individuals)
        total: Indices = constant_counts(individuals) + slopes + (scores.intercepts != 0)
        return total

    def lengths(self, description: DescriptionLength) -> Floats:
        """Nats of the description by the best formula of each complexity; inf where there is none."""
        return _lengths(self, description)

    def gain(self, description: DescriptionLength) -> float:
        """Nats that a formula could still be shorter than the shortest description."""
        return description.gain(self.lengths(description), self.complexities)

    def solved(self, enough: float, description: DescriptionLength | None) -> bool:
        """Whether a formula reaches a loss, and not by chance because there are hardly more rows than constants."""
        reached = self.best_losses <= enough
        if description is not None and reached.any():
            reached &= description.convinces(self.complexities, self.constants)
        return bool(reached.any())

    @property
    def complexities(self) -> Indices:
        """Complexity of the best formula of each complexity, shape (levels,)."""
        return 1 + np.arange(self.levels)

    @property
    def best_loss(self) -> float:
        """Lowest loss in the archive; inf if it is empty."""
        return float(self.best_losses.min())

    def updated(
        self,
        population: Population,
        scores: Scores,
        *more: tuple[Population, Scores],
        confirmed: Callable[[Population, Scores], Mask] | None = None,
    ) -> Archive:
        """The archive after more individuals; of equal losses the first one stays.

        Parameters
        ----------
        population : Population
            Must have the archive's primitive set and width.
        scores : Scores
            Scores of the population.
        *more : (Population, Scores)
            Individuals that come after these.
        confirmed : callable, optional
            Says which formulas may enter the archive; it is asked about those that would.
        """
        worst = self.scores.losses[-self.levels :]
        found, every, levels = list[Population](), list[Scores](), list[Indices]()
        for each, own in ((population, scores), *more):
            forms = own.every
            level = form_complexities(each, forms, self.weights) - 1
            at = np.flatnonzero(forms.losses < worst[level])
            found.append(each.take(at % len(each)))
            every.append(Scores(forms.losses.ravel()[at], forms.slopes.ravel()[at], forms.intercepts.ravel()[at]))
            levels.append(level.ravel()[at])
        population, scores, level = Population.concatenate(found), Scores.concatenate(every), np.concatenate(levels)
        if not len(population):
            return self
        # What is there comes first: of equals it stays.
        touched = np.unique(level)
        there = (touched + self.levels * np.arange(KEPT)[:, None]).ravel()
        everyone = Population.concatenate([self.individuals.take(there), population])
        scores = Scores.concatenate([self.scores.take(there), scores])
        level = np.concatenate([there % self.levels, level])
        names = symbols(everyone)
        best, ranks = _best_of_each(level, scores.losses, names)
        while confirmed is not None:
            entering = best[best >= len(there)]
            wrong = entering[~confirmed(everyone.take(entering), scores.take(entering))]
            if not len(wrong):
                break
            scores.losses[wrong] = np.inf
            best, ranks = _best_of_each(level, scores.losses, names)
        rows = level[best] + self.levels * ranks
        return self._with(there, rows, everyone.take(best), scores.take(best))

    def entrance(self, population: Population) -> Floats:
        """Loss from which on an individual enters the archive with no line, shape (n_individuals,)."""
        slope, *intercepts = line_costs(self.weights)
        worst, most = self.scores.losses[-self.levels :], int(np.ceil(slope + max(intercepts)))
        padded = np.append(worst, np.full(most, -np.inf))
        highest: Floats = np.lib.stride_tricks.sliding_window_view(padded, most + 1).max(axis=1)
        return highest[complexities(population, self.weights) - 1]

    def joined(self, individuals: Population, scores: Scores) -> Archive:
        """The archive after individuals with a line each, perhaps wider ones; of equal losses the own formula stays."""
        own, found = self.individuals, np.flatnonzero(np.isfinite(scores.losses))
        if individuals.width > own.width:
            self = self.empty(own.primitives, individuals.width, self.weights).joined(own, self.scores)
        return self.updated(at_width(individuals.take(found), self.individuals.width), scores.take(found))

    def _with(self, emptied: Indices, rows: Indices, new: Population, scores: Scores) -> Archive:
        """The archive with these formulas of some complexities alone."""
        own = self.individuals
        codes, values, sizes = own.codes.copy(), own.values.copy(), own.sizes.copy()
        codes[rows], values[rows], sizes[rows] = new.codes, new.values, new.sizes
        losses = self.scores.losses.copy()
        losses[emptied] = np.inf
        return replace(
            self,
            individuals=Population(codes, values, sizes, own.primitives),
            scores=replace(self.scores, losses=losses).replaced(rows, scores),
        )

    def front(self, enough: float = 0.0) -> tuple[Population, Scores]:
        """The individuals with a lower loss than every simpler one, in ascending complexity.

        Parameters
        ----------
        enough : float
            The front ends with the simplest individual of at most this loss: lower losses are noise.

        Returns
        -------
        Population, Scores
            Empty if no individual has a finite loss.
        """
        on_front = self.front_rows(enough)
        return self.individuals.take(on_front), self.scores.take(on_front)

    def nearly_on_front(self, factor: float) -> Indices:
        """Rows of the individuals whose loss is at most `factor` times the best of their complexity and below it."""
        limits = np.tile(factor * np.minimum.accumulate(self.best_losses), KEPT)
        return np.flatnonzero(np.isfinite(self.scores.losses) & (self.scores.losses <= limits))

    def front_rows(self, enough: float = 0.0, without: Iterable[int] = ()) -> Indices:
        """Rows of the individuals on the front, as if the archive lacked some rows (see `front`)."""
        losses = self.best_losses.copy()
        losses[list(without)] = np.inf
        smaller = np.concatenate(([np.inf], np.minimum.accumulate(losses)[:-1]))
        return np.flatnonzero((losses < smaller) & ~(smaller <= enough))


@lru_cache(maxsize=4)
def _lengths(archive: Archive, description: DescriptionLength) -> Floats:
    # Most generations add nothing to the archive, and are asked twice.
    return description.lengths(archive.best_losses, archive.complexities, archive.constants)


def _best_of_each(levels: Indices, losses: Floats, symbols: Hashes) -> tuple[Indices, Indices]:
    """Positions of the best few different formulas of each level, and their ranks from 0."""
    order = np.lexsort((losses, levels))
    order = order[np.isfinite(losses[order])]
    # Of formulas of the same symbols, the best stays: most are the same function, or differ in constants only.
    alike = np.lexsort((symbols[order], levels[order]))
    ours, own = levels[order[alike]], symbols[order[alike]]
    first = np.append(True, (ours[1:] != ours[:-1]) | (own[1:] != own[:-1]))[: len(alike)]
    order = order[np.sort(alike[first])]
    ours = levels[order]
    ranks: Indices = np.arange(len(order)) - np.searchsorted(ours, ours)
    return order[ranks < KEPT], ranks[ranks < KEPT]


def form_complexities(population: Population, forms: Scores, weights: Mapping[str, float]) -> Indices:
    """Complexity of individuals with their lines.

    Parameters
    ----------
    population : Population
    forms : Scores
        Lines of shape (..., n_individuals).
    weights : mapping of str to float
        Weights of complexity.
    """
    # A slope becomes part of the coefficient that an individual has already.
    found, n = np.empty(forms.losses.shape, np.int64), len(population)
    costs = np.array([*line_costs(weights), 0.5 + SLACK])
    own = weighed(population, weights), _have_coefficient(population), costs
    weigh_forms(n, found.size // max(n, 1), forms.slopes, forms.intercepts, *own, found)
    return found


def _have_coefficient(population: Population) -> Mask:
    """Whether each individual is a product with a constant, or a quotient with one."""
    names, found = population.primitives.function_codes, np.empty(len(population), np.bool_)
    tapes = population.codes, population.sizes, population.primitives.arities
    find_coefficients(len(population), population.width, names.get("mul", -1), names.get("div", -1), *tapes, found)
    return found
