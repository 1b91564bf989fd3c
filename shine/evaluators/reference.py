"""The reference tier: individuals interpreted by NumPy, one array operation a node."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from shine.data import Dataset
from shine.fitness import Moments, Scores, score
from shine.lang.interpret import evaluate_tape
from shine.lang.population import Population

Array = NDArray[np.float64]

CHUNK = 16_384
"""Rows interpreted at a time, so that the arrays in flight stay in the cache."""


class ReferenceEvaluator:
    """Scores populations by interpreting every individual."""

    def __init__(self, dataset: Dataset, loss: str, linear_scaling: bool, dtype: str) -> None:
        self._dataset = dataset
        self._loss, self._linear_scaling = loss, linear_scaling
        with np.errstate(over="ignore"):
            self._columns = dataset.columns.astype(dtype, copy=False)

    def predict(self, population: Population, index: int) -> Array:
        """Predictions of one individual for all rows."""
        tape = population.tape(index)
        rows = self._dataset.n_rows
        parts = [
            evaluate_tape(tape.codes, tape.values, population.primitives, list(self._columns[:, start : start + CHUNK]))
            for start in range(0, rows, CHUNK)
        ]
        return np.concatenate(parts).astype(np.float64)

    def score(self, population: Population) -> Scores:
        """Loss and scaling of each individual."""

        epsilon = float(np.finfo(self._columns.dtype).eps)

        def measure(which: NDArray[np.int64], slopes: Array, intercepts: Array) -> Moments:
            predictions = (self.predict(population, int(index)) for index in which)
            return measured(predictions, self._dataset, slopes, intercepts, epsilon)

        return score(measure, len(population), self._loss, self._linear_scaling)


def measured(
    predictions: Iterable[Array], dataset: Dataset, slopes: Array, intercepts: Array, epsilon: float
) -> Moments:
    """Moments of predictions of shape (n_rows,), one at a time."""
    weights, total = dataset.row_weights, float(dataset.row_weights.sum())
    target = dataset.target - dataset.target_mean
    sums = np.zeros((5, len(slopes)))
    for i, prediction in enumerate(predictions):
        residual = dataset.target - (intercepts[i] + slopes[i] * prediction)
        mean = float(weights @ prediction) / total
        deviation = prediction - mean
        sums[:, i] = (
            weights @ residual**2,
            weights @ np.abs(residual),
            mean,
            weights @ deviation**2,
            (weights * deviation) @ target,
        )
    squared, absolute, means, squares, products = sums
    return Moments(
        total, dataset.target_mean, dataset.target_square, squared, absolute, means, squares, products, epsilon
    )
