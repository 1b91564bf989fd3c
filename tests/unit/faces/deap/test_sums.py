"""Sums that are rounded once are those of `math.fsum`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shine.evaluate.losses.form import ABSOLUTE, SQUARED
from shine.faces.deap.measurement import BLOCK, sums_of_errors


@pytest.mark.parametrize("rows", [1, 2, 20, BLOCK - 1, BLOCK, BLOCK + 1, 5000])
@pytest.mark.parametrize("kind", [SQUARED, ABSOLUTE])
@pytest.mark.parametrize("spread", [0, 5, 40])
def test_a_sum_of_errors_is_that_of_fsum(rows, kind, spread):
    rng = np.random.default_rng(rows)
    predictions = rng.normal(size=(33, rows)) * 10.0 ** rng.integers(-spread, spread + 1, size=(33, rows))
    target = rng.normal(size=rows)
    errors = predictions - target
    errors = kind.errors(errors, np.zeros_like(errors))
    expected = [math.fsum(row) for row in errors.tolist()]
    assert sums_of_errors(predictions, target, kind).tolist() == expected


def test_sums_of_zero_or_of_numbers_that_are_not_finite_stay_so():
    predictions = np.array([[1.0, 2.0], [np.inf, 2.0], [np.nan, 2.0], [1e200, 2.0], [1e150, 2.0]])
    sums = sums_of_errors(predictions, np.array([1.0, 2.0]), SQUARED)
    assert sums[0] == 0
    assert not np.isfinite(sums[1:4]).any()
    assert sums[4] == pytest.approx(1e300, rel=1e-15)
