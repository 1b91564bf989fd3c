"""Limits of fresh values of a quantity, by the tails of the known ones.

Beyond a high quantile, the logarithm of the distance from the median grows by the same mean step whenever the share of
values that are further out falls by a constant factor: Hill (1975) estimates that step by the mean logarithm of the
outer values over the quantile. It is the tail index of power laws, and larger than it need be for all lighter tails.
"""

from __future__ import annotations

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import exp, log
from shine.data.datasets.dataset import stable_sum

OUTER = 0.25
"""Share of the values that the tail is estimated from, on each side of the median."""

FEWEST = 3
"""Least number of these values."""

TELLING = 8
"""Least number of values that say anything about tails."""

FURTHER = 1.75
"""Length of a tail in its mean steps: of values with its index, one in six goes further."""

DOUBT = 3.0
"""Margin for heavier tails than estimated, in standard errors."""


def far_ends(values: Floats) -> tuple[float, float]:
    """Values below and above which a fresh value would be a stranger.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Finite numbers, at least one.

    Returns
    -------
    float, float
        Each is at least as far from the median as the furthest value on the other side: where a quantity ends at 0, a
        formula may rightly go a little below. Infinite if there are too few values.
    """
    if len(values) < TELLING:
        return -np.inf, np.inf
    # Distances between huge values must not overflow.
    scale = max(float(np.abs(values).max()), float(np.finfo(np.float64).tiny))
    values = values / scale
    median = float(np.sort(values)[len(values) // 2])
    below, above = median - values, values - median
    furthest = max(float(below.max()), float(above.max()))
    down, up = (max(_reach(side[side > 0], len(values)), furthest) for side in (below, above))
    return scale * (median - down), scale * (median + up)


def _reach(distances: Floats, count: int) -> float:
    """Largest distance of a fresh value from the median on one side, by the distances of the known ones."""
    if len(distances) < 2:
        return 0.0
    outer = np.sort(distances)[::-1]
    outer = outer[: min(max(int(OUTER * count), FEWEST), len(outer) - 1) + 1]
    steps = log(outer[:-1]) - log(outer[-1:])
    index = float(stable_sum(steps)) / len(steps) * (1 + DOUBT / np.sqrt(len(steps)))
    return float(outer[0] * exp(np.array(FURTHER * index)))
