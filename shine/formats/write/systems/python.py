"""Systems as Python programs that integrate with SciPy, maps as programs that apply them; parts are JAX's, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shine.formats.write.language import identifiers
from shine.formats.write.python import NUMPY, Expression, identifier
from shine.formats.write.systems.system import System, filled
from shine.lang.forms.names import check_variable

_PROGRAM = '''\
"""
@EQUATIONS@

Written by Shine. @USE@
"""

import sys

@IMPORT@

STATES = @STATES@
CONTROLS = @CONTROLS@
@RUNS@

def @NAME@(t_, states_, controls_=()):
    """@WHAT@"""
@UNPACKED@@RETURN@

@SIMULATE@@MAIN@'''

_RETURN = """\
    with np.errstate(all="ignore"):
        return np.array([
@RATES@        ], dtype=float)
"""

_INPUTS = """\
    if controls is None:
        if CONTROLS:
            raise TypeError(f"give the controls {', '.join(CONTROLS)}")
        at = lambda time: ()
    elif callable(controls):
        at = lambda time: np.atleast_1d(np.asarray(controls(time)))
    else:
@GIVEN@@WITH_RUN@"""

_FLOW_GIVEN = """\
        columns = np.asarray(controls, dtype=float).reshape(len(times), -1).T
        at = lambda time: [np.interp(time, times, column) for column in columns]
"""

_MAP_GIVEN = """\
        rows = np.asarray(controls, dtype=float).reshape(len(controls), -1)
        at = lambda step: rows[step]
"""

_INTEGRATE = '''\
def simulate(start, times, @RUN@controls=None, **options):
    """States at increasing times, shape (n_times, n_states), from those at the first.

    `controls` is a function of the time, or an array of shape (n_times, n_controls), linear between the times;
    `options` are those of scipy.integrate.solve_ivp.
    """
    start, times = np.asarray(start, dtype=float), np.asarray(times, dtype=float)
@IN@    size = np.abs(start).max(initial=0.0) or 1.0
    options = {"method": "LSODA", "rtol": 1e-9, "atol": 1e-12 * size, **options}
    found = solve_ivp(lambda t, states: @NAME@(t, states, at(t)), (times[0], times[-1]), start, t_eval=times, **options)
    if not found.success:
        raise ArithmeticError(found.message)
    return found.y.T
'''

_FLOW_MAIN = """

if __name__ == "__main__":
    if len(sys.argv) != @N_WORDS@:
        sys.exit(@GIVE@)
@POP@    *start, end, step = map(float, sys.argv[1:])
    times = np.arange(round(end / step) + 1) * step
    print(@HEADING@)
    for row in np.column_stack([times, simulate(start, times@OF_RUN@)]):
        print(",".join(repr(float(value)) for value in row))
"""

_ITERATE = '''\
def simulate(start, steps, @RUN@controls=None):
    """States at the steps 0 to `steps`, shape (steps + 1, n_states), from those at step 0.

    `controls` is a function of the step, or an array of shape (steps, n_controls).
    """
@IN@    found = np.empty((steps + 1, len(STATES)))
    found[0] = start
    for step in range(steps):
        found[step + 1] = @NAME@(step, found[step], at(step))
    return found
'''

_MAP_MAIN = """

if __name__ == "__main__":
    if len(sys.argv) != @N_WORDS@:
        sys.exit(@GIVE@)
@POP@    *start, end = map(float, sys.argv[1:])
    found = simulate(start, int(end)@OF_RUN@)
    print(@HEADING@)
    for step, row in enumerate(found):
        print(",".join(repr(value) for value in (step, *row.tolist())))
"""


_FIELDS = '''\
"""
@EQUATIONS@

Written by Shine. Run it with fields at time 0, an array of shape @SHAPE@ in a file of NumPy; the last
time; the step; and the file of the result, which has one more axis for the times in front:

    python @FILE@.py START.npy END STEP RESULT.npy
"""

import sys
from math import factorial

@IMPORT@

FIELDS = @FIELDS@
STEPS = @STEPS@  # of the axes
DERIVATIVES = @DERIVATIVES@  # how often each is taken along each axis
PERIODIC = @PERIODIC@
REACH = 3  # points to each side of a difference; without PERIODIC, as many at each edge keep their values


@QUIET@def @NAME@(columns_):
    """Rates of the fields, shape (n_fields, *points), from them and their derivatives, shape (n_features, *points)."""
@UNPACKED@    return np.stack([
        np.broadcast_to(np.asarray(each, dtype=float), columns_[0].shape)
        for each in (
@RATES@        )
    ])


def difference(values, axis, order):
    """A derivative along an axis of the grid, by the polynomial through 2 * REACH + 1 points around each."""
    nodes = np.arange(-REACH, REACH + 1)
    wanted = np.where(np.arange(len(nodes)) == order, factorial(order) / STEPS[axis] ** order, 0.0)
    weights = np.linalg.solve(np.vander(nodes, increasing=True).T.astype(float), wanted)
    return sum(weight * np.roll(values, -node, axis + 1) for node, weight in zip(nodes, weights))


def simulate(start, times, **options):
    """Fields at increasing times, shape (n_times, n_fields, *points), from those at the first, by the method of lines.

    `options` are those of @OPTIONS@.
    """
    start, times = np.asarray(start, dtype=float), np.asarray(times, dtype=float)
    edge = 0 if PERIODIC else REACH
    inside = np.pad(np.ones([points - 2 * edge for points in start.shape[1:]], dtype=bool), edge)

    def change(_, flat):
        columns = []
        for counts in DERIVATIVES:
            values = flat.reshape(start.shape)
            for axis, order in enumerate(counts):
                values = difference(values, axis, order) if order else values
            columns.append(values)
        return np.where(inside, @NAME@(np.concatenate(columns)), 0.0).ravel()

@SOLVE@    return found.reshape(len(times), *start.shape)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("give a file with the fields at time 0, the last time, the step and the file of the result")
    start = np.load(sys.argv[1])
    end, step = map(float, sys.argv[2:4])
    times = np.arange(round(end / step) + 1) * step
    np.save(sys.argv[4], simulate(start.reshape(len(FIELDS), *start.shape[-len(STEPS) :]), times))
'''

_SOLVE = """\
    size = np.abs(start).max() or 1.0
    method = "LSODA" if start.size <= 600 else "RK45"
    options = {"method": method, "rtol": 1e-6, "atol": 1e-8 * size, **options}
    found = solve_ivp(change, (times[0], times[-1]), start.ravel(), t_eval=times, **options)
    if not found.success:
        raise ArithmeticError(found.message)
    found = found.y.T
"""


LOCAL = """start times steps step end row rows controls options at size found time columns given number run states
following inside change counts values axis order method edge flat"""
"""Variables of the functions of programs, which would hide a right-hand side of their name."""


def python_program(system: System, name: str = "f") -> str:
    """Python source with the right-hand side, a function that integrates it with SciPy, and a main program.

    Raises
    ------
    ValueError
        If the name is not a Python identifier.
    ExportError
        If a formula calls a function without a definition, or its text would be too long.
    """
    taken = {"np", "sys", "solve_ivp", "simulate", "STATES", "CONTROLS", "RUNS"}
    solver = "" if system.is_map else "\nfrom scipy.integrate import solve_ivp"
    parts = {
        "SIMULATE": _ITERATE if system.is_map else _INTEGRATE,
        "IMPORT": f"import numpy as np{solver}",
        "RETURN": _RETURN,
        "QUIET": '@np.errstate(all="ignore")\n',
        "OPTIONS": "scipy.integrate.solve_ivp",
        "SOLVE": _SOLVE,
    }
    return numerical_program(system, name, taken, "a Python program", parts)


def numerical_program(system: System, name: str, taken: set[str], form: str, parts: Mapping[str, str]) -> str:
    """A program with NumPy or JAX.

    Parameters
    ----------
    system : System
    name : str
        Name of the right-hand side.
    taken : set of str
        Names of the module.
    form : str
        Name of the program, for errors.
    parts : mapping of str to str
        The parts in which the two differ.
    """
    if system.grid is None:
        return filled(_PROGRAM, {**parts, **_right_hand_side(system, name, taken, form), **_surroundings(system, name)})
    own = {"factorial", "FIELDS", "STEPS", "DERIVATIVES", "PERIODIC", "REACH", "difference", "each", "columns_"}
    grid = system.grid
    return filled(
        _FIELDS,
        {
            **parts,
            **_right_hand_side(system, name, {*taken, *own}, form),
            "SHAPE": f"(n_fields, {', '.join(f'n_{axis}' for axis in grid.axes)})",
            "FIELDS": repr(list(system.states)),
            "STEPS": repr(list(grid.steps)),
            "DERIVATIVES": repr(list(grid.counts)),
            "PERIODIC": repr(grid.periodic),
        },
    )


def _surroundings(system: System, name: str) -> dict[str, str]:
    """The parts of a program around a right-hand side that is no field's."""
    starts = " ".join(f"{state.upper()}0" for state in system.states)
    use, what, ends = "the states at time 0, the last time and the step", "Rates", "END STEP"
    if system.is_map:
        use, what, ends = "the states at step 0 and the last step", "States a step later", "END"
    if system.runs:
        use, ends = f"{use}, and the name of the run", f"{ends} RUN"
    run = "" if system.inputs else _MAP_MAIN if system.is_map else _FLOW_MAIN
    return {
        "MAIN": run,
        "IN": _INPUTS,
        "GIVEN": _MAP_GIVEN if system.is_map else _FLOW_GIVEN,
        "USE": f"Run it with {use}:\n\n    python @FILE@.py {starts} {ends}" if run else "Call simulate.",
        "N_WORDS": str(1 + len(f"{starts} {ends}".split())),
        "GIVE": repr(f"give {use}: {starts} {ends}"),
        "WHAT": f"{what}, from the states at one time: both have shape (n_states,).",
        "STATES": repr(list(system.states)),
        "CONTROLS": repr(list(system.inputs)),
        "RUNS": f"RUNS = {list(system.runs)!r}  # the number of one is the last of controls_\n" * bool(system.runs),
        "RUN": "run, " * bool(system.runs),
        "WITH_RUN": "    given, number = at, RUNS.index(run)\n    at = lambda time: (*given(time), number)\n"
        * bool(system.runs),
        "POP": "    run = sys.argv.pop()\n" * bool(system.runs),
        "OF_RUN": ", run" * bool(system.runs),
        "HEADING": repr(",".join((system.time, *system.states))),
        "NAME": name,
    }


def _right_hand_side(system: System, name: str, taken: set[str], form: str) -> dict[str, str]:
    check_variable(name, "function")
    if name in taken or name in LOCAL.split():
        raise ValueError(f"{name!r} is a name of the program itself; choose another")
    names = identifiers(identifier, system.parameters, {*taken, name, "t_", "states_", "controls_"})
    if system.grid is None:
        unpacked = [f"{', '.join(names[state] for state in system.states)}, = states_", f"{names[system.time]} = t_"]
    else:
        unpacked = [f"{', '.join(names[feature] for feature in system.parameters)}, = columns_"]
    if system.controls:
        unpacked.append(f"{', '.join(names[control] for control in system.controls)}, = controls_")
    language = replace(NUMPY, name=form)
    rates = [Expression(language).text(tree, names) for tree in system.trees]
    return {
        "EQUATIONS": system.text.replace("\\", r"\\").replace('"""', r"\"\"\""),
        "UNPACKED": "".join(f"    {line}\n" for line in unpacked),
        "RATES": "".join(f"            {rate},\n" for rate in rates),
        "NAME": name,
    }
