"""Lines of least loss, instead of those of least squares."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.own_losses import TEXTS, own_loss
from scipy.optimize import minimize

from shine.data.datasets.dataset import Dataset
from shine.evaluate.scores import Scores
from shine.evaluate.tiers import machine_rows
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.fitted_lines import FittedLines
from shine.lang.population import Population
from shine.losses import loss_for

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (203, 2))
WEIGHTS = RNG.uniform(0.5, 2, 203)
SOURCES = ["x0*x1", "x0", "x0*x0", "2.0*x0 + x1"]
VALUES = np.stack([X[:, 0] * X[:, 1], X[:, 0], X[:, 0] ** 2, 2 * X[:, 0] + X[:, 1]])
POPULATION = Population.from_sources(SOURCES, ("x0", "x1"))
POISSON = "def poisson(p, y):\n    return 2*(p - y*log(p))"


def data(target, weights=None, **loss_columns):
    return Dataset.from_arrays(X, target, sample_weight=weights, features=("x0", "x1"), loss_columns=loss_columns)


def lines(dataset, loss="mae", **options):
    return FittedLines(dataset, dataset.n_rows, loss, **options)


def least(dataset, loss, values):
    """The least loss of a line, by a search of another kind."""
    columns = [{**dataset.loss_columns, "weight": dataset.row_weights}[name] for name in loss.kind.columns]
    weights = None if "weight" in loss.kind.columns else dataset.row_weights

    def total(line):
        with np.errstate(all="ignore"):
            found = np.average(loss.kind.errors(line[1] + line[0] * values, dataset.target, columns), weights=weights)
        return found if np.isfinite(found) else 1e300

    starts = [(0.0, dataset.target_mean), (1.0, 0.0), tuple(np.polyfit(values, dataset.target, 1))]
    tries = [
        minimize(total, start, method="Nelder-Mead", options={"maxiter": 2000, "fatol": 1e-12}) for start in starts
    ]
    return min(found.fun for found in tries)


def test_a_line_ignores_moderate_outliers():
    target = 3 * VALUES[0] + 1
    target[::20] += 40
    found = lines(data(target)).score(POPULATION)
    assert (found.slopes[0], found.intercepts[0]) == pytest.approx((3, 1), abs=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*list(TEXTS)[::4], "poisson", "logistic"])
def test_lines_have_the_least_loss(name):
    rng = np.random.default_rng(1)
    target = np.sin(X[:, 0]) * X[:, 1] + rng.standard_t(3, 203)
    if name == "poisson":
        target = rng.poisson(0.3 * VALUES[0]) * 1.0
    if name == "logistic":
        target = (target > 0) * 1.0
    dataset = data(target, WEIGHTS, high=target + rng.random(203), sigma=rng.uniform(0.5, 2, 203))
    loss = (
        loss_for("binomial", data(target, WEIGHTS))
        if name == "logistic"
        else own_loss(TEXTS.get(name, POISSON), None if name == "poisson" else 0)
    )
    losses = lines(dataset, loss).score(POPULATION).losses
    best = np.array([least(dataset, loss, values) for values in VALUES])
    # Welsch's errors have several minima; a fit finds one of them.
    tolerance = 0.05 if name == "welsch" else 2e-3
    assert (losses <= best + tolerance * np.abs(best)).all()


def test_simpler_lines_are_found_where_they_suffice():
    target = 3 * VALUES[0]
    found = lines(data(target)).score(POPULATION).simpler
    assert (found.slopes[2, 0], found.intercepts[2, 0]) == pytest.approx((3, 0))
    assert found.losses[2, 0] == pytest.approx(0, abs=1e-12)
    assert found.losses[1, 0] == found.losses[0, 0] == np.inf
    noise = 0.1 * np.random.default_rng(0).normal(size=203)
    shifted = lines(data(VALUES[1] + 2 + noise)).score(POPULATION).simpler
    assert (shifted.slopes[1, 1], shifted.intercepts[1, 1]) == pytest.approx((1, 2), abs=0.05)
    plain = lines(data(VALUES[3] + noise)).score(POPULATION).simpler
    assert (plain.slopes[0, 3], plain.intercepts[0, 3]) == (1, 0)
    assert plain.losses[0, 3] == pytest.approx(np.abs(noise).mean())


@pytest.mark.slow
def test_counts_whose_line_of_least_squares_is_negative_get_a_line():
    x = np.linspace(0, 1, 60)
    counts = np.where(x < 0.7, 0.0, np.exp(9 * (x - 0.7)))
    dataset = Dataset.from_arrays(x[:, None], counts, features=("x0",))
    loss, population = own_loss(POISSON, least=None), Population.from_sources(["exp(8.0*x0)", "x0"], ("x0",))
    assert np.isinf(evaluator_of(dataset, loss, True, "float64", "machine").score(population).losses).any()
    found = lines(dataset, loss).score(population)
    assert np.isfinite(found.losses).all()
    constant = 2 * (counts.mean() - counts.mean() * np.log(counts.mean()))
    assert (found.losses < constant).all()


def test_constants_get_the_best_constant_and_failures_no_line():
    target = np.arange(203.0) ** 2
    population = Population.from_sources(["2.0", "log(x0 - 3.0)", "x0 - x0", "1e200*x0*1e200"], ("x0", "x1"))
    found = lines(data(target)).score(population)
    assert found.slopes[[0, 2]].tolist() == [0, 0]
    assert found.losses[[0, 2]] == pytest.approx(np.abs(target - np.median(target)).mean(), rel=1e-3)
    assert np.isinf(found.losses[[1, 3]]).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_threads_and_parts_of_a_population_change_no_bit(dtype, monkeypatch):
    target = np.sin(X[:, 0]) * X[:, 1] + RNG.standard_t(2, 203)
    population = Population.random(60, ["add", "mul", "div", "exp"], ("x0", "x1"), 15, np.random.default_rng(0))
    one = lines(data(target), own_loss(TEXTS["student"]), dtype=dtype).score(population)
    monkeypatch.setattr(machine_rows, "SHARED_WORK", 1)
    shared = lines(data(target), own_loss(TEXTS["student"]), dtype=dtype, threads=2)
    parts = [shared.score(population.take(part)) for part in np.split(np.arange(60), [1, 17])]
    other = Scores.concatenate(parts)
    assert one.losses.tobytes() == other.losses.tobytes()
    assert one.slopes.tobytes() == other.slopes.tobytes()


def test_lines_fitted_to_some_rows_are_measured_on_all():
    target = 3 * VALUES[0] + 1 + 0.1 * RNG.normal(size=203)
    dataset = data(target)
    found = FittedLines(dataset, 100, "mae").score(POPULATION)
    errors = np.abs(target - found.intercepts[:, None] - found.slopes[:, None] * VALUES)
    assert found.losses == pytest.approx(errors.mean(axis=1))
    assert found.losses[0] < 0.1


@pytest.mark.parametrize("rows", [203, 1000])
def test_large_data_that_are_read_in_place_get_the_same_lines(rows, monkeypatch):
    rng = np.random.default_rng(2)
    features = rng.uniform(1, 5, (rows, 2))
    target = np.sin(features[:, 0]) * features[:, 1] + rng.standard_t(2, rows)
    dataset = Dataset.from_arrays(features, target, sample_weight=rng.uniform(0.5, 2, rows), features=("x0", "x1"))
    small = FittedLines(dataset, 250, "mae").score(POPULATION)
    monkeypatch.setattr(machine_rows, "LARGE_ROWS", 1)
    large = FittedLines(dataset, 250, "mae").score(POPULATION)
    assert large.slopes.tobytes() == small.slopes.tobytes()
    assert large.losses == pytest.approx(small.losses, rel=1e-13)


@pytest.mark.slow
def test_a_best_constant_that_meets_many_rows_does_not_hold_lines():
    share = 0.9
    target = np.random.default_rng(3).poisson(VALUES[0] / 2) * 1.0
    loss = own_loss(f"def quantile(p, y):\n    return {share}*(y - p) if y > p else {1 - share}*(p - y)")
    losses = lines(data(target), loss).score(POPULATION).losses
    assert (losses <= 1.03 * np.array([least(data(target), loss, values) for values in VALUES])).all()
