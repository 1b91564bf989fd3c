"""Maps are applied once a unit of the time, and fitted as systems of equations are; kernels are the same in Python."""

import numpy as np
import pytest

from shine.data.trajectories import Trajectories, Trajectory
from shine.evaluate.rollouts.fitting import fit_rollouts
from shine.evaluate.rollouts.native import roll_out
from shine.evaluate.rollouts.system import CompiledSystem
from shine.evaluate.rollouts.unknowns import Unknowns
from shine.evaluate.rollouts.work import EXPLICIT, IMPLICIT, MAP, SYSTEM, system_words
from shine.lang.parse import parse


def compiled(*nexts, controls=()):
    names = tuple("xyz"[: len(nexts)])
    trees = [parse(each, (*names, *controls, "t")) for each in nexts]
    return CompiledSystem(trees, names, controls, "t", is_map=True)


def henon(state, a, b):
    return np.array([1 - a * state[0] ** 2 + state[1], b * state[0]])


def test_a_map_is_applied_once_a_unit_of_the_time():
    expected = [np.array([0.1, 0.2])]
    for _ in range(30):
        expected.append(henon(expected[-1], 1.4, 0.3))
    found = compiled("1 - 1.4*x**2 + y", "0.3*x").rollout(np.array([0.1, 0.2]), np.arange(31.0))
    assert found.states == pytest.approx(np.array(expected), abs=1e-9)
    assert found.steps == 30


def test_times_may_be_left_out():
    system = compiled("1 - 1.4*x**2 + y", "0.3*x")
    all_times = system.rollout(np.array([0.1, 0.2]), np.arange(5.0, 25.0))
    few = system.rollout(np.array([0.1, 0.2]), np.array([5.0, 6.0, 9.0, 24.0]))
    assert few.states.tolist() == all_times.states[[0, 1, 4, 19]].tolist()


def test_sensitivities_of_a_map_are_differences():
    system, start, times = compiled("2.9*x*(1 - y)", "0.4*x + 0.5*y"), np.array([0.3, 0.1]), np.arange(12.0)
    found = system.rollout(start, times, sensitivities=True)
    for place in range(len(system.constants)):
        step = 1e-6 * np.eye(len(system.constants))[place]
        sides = [system.rollout(start, times, system.constants + side * step).states for side in (1, -1)]
        assert found.by_constants[..., place] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-4, abs=1e-6)
    for place in range(2):
        step = 1e-6 * np.eye(2)[place]
        sides = [system.rollout(start + side * step, times).states for side in (1, -1)]
        assert found.by_start[..., place] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-4, abs=1e-6)


def test_controls_and_the_time_are_those_before_the_step():
    controls = np.array([[1.0], [10.0], [100.0]])
    found = compiled("x + u + t", controls=("u",)).rollout(np.array([0.0]), np.arange(3.0), controls=controls)
    assert found.states[:, 0].tolist() == [0.0, 1.0, 12.0]


def test_a_map_that_explodes_ends_early():
    found = compiled("x**3").rollout(np.array([10.0]), np.arange(20.0))
    assert (found.status, found.reached) == (1, 6)


def test_a_chaotic_map_gives_its_constant_back():
    states = [0.3]
    for _ in range(100):
        states.append(3.7 * states[-1] * (1 - states[-1]))
    data = Trajectories((Trajectory(np.arange(101.0), np.array(states)[:, None], np.zeros((101, 0))),), ("x",))
    fit = fit_rollouts(compiled("3.6*x*(1 - x)"), data, unknowns=Unknowns.free(np.array([True, False])))
    assert fit.constants[0] == pytest.approx(3.7, rel=1e-7)


def test_rates_of_many_rows():
    rng = np.random.default_rng(0)
    states, controls, times = rng.uniform(1, 2, (50, 2)), rng.normal(size=(50, 1)), rng.uniform(size=50)
    names = ("x", "y", "u", "t")
    system = CompiledSystem([parse("2*x*y + u", names), parse("sin(t)/x - 3*y", names)], "xy", ("u",), "t")
    found = system.rates(states, controls, times, np.array([4.0, 5.0]))
    x, y = states.T
    expected = np.stack([4 * x * y + controls[:, 0], np.sin(times) / x - 5 * y], axis=1)
    assert found == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="rates need 2 states and 1 controls a row"):
        system.rates(states)


def growth(inputs, constants, slopes):
    """Rate of prey, and its derivatives by both states and both constants."""
    x, y = inputs[:2]
    slopes[:4] = constants[0] - constants[1] * y, -constants[1] * x, x, -x * y
    return constants[0] * x - constants[1] * x * y


def decline(inputs, constants, slopes):
    """Rate of predators."""
    x, y = inputs[:2]
    slopes[:3] = constants[0] * y, constants[0] * x - 2 * y, x * y
    return constants[0] * x * y - y**2


@pytest.mark.parametrize("sensitivities", [False, True])
@pytest.mark.parametrize("method", [EXPLICIT, IMPLICIT, MAP])
def test_python_takes_the_same_steps(method, sensitivities):
    start, times, constants = np.array([1.0, 0.5]), np.arange(4.0), np.array([0.3, 0.9, 0.6])
    states_out, slopes_out, progress = np.empty((4, 2)), np.empty((4, 2, 5)), np.zeros(4, int)
    *words, doubles = system_words(2, 0, 3, 0, 0, sensitivities)
    item = dict(zip(SYSTEM, words, strict=True)) | {"functions": [growth] * 2 + [decline] * 2, "counts": [2, 1]}
    item |= {"given": constants, "start": start, "times": times, "count": 4, "scales": np.ones(2), "kinked": 0}
    item |= {"states_out": states_out.ravel(), "slopes_out": slopes_out.ravel(), "progress": progress, "readings": 0}
    roll_out(item | {"tolerance": [1e-6], "most_steps": 99, "method": method, "breaks": 0}, np.zeros(doubles))
    trees = [parse("0.3*x - 0.9*x*y", ("x", "y")), parse("0.6*x*y - y**2", ("x", "y"))]
    system = CompiledSystem(trees, ("x", "y"), is_map=method == MAP)
    name = "implicit" if method == IMPLICIT else "explicit"
    found = system.rollout(
        start, times, sensitivities=sensitivities, tolerance=1e-6, scales=np.ones(2), method=name, most_steps=99
    )
    assert progress.tolist() == [4, 0, found.steps, method == IMPLICIT] == [found.reached, 0, found.steps, found.stiff]
    assert found.states == pytest.approx(states_out, rel=1e-12)
    if sensitivities:
        assert np.concatenate([found.by_constants, found.by_start], axis=2) == pytest.approx(slopes_out, rel=1e-12)
