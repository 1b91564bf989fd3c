"""Standard errors of rows that depend on one another, against dense matrices and fits without each group."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import f

from shine.data.datasets.serial import Serial
from shine.evaluate.inference.inference import Inference
from shine.evaluate.inference.summary import Summary
from tests.unit.evaluate.inference.cases import inference

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 4, 60)
GROUPS = np.repeat(np.arange(12), 5)
Y = 1.37 + 2.31 * X + RNG.normal(size=12)[GROUPS] + RNG.normal(size=60)
COLUMNS = np.column_stack([X, np.ones(60)])


def line_of(**rows: object) -> Inference:
    known = inference("2.31*x + 1.37", {"x": X}, Y)
    return Inference(known.form, replace(known.basis, rows=replace(known.basis.rows, **rows)))


def test_clusters_have_the_covariance_of_fits_without_each_of_them() -> None:
    best = np.linalg.lstsq(COLUMNS, Y, rcond=None)[0]
    fits = [np.linalg.lstsq(COLUMNS[g != GROUPS], Y[g != GROUPS], rcond=None)[0] - best for g in range(12)]
    expected = 11 / 12 * np.einsum("gi,gj->ij", np.array(fits), np.array(fits))
    found = line_of(groups=GROUPS).uncertainty
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-6)
    assert found.freedoms.tolist() == [11, 11]


def test_serial_errors_have_the_covariance_of_least_squares_with_their_correlations() -> None:
    found = line_of(serial=replace(Serial.of(60, None), correlation=0.5))
    inverse = np.linalg.inv(COLUMNS.T @ COLUMNS)
    errors = Y - COLUMNS @ np.linalg.lstsq(COLUMNS, Y, rcond=None)[0]
    own = Serial.of(60, None).estimated(errors, COLUMNS.T).correlation
    dense = own ** np.abs(np.arange(60.0)[:, None] - np.arange(60))
    hat = np.eye(60) - COLUMNS @ inverse @ COLUMNS.T
    variance = errors @ errors / np.trace(hat @ dense)
    expected = variance * inverse @ COLUMNS.T @ dense @ COLUMNS @ inverse
    np.testing.assert_allclose(found.uncertainty.covariance, expected, rtol=1e-6)


def test_the_table_of_dependent_rows_does_not_ask_for_independent_ones() -> None:
    found = line_of(groups=GROUPS)
    table = str(Summary("", found.uncertainty, found.uncertainty.wald(0.95), 0.95, "wald"))
    assert "12 groups" in table and "rows are independent" not in table


@pytest.mark.parametrize("kind", ["model", "robust"])
def test_other_covariances_can_be_asked_for(kind: str) -> None:
    basis = line_of(groups=GROUPS).basis
    assert Inference(line_of().form, basis, kind).found.kind == kind  # type: ignore[arg-type]


def test_equal_rows_tell_a_lack_of_fit() -> None:
    x = np.repeat(np.arange(8.0), 5)
    y = x**2 + RNG.normal(size=40)
    line = np.column_stack([x, np.ones(40)])
    left = np.sum((y - line @ np.linalg.lstsq(line, y, rcond=None)[0]) ** 2)
    means = y.reshape(8, 5).mean(axis=1)
    pure = np.sum((y - np.repeat(means, 5)) ** 2)
    ratio = (left - pure) / 6 / (pure / 32)
    notes = " ".join(inference("7.1*x - 7.3", {"x": x}, y).uncertainty.notes)
    assert f"the form misses something: F(6, 32) = {ratio:.3g}, P = {f.sf(ratio, 6, 32):.2g}" in notes
    assert "no lack of fit" in " ".join(inference("1.1*x**2 + 0.3", {"x": x}, y).uncertainty.notes)
