"""Ranges, and the points in them."""

from __future__ import annotations

import numpy as np
import pytest

from shine.base.errors import DataError
from shine.faces.distillation.lessons import checked_ranges, latin_hypercube

RANGES = {"x": (-2.0, 2.0), "y": (1.0, 1.5)}


def test_each_slice_of_each_feature_has_one_point():
    points = latin_hypercube(RANGES, 37, np.random.default_rng(0))
    low, high = np.array(list(RANGES.values())).T
    slices = np.floor((points - low) / (high - low) * 37).astype(int)
    assert (np.sort(slices, axis=0) == np.arange(37)[:, None]).all()


def test_the_same_seed_gives_the_same_points():
    one, other = (latin_hypercube(RANGES, 9, np.random.default_rng(3)) for _ in range(2))
    assert (one == other).all()


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({}, "no ranges"),
        ({"x": (2, -2)}, "the range of x is 2 to -2; the least value comes first"),
        ({"x": (1, 1)}, "the least value comes first"),
        ({"x": (0, np.nan)}, "the range of x has the end nan; give two finite numbers"),
        ({"x": (-np.inf, 0)}, "has the end -inf"),
        ({"x": (0, True)}, "has the end True"),
        ({"x": ("a", 1)}, "has the end"),
        ({"x": 3}, "the range of x is 3; give two numbers"),
        ({"x": (1, 2, 3)}, "give two numbers"),
        ({"x": (-1e308, 1e308)}, "wider than the largest number"),
        ({"a b": (0, 1)}, "feature name"),
        ({"lambda": (0, 1)}, "feature name"),
    ],
)
def test_wrong_ranges_are_told(ranges, message):
    with pytest.raises(DataError, match=message):
        checked_ranges(ranges)
