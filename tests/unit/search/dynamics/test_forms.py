import time
from dataclasses import replace

import numpy as np
import pytest

from shine.base.errors import DataError
from shine.data.trajectories import Trajectories, Trajectory
from shine.evaluate.rollouts.fitting import fit_rollouts
from shine.evaluate.rollouts.unknowns import Unknowns
from shine.lang.parse import parse
from shine.search.constraints.constraints import Constraints
from shine.search.dynamics import session
from shine.search.dynamics.equations import Equation
from shine.search.dynamics.forms import form_of, form_of_system, hidden_forms, units_of
from shine.search.dynamics.run import find_dynamics, unfitted
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.evolution.observers import Observers
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.problem.settings import SearchSettings


def settings(**form):
    search = SearchSettings()
    stop, fitness = replace(search.stop, seconds=8.0), replace(search.fitness, threads=1)
    return DynamicsSettings(replace(search, stop=stop, fitness=fitness), **{"kind": "map", **form})


def a_map(states, times=None):
    states = np.asarray(states, float).reshape(len(states), -1)
    times = np.arange(float(len(states))) if times is None else np.asarray(times, float)
    return Trajectories((Trajectory(times, states, np.empty((len(times), 0))),), ("x", "y")[: states.shape[1]])


def found(trajectories, lags=0):
    return find_dynamics(trajectories, settings(lags=lags), Observers(clock=time.process_time)).chosen


@pytest.mark.slow
def test_a_map_with_a_lag_is_found():
    states = [1.0, 0.4]
    for _ in range(50):
        states.append(1.3 * states[-1] - 0.8 * states[-2] + 0.2)
    chosen = found(a_map(states), lags=1)
    assert chosen.states == ("x", "x_lag1")
    assert len(chosen.lines()) == 1
    assert str(chosen.trees[1]) == "x"
    np.testing.assert_allclose(chosen.rates([[2.0, 1.0]]), [[2.6 - 0.8 + 0.2, 2.0]], rtol=1e-6)


def test_steps_without_readings_are_left_out():
    form = form_of(a_map([1, 2, 4, 16, 32], [0, 1, 2, 4, 5]), settings())
    errors = form.smooth.runs[0].rate_errors[:, 0] + form.smooth.runs[0].state_errors[:, 0]
    assert np.isfinite(errors).tolist() == [True, True, False, False, True, False]


def test_lagged_states_are_readings_only_once():
    form = form_of(a_map(np.arange(8.0)), settings(lags=2))
    assert form.trajectories.states == ("x", "x_lag1", "x_lag2")
    assert form.smooth.runs[0].states.tolist() == [[k + 2, k + 1, k] for k in range(6)]
    assert np.isnan(form.trajectories.runs[0].states[:, 1:]).all()


def test_times_of_a_map_may_be_years():
    states = [0.3]
    for _ in range(40):
        states.append(3.7 * states[-1] * (1 - states[-1]))
    chosen = found(a_map(states, 1900 + 2 * np.arange(41)))
    assert chosen.lines()[0].startswith("x[k+1] = ")
    np.testing.assert_allclose(chosen.simulate([0.6], [2000, 2002])[:, 0], [0.6, 3.7 * 0.24], rtol=1e-6)
    with pytest.raises(DataError, match="not whole steps of 2 apart"):
        chosen.simulate([0.6], [2000, 2001])


def test_times_between_steps_are_refused():
    with pytest.raises(DataError, match="not whole steps of 1 apart"):
        form_of(a_map([1, 2, 3, 4], [0, 1, 2.5, 3.5]), settings())


def test_a_run_shorter_than_its_lags_is_refused():
    with pytest.raises(DataError, match="a run has 4 steps; with lags=3, at least 6 are needed"):
        form_of(a_map([1, 2, 3, 4]), settings(lags=3))


TIMES = np.linspace(0, 8, 60)
SPRING = np.exp(-0.1 * TIMES) * np.sin(1.5 * TIMES)
"""x'' = -(1.5**2 + 0.1**2)*x - 0.2*x', from 0 with the speed 1.5."""


@pytest.mark.slow
def test_a_law_of_second_order_is_found_from_positions_alone():
    found = find_dynamics(a_map(SPRING, TIMES), settings(kind="ode", order=2), Observers(clock=time.process_time))
    chosen = found.chosen
    assert chosen.lefts == ["x''"]
    assert chosen.starts == pytest.approx(np.array([[0.0, 1.5]]), abs=1e-6)
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(chosen.rates(rows)[:, chosen.sought], [[-2.26], [-0.2]], rtol=1e-5)
    assert len(found.equations) == 1


def test_rates_are_states_that_nobody_read():
    form = form_of(a_map(SPRING, TIMES), settings(kind="ode", order=2))
    assert form.trajectories.states == ("x", "x_dot")
    assert np.isnan(form.trajectories.runs[0].states[:, 1]).all()
    speed = np.exp(-0.1 * TIMES) * (1.5 * np.cos(1.5 * TIMES) - 0.1 * np.sin(1.5 * TIMES))
    np.testing.assert_allclose(form.smooth.runs[0].states[:, 1], speed, atol=1e-6)
    np.testing.assert_allclose(form.smooth.runs[0].rates[:, 1], -2.26 * SPRING - 0.2 * speed, atol=1e-4)


def test_a_hidden_state_is_a_rate_or_its_share_of_a_state_that_keeps_its_sign():
    readings = a_map(np.stack([SPRING, np.exp(0.3 * TIMES)], axis=1), TIMES)
    forms = hidden_forms(readings, settings(kind="ode", hidden="z"))
    assert [form.trajectories.states for form in forms] == [("x", "y"), *[("x", "y", "z")] * 3]
    known = [[str(part.known[0].model.tree) for part in form.parts if part.known] for form in forms]
    assert known == [[], ["z"], ["z"], ["y*z"]]
    share = forms[3].smooth.runs[0]
    np.testing.assert_allclose(share.states[:, 2], 0.3, rtol=1e-5)
    np.testing.assert_allclose(share.rates[:, 2], 0, atol=1e-3)
    assert (np.abs(share.rates[:, 2]) < 10 * share.rate_errors[:, 2] + 1e-9).all()


def hidden_system(rates, start, times, read, noise=0.0):
    """Readings of some states from two starts: the last one's are clean."""
    integrate = pytest.importorskip("scipy.integrate")
    states = integrate.solve_ivp(rates, times[[0, -1]], start, "LSODA", times, rtol=1e-10, atol=1e-12).y[read].T
    return states + noise * states.std(axis=0) * np.random.default_rng(0).standard_normal(states.shape)


def epidemic(_, y):
    return [-0.5 * y[0] * y[1], 0.5 * y[0] * y[1] - 0.1 * y[1]]


def lorenz(_, y):
    return [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("rates", "read", "start", "other", "end", "right"),
    [
        (epidemic, [1], [0.98, 0.01], [0.7, 0.05], 60, "x*h"),
        (lorenz, [0, 2], [-8, 7, 27], [3, 5, 20], 5, "h"),
    ],
)
def test_a_hidden_state_foretells_a_trajectory_from_its_first_fifth(rates, read, start, other, end, right):
    times = np.linspace(0, end, 200)
    readings = a_map(hidden_system(rates, start, times, read, 0.01), times)
    asked = settings(kind="ode", hidden="h")
    asked = replace(asked, search=replace(asked.search, stop=replace(asked.search.stop, seconds=20.0)))
    result = find_dynamics(readings, asked, Observers(clock=time.process_time))
    assert str(result.chosen.trees[0]) == right
    assert "; without h, " in result.front.reason
    new = hidden_system(rates, other, times, read)
    first = a_map(new[:40], times[:40])
    form = form_of_system(result.chosen, first)
    known = Unknowns.free(np.zeros(len(result.chosen.constants), np.bool_))
    fit = fit_rollouts(result.chosen.compiled, form.trajectories, unknowns=known, smooth=[form.smooth.runs[0].states])
    found = result.chosen.simulate(fit.starts[0], times)[40:, : len(read)]
    assert (((found - new[40:]) ** 2).mean(axis=0) / new[40:].var(axis=0) < 0.05).all()


@pytest.mark.slow
def test_a_state_that_explains_nothing_is_not_identifiable():
    turns = np.stack([np.cos(1.5 * TIMES), np.sin(1.5 * TIMES)], axis=1)
    result = find_dynamics(a_map(turns, TIMES), settings(kind="ode", hidden="h"), Observers(clock=time.process_time))
    assert result.chosen.states == ("x", "y")
    assert "h is not identifiable from these data" in result.front.reason


def test_a_column_with_the_name_of_a_rate_is_refused():
    taken = replace(a_map(np.stack([SPRING, SPRING + TIMES], axis=1), TIMES), states=("x", "x_dot"))
    with pytest.raises(DataError, match="x_dot is a further state here; rename the column of this name"):
        form_of(taken, settings(kind="ode", order=2))


@pytest.mark.parametrize("form", [{"kind": "map", "order": 2}, {"kind": "ode", "lags": 1}])
def test_lags_are_for_maps_and_the_second_order_for_rates(form):
    with pytest.raises(ValueError, match=r"kind='(map|ode)'"):
        settings(**form)


def test_a_system_that_was_not_fitted_has_an_infinite_error_whoever_read_its_states():
    form = form_of(a_map(SPRING, TIMES), settings(kind="ode", order=2))
    features = form.trajectories.states
    system = unfitted([Equation(Model(parse(text, features), 0.0, 1.0)) for text in ("x_dot", "-x")], form)
    assert (system.error, system.r2) == (np.inf, -np.inf)


UNITS = {"x": "m", "y": "kg", "t": "s"}


def test_units_of_what_formulas_stand_for_follow_from_those_of_the_states():
    given = a_map([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0], [4.0, 5.0], [2.0, 1.0]])
    features, rates = units_of(form_of(given, settings(kind="ode")), UNITS)
    assert (features, rates) == (UNITS, {"x": "(m)/(s)", "y": "(kg)/(s)"})
    features, following = units_of(form_of(given, settings(lags=1)), UNITS)
    assert (features["x_lag1"], features["y_lag1"], following["y"]) == ("m", "kg", "kg")
    features, bends = units_of(form_of(given, settings(kind="ode", order=2)), UNITS)
    assert (features["y_dot"], bends["y_dot"]) == ("(kg)/(s)", "((kg)/(s))/(s)")


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ({"x": "m", "y": "kg"}, "units: 't' has none; give x, y, t a unit"),
        ({**UNITS, "z": "m"}, "units: 'z' is unknown; give x, y, t a unit"),
        ({**UNITS, "x": "flurb"}, "units: of 'x': "),
    ],
)
def test_units_that_lack_a_name_or_have_one_too_many_are_refused(units, message):
    with pytest.raises(ValueError, match=message):
        find_dynamics(a_map([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0], [4.0, 5.0]]), settings(units=units))


def test_units_that_no_form_satisfies_are_told_before_a_search():
    own = settings(kind="ode", units={"x": "m", "y": "kg", "t": "s"})
    bare = replace(own.search, constraints=Constraints(dimensionless_constants=True))
    given = a_map([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0], [4.0, 5.0]])
    with pytest.raises(
        DataError, match=r"no formula of x, y has the unit of the rate of 'x', \(m\)/\(s\), as constants"
    ):
        find_dynamics(given, replace(own, search=bare))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"units": "m"}, "units is a mapping"), ({"units": UNITS, "kind": "pde"}, "units are not for fields")],
)
def test_units_of_nothing_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        settings(**options)


def test_each_search_gets_the_units_of_its_features_and_its_rate(monkeypatch):
    asked = []

    def constant(dataset, own, observers, earlier=()):
        asked.append((own.constraints.units, own.constraints.target_unit))
        return Result(Front((Model(parse("1.0", dataset.features), 1.0, 0.0),), 0), 1, 1, 1, 0.0, 0, "seconds")

    monkeypatch.setattr(session, "search", constant)
    data = a_map(np.random.default_rng(0).standard_normal((12, 2)))
    find_dynamics(data, settings(units=UNITS))
    assert asked[:2] == [({"x": "m", "y": "kg"}, "m"), ({"x": "m", "y": "kg"}, "kg")]
