"""Constants of unknown functions that a parameter, or another constant, makes redundant.

In ``c*f(a) + d``, a factor and a summand of ``f`` say nothing that c and d do not say. Such a constant is replaced by 0
or 1, and all others are fitted again: if that costs nothing, the shorter function stays.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shine.evaluate.fitness.protocols import ConstantFitter
from shine.lang.population import Population
from shine.search.evolution.constants import places
from shine.search.evolution.snapping import Nats

NEUTRAL = (0.0, 1.0)
"""What stands in place of a constant: the neutral elements of sums and products."""

FREE_OF_CHARGE = 0.01
"""Nats that the fit may lose."""

_STEPS, _TOLERANCE = 30, 1e-12
"""Most steps of a fit, and the share of the error that its next step must promise to remove."""


@np.errstate(all="ignore")
def without_redundant(
    population: Population, fitter: ConstantFitter, nats: Nats, least_error: float
) -> tuple[Population, bool]:
    """The individuals, each with at most one redundant constant of a function replaced; and whether any was.

    Parameters
    ----------
    population : Population
        Individuals of a template with fitted constants.
    fitter : ConstantFitter
    nats : callable
        Log-likelihood lost between two arrays of sums of errors (see `shine.search.evolution.snapping.snapped`).
    least_error : float
        Sum of errors that counts as rounding.
    """
    before = fitter.fit(population, 1, tolerance=1.0).errors
    individuals, columns, ranks = places(population)
    of_functions = columns < population.sizes[individuals] - population.primitives.frame
    which, at, rank = (np.repeat(each[of_functions], len(NEUTRAL)) for each in (individuals, columns, ranks))
    numbers = np.tile(NEUTRAL, int(of_functions.sum()))
    new = population.values[which, at] != numbers
    which, at, rank, numbers = which[new], at[new], rank[new], numbers[new]
    if not len(which):
        return population, False
    trials = population.take(which)
    everyone = np.arange(len(which))
    trials.values[everyone, at] = numbers
    fixed = np.zeros((len(which), 1 + int(ranks.max())), np.bool_)
    fixed[everyone, rank] = True
    fit = fitter.fit(trials, _STEPS, tolerance=_TOLERANCE, fixed=fixed)
    worse = nats(np.maximum(fit.errors, least_error), np.maximum(before[which], least_error))
    # Zeros first: they remove a whole term.
    accepted = np.flatnonzero(np.isfinite(fit.errors) & (worse <= FREE_OF_CHARGE))
    accepted = accepted[np.argsort(numbers[accepted], kind="stable")]
    chosen, first = np.unique(which[accepted], return_index=True)
    values = population.values.copy()
    values[chosen] = fit.population.values[accepted[first]]
    return replace(population, values=values), bool(len(chosen))
