"""Systems of differential equations from textbooks, and their trajectories by SciPy's integrators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp


@dataclass(frozen=True)
class Motion:
    """The rates of states x, y, z in Python, a start, and the time of the end."""

    rates: tuple[str, ...]
    start: tuple[float, ...]
    span: float
    method: str = "DOP853"


SYSTEMS = {
    "decay": Motion(("-0.7*x",), (2.0,), 5),
    "logistic growth": Motion(("1.3*x*(1 - x/4.2)",), (0.1,), 8),
    "pendulum": Motion(("y", "-9.81*sin(x) - 0.3*y"), (2.5, 0.0), 6),
    "predator and prey": Motion(("1.1*x - 0.4*x*y", "0.1*x*y - 0.4*y"), (10.0, 5.0), 40),
    "Van der Pol": Motion(("y", "1.5*(1 - x**2)*y - x"), (2.0, 0.0), 20),
    "FitzHugh and Nagumo": Motion(("x - x**3/3 - y + 0.5", "0.08*(x + 0.7 - 0.8*y)"), (-1.0, 1.0), 60),
    "Brusselator": Motion(("1 + x**2*y - 4.5*x", "3.5*x - x**2*y"), (1.5, 3.0), 15),
    "epidemic": Motion(("-0.4*x*y", "0.4*x*y - 0.1*y", "0.1*y"), (0.99, 0.01, 0.0), 80),
    "Lorenz": Motion(("10*(y - x)", "x*(28 - z) - y", "x*y - 2.5*z"), (1.0, 1.0, 1.0), 4),
    "Rossler": Motion(("-y - z", "x + 0.2*y", "0.2 + z*(x - 5.7)"), (1.0, 1.0, 0.0), 15),
    "driven oscillator": Motion(("y", "-x - 0.2*y + 1.5*cos(1.3*t)"), (0.0, 0.0), 20),
    "saturated growth": Motion(("2.1*x*y/(0.5 + y) - 0.3*x", "-1.4*x*y/(0.5 + y) + 0.3*sqrt(2 + y)"), (0.2, 3.0), 8),
    "gene": Motion(("1/(1 + y**4) - 0.5*x", "exp(-0.2*x) - 0.3*y"), (0.1, 0.4), 20),
}


def right_hand_side(motion: Motion):
    """The rates as SciPy calls them."""
    names = {name: getattr(np, name) for name in ("sin", "cos", "exp", "sqrt")}
    code = [compile(rate, "rate", "eval") for rate in motion.rates]

    def rate(time, state):
        values = {**names, "t": time, **dict(zip("xyz", state, strict=False))}
        return [eval(each, values) for each in code]

    return rate


def reference(motion: Motion, times, rate=None, start=None):
    """The trajectory at some times, shape (n_times, n_states), by SciPy at a tight tolerance."""
    found = solve_ivp(
        rate or right_hand_side(motion),
        (times[0], times[-1]),
        motion.start if start is None else start,
        method=motion.method,
        t_eval=times,
        rtol=1e-11,
        atol=1e-11,
    )
    assert found.success, found.message
    return found.y.T
