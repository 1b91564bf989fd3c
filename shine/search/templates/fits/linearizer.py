"""Fits of whole populations of a template."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.data.datasets.dataset import Dataset
from shine.evaluate.fitness.protocols import FirstLines, Fit, NormalEquations
from shine.evaluate.gradient.normal_equations import FIXED_COLUMNS
from shine.evaluate.losses.form import Loss, loss_of
from shine.lang.population import Population
from shine.search.templates.fits.grouped_fits import GroupedFits
from shine.search.templates.fits.integers import NEIGHBOURS_FROM, with_integers
from shine.search.templates.fits.sections import Composer
from shine.search.templates.fits.shrinkage import shrunk
from shine.search.templates.fits.unknowns import Unknowns


class TemplateLinearizer:
    """Fits the individuals of a template over a data set.

    Parameters
    ----------
    composer : Composition
    dataset : Dataset
        As for `shine.search.templates.fits.scores.TemplateEvaluator`.
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

        The signature is that of `shine.evaluate.fitness.protocols.Linearizer`; a template has no lines.
        """
        del lines
        unknowns = Unknowns.of(self._composer, population, self._fits.rows.groups, fixed)
        composed = self._composer.composed(population)
        start = unknowns.read(population.values)

        def fitted_from(which: Indices, own: Unknowns, start: Floats) -> tuple[Floats, Floats]:
            return self._fits.fitted([each.take(which) for each in composed], own, start, steps, tolerance)

        if unknowns.integers.any():
            values, errors = with_integers(fitted_from, unknowns, start, neighbours=steps >= NEIGHBOURS_FROM)
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
