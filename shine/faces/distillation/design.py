"""Samples of a network: the ranges of its features, and a design of points in them."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.columns.headings import check_features
from shine.lang.forms.names import value_text

Ranges = Mapping[str, tuple[float, float]]
"""Least and greatest value of each feature."""

DESIGN = 512
"""Points that the search sees."""

LEAST_EVIDENCE, EVIDENCE_A_FEATURE = 32, 16
"""Independent rows that they are worth: so many for each feature, and at least so many. The error of a network is
smooth, so neighbouring points repeat it, however many there are. With 32 rows, a formula whose description is twenty
nats longer has to leave less than a third of the squared error: it is chosen for what is larger than the error of the
network. `experiments/distil_networks.py worth` measures what the points are worth."""


def checked_ranges(ranges: Mapping[Any, Any]) -> dict[str, tuple[float, float]]:
    """Ranges as numbers, by names that formulas can use.

    Raises
    ------
    DataError
        If there is none, a name cannot be used, or a range is not two finite numbers, the smaller one first.
    """
    if not ranges:
        raise DataError('no ranges: name each feature with its least and greatest value, such as {"x": (-2, 2)}')
    names = check_features(list(ranges))
    found = {}
    for name, given in zip(names, ranges.values(), strict=True):
        try:
            low, high = given
        except (TypeError, ValueError):
            raise DataError(
                f"the range of {name} is {value_text(given)}; give two numbers, (least, greatest)"
            ) from None
        for end in (low, high):
            if not isinstance(end, Real) or isinstance(end, bool) or not np.isfinite(float(end)):
                raise DataError(f"the range of {name} has the end {value_text(end)}; give two finite numbers")
        if not low < high:
            raise DataError(f"the range of {name} is {low:g} to {high:g}; the least value comes first")
        if not np.isfinite(float(high) - float(low)):
            raise DataError(f"the range of {name} is wider than the largest number; give a smaller one")
        found[name] = (float(low), float(high))
    return found


def latin_hypercube(ranges: Ranges, rows: int, rng: np.random.Generator) -> Floats:
    """Random points with one in each of `rows` slices of each feature (McKay, Beckman and Conover 1979).

    Returns
    -------
    ndarray of shape (rows, n_features), float64
    """
    slices = np.stack([rng.permutation(rows) for _ in ranges], axis=1)
    low, high = np.array(list(ranges.values())).T
    points: Floats = low + (high - low) * ((slices + rng.random(slices.shape)) / rows)
    return points
