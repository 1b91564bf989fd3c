"""Windows against plain loops over them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from helpers.tensor_functions import evaluated

from shine.base.errors import FormError
from shine.tensor.compositions.pooling import Windows, avg_pool, max_pool

RNG = np.random.default_rng(6)

CASES = [
    Windows((1, 2), (2, 2), (2, 2)),
    Windows((1, 2), (3, 2), (2, 1), (1, 0), (1, 1)),
    Windows((2, 3), (3, 3), (2, 2), (1, 1), (1, 1), ceil=True),
    Windows((1,), (2,), (3,), dilation=(3,), ceil=True),
    Windows((1, 2), (3, 3), (1, 2), (2, 1), (0, 2), (1, 2)),
    Windows((2,), (4,), (3,), (1,), (1,), ceil=True),
    Windows((1, 2), (6, 7), (1, 1)),
    Windows((1, 2), (1, 1), (2, 3)),
    Windows((1,), (4,), (2,), dilation=(2,), ceil=True),
]


def pooled(x, windows, reduce):
    """`reduce(elements, places in the padding)` of each window, by loops over windows and places."""
    axes, n = windows.axes, len(windows.axes)
    low, high, dilation = windows.low or (0,) * n, windows.high or (0,) * n, windows.dilation or (1,) * n
    counts = []
    for i, axis in enumerate(axes):
        size, starts = x.shape[axis], []
        at = -low[i]
        last = -low[i] - 1
        while at + (windows.sizes[i] - 1) * dilation[i] < size + high[i]:
            starts.append(at)
            last = at + (windows.sizes[i] - 1) * dilation[i]
            at += windows.strides[i]
        if windows.ceil and last < size + high[i] - 1 and at < size:
            starts.append(at)
        counts.append(starts)
    x = np.moveaxis(x, axes, range(n))
    result = np.zeros((*map(len, counts), *x.shape[n:]), x.dtype)
    for where in product(*map(range, map(len, counts))):
        inside, padding = [], 0
        for offset in product(*map(range, windows.sizes)):
            place = [counts[i][where[i]] + offset[i] * dilation[i] for i in range(n)]
            if all(0 <= p < x.shape[i] for i, p in enumerate(place)):
                inside.append(x[tuple(place)])
            elif all(p < x.shape[i] + high[i] for i, p in enumerate(place)):
                padding += 1
        result[where] = reduce(inside, padding)
    return np.moveaxis(result, range(n), axes)


@pytest.mark.parametrize("windows", CASES, ids=str)
def test_pooling(windows):
    x = RNG.normal(size=(2, 6, 7, 9))
    expected = pooled(x, windows, lambda inside, padding: np.max(inside, 0))
    np.testing.assert_array_equal(evaluated(lambda b, x: max_pool(b, x, windows), x), expected)
    expected = pooled(x, windows, lambda inside, padding: np.sum(inside, 0) / (len(inside) + padding))
    np.testing.assert_allclose(evaluated(lambda b, x: avg_pool(b, x, windows), x), expected, rtol=1e-12, atol=1e-15)
    expected = pooled(x, windows, lambda inside, padding: np.mean(inside, 0))
    value = evaluated(lambda b, x: avg_pool(b, x, windows, count_padding=False), x)
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-15)


def test_largest_integers_and_nan():
    windows = Windows((0,), (2,), (1,), (1,), (1,))
    assert evaluated(lambda b, x: max_pool(b, x, windows), np.array([-7, -9], "i1")).tolist() == [-7, -7, -9]
    value = evaluated(lambda b, x: max_pool(b, x, windows), np.array([np.nan, 1, 2]))
    np.testing.assert_array_equal(value, [np.nan, np.nan, 2, 2])


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        (Windows((0,), (4,), (1,)), "axis 0 has 3 elements with padding, and a window needs 4"),
        (Windows((0,), (2,), (0,)), r"strides = \[0\] of windows: 1 numbers are needed, at least 1"),
        (Windows((0,), (2, 2), (1,)), r"sizes = \[2, 2\] of windows: 1 numbers are needed"),
        (Windows((2,), (2,), (1,)), r"axes = \[2\] of windows: \[3\] has the axes 0 to 0"),
    ],
)
def test_windows_that_do_not_fit_are_rejected(windows, message):
    with pytest.raises(FormError, match=message):
        evaluated(lambda b, x: max_pool(b, x, windows), np.zeros(3))
