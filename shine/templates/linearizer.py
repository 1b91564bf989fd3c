"""Fits of whole populations of a template."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shine.data.dataset import Dataset
from shine.fitness.protocols import Fit
from shine.lang.population import Population
from shine.templates.grouped_fits import GroupedFits
from shine.templates.sections import Composer
from shine.templates.unknowns import Unknowns
from shine.typing import Floats, Mask


class TemplateLinearizer:
    """Fits the individuals of a template over a data set.

    Parameters
    ----------
    composer : Composition
    dataset : Dataset
        As for `shine.templates.scores.TemplateEvaluator`.
    loss : str
        One of `shine.fitness.losses.LOSSES`; it determines the kind of errors.
    threads : int
        They share the individuals; their number changes no bit.
    """

    def __init__(self, composer: Composer, dataset: Dataset, loss: str, threads: int = 1) -> None:
        self._composer, self._fits = composer, GroupedFits(composer, dataset, loss, threads)

    def fit(
        self,
        population: Population,
        slopes: Floats,
        intercepts: Floats,
        steps: int,
        *,
        tolerance: float,
        scaled: bool = False,
        fixed: Mask | None = None,
    ) -> Fit:
        """Fit all numbers of each individual by a few steps; no individual becomes worse.

        The signature is that of `shine.fitness.protocols.Linearizer`; a template has no lines.
        """
        del slopes, intercepts, scaled
        unknowns = Unknowns.of(self._composer, population, self._fits.rows.groups, fixed)
        composed = self._composer.composed(population)
        start = unknowns.read(population.values)
        values, errors = self._fits.fitted(composed, unknowns, start, steps, tolerance)
        fitted = replace(population, values=unknowns.written(values, population.values))
        return Fit(fitted, np.ones(len(errors)), np.zeros(len(errors)), errors)
