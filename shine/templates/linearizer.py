"""Fits of whole populations of a template, in blocks that threads share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shine.data.dataset import Dataset
from shine.evaluators.gradients import EFFORT
from shine.evaluators.workers import Workers
from shine.fitness.protocols import Fit
from shine.lang.population import Population
from shine.templates.equations import Equations, GroupedRows
from shine.templates.fitting import Values, fitted
from shine.templates.scores import in_blocks
from shine.templates.sections import Composer, taken
from shine.templates.unknowns import Unknowns
from shine.typing import Floats, Indices, Mask

BLOCK_NUMBERS = 1 << 19
"""Numbers in the normal equations of the individuals that a thread fits at a time: about the size of a cache."""


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
        self._composer, self._workers = composer, Workers(threads)
        self._rows = GroupedRows.of(dataset, composer, loss)

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
        rows, values, errors = self._rows, population.values.copy(), np.empty(len(population))
        unknowns = Unknowns.of(self._composer, population, rows.groups, fixed)
        composed = self._composer.composed(population)

        def block(which: Indices) -> None:
            own, tapes = unknowns.take(which), values[which]
            start = Values(*own.read(tapes, rows.groups))
            equations = Equations(rows, [taken(each, which) for each in composed], own, tapes)
            best, errors[which] = fitted(equations, own, start, steps, tolerance)
            own.write(best.own, best.shared, tapes, rows.groups)
            values[which] = tapes

        most = max(BLOCK_NUMBERS // ((unknowns.own + unknowns.shared + 2) ** 2 * len(rows.groups)), 1)
        in_blocks(block, len(population), rows.n_rows * EFFORT * (1 + steps), self._workers, most)
        return Fit(replace(population, values=values), np.ones(len(errors)), np.zeros(len(errors)), errors)
