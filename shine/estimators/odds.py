"""Individuals as logarithms of odds: the line of each with the least log-loss, and the fit of their constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shine.data.dataset import Dataset
from shine.evaluators.logistic import LogisticEvaluator
from shine.evaluators.machine_tier import MachineEvaluator
from shine.fitness.protocols import Linearizer
from shine.fitness.scores import Products, Scores
from shine.gp.constants import TOLERANCE, fittable, places
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT, PrimitiveSet
from shine.search.lines import with_functions
from shine.typing import Floats

LINE = ("mul", "add")
"""Functions that write a slope and an intercept into a tape."""

LINE_STEPS = 4
"""Steps of fitting an individual's line; the fit starts from Fisher's discriminant."""

_LEAST_WITHIN = 1e-3
"""Least variance within the classes that the discriminant assumes, as a share of the total variance: below it, nearly
all rows are certain already."""


def lined(population: Population, slopes: Floats, intercepts: Floats, primitives: PrimitiveSet) -> Population:
    """``intercept + slope * individual`` as individuals; intercept and slope are their first two constants.

    Parameters
    ----------
    population : Population
    slopes, intercepts : ndarray of shape (n_individuals,)
    primitives : PrimitiveSet
        The primitive set of the population with `LINE` added (see `with_functions`).
    """
    everyone, sizes = np.arange(len(population)), population.sizes
    codes, values = np.pad(population.codes, ((0, 0), (2, 2))), np.pad(population.values, ((0, 0), (2, 2)))
    codes[:, :2] = CONSTANT
    values[:, 0], values[:, 1] = intercepts, slopes
    for place, name in enumerate(LINE):
        codes[everyone, sizes + 2 + place] = primitives.function_codes[name]
    return Population(codes, values, sizes + 4, primitives)


def discriminants(products: Products, dataset: Dataset) -> tuple[Floats, Floats]:
    """Slopes and intercepts of the log-odds if the values are normal in both classes with one variance.

    After Fisher (1936). A constant individual has the slope 0. NaN where moments are not finite.

    Parameters
    ----------
    products : Products
        Products of the individuals' values and the target.
    dataset : Dataset
        Its target is the share of each row that belongs to the class.
    """
    weight, share, variance = dataset.weight, dataset.target_mean, dataset.target_square / dataset.weight
    covariance, spread = products.product / weight, products.square / weight
    distance = covariance / variance
    within = np.maximum(spread - covariance * distance, _LEAST_WITHIN * spread)
    constant = ~(spread > (64 * np.finfo(np.float64).eps * products.mean) ** 2)
    slopes = np.where(constant, 0.0, distance / np.where(constant, 1.0, within))
    middle = products.mean + (0.5 - share) * distance
    return slopes, math.log(share / (1 - share)) - slopes * middle


class OddsEvaluator:
    """Log-loss of individuals, each with its best line (see `shine.fitness.protocols.PopulationEvaluator`).

    Parameters
    ----------
    dataset : Dataset
        Its target is the share of each row that belongs to the class, from 0 to 1, and not the same for all rows.
    linearizer : Linearizer
        Fits the lines.
    dtype : {"float64", "float32"}
    threads : int
    """

    def __init__(self, dataset: Dataset, linearizer: Linearizer, dtype: str, threads: int) -> None:
        self._dataset, self._linearizer = dataset, linearizer
        self._values = MachineEvaluator(dataset, "mse", False, dtype, threads)
        self._losses = LogisticEvaluator(dataset, dtype, threads)
        self._latest: tuple[PrimitiveSet, PrimitiveSet] | None = None

    def score(self, population: Population, threshold: float = np.inf) -> Scores:
        """Log-loss and line of each individual."""
        n = len(population)
        scores = Scores(np.full(n, np.inf), np.ones(n), np.zeros(n))
        with np.errstate(all="ignore"):
            slopes, intercepts = discriminants(self._values.products(population), self._dataset)
        which = np.flatnonzero(np.isfinite(slopes) & np.isfinite(intercepts))
        if not len(which):
            return scores
        first = self.complete(population.take(which), slopes[which], intercepts[which])
        fitted = self._fitted_lines(first)
        losses = self._losses.losses(fitted)
        finite = np.isfinite(losses)
        found = Scores(losses[finite], fitted.values[finite, 1], fitted.values[finite, 0])
        return scores.replaced(which[finite], found).within(threshold)

    def predict(self, population: Population) -> Floats:
        """Values of the individuals, without lines."""
        return self._values.predict(population)

    def complete(self, population: Population, slopes: Floats, intercepts: Floats) -> Population:
        """The individuals with their lines written into them."""
        if self._latest is None or self._latest[0] is not population.primitives:
            self._latest = population.primitives, with_functions(population.primitives, LINE)
        return lined(population, slopes, intercepts, self._latest[1])

    def fitter(self, linearizer: Linearizer, steps: int) -> Callable[[Population, Scores], Population]:
        """A function that gives individuals better constants, if it finds any (see `shine.gp.constants.fitter`)."""

        def fitted(population: Population, scores: Scores) -> Population:
            which = fittable(population, scores)
            if not len(which):
                return population
            first = self.complete(population.take(which), scores.slopes[which], scores.intercepts[which])
            ones = np.ones(len(which))
            fit = linearizer.fit(first, ones, 0 * ones, steps, tolerance=TOLERANCE, scaled=False)
            values = population.values.copy()
            values[which] = fit.population.values[:, 2:-2]
            return replace(population, values=values)

        return fitted

    def _fitted_lines(self, lines: Population) -> Population:
        count = 1 + int(places(lines)[2].max(initial=-1))
        fixed = np.ones((len(lines), count), np.bool_)
        fixed[:, :2] = False
        ones = np.ones(len(lines))
        return self._linearizer.fit(
            lines, ones, 0 * ones, LINE_STEPS, tolerance=1e-4, scaled=False, fixed=fixed
        ).population
