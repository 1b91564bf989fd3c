"""Known parts of a system: whole equations, unknown functions, constants by run."""

import re
import time
from dataclasses import replace

import numpy as np
import pytest

from shine.base.errors import DataError, UnsupportedSyntaxError
from shine.data.trajectories import Trajectories, Trajectory
from shine.lang.parse import parse
from shine.search.dynamics.forms import form_of
from shine.search.dynamics.known_parts import for_people, known_parts, of_run
from shine.search.dynamics.run import find_dynamics
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.evolution.observers import Observers
from shine.search.problem.settings import SearchSettings

TIMES = np.linspace(0, 8, 60)
DAMPINGS = (0.1, 0.3)


def settings(template, **options):
    search = SearchSettings()
    stop, fitness = replace(search.stop, seconds=10.0), replace(search.fitness, threads=1)
    return DynamicsSettings(replace(search, stop=stop, fitness=fitness), template=template, **options)


def springs(names=("a", "b")):
    """Damped oscillators x'' = -(2.25 + d**2)*x - 2*d*x' with two dampings."""
    runs = []
    for name, d in zip(names, DAMPINGS, strict=True):
        x = np.exp(-d * TIMES) * np.cos(1.5 * TIMES)
        v = np.exp(-d * TIMES) * (-d * np.cos(1.5 * TIMES) - 1.5 * np.sin(1.5 * TIMES))
        runs.append(Trajectory(TIMES, np.stack([x, v], axis=1), np.empty((60, 0)), name))
    return Trajectories(tuple(runs), ("x", "v"))


def found(template, **options):
    return find_dynamics(springs(), settings(template, **options), Observers(clock=time.process_time)).chosen


@pytest.mark.slow
def test_a_known_system_has_its_constants_fitted():
    chosen = found("x' = v; v' = -(w[run])*x - k[run]*v")
    assert chosen.error < 1e-10
    for number, d in enumerate(DAMPINGS):
        own = chosen.of_run(number)
        assert own.controls == ()
        np.testing.assert_allclose(own.rates([[1.0, 0.0], [0.0, 1.0]]), [[0, -2.25 - d**2], [1, -2 * d]], rtol=1e-5)
    assert chosen.lines()[1] == "v' = -w[run]*x - k[run]*v"
    first, second = re.fullmatch(r"k\[run\] = (\S+) \(a\), (\S+) \(b\)", chosen.lines()[2]).groups()
    assert (float(first), float(second)) == pytest.approx((0.2, 0.6), rel=1e-6)


@pytest.mark.slow
def test_an_unknown_function_is_found_beside_a_constant_by_run():
    chosen = found("v' = f(x) - k[run]*v")
    assert "k[run]*v" in chosen.lines()[1]
    np.testing.assert_allclose(chosen.of_run(1).rates([[0.0, 1.0]])[0, 1], -0.6, atol=0.03)


def test_the_number_of_the_run_is_a_control():
    form = form_of(springs(), settings("v' = f(x) - k[run]*v"))
    assert form.runs == ("a", "b")
    assert form.trajectories.controls == ("run",)
    assert form.trajectories.runs[1].controls[:, 0].tolist() == [1.0] * 60


def test_a_case_is_taken_and_its_constants_are_told():
    tree = parse("def f(x, run):\n    k = 2.0 if run <= 0.5 else 3.0\n    return 5.0*x**1.5 - k*x - k", ("x", "run"))
    own, kept = of_run(tree, 1)
    assert str(own) == "5.0*x**1.5 - 3.0*x - 3.0"
    # The constants of the tree are 2, 3 and 5: the border is none.
    assert kept == [2, 1, 1]
    assert for_people(tree).readable == "5*x**1.5 - k[run]*x - k[run]"
    assert for_people(parse("def f(x, run):\n    k = -0.5\n    return -k*x", ("x", "run"))).readable == "0.5*x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = v", "'x = v' is no equation of a state; write x' = ..., with ; between"),
        ("x'' = v", "is no equation of a state"),
        ("y' = v", "template: 'y' is no state; the states are x, v"),
        ("x' = v; x' = 1", "template: 'x' occurs twice"),
        (";", "template: it is empty"),
    ],
)
def test_lines_of_another_form_are_refused(text, message):
    with pytest.raises(UnsupportedSyntaxError) as error:
        known_parts(text, ("x", "v"))
    assert message in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x' = v +", "'v +' is no formula"),
        ("x' = f(x)*k[day]", "'day' is no group; constants depend on the run: k[run]"),
        ("x' = D(f, 0)(x); v' = -f(x)", "f and its derivative are both there"),
        ({"formula": ""}, "template: it is empty"),
    ],
)
def test_right_sides_of_another_form_are_refused(text, message):
    with pytest.raises(UnsupportedSyntaxError) as error:
        form_of(springs(), settings(text))
    assert message in str(error.value)


def test_a_column_named_run_is_refused():
    taken = replace(springs(), states=("x", "run"))
    with pytest.raises(DataError, match="a column is named run, and the template has constants by the run"):
        form_of(taken, settings("x' = -k[run]*x"))


def test_left_sides_are_those_of_the_kind():
    assert known_parts("x[k+1] = f(x)", ("x",), "map") == {"x": "f(x)"}
    assert known_parts("x'' = f(x)\n", ("x",), "ode", 2) == {"x": "f(x)"}
