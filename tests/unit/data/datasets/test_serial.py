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


def test_rows_stand_by_their_times_in_their_group_one_median_step_apart() -> None:
    rng = np.random.default_rng(3)
    times, groups = np.array([0.0, 1, 2, 2, 4, 7, 0, 3]), np.array([0, 0, 0, 0, 0, 0, 1, 1])
    places = Serial.of(8, groups, times).places
    assert np.diff(places)[[0, 1, 2, 3, 4]].tolist() == [0.5, 0.5, 1, 1, 1.5]  # the median of 1, 1, 2, 3, 3 is 2
    assert places[6] - places[5] >= 1e6
    others = rng.permutation(8)
    for unit, origin in ((3.6e9, -1e12), (1e-300, 0.0), (2e307, -7e307)):
        found = Serial.of(8, groups[others], times[others] * unit + origin).places
        alike = [at for at in range(8) if at not in (2, 3)]  # the same time: as they stand
        np.testing.assert_allclose(found[np.argsort(others)][alike], places[alike])
    assert Serial.of(3, None, np.full(3, 5.0)).places.tolist() == [0, 1, 2]
    assert Serial.of(3, None, np.array([1e308, -1e308, 1e308])).places.tolist() == [1, 0, 2]


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
