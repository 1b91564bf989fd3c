"""Losses: against NumPy in two passes, weights, scaling, and numbers that are not finite."""

import numpy as np
import pandas as pd
import pytest
from helpers.oracles.losses import expected_loss

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.evaluator import TIERS, Evaluator, evaluator_of
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.parse import parse
from shine.lang.population import Population

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("rows", [2, 9, 513])
@pytest.mark.parametrize("loss", ["rmse", "mae", "r2"])
def test_the_kernel_computes_the_textbook_loss(rows, loss):
    X, y, w = RNG.normal(size=(rows, 2)), RNG.normal(size=rows), RNG.uniform(0.1, 2, rows)
    k = shine.jit("a*b + a")
    p = X[:, 0] * X[:, 1] + X[:, 0]
    assert k.fitness(X, y, loss) == pytest.approx(expected_loss(p, y, np.ones(rows), loss), rel=1e-12)
    assert k.fitness(X, y, loss, w) == pytest.approx(expected_loss(p, y, w, loss), rel=1e-12)


@pytest.mark.parametrize("loss", ["mse", "mae", "r2"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_linear_scaling_finds_the_best_line_in_spite_of_large_offsets(loss, offset):
    x, w = RNG.normal(size=1000), RNG.uniform(0.1, 2, 1000)
    y = 3 * x**2 - 5 + offset + RNG.normal(size=1000) * 0.01
    p = x**2 + offset
    slope, intercept = np.polyfit(p - p.mean(), y, 1, w=np.sqrt(w))
    expected = expected_loss(intercept + slope * (p - p.mean()), y, w, loss)
    k = shine.jit(f"x*x + {offset}")
    assert k.fitness(x[:, None], y, loss, w, linear_scaling=True) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_perfect_fit_is_distinguished_from_a_nearly_perfect_one(offset):
    x = RNG.uniform(1, 1000, 5000)
    exact = shine.jit("sqrt(2*(x*x))").fitness(x[:, None], x + offset, linear_scaling=True)
    nearly = shine.jit("x + 1e-7*x*x/1000").fitness(x[:, None], x + offset, linear_scaling=True)
    assert exact < 1e-18 * max(1, offset**2) < 1e-14 < nearly if offset == 0 else exact < nearly


@pytest.mark.parametrize("text", ["1/x", "log(x - 1)", "exp(1000*x)", "x*1e200*1e200"])
@pytest.mark.parametrize("scaling", [False, True])
@pytest.mark.parametrize("loss", ["mae", "r2"])
def test_a_prediction_that_is_not_finite_makes_the_loss_infinite(text, scaling, loss):
    x = np.concatenate([[0.0], np.linspace(1, 2, 30)])
    assert shine.jit(text).fitness(x[:, None], x, loss, linear_scaling=scaling) == np.inf


def test_a_row_of_weight_zero_does_not_count_unless_it_is_not_finite():
    x, w = np.array([1.0, 2.0, 0.0]), np.array([1.0, 1.0, 0.0])
    assert shine.jit("x").fitness(x[:, None], [1.0, 2.0, 99.0], sample_weight=w) == 0
    assert shine.jit("1/x").fitness(x[:, None], [1.0, 0.5, 99.0], sample_weight=w) == np.inf


def test_the_columns_of_a_frame_are_found_by_name():
    k, frame = shine.jit("a - 2*b"), pd.DataFrame({"b": [1.0, 2.0], "other": "text", "a": [3.0, 5.0]})
    assert k.fitness(frame, [1.0, 1.0]) == 0
    with pytest.raises(shine.DataError, match="X has no column 'a', which the formula needs"):
        k.fitness(frame[["b", "other"]], [1.0, 1.0])


def test_fitness_of_integers_is_that_of_their_values():
    assert shine.jit("a//2", dtype="int32").fitness([[3.0], [8.0]], [1.0, 2.0]) == 2.0


def test_a_constant_prediction_is_scaled_to_the_mean():
    population = Population.from_trees(
        [parse("0.1 + a - a", ("a",))], PrimitiveSet(select(STANDARD, ["add", "sub"]), ("a",))
    )
    X, y = RNG.normal(size=(3000, 1)), RNG.normal(size=3000)
    for tier in TIERS:
        scores = Evaluator(X, y, linear_scaling=True, tier=tier).score(
            Population(
                population.codes,
                population.values,
                population.sizes,
                PrimitiveSet(population.primitives.functions, ("x0",)),
            )
        )
        assert scores.slopes[0] == 0
        assert scores.losses[0] == pytest.approx(np.var(y), rel=1e-12)


@pytest.mark.parametrize("loss", ["mse", "rmse", "mae", "nmse"])
@pytest.mark.parametrize("scale", [1.0, 1e30, 1e-30])
def test_simpler_lines_are_fitted_by_themselves(loss, scale):
    rng = np.random.default_rng(5)
    X, w = rng.uniform(1, 3, (50, 2)), rng.uniform(0.1, 2, 50)
    y = scale * (2 * X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=50))
    primitives = PrimitiveSet(select(STANDARD, ("mul", "add")), ("a", "b"))
    population = Population.from_trees(
        [parse("a*b", ("a", "b")), parse(f"{2 * scale}*a*b + a", ("a", "b"))], primitives
    )
    scores = evaluator_of(
        Dataset.from_arrays(X, y, sample_weight=w, features=("a", "b")), loss, True, "float64", "machine"
    ).score(population)
    for row, p in enumerate([X[:, 0] * X[:, 1], 2 * scale * X[:, 0] * X[:, 1] + X[:, 0]]):
        slope, shift = np.sum(w * p * y) / np.sum(w * p * p), np.average(y - p, weights=w)
        worst = expected_loss(np.full(50, np.average(y, weights=w)), y, w, loss)
        simpler = scores.simpler.take(row)
        for form, (a, b) in enumerate([(1.0, 0.0), (1.0, shift), (slope, 0.0)]):
            expected = expected_loss(a * p + b, y, w, loss)
            if simpler.losses[form] < np.inf or expected < 0.9 * worst:
                assert simpler.losses[form] == pytest.approx(expected, rel=1e-6)
                assert (simpler.slopes[form], simpler.intercepts[form]) == pytest.approx((a, b), rel=1e-9)


def test_the_error_of_an_exact_slope_is_mere_rounding():
    x = np.random.default_rng(0).uniform(1e6, 2e6, 300)
    primitives = PrimitiveSet(select(STANDARD, ("mul",)), ("x",))
    population = Population.from_trees([parse("x", ("x",))], primitives)
    dataset = Dataset.from_arrays(x[:, None], 3.7 * x, features=("x",))
    simpler = evaluator_of(dataset, "mse", True, "float64", "machine").score(population).simpler
    assert simpler.losses[2, 0] < 1e-30 * np.mean(x**2) * 1e4


@pytest.mark.parametrize("heavy", [0, 7])
def test_beside_a_large_mean_of_the_target_a_loss_is_that_of_the_rounded_line(heavy):
    """Where one row has all the weight, its error is the rounding of the line alone: moments do not show it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 1)), 1e33 + 1e25 * rng.normal(size=24)
    weights = np.where(np.arange(24) == heavy, 1.0, 1e-15 * rng.random(24))
    rows = Dataset.from_arrays(X, y, sample_weight=weights)
    population = Population.from_trees([parse("x0", ("x0",))], PrimitiveSet(select(STANDARD, ("mul",)), ("x0",)))
    found = evaluator_of(rows, "mse", True, "float64", "machine").score(population)
    predictions = found.intercepts[0] + found.slopes[0] * X[:, 0]
    expected = np.sum(weights * (predictions - y).astype(np.longdouble) ** 2) / np.sum(weights)
    assert found.losses[0] == pytest.approx(float(expected), rel=1e-9)
