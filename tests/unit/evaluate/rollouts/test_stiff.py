"""Stiff systems are integrated by implicit steps, which the integrator chooses by itself."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from shine.compiler.threads import Workers
from shine.evaluate.rollouts.system import CompiledSystem
from shine.lang.parse import parse

ROBERTSON = ("-0.04*x + 10000.0*y*z", "0.04*x - 10000.0*y*z - 30000000.0*y**2", "30000000.0*y**2")
TIMES = np.concatenate([[0.0], np.logspace(-3, 6, 30)])
START = np.array([1.0, 0.0, 0.0])


def compiled(*rates):
    names = tuple("xyz"[: len(rates)])
    return CompiledSystem([parse(rate, names) for rate in rates], names)


def robertson(constants=(0.04, 1e4, 3e7)):
    a, b, c = constants

    def rate(time, state):
        x, y, z = state
        return [-a * x + b * y * z, a * x - b * y * z - c * y * y, c * y * y]

    found = solve_ivp(rate, (0, TIMES[-1]), START, t_eval=TIMES, method="Radau", rtol=1e-10, atol=1e-14)
    return found.y.T


@pytest.mark.slow
def test_robertsons_reaction_is_that_of_scipy():
    found = compiled(*ROBERTSON).rollout(START, TIMES)
    assert found.status == 0
    assert found.steps < 10_000
    assert found.stiff == 1
    assert found.states == pytest.approx(robertson(), rel=2e-5)


def test_a_motion_without_fast_decay_is_not_stiff():
    assert compiled("y", "-x").rollout([1.0, 0.0], TIMES[:9]).stiff == 0


@pytest.mark.slow
def test_sensitivities_of_robertsons_reaction_are_differences():
    found = compiled(*ROBERTSON).rollout(START, TIMES, sensitivities=True)
    # The rate 10000 occurs twice, in the places 1 and 3.
    by_rate = np.abs([found.by_constants[..., 1], found.by_constants[..., 3]]).max()
    slope = (robertson((0.04, 1e4 + 1, 3e7)) - robertson((0.04, 1e4 - 1, 3e7))) / 2
    both = found.by_constants[..., 1] + found.by_constants[..., 3]
    # Each of both breaks the balance of mass: their derivatives are far larger than the sum.
    assert both == pytest.approx(slope, abs=1e-4 * np.abs(slope).max() + 1e-7 * by_rate)
    step = 1e-4 * START
    sides = [compiled(*ROBERTSON).rollout(START + side * step, TIMES, tolerance=1e-9).states for side in (1, -1)]
    assert found.by_start[..., 0] == pytest.approx((sides[0] - sides[1]) / 2e-4, abs=1e-5)


def test_a_stiff_linear_system_has_its_closed_form():
    times = np.linspace(0, 10, 21)
    found = compiled("-1e6*(x - y)", "-0.5*y").rollout(np.array([3.0, 1.0]), times, sensitivities=True)
    slow = np.exp(-0.5 * times)
    share = 1e6 / (1e6 - 0.5)
    assert found.states[:, 1] == pytest.approx(slow, rel=1e-7)
    assert found.states[:, 0] == pytest.approx(share * slow + (3 - share) * np.exp(-1e6 * times), rel=1e-7)
    assert found.by_start[1:, 0, 1] == pytest.approx(share * slow[1:], rel=1e-7)
    assert found.steps < 5000


def test_threads_change_no_bit_of_a_stiff_rollout():
    system, starts = compiled(*ROBERTSON), START * np.linspace(0.5, 1.5, 12)[:, None]
    one, two = (system.rollout(starts, TIMES, sensitivities=True, workers=Workers(threads)) for threads in (1, 2))
    assert one.states.tobytes() == two.states.tobytes()
    assert one.by_constants.tobytes() == two.by_constants.tobytes()
