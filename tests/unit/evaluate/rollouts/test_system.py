"""Rollouts agree with SciPy's integrators and closed forms, and their sensitivities with variational equations."""

import numpy as np
import pytest
from helpers.oracles.motions import SYSTEMS, reference, right_hand_side

from shine.compiler.threads import Workers
from shine.evaluate.rollouts.system import CompiledSystem, Request, roll
from shine.lang.parse import parse
from shine.lang.vocabulary import primitive_table


def compiled(*rates, states="xyz", **options):
    names = tuple(states[: len(rates)])
    known = (*names, *options.get("controls", ()), *([options["time"]] if "time" in options else []))
    return CompiledSystem([parse(rate, known) for rate in rates], names, **options)


@pytest.mark.parametrize("method", ["explicit", "implicit"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_rollout_is_that_of_scipy(name, method):
    motion = SYSTEMS[name]
    system = compiled(*motion.rates, time="t")
    times = np.linspace(0, motion.span, 41)
    found = system.rollout(np.array(motion.start), times, tolerance=1e-9, method=method)
    expected = reference(motion, times)
    assert found.status == 0
    assert found.reached == 41
    assert np.abs(found.states - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method"),
    [*((name, "explicit") for name in list(SYSTEMS)[::2]), *((name, "implicit") for name in list(SYSTEMS)[::4])],
)
def test_sensitivities_solve_the_variational_equations(name, method):
    motion = SYSTEMS[name]
    system = compiled(*motion.rates, time="t")
    times, count = np.linspace(0, motion.span, 11), len(motion.start)
    found = system.rollout(np.array(motion.start), times, sensitivities=True, tolerance=1e-10, method=method)
    rate = right_hand_side(motion)

    def variational(time, both):
        # Derivatives by the start: S' = J S, with the Jacobian by central differences.
        state, matrix = both[:count], both[count:].reshape(count, count)
        steps = 1e-6 * (1 + np.abs(state)) * np.eye(count)
        columns = [
            (np.array(rate(time, state + step)) - np.array(rate(time, state - step))) / (2 * step.max())
            for step in steps
        ]
        return np.concatenate([rate(time, state), (np.stack(columns, axis=1) @ matrix).ravel()])

    both = np.concatenate([motion.start, np.eye(count).ravel()])
    expected = reference(motion, times, variational, both)[:, count:].reshape(-1, count, count)
    assert found.by_start == pytest.approx(expected, abs=2e-4 * np.abs(expected).max())
    for place in range(len(system.constants)):
        step = np.zeros(len(system.constants))
        step[place] = 1e-4 * max(abs(system.constants[place]), 1e-3)
        above, below = (
            system.rollout(np.array(motion.start), times, system.constants + side * step, tolerance=1e-11).states
            for side in (1, -1)
        )
        slope = (above - below) / (2 * step[place])
        assert found.by_constants[..., place] == pytest.approx(slope, abs=1e-3 * np.abs(slope).max() + 1e-9)


def test_a_linear_system_has_its_closed_form():
    times = np.linspace(0, 10, 101)
    found = compiled("y", "-x").rollout(np.array([1.0, 0.0]), times, sensitivities=True, tolerance=1e-11)
    assert found.states == pytest.approx(np.stack([np.cos(times), -np.sin(times)], axis=1), abs=1e-8)
    turned = np.stack([[np.cos(times), np.sin(times)], [-np.sin(times), np.cos(times)]]).transpose(2, 0, 1)
    assert found.by_start == pytest.approx(turned, abs=1e-8)


def test_a_pole_ends_a_rollout_without_an_error():
    times = np.linspace(0, 2, 20)
    found = compiled("x**2").rollout(np.array([1.0]), times)
    assert found.status == 1
    assert found.reached == 10
    assert found.states[:10, 0] == pytest.approx(1 / (1 - times[:10]), rel=1e-6)
    assert np.isnan(found.states[10:]).all()


def test_a_state_without_a_rate_ends_a_rollout_at_the_start():
    found = compiled("log(x)").rollout(np.array([-1.0]), np.array([0.0, 1.0]), sensitivities=True)
    assert (found.status, found.reached) == (1, 1)


def test_too_many_steps_are_a_status():
    found = compiled("1000*y", "-1000*x").rollout(np.array([1.0, 0.0]), np.array([0.0, 100.0]), most_steps=50)
    assert (found.status, found.reached, found.steps) == (2, 1, 50)


def test_one_time_is_the_start():
    found = compiled("x").rollout(np.array([3.0]), np.array([5.0]), sensitivities=True)
    assert found.states.tolist() == [[3.0]]
    assert found.by_start.tolist() == [[[1.0]]]


@pytest.mark.parametrize("method", ["explicit", "implicit"])
def test_times_may_repeat(method):
    found = compiled("-x").rollout(np.array([2.0]), np.array([1.0, 1.0, 1.0]), sensitivities=True, method=method)
    assert (found.reached, found.status, found.states.tolist()) == (3, 0, [[2.0]] * 3)
    twice = compiled("-x").rollout(np.array([2.0]), np.array([0.0, 1.0, 1.0, 2.0, 2.0]), method=method)
    assert twice.states[:, 0] == pytest.approx(2 * np.exp([0.0, -1, -1, -2, -2]), rel=1e-7)


@pytest.mark.parametrize("times", [[], [0.0, 2.0, 1.0], [0.0, np.nan]])
def test_times_that_decrease_are_an_error(times):
    with pytest.raises(ValueError, match="a rollout needs at least one time, and times that do not decrease"):
        compiled("-x").rollout(np.array([2.0]), np.array(times))


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_units_do_not_matter(scale):
    times = np.linspace(0, 6, 31)
    found = compiled("y", f"-{scale**-2!r}*x*abs(x)*abs(x)").rollout(np.array([scale, 0.0]), times)
    expected = compiled("y", "-x*abs(x)*abs(x)").rollout(np.array([1.0, 0.0]), times)
    assert found.states / scale == pytest.approx(expected.states, abs=1e-6)


def test_a_state_at_rest_at_zero_moves_with_its_neighbours():
    times = np.linspace(0, 1, 11)
    found = compiled("0*x", "x", "y").rollout(np.array([1.0, 0.0, 0.0]), times)
    assert found.states[:, 2] == pytest.approx(times**2 / 2, abs=1e-9)


def test_threads_change_no_bit():
    system = compiled("10*(y - x)", "x*(28 - z) - y", "x*y - 2.5*z")
    starts = np.random.default_rng(0).normal(size=(40, 3))
    times = np.linspace(0, 3, 50)
    found = [system.rollout(starts, times, sensitivities=True, workers=Workers(threads)) for threads in (1, 2)]
    for name in ("states", "by_constants", "by_start", "steps"):
        assert getattr(found[0], name).tobytes() == getattr(found[1], name).tobytes()


def test_systems_of_different_sizes_roll_in_one_call():
    times = np.linspace(0, 1, 5)
    one, three = compiled("-x"), compiled("y", "z", "-x")
    requests = [
        Request(one, np.array([[1.0], [2.0]]), np.zeros((2, 0)), times),
        Request(three, np.ones((1, 3)), np.zeros((1, 0)), times),
    ]
    few, many = roll(requests)
    assert few.states[..., 0] == pytest.approx(np.array([[1], [2]]) * np.exp(-times), abs=1e-8)
    assert many.states.tobytes() == three.rollout(np.ones(3), times).states.tobytes()


def test_constants_and_starts_broadcast():
    system, times = compiled("2.5*x"), np.array([0.0, 1.0])
    found = system.rollout(np.ones((3, 1, 1)), times, np.array([[-1.0], [-2.0]]))
    assert found.states.shape == (3, 2, 2, 1)
    assert found.states[2, :, 1, 0] == pytest.approx(np.exp([-1.0, -2.0]), abs=1e-7)


@pytest.mark.parametrize(("definition", "rate"), [("def g(a): return a*a", 9.0), ("def g(a): return a + 1", 4.0)])
def test_a_name_that_is_defined_again_has_its_own_code(definition, rate):
    tree = parse("g(x)", ["x"], primitive_table([definition])[0])
    assert CompiledSystem([tree], ("x",)).rates(np.array([[3.0]])).tolist() == [[rate]]
