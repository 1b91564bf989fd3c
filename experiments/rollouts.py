"""How fast are rollouts with sensitivities, compiling a system, and a fit by rollouts?

`python experiments/rollouts.py` integrates the Lorenz equations at 1001 times with their derivatives by three constants
and three initial states: Shine in native code, SciPy's `solve_ivp` (RK45) with the same variational equations written
with NumPy, both at the same relative tolerance and a thousandth of it as the absolute one. The error of both is against
DOP853 at 1e-12. Times are processor seconds, the least of several runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product

import numpy as np
from scipy.integrate import solve_ivp

from shine.data.trajectories import Trajectories, Trajectory
from shine.evaluate.rollouts.fitting import fit_rollouts
from shine.evaluate.rollouts.system import CompiledSystem
from shine.lang.parse import parse

STATES = ("x", "y", "z")
LORENZ = ("10.0*(y - x)", "x*(28.0 - z) - y", "x*y - 2.6666666666666665*z")
FORMS = "{a}*3.5 - 2.5*{b}*y + z*x/(1.5 + {c}**2)", "x*sin(2.5*{a}) - 2.5*exp(-{b}*y) + z*x**1.3/(1.5 + log({c})**2)"


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Least processor time of some runs."""
    found = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


def compiled(rates: tuple[str, ...] | list[str]) -> CompiledSystem:
    """A system of three states."""
    return CompiledSystem([parse(rate, STATES) for rate in rates], STATES)


def variational(_: float, both: np.ndarray) -> np.ndarray:
    """Rates of the Lorenz equations and of their derivatives by constants and initial states."""
    (x, y, z), slopes = both[:3], both[3:].reshape(3, 6)
    rates = [10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z]
    change = np.array([[-10, 10, 0], [28 - z, -1, -x], [y, x, -8 / 3]]) @ slopes
    change[[0, 1, 2], [0, 1, 2]] += [y - x, x, -z]
    return np.concatenate([rates, change.ravel()])


def main() -> None:
    """Print the figures."""
    system, times, start = compiled(LORENZ), np.linspace(0, 11.5, 1001), np.ones(3)
    both = np.concatenate([start, np.concatenate([np.zeros((3, 3)), np.eye(3)], axis=1).ravel()])
    span = 0.0, float(times[-1])
    # Errors grow a thousandfold later on, so they are compared over the first part.
    early = times < 3
    exact = solve_ivp(variational, span, both, t_eval=times, method="DOP853", rtol=1e-12, atol=1e-12).y[:3].T
    for tolerance in (1e-6, 1e-8):

        def ours(tolerance: float = tolerance) -> np.ndarray:
            return system.rollout(start, times, sensitivities=True, tolerance=tolerance).states

        def scipys(tolerance: float = tolerance) -> np.ndarray:
            return solve_ivp(variational, span, both, t_eval=times, rtol=tolerance, atol=1e-3 * tolerance).y[:3].T

        fast, slow = seconds(ours, 20), seconds(scipys, 3)
        errors = [np.abs(states - exact)[early].max() for states in (ours(), scipys())]
        steps = int(system.rollout(start, times, sensitivities=True, tolerance=tolerance).steps)
        print(
            f"tolerance {tolerance:g}: {1e3 * fast:.2f} ms in {steps} steps, SciPy {1e3 * slow:.0f} ms, "
            f"{slow / fast:.0f} times as long; errors up to t = 3: {errors[0]:.1e}, SciPy {errors[1]:.1e}"
        )
    for kind, form in zip(("rational", "elementary"), FORMS, strict=True):
        rates = [form.format(a=a, b=b, c=c) for a, b, c in product(STATES, repeat=3)]
        compiled(rates[:3])
        taken = seconds(lambda rates=rates: [compiled(rates[i : i + 3]) for i in range(3, 27, 3)], 1) / 8
        print(f"compiling a system of three {kind} right-hand sides: {1e3 * taken:.0f} ms")
    times = np.linspace(0, 4, 101)
    states = system.rollout(start, times).states
    states = states + 0.02 * states.std(axis=0) * np.random.default_rng(0).normal(size=states.shape)
    data = Trajectories((Trajectory(times, states, np.zeros((101, 0))),), STATES)
    for off in (1.01, 1.2):
        taken = seconds(lambda off=off: fit_rollouts(system, data, system.constants * off), 5)
        print(f"a fit to 101 readings from constants {100 * (off - 1):.0f} % off: {1e3 * taken:.0f} ms")


if __name__ == "__main__":
    main()
