"""Errors of a wide target count in every row."""

import numpy as np
import pytest

from shine.search.seeding.fits.target_errors import TargetErrors, together

WEIGHTS = np.full(50, 0.02)


def test_only_a_wide_target_of_one_sign_has_relative_errors():
    x = np.linspace(1, 2, 50)
    assert len(TargetErrors.of(x, WEIGHTS).weights) == 1
    assert len(TargetErrors.of(10 ** (10 * x), WEIGHTS).weights) == 2
    assert len(TargetErrors.of(-(10 ** (10 * x)), WEIGHTS).weights) == 2
    assert len(TargetErrors.of(10 ** (10 * x) - 1e15, WEIGHTS).weights) == 1


def test_a_prediction_that_misses_the_small_values_is_seen():
    x = np.linspace(1, 2, 50)
    target = 10 ** (20 * x)
    errors = TargetErrors.of(target, WEIGHTS)
    shares = errors.unexplained(np.stack([target, target + 1e28 * x]))
    assert shares[:, 0] == pytest.approx([0, 0], abs=1e-20)
    assert shares[0, 1] < 1e-15 and shares[1, 1] > 0.1
    assert together(shares)[1] == pytest.approx(np.sqrt(shares[0, 1] * shares[1, 1]))
    every = np.ones(50, bool)
    assert errors.held_out(np.stack([target]), every, every, True).max() < 1e-20
