"""Whether formulas rise and fall with a feature as they should, measured on pairs of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from shine.data.dataset import Dataset
from shine.evaluators.machine_tier import MachineEvaluator
from shine.lang.population import Population
from shine.typing import Floats

PAIRS = 100
"""Pairs of rows for each feature."""

_SMALLEST_STEP = 0.01
"""Least distance of a pair, as a share of the feature's range; the largest is all of it."""

_ROUNDING = 1e-12
"""Difference of predictions, relative to them, that says nothing."""


class Monotonicity:
    """Pairs of rows that differ in one feature alone, and how formulas order them.

    The rows are some of the data; the step from one to the other has any order of magnitude alike, and stays within the
    range that the data have.

    Parameters
    ----------
    dataset : Dataset
    directions : mapping of str to {"increasing", "decreasing"}
        By feature.
    threads : int
    rng : numpy.random.Generator
        Draws rows and steps.
    """

    def __init__(
        self,
        dataset: Dataset,
        directions: Mapping[str, Literal["increasing", "decreasing"]],
        threads: int,
        rng: np.random.Generator,
    ) -> None:
        self._signs = np.array([1.0 if direction == "increasing" else -1.0 for direction in directions.values()])
        # Rows that weigh nothing may be anything.
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
        """Share of pairs that an individual orders the wrong way, added up over the features.

        Parameters
        ----------
        population : Population
        slopes : ndarray of shape (n_individuals,)
            What predictions are multiplied with.

        Returns
        -------
        ndarray of shape (n_individuals,), float64
            A prediction that is not finite is wrong, equal ones are not.
        """
        if not len(population):
            return np.zeros(0)
        predictions = self._evaluator.predict(population).reshape(len(population), 2, len(self._signs), PAIRS)
        with np.errstate(all="ignore"):
            low, high = predictions[:, 0], predictions[:, 1]
            moves = (high - low) * self._signs[:, None] * np.sign(slopes)[:, None, None]
            right = moves >= -_ROUNDING * (np.abs(low) + np.abs(high))
        shares: Floats = 1 - right.mean(axis=2)
        total: Floats = shares.sum(axis=1)
        return total


def _pairs(values: Floats, least: float, most: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """For each value, it and one at some distance, or two that far apart, the lower ones first."""
    # Not NumPy's power, whose bits depend on the processor.
    distance = (most - least) * np.array([_SMALLEST_STEP**share for share in rng.random(len(values)).tolist()])
    up = rng.random(len(values)) < 0.5
    low = np.clip(np.where(up, values, values - distance), least, most - distance)
    return low, np.minimum(low + distance, most)
