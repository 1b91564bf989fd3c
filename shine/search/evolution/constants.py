"""Constant fitting during a search: which individuals are fitted, and how far."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from shine.base.typing import Indices
from shine.evaluate.protocols import ConstantFitter, FirstLines
from shine.evaluate.scores import Scores
from shine.lang.forms.primitives import CONSTANT
from shine.lang.population import Population
from shine.search.evolution.scoring import Fitter

TOLERANCE = 1e-2
"""During a search, a fit stops when its next step is expected to remove less than this share of the error. Near an
exact fit, every step is expected to remove nearly all of it."""


def fitter(linearizer: ConstantFitter, steps: int, *, scaled: bool, tolerance: float = TOLERANCE) -> Fitter:
    """A function that improves the constants of individuals where it can, by a few steps each.

    `scaled` says whether the losses are those of linear scaling; `tolerance` is as `TOLERANCE` describes.
    """

    return partial(_fitted, linearizer, steps, scaled, tolerance)


def _fitted(
    linearizer: ConstantFitter, steps: int, scaled: bool, tolerance: float, population: Population, scores: Scores
) -> Population:
    which = fittable(population, scores)
    if not len(which):
        return population
    lines = FirstLines(scores.slopes[which], scores.intercepts[which], scaled)
    fit = linearizer.fit(population.take(which), steps, tolerance=tolerance, lines=lines)
    values = population.values.copy()
    values[which] = fit.population.values
    return replace(population, values=values)


def fittable(population: Population, scores: Scores) -> Indices:
    """Individuals with a constant and a finite loss, by position."""
    has_constants = np.zeros(len(population), np.bool_)
    has_constants[places(population)[0]] = True
    return np.flatnonzero(has_constants & np.isfinite(scores.losses))


def places(population: Population) -> tuple[Indices, Indices, Indices]:
    """For every constant: individual, position on the tape, and rank among the individual's constants."""
    inside = np.arange(population.width) < population.sizes[:, None]
    rows, columns = np.nonzero((population.codes == CONSTANT) & inside)
    # `rows` is sorted: the first constant of an individual has rank 0.
    ranks = np.arange(len(rows)) - np.searchsorted(rows, rows)
    return rows, columns, ranks
