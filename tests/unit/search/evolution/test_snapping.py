"""Constants become simple numbers if, and only if, the data allow it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet, select
from shine.lang.growth import Terminals
from shine.lang.population import Population
from shine.search.evolution.operators.creation import ptc2
from shine.search.evolution.scoring import TOLERANCE
from shine.search.evolution.snapping import rounded_off, snapped, without_idle_digits

ROWS = 400
ROUNDING = 1e-25


def nats(rows):
    """Log-likelihood lost between two sums of squared errors of so many rows."""
    return lambda worse, better: 0.5 * rows * np.log(worse / better)


"""Sum of squared errors that counts as rounding."""


def dataset_of(target, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0.5, 3.0, (2, ROWS))
    return Dataset(np.array([x, y]), target(x, y) + noise * rng.normal(size=ROWS), None, ("x", "y"))


def polished(texts, dataset, loss="mse"):
    """Formulas with simple constants, the fit before, and the errors after."""
    linearizer = MachineLinearizer(dataset, loss)
    population = Population.from_sources(texts, ("x", "y"))
    ones = np.ones(len(population))
    fitted = linearizer.fit(population, 100, tolerance=1e-13)
    simple = snapped(fitted.population, linearizer, dataset.weight, ROUNDING, nats=nats(dataset.weight))
    errors = linearizer.normal_equations(simple, ones, 0 * ones, np.full(len(population), np.inf)).errors
    return simple, fitted, errors


def constants_after(text, target, noise=0.0, seed=0):
    simple, _, _ = polished([text], dataset_of(target, noise, seed))
    tape = simple.tape(0)
    return tape.values[tape.codes == CONSTANT].tolist()


@pytest.mark.parametrize(
    "number",
    [2.0, 0.5, -2 / 3, math.pi / 2, 1 / math.sqrt(2 * math.pi), 120.0],
)
def test_constants_of_exact_data_become_exact_simple_numbers(number):
    found = constants_after("1.5*x + 0.7*y", lambda x, y: number * x + 3.0 * y)
    assert found == [number, 3.0]


@pytest.mark.slow
def test_constants_inside_functions_become_simple_too():
    found = constants_after("exp(-0.4*x*x) + sin(2.9*y)", lambda x, y: np.exp(-0.5 * x * x) + np.sin(math.pi * y))
    assert np.abs(found).tolist() == [0.5, math.pi]


@pytest.mark.parametrize("number", [0.1234567, -19.8071, 1.0000134])
def test_numbers_that_are_not_simple_do_not_change(number):
    found = constants_after("1.5*x + 0.7*y", lambda x, y: number * x + 3.0 * y)
    assert found[0] == pytest.approx(number, rel=1e-11)
    assert found[1] == 3.0


@pytest.mark.parametrize("number", [2.0, 2.0003])
def test_constants_become_simple_where_that_costs_less_than_a_nat(number):
    dataset = dataset_of(lambda x, y: number * x, 0.01)
    best = float(dataset.columns[0] @ dataset.target / (dataset.columns[0] @ dataset.columns[0]))
    errors = [float(((dataset.target - slope * dataset.columns[0]) ** 2).sum()) for slope in (2.0, best)]
    found = constants_after("1.5*x", lambda x, y: number * x, 0.01)
    assert found == [2.0] or nats(ROWS)(*errors) > 0.75


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_all_simple_numbers_together_cost_less_than_a_nat(seed):
    dataset = dataset_of(lambda x, y: 9.97 * x + 3.04 * y - 0.98 * x * y + 1.02 * x * x, 0.7, seed)
    linearizer = MachineLinearizer(dataset, "mse")
    population = Population.from_sources(["9.9*x + 3.1*y - 0.9*x*y + 1.1*x*x"], ("x", "y"))
    fitted = linearizer.fit(population, 100, tolerance=1e-13)
    short = snapped(fitted.population, linearizer, ROWS, ROUNDING, nats=nats(ROWS))
    short = rounded_off(short, linearizer, ROWS, ROUNDING, nats=nats(ROWS))
    constants = short.values[0][short.codes[0] == CONSTANT]
    x, y = dataset.columns
    terms = np.array([x, y, x * y, x * x])
    left = dataset.target - terms.T @ (constants * [1, 1, -1, 1])
    least = np.linalg.lstsq(terms.T, dataset.target, rcond=None)[1][0]
    assert nats(ROWS)(float(left @ left), least) <= 1.0 + 1e-6


@pytest.mark.parametrize(("number", "noise"), [(2.3021, 0.001), (2.02, 0.01)])
def test_constants_stay_within_the_noise_of_their_values(number, noise):
    deviation = noise / math.sqrt(ROWS * 3.6)
    found = constants_after("1.5*x", lambda x, y: number * x, noise)[0]
    assert abs(found - number) < 5 * deviation


def test_a_constant_becomes_zero_if_the_data_do_not_need_it():
    gone = []
    for seed in range(20):
        dataset = dataset_of(lambda x, y: 0 * x, 0.05, seed)
        y = dataset.columns[1]
        fitted = float(y @ dataset.target / (y @ y))
        noise = float(np.sum((dataset.target - fitted * y) ** 2)) / (ROWS - 1)
        sigmas = abs(fitted) / math.sqrt(noise / (y @ y))
        found = constants_after("0.3*y", lambda x, y: 0 * x, 0.05, seed)[0]
        assert found == 0 if sigmas < 1.4 else sigmas < 2.5 or found != 0
        gone.append(found == 0)
    assert sum(gone) >= 10


def test_the_other_constants_are_fitted_again():
    # Another slope is best once the intercept is 3.
    dataset = dataset_of(lambda x, y: 0.1234 * x + 2.999, 0.05)
    simple, _, errors = polished(["0.2*x + 2.0"], dataset)
    tape = simple.tape(0)
    values = tape.values[tape.codes == CONSTANT]
    assert values[1] == 3.0
    x = dataset.columns[0]
    assert values[0] == pytest.approx(float(x @ (dataset.target - 3.0) / (x @ x)), rel=1e-4)
    assert errors[0] < 1.1 * ROWS * 0.05**2


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.01, 1.0]), st.sampled_from(["mse", "mae"]))
def test_random_formulas_keep_their_shape_and_their_fit(seed, noise, loss):
    primitives = PrimitiveSet(select(STANDARD, ("add", "mul", "div", "exp", "sin", "sqrt", "max")), ("x", "y"))
    population = ptc2(12, primitives, 15, 6, Terminals(share=0.5), np.random.default_rng(seed))
    dataset = dataset_of(lambda x, y: 2.5 * np.exp(-0.3 * x) + y, noise, seed)
    linearizer = MachineLinearizer(dataset, loss)
    lines = np.ones(12), np.zeros(12)
    fitted = linearizer.fit(population, 20, tolerance=TOLERANCE)
    simple = snapped(fitted.population, linearizer, dataset.weight, ROUNDING, nats=nats(dataset.weight))
    assert np.array_equal(simple.codes, population.codes)
    errors = linearizer.normal_equations(simple, *lines, np.full(12, np.inf)).errors
    finite = np.isfinite(fitted.errors)
    assert np.isfinite(errors[finite]).all()
    constants = (simple.codes == CONSTANT).sum(axis=1)[finite]
    worse = 0.5 * ROWS * np.log(np.maximum(errors[finite], ROUNDING) / np.maximum(fitted.errors[finite], ROUNDING))
    assert (worse <= 40.0 * constants + 1e-6).all()


def digits(number):
    return len(repr(abs(float(number))).partition("e")[0].replace(".", "").strip("0"))


def measured_after(text, target, rows, noise, seed):
    """Constants of a formula in noisy rows, made simple and rounded off."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(1.0, 50.0, rows)
    dataset = Dataset(np.array([x]), target(x) * (1 + noise * rng.normal(size=rows)), None, ("x",))
    linearizer = MachineLinearizer(dataset, "mse")
    population = Population.from_sources([text], ("x",))
    fitted = linearizer.fit(population, 100, tolerance=1e-13)
    least = float(np.sum((8 * 2.0**-52 * dataset.target) ** 2))
    simple = snapped(fitted.population, linearizer, dataset.weight, least, nats=nats(dataset.weight))
    simple = rounded_off(simple, linearizer, dataset.weight, least, nats=nats(dataset.weight))
    return simple.values[0][simple.codes[0] == CONSTANT].tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "seed"), [(1.0, 0), (1e-34, 1)])
def test_noisy_constants_have_the_digits_that_the_data_determine(scale, seed):
    found = measured_after("2.0*log(x) + 10.0", lambda x: 15.70796 - 0.95493 * np.log(x), 26, 0.003, seed)
    assert all(2 <= digits(constant) <= 5 for constant in found), found
    assert found == pytest.approx([-0.955, 15.71], rel=0.03)
    (slope,) = measured_after(f"{scale}*x", lambda x: 1.8965437 * scale * x, 26, 0.01, seed)
    assert digits(slope) <= 4
    assert slope == pytest.approx(1.8965437 * scale, rel=0.01)


@pytest.mark.parametrize("number", [1.381e-23, 1 / 26, 137.0])
def test_exact_data_give_the_constant_as_it_was_written(number):
    assert measured_after(f"{1.3 * number}*x", lambda x: number * x, 200, 0.0, 0) == [number]


@pytest.mark.parametrize("seed", range(3))
def test_a_term_that_the_data_do_not_need_becomes_zero_whatever_its_size(seed):
    # The offset of a proportionality may be 50, and still be nothing but noise.
    gone = measured_after("400.0*x + 5.0", lambda x: 474.5 * x, 20, 0.02, seed)[1]
    assert gone == 0.0 or abs(gone) > 100
    assert measured_after("2e30*x + 1e15", lambda x: 1.5e30 * x, 50, 0.0, seed) == [1.5e30, 0.0]


def test_idle_digits_are_dropped_at_once():
    dataset = dataset_of(lambda x, y: 1.2345678 * x, 0.01)
    linearizer = MachineLinearizer(dataset, "mse")
    population = Population.from_sources([f"{math.pi}*y", "1.23456789123*x", "x"], ("x", "y"))
    found = without_idle_digits(population, linearizer, dataset.weight, ROUNDING)
    constants = found.values[found.codes == CONSTANT].tolist()
    assert constants[0] == math.pi
    assert 4 <= digits(constants[1]) <= 6
