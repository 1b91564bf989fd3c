"""Gross outliers: which rows take no part in a search by absolute errors."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import LOSSES
from shine.search.problem.noise_choice import FEWEST_ROWS, without_doubtful, without_gross

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (200, 3))
LAWS = {
    "product": 3 * X[:, 0] * X[:, 1] + 1,
    "exponential": np.exp(X[:, 0]),
    "quotient": X[:, 0] / X[:, 1] ** 2,
    "sum": 2 * X[:, 0] - 5 * X[:, 1] + 3,
}


def table(target, rows=200):
    return Dataset.from_arrays(X[:rows], target[:rows], features=["x0", "x1", "x2"])


def with_outliers(target, share=0.03, size=100.0, two_sided=False):
    rows = np.random.default_rng(1).choice(200, round(share * 200), replace=False)
    signs = np.where(np.arange(len(rows)) % 2, -1, 1) if two_sided else 1
    found = target.copy()
    found[rows] += signs * size * target.std()
    return found, np.setdiff1d(np.arange(200), rows)


@pytest.mark.parametrize("law", LAWS)
def test_rows_of_a_law_are_no_outliers(law):
    dataset = table(LAWS[law])
    assert without_gross(dataset, LOSSES["mae"]) is dataset


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize(("share", "size"), [(0.01, 30), (0.03, 1e3), (0.1, 1e6)])
def test_gross_outliers_are_left_out_and_nothing_else(law, two_sided, share, size):
    target, others = with_outliers(LAWS[law], share, size, two_sided)
    assert without_gross(table(target), LOSSES["mae"]).target.tolist() == target[others].tolist()


@pytest.mark.parametrize("loss", ["mse", "rmse", "nmse", "r2"])
def test_squared_errors_see_all_rows(loss):
    dataset = table(with_outliers(LAWS["sum"])[0])
    assert without_gross(dataset, LOSSES[loss]) is dataset
    assert without_doubtful(dataset, LOSSES[loss]) is dataset


def test_a_few_rows_say_nothing_about_outliers():
    target = LAWS["sum"].copy()
    target[0] = 1e9
    few = table(target, FEWEST_ROWS - 1)
    assert without_gross(few, LOSSES["mae"]) is few


def test_many_rows_that_are_far_away_are_no_outliers():
    dataset = table(with_outliers(LAWS["sum"], 0.2)[0])
    assert without_gross(dataset, LOSSES["mae"]) is dataset


@pytest.mark.parametrize("scaling", [True, False])
def test_mae_finds_the_law_of_the_other_rows(scaling):
    target, others = with_outliers(LAWS["product"])
    settings = {
        "loss": "mae",
        "noise": "absolute",
        "primitives": ["add", "mul"],
        "linear_scaling": scaling,
        "seconds": 20,
    }
    result = shine.evolve(X, target, **settings)
    assert result.best.predict(X)[others] == pytest.approx(LAWS["product"][others])
    assert "6 gross outliers took no part" in result.front.reason
    assert result.best.loss == pytest.approx(np.abs(target - LAWS["product"]).mean())
