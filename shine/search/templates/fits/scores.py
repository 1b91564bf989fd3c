"""Scores of templates' individuals: their formulas are evaluated over each section of the data with its constants."""

from __future__ import annotations

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import Loss, loss_of
from shine.evaluate.losses.rows import loss_rows
from shine.evaluate.protocols import PickledByArguments
from shine.evaluate.scores import Scores
from shine.evaluate.tiers.machine_rows import MachineRows, machine_of
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.evaluate.tiers.rows import target_of
from shine.lang.population import Population
from shine.search.templates.fits.grouped_fits import GroupedFits
from shine.search.templates.fits.sections import Composer, Placement, Section, in_formulas, sections_of
from shine.search.templates.fits.unknowns import Unknowns


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

    def score(self, population: Population, threshold: float = np.inf) -> Scores:
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
