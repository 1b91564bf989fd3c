"""Constants and lines that minimize a loss of a user, against SciPy and against differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.own_losses import TEXTS, own_loss
from scipy.optimize import linprog, minimize

from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import LOSSES
from shine.evaluate.protocols import FirstLines
from shine.evaluate.tiers import gradients, machine_rows
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.population import Population
from shine.losses import loss_from
from shine.search.evolution.scoring import places

POISSON = "def poisson(p, y):\n    # Deviance of counts; a constant is left out.\n    return 2*(p - y*log(p))"
POISSON_LOG = "def poisson_log(p, y):\n    return 2*(exp(p) - y*p)"
GAMMA = "def gamma(p, y):\n    return 2*(y/p - 1 - log(y/p))"
RNG = np.random.default_rng(5)
A, B = RNG.uniform(0.2, 2, (2, 400))
WEIGHTS = RNG.uniform(0.5, 2, 400)
LINE = "0.1 + 0.1*a + 0.1*b"


def data(target, weights=WEIGHTS, **loss_columns) -> Dataset:
    return Dataset.from_arrays(
        np.column_stack([A, B]), target, sample_weight=weights, features=("a", "b"), loss_columns=loss_columns
    )


def fitted(dataset, loss, source, *, slope=1.0, intercept=0.0, steps=200, scaled=False):
    """Sum of errors and constants after a fit from the constants of a formula."""
    start = Population.from_sources([source], ("a", "b"))
    lines = FirstLines(np.array([slope]), np.array([intercept]), scaled)
    fit = MachineLinearizer(dataset, loss).fit(start, steps, tolerance=1e-12, lines=lines)
    return float(fit.errors[0]), fit.population.values[0][places(fit.population)[1]], fit


def noisy(tail=False):
    rng = np.random.default_rng(3)
    return 1 + 2 * A - B + (rng.standard_t(2, 400) if tail else rng.normal(size=400))


def huber(m, y):
    r = np.abs(y - m)
    return np.where(r < 1.5, r**2, 3 * r - 2.25)


CONVEX = {
    "huber": (TEXTS["huber"], noisy(tail=True), huber),
    "log_cosh": (TEXTS["log_cosh"], noisy(tail=True), lambda m, y: np.logaddexp(y - m, m - y) - np.log(2)),
    "fractional": (TEXTS["fractional"], noisy(tail=True), lambda m, y: abs(y - m) ** 1.5),
    "poisson_log": (POISSON_LOG, RNG.poisson(np.exp(0.5 + A - B)), lambda m, y: 2 * (np.exp(m) - y * m)),
    "student": (TEXTS["student"], noisy(tail=True), lambda m, y: 5 * np.log1p((y - m) ** 2 / 4)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [*((name, True) for name in CONVEX), ("student", False)])
def test_a_fit_finds_the_minimum(name, least):
    text, target, errors = CONVEX[name]
    dataset = data(target)
    known = None if not least or name == "poisson_log" else 0.0
    found, constants, _ = fitted(dataset, own_loss(text, least=known), LINE)

    def total(c):
        return WEIGHTS @ errors(c[0] + c[1] * A + c[2] * B, dataset.target)

    best = minimize(total, constants, method="BFGS", options={"gtol": 1e-9})
    assert found == pytest.approx(total(constants), rel=1e-11)
    assert found <= best.fun + 1e-7 * abs(best.fun)


def test_quantiles_are_those_of_linear_programming():
    dataset = data(noisy(tail=True))
    found, _, _ = fitted(dataset, own_loss(TEXTS["quantile"]), LINE)
    columns = np.column_stack([np.ones(400), A, B])
    costs = np.concatenate([np.zeros(3), 0.8 * WEIGHTS, 0.2 * WEIGHTS])
    constraint = np.hstack([columns, np.eye(400), -np.eye(400)])
    bounds = [(None, None)] * 3 + [(0, None)] * 800
    best = linprog(costs, A_eq=constraint, b_eq=dataset.target, bounds=bounds).fun
    assert found == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize(("text", "least"), [(POISSON, None), (GAMMA, 0.0)])
def test_means_of_counts_and_of_positive_numbers_are_fitted(text, least):
    mean = np.exp(0.3 + 0.8 * A - 0.5 * B)
    counts = text == POISSON
    target = RNG.poisson(mean) if counts else mean * RNG.gamma(4, 0.25, 400)
    found, constants, _ = fitted(data(target), own_loss(text, least=least), "exp(0.1 + 0.1*a + 0.1*b)")

    def total(c):
        m = np.exp(c[0] + c[1] * A + c[2] * B)
        return WEIGHTS @ (2 * (m - target * np.log(m)) if counts else 2 * (target / m - 1 - np.log(target / m)))

    best = minimize(total, [0.0, 0.0, 0.0], method="BFGS", options={"gtol": 1e-9})
    assert constants == pytest.approx(best.x, abs=1e-4)
    assert found <= best.fun + 1e-8 * abs(best.fun)


@pytest.mark.parametrize("start", ["0.0 + 0.0*a + 0.0*b", "0.0 + 9.0*a + -9.0*b", "20.0 + 1.0*a + 1.0*b"])
def test_log_losses_have_their_maximum_of_likelihood_from_any_start(start):
    share = (RNG.random(400) < 1 / (1 + np.exp(1 - 2 * A + B))) * 1.0
    _, constants, _ = fitted(data(share), loss_from("binomial"), start)
    left = 1 / (1 + np.exp(-(constants[0] + constants[1] * A + constants[2] * B))) - share
    for column in (np.ones(400), A, B):
        assert WEIGHTS * column @ left == pytest.approx(0, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*list(TEXTS)[::3], "poisson_log", "logistic", "mse", "mae"])
def test_gradients_are_differences(name):
    rng = np.random.default_rng(1)
    target = rng.uniform(0, 1, 400)
    dataset = data(target, high=target + rng.random(400), sigma=rng.uniform(0.5, 2, 400))
    text = TEXTS.get(name, POISSON_LOG)
    loss = LOSSES[name] if name in LOSSES else loss_from("binomial") if name == "logistic" else own_loss(text)
    linearizer, step = MachineLinearizer(dataset, loss), 1e-6
    population = Population.from_sources(["0.3 + 0.7*a", "0.5*a*exp(0.2*b)", "1.1*sin(2.0*a)"], ("a", "b"))
    lines = np.array([1.0, 0.5, -1.0]), np.array([0.0, 0.25, 1.0])
    found = linearizer.normal_equations(population, *lines, np.full(3, np.inf))
    individuals, columns, ranks = places(population)
    for individual, column, rank in zip(individuals, columns, ranks, strict=True):
        errors = []
        for change in (step, -step):
            values = population.values.copy()
            values[individual, column] += change
            moved = replace(population, values=values)
            errors.append(linearizer.normal_equations(moved, *lines, np.full(3, np.inf)).errors[individual])
        gradient = -2 * lines[0][individual] * found.matrices[individual, 0, 3 + rank]
        assert gradient == pytest.approx((errors[0] - errors[1]) / (2 * step), rel=1e-4, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(TEXTS)[::3])
def test_errors_of_fits_are_sums_of_errors_and_none_becomes_worse(name):
    target = noisy(tail=True)
    dataset = data(target, high=target + 0.5, sigma=WEIGHTS)
    population = Population.from_sources(
        ["0.5 + a*2.0", "exp(1.0*a) - 3.0*b", "1.0/(a - 0.9)", "sin(5.0*a + b)*2.0", "log(a - 1.0) + 1.0"], ("a", "b")
    )
    loss = own_loss(TEXTS[name])
    measured = evaluator_of(dataset, loss, False, "float64", "machine")
    weight = 400 if name == "weighing" else WEIGHTS.sum()
    before = measured.score(population).losses
    fit = MachineLinearizer(dataset, loss).fit(population, 30, tolerance=1e-6)
    after = measured.score(fit.population).losses
    assert (after <= before).all()
    assert (after[:2] < before[:2]).all()
    assert fit.errors == pytest.approx(after * weight, rel=1e-11)


def test_slope_and_intercept_are_fitted_too():
    target = noisy(tail=True)
    dataset, loss = data(target), own_loss(TEXTS["student"])
    free, _, _ = fitted(dataset, loss, LINE)
    scaled, _, fit = fitted(dataset, loss, "a + 0.1*b", scaled=True)
    assert scaled == pytest.approx(free, rel=1e-8)
    assert (fit.slopes[0], fit.intercepts[0]) == pytest.approx((2, 1), abs=0.5)


def test_fits_of_large_data_take_the_same_steps(monkeypatch):
    dataset, loss = data(noisy(tail=True)), own_loss(TEXTS["student"])
    start = Population.from_sources([LINE, "exp(0.1*a) - 0.3*b"], ("a", "b"))
    options = {"tolerance": 1e-9, "lines": FirstLines(np.ones(2), np.zeros(2), fitted=True)}
    at_once = MachineLinearizer(dataset, loss).fit(start, 20, **options)
    monkeypatch.setattr(gradients, "QUOTA", 0)
    monkeypatch.setattr(machine_rows, "LARGE_ROWS", 1)
    step_by_step = MachineLinearizer(dataset, loss, threads=2).fit(start, 20, **options)
    assert at_once.errors == pytest.approx(step_by_step.errors, rel=1e-7)


def test_a_loss_that_falls_without_end_does_not_hang():
    dataset, loss = data(noisy()), own_loss("def endless(p, y):\n    return y - p", least=None)
    found, constants, _ = fitted(dataset, loss, LINE, steps=40)
    assert np.isfinite(found) and np.isfinite(constants).all()


def test_a_derivative_that_is_not_defined_somewhere_does_not_end_the_fit():
    target = noisy()
    target[:50] = 1 + 2 * A[:50]
    root = own_loss("def root(p, y):\n    return sqrt((p - y)*(p - y))")
    found, _, _ = fitted(data(target), root, "1.0 + 2.0*a + 0.0*b", steps=100)
    absolute, _, _ = fitted(data(target), "mae", "1.0 + 2.0*a + 0.0*b", steps=100)
    assert found == pytest.approx(absolute, rel=1e-4)


CENSORED = """def censored(p, y, above):
    # A logistic distribution of the noise; of some rows, only a lower limit is known.
    r = y - p
    tail = log(1 + exp(-abs(r))) + max(r, 0)
    return tail if above > 0 else 2*tail - r"""


def test_limits_of_some_rows_are_fitted_by_a_column_beside():
    true = 1 + 2 * A - B
    noise = np.random.default_rng(2).logistic(size=400)
    above = (true + noise > 2.5) * 1.0
    target = np.minimum(true + noise, 2.5)
    found, constants, _ = fitted(data(target, above=above), own_loss(CENSORED), LINE)

    def total(c):
        r = target - (c[0] + c[1] * A + c[2] * B)
        return WEIGHTS @ (np.logaddexp(0, r) * (2 - above) - r * (1 - above))

    best = minimize(total, constants, method="BFGS")
    assert found == pytest.approx(total(constants), rel=1e-11)
    assert found <= best.fun * (1 + 1e-7)


@pytest.mark.parametrize("text", ["def own(p, y):\n    return y*y", "def own(p, y):\n    return abs(floor(p) - y)"])
def test_a_loss_without_slope_leaves_constants_as_they_are(text):
    _, constants, _ = fitted(data(noisy()), own_loss(text), "0.5 + 2.0*a + 0.1*b")
    assert constants.tolist() == [0.5, 2.0, 0.1]


def test_a_least_error_below_zero_is_part_of_the_errors():
    dataset = data(noisy())
    shifted, one, _ = fitted(dataset, own_loss("def own(p, y):\n    return (p - y)**2 - 3", least=-3.0), LINE)
    plain, other, _ = fitted(dataset, "mse", LINE)
    assert shifted == pytest.approx(plain - 3 * WEIGHTS.sum())
    assert one == pytest.approx(other, rel=1e-9)
