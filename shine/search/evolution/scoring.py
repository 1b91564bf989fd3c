"""Scores of populations: no individual is evaluated twice, and constants are fitted where that helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shine.base.typing import Floats, Hashes, Indices, Mask
from shine.compiler.tapes import compare_rows, constant_counts
from shine.evaluate.confirmation import Confirmation
from shine.evaluate.protocols import ConstantFitter, FirstLines, PopulationEvaluator
from shine.evaluate.scores import Scores
from shine.lang.population import Population
from shine.search.description import DescriptionLength
from shine.search.evolution.archive import Archive
from shine.search.evolution.memory import CAPACITY, Known, Memory, distinct, hashes
from shine.search.seeding.effort import Deadline

FIRST_SLICE = 16
"""Individuals in the first slice, before the speed of the evaluator is known."""

Fitter = Callable[[Population, Scores, Floats], tuple[Population, Indices]]
"""Individuals, their scores, losses below which they must come (see `Scorer.scored`) -> those whose constants a fit
changes, with the new ones, and which they are."""


@dataclass(frozen=True)
class Scoring:
    """Scores of individuals on a sample of the rows.

    Parameters
    ----------
    evaluator : PopulationEvaluator
        The score of an individual must not depend on the others in its population.
    fitter : callable, optional
        Fits the constants of new individuals.
    description : DescriptionLength, optional
        Shows whether formulas still improve.
    confirmation : Confirmation, optional
        Computes the losses of formulas that enter the archive a second time.
    first : PopulationEvaluator, optional
        Scores on the few rows that constants are fitted to. With it, offspring are fitted before they are scored on all
        rows, and given up there as soon as they are sure to be of no use: they get losses of inf.
    """

    evaluator: PopulationEvaluator
    fitter: Fitter | None = None
    description: DescriptionLength | None = None
    confirmation: Confirmation | None = None
    first: PopulationEvaluator | None = None


class OutOfTime(Exception):
    """The deadline has passed; the archive has the individuals evaluated before it."""


class Scorer:
    """An evaluator with a memory, an archive and a deadline.

    Parameters
    ----------
    scoring : Scoring
    archive : Archive
        Sees every evaluated individual. The attribute always holds a complete archive, even after an interrupt.
    deadline : Deadline
    known : Known, optional
        Individuals scored in an earlier part of the run.
    capacity : int
        Latest individuals that are always recalled.
    """

    def __init__(
        self,
        scoring: Scoring,
        archive: Archive,
        deadline: Deadline,
        known: Known | None = None,
        capacity: int = CAPACITY,
    ) -> None:
        self.evaluations, self.refuted = 0, 0
        self.archive = archive
        self._evaluator, self._fitter, self._deadline = scoring.evaluator, scoring.fitter, deadline
        self._confirmation, self._first = scoring.confirmation, scoring.first
        self._memory = Memory(capacity, known)
        self._slice = FIRST_SLICE
        self._refuted: list[Hashes] = []

    @property
    def known(self) -> Known:
        """The individuals that have been scored."""
        return self._memory.known

    def scored(self, population: Population, limits: Floats | None = None) -> tuple[Population, Floats]:
        """The individuals, new ones with fitted constants, and the loss of each.

        Parameters
        ----------
        population : Population
        limits : ndarray of shape (n_individuals,), optional
            Loss from which on an individual is of no use: a fit that will hardly come below it ends early.

        Raises
        ------
        OutOfTime
            If the deadline passes before all of them are scored, and a formula with a finite loss is known.
        """
        every = hashes(population)
        first, inverse = distinct(every)
        keys = every[first]
        known, losses = self._memory.recall(keys)
        unknown = np.flatnonzero(~known)
        new, done = population.take(first[unknown]), 0
        limits = np.full(len(population), np.inf) if limits is None else limits
        limits, archive = limits[first[unknown]], self.archive
        # Slices depend on the clock, so none may depend on what those before it have found.
        useless = np.maximum(limits, archive.entrance(new)) if self._first is not None else limits
        slices: list[tuple[Population, Scores, Scores]] = []
        self._refuted = []
        while done < len(new):
            now = np.arange(done, min(done + self._slice, len(new)))
            some = new if len(now) == len(new) else new.take(now)
            slices.append(self._evaluate(some, limits[now], useless[now]))
            done += len(now)
        if self._deadline.is_over:
            raise OutOfTime
        # The slices depend on the clock; the order of the memory must not, nor what stays in the archive or is refuted.
        before = Scores.concatenate([before for _, before, _ in slices])
        after = Scores.concatenate([after for *_, after in slices])
        fitted = Population.concatenate([individuals for individuals, *_ in slices]) if slices else new
        if len(slices) > 1:
            self._refuted = []
            self.archive = archive.updated(new, before, (fitted, after), confirmed=self._confirmed)
        if self._refuted:
            refuted = np.concatenate(self._refuted)
            self.refuted += len(np.unique(refuted))
            before, after = before.without(_among(new, refuted)), after.without(_among(fitted, refuted))
        self._remember(keys[unknown], before, fitted, after)
        losses[unknown] = after.losses
        found = _with_values(population, first[unknown], fitted.values)
        again = np.flatnonzero(first[inverse] != np.arange(len(population)))
        found.values[again] = found.values[first[inverse[again]]]
        return found, losses[inverse]

    def show(self, population: Population) -> None:
        """Evaluate individuals for the archive only: they are neither fitted nor remembered."""
        scores = self._evaluator.score(population)
        self.archive = self.archive.updated(population, scores, confirmed=self._confirmed)
        self.evaluations += len(population)

    def _remember(self, keys: Hashes, before: Scores, fitted: Population, after: Scores) -> None:
        """Remember new individuals, and then the fitted forms of those that the fit changed."""
        self._memory.store(keys, before.losses)
        changed = np.flatnonzero(before.losses != after.losses)
        found = hashes(fitted.take(changed))
        first, _ = distinct(found)
        first = first[~self._memory.recall(found[first])[0]]
        self._memory.store(found[first], after.losses[changed[first]])

    def _evaluate(self, new: Population, limits: Floats, useless: Floats) -> tuple[Population, Scores, Scores]:
        """Individuals with fitted constants if these are better; the scores before and after the fit."""
        began = self._deadline.clock()
        if began >= self._deadline.at and np.isfinite(self.archive.scores.losses).any():
            raise OutOfTime
        if self._first is None or self._fitter is None or np.isinf(limits).all():
            before = self._evaluator.score(new)
            individuals, after, better = self._fitted(new, before, limits)
        else:
            fitted, better = self._fitter(new, self._first.score(new), limits)
            individuals = _with_values(new, better, fitted.values)
            after = self._evaluator.score(individuals, useless)
            before = after.without(np.isin(np.arange(len(new)), better))
        # Constants are fitted for the whole line; a simpler form may be better with those before the fit.
        more = [(individuals.take(better), after.take(better))] if len(better) else []
        self.archive = self.archive.updated(new, before, *more, confirmed=self._confirmed)
        self.evaluations += len(individuals)
        elapsed = self._deadline.clock() - began
        # Time that a slice should take, so that a run ends soon after its deadline; a stopped clock has no difference.
        self._slice = max(1, int(len(individuals) * min(0.2 / max(1e-9, elapsed), 1e6)))
        return individuals, before, after

    def _confirmed(self, population: Population, scores: Scores) -> Mask:
        """Which individuals have losses that a second computation confirms."""
        if self._confirmation is None:
            return np.ones(len(population), np.bool_)
        confirmed = self._confirmation.confirmed(self._evaluator, population, scores)
        if not confirmed.all():
            self._refuted.append(hashes(population.take(np.flatnonzero(~confirmed))))
        return confirmed

    def _fitted(self, individuals: Population, scores: Scores, limits: Floats) -> tuple[Population, Scores, Indices]:
        """Individuals with fitted constants if these are better, their scores, and which they are."""
        if self._fitter is None:
            return individuals, scores, np.zeros(0, np.int64)
        fitted, changed = self._fitter(individuals, scores, limits)
        if not len(changed):
            return individuals, scores, changed
        found = self._evaluator.score(fitted)
        better = np.flatnonzero(found.losses < scores.losses[changed])
        at = changed[better]
        return _with_values(individuals, at, fitted.values[better]), scores.replaced(at, found.take(better)), at


def _with_values(population: Population, rows: Indices, values: Floats) -> Population:
    """The individuals, some of them with other constants."""
    every = population.values.copy()
    every[rows] = values
    return replace(population, values=every)


def _among(population: Population, keys: Hashes) -> Mask:
    """Whether the hash of each individual is one of these."""
    return np.isin(hashes(population), keys)


TOLERANCE = 1e-2
"""During a search, a fit stops when its next step is expected to remove less than this share of the error. Near an
exact fit, every step is expected to remove nearly all of it."""


def fitter(linearizer: ConstantFitter, steps: int, *, scaled: bool, tolerance: float = TOLERANCE) -> Fitter:
    """A function that improves the constants of individuals where it can, by a few steps each.

    `scaled` says whether the losses are those of linear scaling; `tolerance` is as `TOLERANCE` describes.
    """

    return partial(_fitted, linearizer, steps, scaled, tolerance)


def _fitted(
    linearizer: ConstantFitter,
    steps: int,
    scaled: bool,
    tolerance: float,
    population: Population,
    scores: Scores,
    limits: Floats,
) -> tuple[Population, Indices]:
    which = fittable(population, scores)
    given, differ = population.take(which), np.empty(len(which), np.bool_)
    if not len(which):
        return given, which
    with np.errstate(all="ignore"):
        goals = limits[which] / scores.losses[which]
    lines = FirstLines(scores.slopes[which], scores.intercepts[which], scaled, goals)
    found = linearizer.fit(given, steps, tolerance=tolerance, lines=lines).population
    compare_rows(len(given), given.width, found.values, given.values, differ)
    changed = np.flatnonzero(differ)
    return found.take(changed), which[changed]


def fittable(population: Population, scores: Scores) -> Indices:
    """Individuals with a constant and a finite loss, by position."""
    return np.flatnonzero((constant_counts(population) > 0) & np.isfinite(scores.losses))


def places(population: Population) -> tuple[Indices, Indices, Indices]:
    """For every constant: individual, position on the tape, and rank among the individual's constants."""
    rows, columns = np.nonzero(population.constants)
    # `rows` is sorted: the first constant of an individual has rank 0.
    ranks = np.arange(len(rows)) - np.searchsorted(rows, rows)
    return rows, columns, ranks
