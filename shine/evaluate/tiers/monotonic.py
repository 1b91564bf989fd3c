"""Monotonicity constraints: measured on pairs of rows that differ in one feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.population import Population

PAIRS = 100
"""Pairs of rows for each feature."""


class Monotonicity:
    """Pairs of rows that differ in one feature only, and how formulas order them.

    One row of a pair is drawn from the data. The step to the other is drawn log-uniformly, and stays within the range
    of the feature in the data.
    """

    def __init__(
        self,
        dataset: Dataset,
        directions: Mapping[str, Literal["increasing", "decreasing"]],
        threads: int,
        rng: np.random.Generator,
    ) -> None:
        self._signs = np.array([1.0 if direction == "increasing" else -1.0 for direction in directions.values()])
        # Rows of weight 0 may hold anything.
        weighing = np.flatnonzero(dataset.row_weights)
        columns = dataset.columns
        rows = columns[:, rng.choice(weighing, len(directions) * PAIRS)]
        low, high = rows.reshape(-1, len(directions), PAIRS).copy(), rows.reshape(-1, len(directions), PAIRS).copy()
        for index, name in enumerate(directions):
            feature = dataset.features.index(name)
            column = columns[feature, weighing]
            low[feature, index], high[feature, index] = _pairs(low[feature, index], column.min(), column.max(), rng)
        paired = np.concatenate([low, high], axis=1).reshape(len(dataset.features), -1)
        shifted = Dataset(np.ascontiguousarray(paired), np.zeros(paired.shape[1]), None, dataset.features)
        self._evaluator = MachineEvaluator(shifted, "mse", False, "float64", threads)

    def wrong_shares(self, population: Population, slopes: Floats) -> Floats:
        """Share of pairs that an individual orders wrongly, summed over the features.

        Parameters
        ----------
        population : Population
        slopes : ndarray of shape (n_individuals,)
            Factors of the predictions.

        Returns
        -------
        ndarray of shape (n_individuals,), float64
            A pair with a prediction that is not finite is wrong; a pair of equal predictions is not.
        """
        if not len(population):
            return np.zeros(0)
        predictions = self._evaluator.predict(population).reshape(len(population), 2, len(self._signs), PAIRS)
        with np.errstate(all="ignore"):
            low, high = predictions[:, 0], predictions[:, 1]
            moves = (high - low) * self._signs[:, None] * np.sign(slopes)[:, None, None]
            right = moves >= -1e-12 * (np.abs(low) + np.abs(high))  # largest relative difference of equal predictions
        shares: Floats = 1 - right.mean(axis=2)
        total: Floats = shares.sum(axis=1)
        return total


def _pairs(values: Floats, least: float, most: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """For each value, a pair at a random distance that contains it if the range allows; lower values first."""
    # Python's power: the bits of NumPy's depend on the processor.
    # Least distance of a pair, as a share of the feature's range; the largest distance is the whole range
    distance = (most - least) * np.array([0.01**share for share in rng.random(len(values)).tolist()])
    up = rng.random(len(values)) < 0.5
    low = np.clip(np.where(up, values, values - distance), least, most - distance)
    return low, np.minimum(low + distance, most)
