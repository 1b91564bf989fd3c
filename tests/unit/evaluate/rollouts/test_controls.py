"""Controls pass through what is known of them, and rollouts follow them."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.markers import mostly_slow
from scipy.integrate import solve_ivp

from shine.evaluate.rollouts.controls import SHAPES, best_shape, controls_of, resolved
from shine.evaluate.rollouts.system import CompiledSystem
from shine.lang.parse import parse

TIMES = np.sort(np.random.default_rng(2).uniform(0, 10, 60))


@pytest.mark.parametrize("shape", SHAPES)
def test_controls_have_the_known_values(shape):
    values = np.random.default_rng(0).normal(size=(60, 2))
    assert controls_of(TIMES, values, shape).at(TIMES) == pytest.approx(values, abs=1e-9)


@pytest.mark.parametrize(
    ("function", "shape"),
    [(np.sin, "smooth"), (np.abs, "linear"), (lambda t: np.where(t % 5 < 2.5, 1.0, 0.0), "previous")],
    ids=["a wave", "straight lines", "a switch"],
)
def test_the_values_choose_the_shape(function, shape):
    times = np.linspace(-5, 5, 101)
    assert best_shape(times, function(times)[:, None]) == shape


def test_a_smooth_control_is_followed_closely():
    times = np.linspace(0, 10, 101)
    fine = np.linspace(0, 10, 999)
    found = controls_of(times, np.sin(2 * times)[:, None])
    assert found.at(fine)[:, 0] == pytest.approx(np.sin(2 * fine), abs=1e-7)


def test_outside_the_known_times_controls_are_constant():
    assert controls_of(np.array([1.0, 2.0]), np.array([[3.0], [5.0]])).at(np.array([0.0, 9.0])).tolist() == [[3], [5]]
    assert controls_of(np.array([1.0]), np.array([[3.0]])).at(np.array([0.0, 1.0, 9.0])).tolist() == [[3]] * 3


@pytest.mark.parametrize("shape", mostly_slow(SHAPES, fast=list(SHAPES)[:1]))
def test_a_rollout_follows_its_controls(shape):
    times = np.linspace(0, 10, 41)
    values = np.stack([np.sign(np.sin(times + 0.1)), np.cos(times)], axis=1)
    controls = controls_of(times, values, shape)
    names = ("x", "y", "u", "w")
    system = CompiledSystem([parse("y", names), parse("-sin(x) - 0.3*y + 0.7*u*w + 0.1*u", names)], "xy", ("u", "w"))
    found = system.rollout(np.array([0.5, 0.0]), times, controls=controls, sensitivities=True, tolerance=1e-9)

    def rate(time, state, piece):
        u, w = controls.at(np.array([min(time, piece)]))[0]
        return [state[1], -np.sin(state[0]) - 0.3 * state[1] + 0.7 * u * w + 0.1 * u]

    expected, state = [[0.5, 0.0]], [0.5, 0.0]
    for before, after in pairwise(times):
        # SciPy's steps end at jumps, too.
        state = solve_ivp(rate, (before, after), state, rtol=1e-9, atol=1e-11, args=(after - 1e-12,)).y[:, -1]
        expected.append(state)
    assert found.states == pytest.approx(np.array(expected), abs=1e-6)
    step = np.array([0.0, 1e-5, 0.0])
    sides = [
        system.rollout(np.array([0.5, 0.0]), times, system.constants + side * step, controls, tolerance=1e-11).states
        for side in (1, -1)
    ]
    assert found.by_constants[..., 1] == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-4)


def test_controls_of_another_number_are_an_error():
    system = CompiledSystem([parse("u - x", ("x", "u"))], "x", ("u",))
    with pytest.raises(ValueError, match=r"the system has 1 controls \(u\), and 0 are given"):
        system.rollout(np.ones(1), np.array([0.0, 1.0]))


def test_functions_of_the_time_are_resolved_between_few_times():
    times = np.array([0.0, 4.0, 12.0])

    def waves(at):
        return np.stack([np.sin(3 * at), np.full_like(at, 2.0)], axis=1)

    grid, places = resolved(times, waves)
    np.testing.assert_array_equal(grid[places], times)
    assert (np.diff(grid) > 0).all()
    between = np.linspace(0.001, 11.99, 777)
    np.testing.assert_allclose(controls_of(grid, waves(grid)).at(between), waves(between), atol=1e-8)


def test_a_jump_of_a_function_is_resolved_to_a_ten_thousandth():
    def jump(at):
        return np.where(at < 1.2345, 0.0, 1.0)[:, None]

    grid, _ = resolved(np.array([0.0, 2.0]), jump)
    assert len(grid) < 50_000
    near = controls_of(grid, jump(grid)).at(np.array([1.2345 - 3e-4, 1.2345 + 3e-4]))
    np.testing.assert_allclose(near[:, 0], [0, 1], atol=1e-9)
