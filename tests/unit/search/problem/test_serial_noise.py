"""Logs are told from other tables whose neighbouring rows have errors alike."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.search.problem.serial_noise import with_serial_noise


def slow(rng: np.random.Generator, rows: int, correlation: float, columns: int = 1) -> np.ndarray:
    """Columns of variance 1 whose neighbouring values correlate."""
    found = rng.normal(size=(rows, columns))
    for at in range(1, rows):
        found[at] = correlation * found[at - 1] + np.sqrt(1 - correlation**2) * found[at]
    return found


def correlation(X: np.ndarray, y: np.ndarray) -> float:
    serial = with_serial_noise(Dataset.from_arrays(X, y)).serial
    return 0.0 if serial is None else serial.correlation


def log(rows: int = 300, noise: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    X = slow(rng, rows, 0.95, 4)
    return X, X[:, 0] * X[:, 1] + 0.5 * slow(rng, rows, noise)[:, 0]


@pytest.mark.slow
def test_a_log_is_one_until_it_is_shuffled() -> None:
    X, y = log()
    assert correlation(X, y) == pytest.approx(0.8, abs=0.15)
    shuffled = np.random.default_rng(5).permutation(len(y))
    assert correlation(X[shuffled], y[shuffled]) == 0


def test_slow_features_alone_make_no_log() -> None:
    assert correlation(*log(noise=0.0)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_misfit_of_a_sorted_table_is_no_correlation(noise: float) -> None:
    rng = np.random.default_rng(6)
    x = np.sort(rng.uniform(0, 5, 200))
    assert correlation(x[:, None], np.sin(6 * x) + noise * rng.normal(size=200)) == 0


@pytest.mark.slow
def test_the_law_of_a_log_is_chosen_and_its_rows_are_counted() -> None:
    X, y = log()
    found = shine.evolve(X, y, generations=3, seconds=None, seed=0)
    assert found.best.formula(3).startswith("x0*x1") and found.best.tree.size <= 7
    (note,) = (each for each in found.best.uncertainty.notes if each.startswith("errors of neighbouring rows"))
    assert found.front.reason.endswith(note)
    assert "rows are independent" not in str(found.summary())
