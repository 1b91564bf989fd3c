"""Systems as JAX programs: solutions can be differentiated by starts and times, and mapped over starts."""

from __future__ import annotations

from shine.formats.write.systems.python import numerical_program
from shine.formats.write.systems.system import System

_RETURN = """\
    return np.stack([
        np.asarray(each, float)
        for each in (
@RATES@        )
    ])
"""

_IMPORT = """\
import jax
import jax.numpy as np
@DIFFRAX@
jax.config.update("jax_enable_x64", True)"""

_DIFFRAX = """
try:
    from diffrax import ClipStepSizeController, ODETerm, PIDController, SaveAt, @SOLVER@, diffeqsolve
except ImportError:
    raise ImportError("this program integrates with diffrax 0.7 or later: pip install diffrax") from None
"""

_SOLVE = """\
    size = jax.lax.stop_gradient(np.abs(start).max(initial=0.0))
    # Steps end at the times: interpolation is less exact than they are.
    steps = PIDController(rtol=@RTOL@, atol=@ATOL@ * np.where(size, size, 1.0))
    steps = ClipStepSizeController(steps, step_ts=times)
    options = {"solver": @SOLVER@(), "stepsize_controller": steps, "max_steps": 1_000_000, **options}
    term_ = ODETerm(lambda time, states, _: @RATES_AT@)
    options = {"t0": times[0], "t1": times[-1], "dt0": None, "saveat": SaveAt(ts=times), **options}
    found = diffeqsolve(term_, y0=start.ravel(), **options).ys
"""

_INTEGRATE = f'''\
def simulate(start, times, @RUN@controls=None, **options):
    """States at increasing times, shape (n_times, n_states), from those at the first.

    `controls` is a function of the time, made of JAX, or an array of shape (n_times, n_controls), linear between the
    times; `options` are those of @OPTIONS@.
    """
    start, times = np.asarray(start, dtype=float), np.asarray(times, dtype=float)
@IN@{_SOLVE}    return found
'''

_ITERATE = '''\
def simulate(start, steps, @RUN@controls=None):
    """States at the steps 0 to `steps`, shape (steps + 1, n_states), from those at step 0.

    `controls` is a function of the step, made of JAX, or an array of shape (steps, n_controls).
    """
@IN@
    def following(states, step):
        states = @NAME@(step, states, at(step))
        return states, states

    start = np.asarray(start, dtype=float)
    return np.concatenate([start[None], jax.lax.scan(following, start, np.arange(steps))[1]])
'''


def jax_program(system: System, name: str = "f") -> str:
    """Source of a module for JAX, with the right-hand side and a function that integrates it with diffrax.

    Errors are those of `python_program`.
    """
    taken = {"jax", "np", "sys", "ClipStepSizeController", "ODETerm", "PIDController", "SaveAt", "Dopri8", "Kvaerno5"}
    taken |= {"diffeqsolve", "simulate", "float", "STATES", "CONTROLS", "RUNS", "term_"}
    solver, other, kind = ("Kvaerno5", "Dopri8", "not stiff") if system.stiff else ("Dopri8", "Kvaerno5", "stiff")
    parts = {
        "RETURN": _RETURN,
        "SIMULATE": _ITERATE if system.is_map else _INTEGRATE,
        "IMPORT": _IMPORT.replace("@DIFFRAX@", "" if system.is_map else _DIFFRAX),
        "QUIET": "",
        "SOLVE": _SOLVE,
        "RATES_AT": f"{name}(time, states, at(time))",
        "RTOL": "1e-9",
        "ATOL": "1e-12",
        "SOLVER": solver,
        "OPTIONS": f"diffrax.diffeqsolve, as solver=diffrax.{other}(), which suits systems that are {kind}",
    }
    if system.grid is not None:
        parts |= {"RATES_AT": "change(time, states)", "RTOL": "1e-6", "ATOL": "1e-8"}
    return numerical_program(system, name, taken, "a JAX program", parts)
