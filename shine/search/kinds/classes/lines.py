"""Individuals as logarithms of odds: the line of each with the least log-loss."""

from __future__ import annotations

import math

import numpy as np

from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.evaluate.fitness.protocols import FirstLines, Linearizer
from shine.evaluate.fitness.scores import Products, Scores
from shine.evaluate.losses import loss_from
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.population import Population

LOG_LOSS = loss_from("binomial")
"""The mean log-loss of rows, in nats; the target is 1 for rows of the class and 0 for others, or a share of it."""

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
    """Log-loss of individuals, each with its best line (see `shine.evaluate.fitness.protocols.PopulationEvaluator`).

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
        self._evaluator = MachineEvaluator(dataset, LOG_LOSS, False, dtype, threads)

    def score(self, population: Population, threshold: float = np.inf) -> Scores:
        """Log-loss and line of each individual."""
        n = len(population)
        scores = Scores(np.full(n, np.inf), np.ones(n), np.zeros(n))
        with np.errstate(all="ignore"):
            slopes, intercepts = discriminants(self._evaluator.products(population), self._dataset)
        which = np.flatnonzero(np.isfinite(slopes) & np.isfinite(intercepts))
        if not len(which):
            return scores
        chosen = population.take(which)
        held = np.ones((len(chosen), chosen.width), np.bool_)
        lines = FirstLines(slopes[which], intercepts[which], fitted=True)
        fit = self._linearizer.fit(chosen, LINE_STEPS, tolerance=1e-4, lines=lines, fixed=held)
        losses = self._evaluator.losses_with(chosen, fit.slopes, fit.intercepts)
        finite = np.isfinite(losses)
        found = Scores(losses[finite], fit.slopes[finite], fit.intercepts[finite])
        return scores.replaced(which[finite], found).within(threshold)

    def predict(self, population: Population) -> Floats:
        """Values of the individuals, without lines."""
        return self._evaluator.predict(population)
