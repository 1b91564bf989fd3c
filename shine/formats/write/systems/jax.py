"""Systems as JAX programs: solutions can be differentiated by starts and times, and mapped over starts."""

from __future__ import annotations

from shine.formats.write.systems.python import right_hand_side
from shine.formats.write.systems.system import System, filled

_PROGRAM = '''\
"""
@EQUATIONS@

Written by Shine.
"""

import jax
import jax.numpy as np@IMPORT@

jax.config.update("jax_enable_x64", True)@RUNS@


def @NAME@(t_, states_, controls_=()):
    """@WHAT@, from the states at one time: both have shape (n_states,)."""
@UNPACKED@    return np.stack([
        np.asarray(each, float)
        for each in (
@RATES@        )
    ])


@SIMULATE@'''

_INTEGRATE = '''\
def simulate(start, times, @RUN@controls=lambda time: (), **options):
    """States at increasing times, shape (n_times, n_states), from those at the first, by Dormand and Prince's method.

    `controls` is a function of the time, made of JAX; `options` are those of jax.experimental.ode.odeint.
    """
    options = {"rtol": 1e-9, "atol": 1e-12, **options}
    start, times = np.asarray(start, float), np.asarray(times, float)
    return odeint(lambda states, time: @NAME@(time, states, @INPUTS@), start, times, **options)
'''

_ITERATE = '''\
def simulate(start, steps, @RUN@controls=lambda time: ()):
    """States at the steps 0 to `steps`, shape (steps + 1, n_states), from those at step 0.

    `controls` is a function of the step, made of JAX.
    """

    def following(states, time):
        states = @NAME@(time, states, @INPUTS@)
        return states, states

    start = np.asarray(start, float)
    return np.concatenate([start[None], jax.lax.scan(following, start, np.arange(steps))[1]])
'''


def jax_program(system: System, name: str = "f") -> str:
    """Source of a module for JAX, with the right-hand side and a function that integrates it.

    Raises
    ------
    ValueError
        If the name is not a Python identifier.
    ExportError
        If a formula calls a function without a definition, or its text would be too long.
    """
    taken = {"jax", "np", "odeint", "simulate", "float", "RUNS"}
    return filled(
        _PROGRAM,
        {
            "RUNS": f"\n\nRUNS = {list(system.runs)!r}  # the number of one is the last of controls_"
            * bool(system.runs),
            "SIMULATE": _ITERATE if system.is_map else _INTEGRATE,
            "RUN": "run, " * bool(system.runs),
            "INPUTS": "(*controls(time), RUNS.index(run))" if system.runs else "controls(time)",
            "IMPORT": "" if system.is_map else "\nfrom jax.experimental.ode import odeint",
            "WHAT": "States a step later" if system.is_map else "Rates",
            **right_hand_side(system, name, taken, "a JAX program"),
        },
    )
