"""Fits and scores of whole populations of a template."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats, Indices, Mask
from shine.data.datasets.dataset import Dataset
from shine.evaluate.gradient.normal_equations import FIXED_COLUMNS
from shine.evaluate.losses.form import Loss, loss_of
from shine.evaluate.losses.rows import loss_rows
from shine.evaluate.protocols import FirstLines, Fit, NormalEquations, PickledByArguments
from shine.evaluate.scores import Scores
from shine.evaluate.tiers.machine_rows import MachineRows, machine_of
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.evaluate.tiers.rows import target_of
from shine.lang.population import Population
from shine.search.templates.fits.grouped_fits import GroupedFits
from shine.search.templates.fits.sections import Composer, Placement, Section, in_formulas, sections_of
from shine.search.templates.fits.shrinkage import shrunk
from shine.search.templates.fits.unknowns import Unknowns

Fitted = Callable[[Indices, Unknowns, Floats], tuple[Floats, Floats]]
"""``fitted(which, unknowns, start)``: fits of the individuals at some positions, each from its start."""


class TemplateLinearizer:
    """Fits the individuals of a template over a data set.

    Parameters
    ----------
    composer : Composition
    dataset : Dataset
        As for `shine.search.templates.fits.linearizer.TemplateEvaluator`.
    loss : str or Loss
        It determines the kind of errors.
    threads : int
        They share the individuals; their number changes no bit.
    """

    def __init__(self, composer: Composer, dataset: Dataset, loss: str | Loss, threads: int = 1) -> None:
        self._composer, self._fits = composer, GroupedFits(composer, dataset, loss, threads)
        self._rows, self._power = dataset.effective_rows, loss_of(loss).error_log_likelihood

    def fit(
        self,
        population: Population,
        steps: int,
        *,
        tolerance: float,
        lines: FirstLines | None = None,
        fixed: Mask | None = None,
    ) -> Fit:
        """Fit all numbers of each individual by a few steps; no individual becomes worse.

        The signature is that of `shine.evaluate.protocols.Linearizer`; a template has no lines.
        """
        del lines
        unknowns = Unknowns.of(self._composer, population, self._fits.rows.groups, fixed)
        composed = self._composer.composed(population)
        start = unknowns.read(population.values)

        def fitted_from(which: Indices, own: Unknowns, start: Floats) -> tuple[Floats, Floats]:
            return self._fits.fitted([each.take(which) for each in composed], own, start, steps, tolerance)

        if unknowns.integers.any():
            # Steps of a fit from which neighbours of whole numbers are tried: in the final fits, not in those of a
            # search.
            values, errors = with_integers(fitted_from, unknowns, start, neighbours=steps >= 20)
        else:
            values, errors = self._fits.fitted(composed, unknowns, start, steps, tolerance)
        fitted = replace(population, values=unknowns.written(values, population.values))
        return Fit(fitted, np.ones(len(errors)), np.zeros(len(errors)), errors)

    def shrunk(self, population: Population) -> Population:
        """Individuals with fitted numbers, those by group drawn to one another as the data suggest.

        See `shine.search.templates.fits.shrinkage`.
        """
        unknowns = Unknowns.of(self._composer, population, self._fits.rows.groups)
        composed, start = self._composer.composed(population), unknowns.read(population.values)
        values = shrunk(self._fits, composed, unknowns, start, self._rows * self._power)
        return replace(population, values=unknowns.written(values, population.values))

    def shared_equations(self, population: Population) -> NormalEquations:
        """Errors, and the normal equations of the shared constants; parameters by group follow them to their best.

        The constants are those of the individual's tape, in its order, without the leaves of parameters by group. The
        columns of 1 and of the prediction are 0.
        """
        unknowns = Unknowns.of(self._composer, population, self._fits.rows.groups)
        composed = self._composer.composed(population)
        errors, found = self._fits.reduced(composed, unknowns, unknowns.read(population.values))
        count = unknowns.shared
        matrices = np.zeros((len(errors), FIXED_COLUMNS + count, FIXED_COLUMNS + count))
        upper, lower = np.triu(np.ones((count, count), np.bool_)), np.tril(np.ones((count, count), np.bool_), -1)
        inner = found[:, :count, :count]
        matrices[:, FIXED_COLUMNS:, FIXED_COLUMNS:] = np.where(upper, inner, np.where(lower, inner.swapaxes(1, 2), 0.0))
        matrices[:, 0, 0] = errors
        matrices[:, 0, FIXED_COLUMNS:] = matrices[:, FIXED_COLUMNS:, 0] = found[:, :count, count]
        counts = (unknowns.places[:, unknowns.places.shape[1] - count :] >= 0).sum(axis=1)
        return NormalEquations(np.where(np.isfinite(errors), errors, np.inf), matrices, counts)


def with_integers(fitted: Fitted, unknowns: Unknowns, start: Floats, *, neighbours: bool) -> tuple[Floats, Floats]:
    """Values and errors of the best fit of each individual whose integers are whole numbers.

    Parameters
    ----------
    fitted : callable
    unknowns : Unknowns
    start : ndarray of shape (n_individuals, n_unknowns)
    neighbours : bool
        Whether numbers one above and one below are tried too.
    """
    integer, everyone = unknowns.spread(unknowns.integers) & ~unknowns.fixed, np.arange(len(start))
    held = replace(unknowns, fixed=unknowns.fixed | integer)
    values, errors = fitted(everyone, held, _rounded(start, integer, unknowns))
    relaxed, _ = fitted(everyone, unknowns, values)
    values, errors = _better(values, errors, *fitted(everyone, held, _rounded(relaxed, integer, unknowns)))
    # Most rounds of neighbours, and most trials of a round
    for _ in range(3 if neighbours else 0):
        trials = _neighbours(values, errors, integer, unknowns)
        if not len(trials.rows) or len(trials.rows) > 4096:
            break
        found, losses = fitted(trials.rows, held.take(trials.rows), trials.values)
        gains = losses < errors[trials.rows]
        before = errors
        # The best neighbour of each, and all that are better together: groups do not depend on one another.
        first = trials.best(losses, len(start))
        single = np.where(first >= 0, losses[first], np.inf)
        values, errors = _better(values, errors, found[first], single)
        together = trials.together(values, gains, integer, unknowns)
        values, errors = _better(values, errors, *fitted(everyone, held, together))
        if not (errors < before).any():
            break
    return values, errors


class _Trials:
    """Individuals with one whole number changed by one."""

    def __init__(self, rows: Indices, places: Indices, numbers: Floats, values: Floats) -> None:
        self.rows, self.places, self.numbers, self.values = rows, places, numbers, values

    def best(self, losses: Floats, count: int) -> Indices:
        """The trial of each individual with the least loss; -1 if it has none."""
        first = np.full(count, -1)
        order = np.lexsort((losses, self.rows))
        rows, at = np.unique(self.rows[order], return_index=True)
        first[rows] = order[at]
        return first

    def together(self, values: Floats, gains: Mask, integer: Mask, unknowns: Unknowns) -> Floats:
        """The individuals with all changes that gain; of two for one number, the later one."""
        changed = values.copy()
        changed[self.rows[gains], self.places[gains]] = self.numbers[gains]
        return _rounded(changed, integer, unknowns)


def _neighbours(values: Floats, errors: Floats, integer: Mask, unknowns: Unknowns) -> _Trials:
    lows, highs = unknowns.spread(unknowns.lows), unknowns.spread(unknowns.highs)
    rows, places = np.nonzero(integer & (np.isfinite(errors) & (errors > 0))[:, None])
    rows, places, change = np.repeat(rows, 2), np.repeat(places, 2), np.tile([1.0, -1.0], len(rows))
    numbers = values[rows, places] + change
    allowed = (numbers >= lows[rows, places]) & (numbers <= highs[rows, places])
    rows, places, numbers = rows[allowed], places[allowed], numbers[allowed]
    trial = values[rows]
    trial[np.arange(len(rows)), places] = numbers
    return _Trials(rows, places, numbers, trial)


def _rounded(values: Floats, integer: Mask, unknowns: Unknowns) -> Floats:
    """Values with whole numbers within the bounds where they must be."""
    lows, highs = np.ceil(unknowns.spread(unknowns.lows)), np.floor(unknowns.spread(unknowns.highs))
    return np.where(integer, np.minimum(np.maximum(np.rint(values), lows), highs), values)


def _better(values: Floats, errors: Floats, others: Floats, losses: Floats) -> tuple[Floats, Floats]:
    better = losses < errors
    return np.where(better[:, None], others, values), np.where(better, losses, errors)


class TemplateEvaluator(PickledByArguments):
    """Scores the individuals of a template over a data set (see
    `shine.evaluate.protocols.PopulationEvaluator`).

    Parameters
    ----------
    composer : Composition
    dataset : Dataset
        The column of groups holds the numbers of the groups; that of the outputs, if there are several, their numbers.
    loss : str or Loss
    threads : int
        They share the individuals; their number changes no bit.
    """

    def __init__(self, composer: Composer, dataset: Dataset, loss: str | Loss, threads: int = 1) -> None:
        self._composer, self._dataset, self._loss = composer, dataset, loss_of(loss)
        self._target = target_of(loss_rows(dataset, self._loss.kind), "float64")
        self._plain: MachineEvaluator | None = None
        if len(composer.template.outputs) == 1 and not any(each.by_group for each in composer.parameters):
            # Every formula has the same constants in all rows.
            self._plain = MachineEvaluator(in_formulas(dataset, composer), loss, False, "float64", threads)
        else:
            self._fits = GroupedFits(composer, dataset, loss, threads)

    def score(self, population: Population, threshold: float | Floats = np.inf) -> Scores:
        """Losses of individuals; those above the threshold become inf, and are not evaluated to the end."""
        composed = self._composer.composed(population)
        if self._plain is not None:
            return self._plain.score(composed[0].population, threshold)
        loss, target = self._loss, self._target
        limit = loss.kind.limit(loss.sum_of(threshold, target.weight, target.square), target.weight)
        unknowns = Unknowns.of(self._composer, population, self._fits.rows.groups)
        errors = self._fits.errors(composed, unknowns, unknowns.read(population.values), limit)
        with np.errstate(all="ignore"):
            losses = loss.of_sum(errors + loss.kind.least_sum(target.weight), target.weight, target.square)
        losses = np.where(np.isfinite(losses), losses, np.inf)
        return Scores(losses, np.ones(len(losses)), np.zeros(len(losses))).within(threshold)

    def predict(self, population: Population) -> Floats:
        """Predictions of the rows in their order, shape (n_individuals, n_rows)."""
        placements = [Placement(composed, population.values) for composed in self._composer.composed(population)]
        out = np.empty((len(population), self._dataset.n_rows))
        for section, rows in self._sections:
            formulas = placements[section.output].of_group(section.group)
            out[:, section.which] = rows.predict(machine_of(formulas.primitives.functions, "float64"), formulas)
        return out

    @cached_property
    def _sections(self) -> tuple[tuple[Section, MachineRows], ...]:
        sections = sections_of(self._dataset, self._composer)
        return tuple((each, MachineRows(each.dataset, "float64", 1)) for each in sections)
