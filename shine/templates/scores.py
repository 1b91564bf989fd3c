"""Scores of templates' individuals: their formulas are evaluated over each section of the data with its constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shine.codegen.moments import LANES
from shine.data.dataset import Dataset
from shine.evaluators.jobs import zeros
from shine.evaluators.loss_code import errors_code
from shine.evaluators.loss_rows import loss_columns, loss_rows
from shine.evaluators.machine_code import machine_of
from shine.evaluators.machine_rows import SHARED_WORK, MachineRows
from shine.evaluators.rows import lane_sums, target_of
from shine.evaluators.workers import ALONE, Workers
from shine.fitness.losses import Loss, loss_of
from shine.fitness.scores import Scores
from shine.lang.population import Population
from shine.templates.composition import Composed
from shine.templates.sections import Composer, Placement, sections_of, taken
from shine.typing import Floats, Indices

BLOCK = 256
"""Most individuals that a thread takes through all sections at a time: their tapes stay in the cache."""

_STILL_MANY = 0.7
"""Share of the individuals below which those that exceed the limit are left out of the next section."""


class TemplateEvaluator:
    """Scores the individuals of a template over a data set (see `shine.fitness.protocols.PopulationEvaluator`).

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
        self._composer, self._loss = composer, loss_of(loss)
        kind = self._loss.kind
        beside, dataset = loss_columns(dataset, kind), loss_rows(dataset, kind)
        self._target, self._code = target_of(dataset, "float64"), errors_code(kind, "float64")
        self._n_rows = dataset.n_rows
        self._sections = tuple(
            (each, MachineRows(each.dataset, "float64", 1, beside=[column[each.which] for column in beside]))
            for each in sections_of(dataset, composer)
        )
        self._workers = Workers(threads)

    def score(self, population: Population, threshold: float = np.inf) -> Scores:
        """Losses of individuals; those above the threshold become inf, and are not evaluated to the end."""
        loss, target = self._loss, self._target
        limit = loss.kind.limit(loss.sum_of(threshold, target.weight, target.square), target.weight)
        composed, totals = self._composer.composed(population), np.empty(len(population))

        def block(which: Indices) -> None:
            own = [taken(each, which) for each in composed]
            totals[which] = self._errors(own, population.values[which], limit)

        in_blocks(block, len(population), self._n_rows, self._workers)
        with np.errstate(all="ignore"):
            losses = loss.of_sum(totals + loss.kind.least_sum(target.weight), target.weight, target.square)
        losses = np.where(np.isfinite(losses), losses, np.inf)
        return Scores(losses, np.ones(len(losses)), np.zeros(len(losses))).within(threshold)

    def predict(self, population: Population) -> Floats:
        """Predictions of the rows in their order, shape (n_individuals, n_rows)."""
        placements = [Placement(composed, population.values) for composed in self._composer.composed(population)]
        out = np.empty((len(population), self._n_rows))
        for section, rows in self._sections:
            formulas = placements[section.output].of_group(section.group)
            out[:, section.which] = rows.predict(machine_of(formulas.primitives.functions, "float64"), formulas)
        return out

    def _errors(self, composed: Sequence[Composed], values: Floats, limit: float) -> Floats:
        """Sum of the errors above the least ones of each individual over all rows; inf above the limit."""
        machine = machine_of(composed[0].population.primitives.functions, "float64")
        totals, out = np.full(len(values), np.inf), zeros(len(values), LANES)
        placements = [Placement(each, values) for each in composed]
        left: Indices = np.arange(len(values))
        for section, rows in self._sections:
            going = lane_sums(out) <= limit
            if going.sum() < _STILL_MANY * len(left):
                left, sums, out = left[going], out[going], zeros(int(going.sum()), LANES)
                if not len(left):
                    return totals
                out[:] = sums
                placements = [Placement(taken(each, left), values[left]) for each in composed]
            formulas = placements[section.output].of_group(section.group)
            rows.errors(machine, self._code, formulas, np.full(len(left), limit), out=out)
        sums = lane_sums(out)
        totals[left] = np.where(sums <= limit, sums, np.inf)
        return totals


def in_blocks(work: Callable[[Indices], None], count: int, rows: int, workers: Workers, most: int = BLOCK) -> None:
    """Call ``work(which)`` for blocks of individuals, which threads share if there is enough work over the rows."""
    if count * rows < SHARED_WORK:
        workers = ALONE
    size = min(max(-(-count // workers.threads), 1), most)
    starts = iter(range(0, count, size))
    ended: list[bool] = []

    def take(thread: int) -> None:
        for start in starts:
            if ended:
                return
            work(np.arange(start, min(start + size, count)))

    workers.run(take, lambda: ended.append(True))
