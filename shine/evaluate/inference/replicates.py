"""Rows that are equal in all features: their errors are those of the data, whatever the formula."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from shine.data.datasets.dataset import Dataset, stable_sum

FEWEST = 5
"""Degrees of freedom below which an estimate says nothing: its interval would span a factor of six."""


@lru_cache(maxsize=2)  # The search asks for those of its rows, and its end once more.
def of_replicates(rows: Dataset) -> tuple[float, float, float]:
    """Mean weighted square of the deviations of equal rows from their mean, its degrees of freedom, and its sum."""
    # Whole sample weights are numbers of equal rows.
    given = rows.sample_weights
    counts = given if (given == np.floor(given)).all() else np.ones(rows.n_rows)
    precisions = rows.row_weights / np.where(given > 0, given, 1.0)
    numbers = np.unique(rows.columns.T, axis=0, return_inverse=True)[1].reshape(-1)
    seen = np.bincount(numbers, weights=counts)
    means = np.bincount(numbers, weights=counts * rows.target) / np.where(seen > 0, seen, 1.0)
    squares = counts * precisions * (rows.target - means[numbers]) ** 2
    # Each group loses one of its rows to its mean.
    free = counts * precisions * (1 - 1 / np.maximum(seen, 1.0))[numbers]
    freedom, total = float(stable_sum(np.maximum(seen - 1, 0.0))), float(stable_sum(squares))
    weight = float(stable_sum(free))
    mean_precision = rows.weight / float(stable_sum(given))
    return (total / weight * mean_precision if weight > 0 else math.inf), freedom, total


def lack_of_fit(rows: Dataset, total: float, freedom: float) -> str:
    """What equal rows say about a formula that leaves a sum of squares, for people; empty if they say nothing.

    The test of Fisher (1922): errors beyond those of equal rows, by degree of freedom, over those.
    """
    from scipy.special import fdtrc  # slow to import

    _, known, own = of_replicates(rows)
    if known < FEWEST or freedom <= known or not own > 0:
        return ""
    ratio = max(total - own, 0.0) / (freedom - known) / (own / known)
    tail = float(fdtrc(freedom - known, known, ratio))
    # Probability below which a formula misses something.
    told = "the form misses something" if tail < 0.01 else "no lack of fit shows"
    return f"by equal rows, {told}: F({freedom - known:.0f}, {known:.0f}) = {ratio:.3g}, P = {tail:.2g}"
