"""Errors of rows that follow one another, against dense matrices of their correlations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shine.data.datasets.dataset import Dataset
from shine.data.datasets.serial import Serial

PLACES = np.concatenate([np.arange(18.0), [30.5, 20.0, 1e6, 1e6 + 1]])
SERIAL = Serial(0.3, PLACES)
DENSE = 0.3 ** np.abs(PLACES[:, None] - PLACES)


def test_independent_rows_are_the_sum_of_the_inverse_correlations() -> None:
    assert SERIAL.independent_rows == pytest.approx(np.linalg.inv(DENSE).sum())


def test_innovations_have_the_likelihood_of_the_errors() -> None:
    errors = np.random.default_rng(0).normal(size=len(PLACES))
    parts, factors = SERIAL.innovations(errors)
    assert parts @ parts == pytest.approx(errors @ np.linalg.solve(DENSE, errors))
    assert 2 * factors * len(errors) == pytest.approx(np.linalg.slogdet(DENSE)[1])


def test_sums_over_pairs_of_rows_are_those_of_the_dense_matrix() -> None:
    columns = np.random.default_rng(1).normal(size=(3, len(PLACES)))
    np.testing.assert_allclose(SERIAL.correlated(columns), columns @ DENSE @ columns.T)


@pytest.mark.slow
def test_the_correlation_of_a_process_is_found_beside_slow_columns() -> None:
    rng, found = np.random.default_rng(2), []
    for _ in range(20):
        steps = rng.normal(size=(3, 300)) * np.sqrt(1 - 0.8**2)
        for at in range(1, 300):
            steps[:, at] += 0.8 * steps[:, at - 1]
        columns = np.vstack([np.ones(300), steps[1:]])
        errors = steps[0] - np.linalg.lstsq(columns.T, steps[0], rcond=None)[0] @ columns
        found.append(Serial.of(300, None).estimated(errors, columns).correlation)
    assert np.mean(found) == pytest.approx(0.8, abs=0.02)


def test_rows_of_other_groups_and_a_sample_that_is_far_apart_are_independent() -> None:
    rows = Dataset.from_arrays(np.arange(100.0)[:, None], np.arange(100.0))
    log = replace(rows, serial=replace(Serial.of(100, None), correlation=0.8))
    assert log.effective_rows == pytest.approx(1 + 99 * 0.2 / 1.8)
    assert log.take(np.arange(0, 100, 20)).effective_rows == pytest.approx(5, rel=0.03)
    assert replace(Serial.of(100, np.arange(100)), correlation=0.8).independent_rows == pytest.approx(100)
