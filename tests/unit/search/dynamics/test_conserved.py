"""Conserved quantities that are known: volumes, energies, sums."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.known_systems import system

from shine.data.trajectories import Trajectories, Trajectory
from shine.search.dynamics.conserved import conserved_quantities

TIMES = np.linspace(0, 5, 40)


def found(states, equations, starts, error=1e-11):
    start = np.array(starts, float)
    run = Trajectory(TIMES, np.linspace(start, start + 1, len(TIMES)), np.empty((len(TIMES), 0)))
    readings = Trajectories((run,), tuple(states))
    model = system(readings, equations)
    return [
        each.formula
        for each in conserved_quantities(replace(model, covariance=error**2 * np.eye(len(model.constants))), readings)
    ]


@pytest.mark.parametrize(
    ("states", "equations", "starts", "quantities"),
    [
        # Volterra's constant of motion.
        ("xy", ("1.1*x - 0.44*x*y", "0.1*x*y - 0.4*y"), (3, 2), ["x + 4.4*y - 4*log(x) - 11*log(y)"]),
        # The energies of a pendulum and of a particle in two wells.
        ("xv", ("v", "-2.0*sin(x)"), (1, 0), ["v**2 - 4*cos(x)"]),
        ("xv", ("v", "x - x**3"), (0.5, 0), ["x**2 - v**2 - 0.5*x**4"]),
        # The people of a closed town, and the final size of its epidemic.
        ("sir", ("-0.4*s*i", "0.4*s*i - 0.1*i", "0.1*i"), (0.9, 0.1, 0), ["s + i + r", "s + i - 0.25*log(s)"]),
        # Friction and Lorenz's flow leave nothing.
        ("xv", ("v", "-2.0*sin(x) - 0.2*v"), (1, 0), []),
        ("xyz", ("10*(y - x)", "x*(28 - z) - y", "x*y - 2.67*z"), (1, 1, 20), []),
    ],
)
def test_known_quantities_are_found(states, equations, starts, quantities):
    assert found(states, equations, starts) == quantities


def test_a_sum_is_conserved_to_within_the_errors_of_constants():
    equations = ("-0.402*s*i", "0.4*s*i - 0.1*i", "0.0995*i")
    assert found("sir", equations, (0.9, 0.1, 0), error=1e-3) == ["s + 1.005*i + 1.01*r"]
    assert found("sir", ("-0.6*s*i", "0.4*s*i - 0.1*i", "0.1*i"), (0.9, 0.1, 0), error=1e-12)[0] != "s + i + r"
