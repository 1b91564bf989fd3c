"""Gross outliers: which rows take no part in a search, what its result says of them, and what it finds without them."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import LOSSES
from shine.evaluate.losses.rows import loss_for
from shine.search.problem.outliers import FEWEST_ROWS, gross_outliers, rows_of_seeding

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (200, 3))
LAWS = {
    "product": 3 * X[:, 0] * X[:, 1] + 1,
    "exponential": np.exp(X[:, 0]),
    "negative": -np.exp(X[:, 0]),
    "quotient": X[:, 0] / X[:, 1] ** 2,
    "sum": 2 * X[:, 0] - 5 * X[:, 1] + 3,
}
SEEING = ["mse", "rmse", "nmse", "r2", "mae", "huber", "student_t"]


def table(target, rows=200):
    return Dataset.from_arrays(X[:rows], target[:rows], features=["x0", "x1", "x2"])


def with_outliers(target, share=0.03, size=100.0, two_sided=False):
    rows = np.random.default_rng(1).choice(200, round(share * 200), replace=False)
    signs = np.where(np.arange(len(rows)) % 2, -1, 1) if two_sided else 1
    found = target.copy()
    found[rows] += signs * size * target.std()
    return found, sorted(rows.tolist())


@pytest.mark.parametrize("law", LAWS)
def test_rows_of_a_law_are_no_outliers(law):
    assert not len(gross_outliers(table(LAWS[law]), LOSSES["mse"]))


def test_rows_that_are_far_off_together_are_part_of_a_law_that_jumps():
    jump = np.where(X[:, 1] > 4.7, 100.0, X[:, 0])
    beyond = np.flatnonzero(X[:, 1] > 4.7)
    assert len(beyond) == 13
    assert len(np.intersect1d(gross_outliers(table(jump), LOSSES["mse"]), beyond)) <= 2
    target, rows = with_outliers(jump, share=0.01, size=1e3)
    assert set(rows) <= set(gross_outliers(table(target), LOSSES["mse"]).tolist())


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize(("share", "size"), [(0.01, 30), (0.03, 1e3), (0.1, 1e6)])
def test_gross_outliers_are_seen_and_nothing_else(law, two_sided, share, size):
    target, rows = with_outliers(LAWS[law], share, size, two_sided)
    assert gross_outliers(table(target), LOSSES["mae"]).tolist() == rows


@pytest.mark.parametrize("loss", SEEING)
def test_losses_that_outliers_would_decide_do_not_see_them(loss):
    target, rows = with_outliers(LAWS["sum"])
    assert gross_outliers(table(target), loss_for(loss, table(LAWS["product"]))).tolist() == rows
    seeding, _ = rows_of_seeding(table(target), loss_for(loss, table(LAWS["product"])), "absolute")
    assert (seeding.n_rows < 200) == (loss not in SEEING[:4])


OWN = "def own(prediction, target): return (prediction - target)**2"


@pytest.mark.parametrize("loss", ["poisson", "quantile(0.9)", OWN])
def test_other_losses_see_all_rows(loss):
    target, _ = with_outliers(LAWS["product"])
    assert not len(gross_outliers(table(target), loss_for(loss, table(LAWS["product"]))))


def test_a_row_with_a_known_deviation_may_be_far_off():
    dataset = table(with_outliers(LAWS["sum"])[0]).with_deviations(np.ones(200))
    assert not len(gross_outliers(dataset, LOSSES["mse"]))


def test_a_few_rows_say_nothing_about_outliers():
    target = LAWS["sum"].copy()
    target[0] = 1e9
    assert not len(gross_outliers(table(target, FEWEST_ROWS - 1), LOSSES["mse"]))


@pytest.mark.parametrize("target", [with_outliers(LAWS["sum"], 0.2)[0], np.ones(200), RNG.random(200) < 0.05])
def test_many_rows_that_are_far_away_and_rare_classes_are_no_outliers(target):
    assert not len(gross_outliers(table(np.asarray(target, float)), LOSSES["mse"]))


@pytest.mark.parametrize("loss", ["mse", "mae"])
@pytest.mark.parametrize("scaling", [True, False])
def test_the_law_of_the_other_rows_is_found(loss, scaling):
    target, rows = with_outliers(LAWS["product"])
    settings = {"noise": "absolute", "primitives": ["add", "mul"], "linear_scaling": scaling, "seconds": 20}
    result = shine.evolve(X, target, loss=loss, **settings)
    others = np.setdiff1d(np.arange(200), rows)
    assert result.best.predict(X)[others] == pytest.approx(LAWS["product"][others])
    shown = ", ".join(f"{target[row]:.6g}" for row in rows[:3])
    assert f"; 6 gross outliers took no part (targets {shown}, ...)" in result.front.reason
    assert result.best.r2 == pytest.approx(1.0)


def test_outliers_are_kept_on_demand_and_named_in_the_units_of_the_user():
    target = LAWS["product"] * 1e-9
    target[7] = -999.0
    settings = {"primitives": ["add", "mul"], "generations": 2, "seeding": 0.0, "seconds": None, "population": 50}
    told = shine.evolve(X, target, **settings).front.reason
    assert "; 1 gross outlier took no part (target -999)" in told
    assert "outlier" not in shine.evolve(X, target, outliers="keep", **settings).front.reason
    with pytest.raises(ValueError, match="outliers"):
        shine.evolve(X, target, outliers="leave", **settings)


def test_templates_do_not_see_them_but_rows_of_groups_are_not_compared():
    target, rows = with_outliers(LAWS["product"], size=1e4)
    settings = {"primitives": ["add", "mul"], "template": "c*f(x0, x1) + d", "seconds": 10}
    result = shine.evolve(X, target, features=["x0", "x1", "x2"], **settings)
    others = np.setdiff1d(np.arange(200), rows)
    assert result.best.predict(X)[others] == pytest.approx(LAWS["product"][others])
    assert "; 6 gross outliers took no part" in result.front.reason
    runs = {"template": "k[run]*x0", "generations": 0}
    table = np.c_[X[:, 0], np.arange(200) // 100]
    spoiled = shine.evolve(table, target, features=["x0", "run"], **runs)
    assert "outlier" not in spoiled.front.reason
