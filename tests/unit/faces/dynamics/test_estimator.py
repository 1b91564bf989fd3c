"""`SymbolicDynamics`: what is made of the systems that a search finds."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from helpers.known_systems import known_search

import shine
from shine.base.errors import DataError, InterruptedFitWarning
from shine.search.dynamics import run

TIMES = np.linspace(0, 3, 61)
STATES = np.column_stack([np.cos(TIMES), -np.sin(TIMES)])
SPRING = ("v", "-1.0*x")
NAMES = {"states": ["x", "v"]}


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    monkeypatch.setattr(run, "find_dynamics", known_search(("v", "-0.5"), SPRING))


@pytest.fixture
def fitted():
    return shine.SymbolicDynamics(random_state=0).fit(STATES, TIMES, **NAMES)


USES = {
    "predict": lambda model, **index: model.predict(STATES, **index),
    "simulate": lambda model, **index: model.simulate([1, 0], TIMES, **index),
    "export": lambda model, **index: model.export("python", **index),
    "latex": lambda model, **index: model.latex(**index),
    "sympy": lambda model, **index: model.sympy(**index),
}


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_if_nothing_was_found_a_system_is_used_only_by_its_index(monkeypatch, fitted, use):
    if use == "sympy":
        pytest.importorskip("sympy")
    assert fitted.found_
    USES[use](fitted)
    monkeypatch.setattr(run, "find_dynamics", known_search(("v", "-0.5"), SPRING, doubt="it is noise. Read more"))
    lost = shine.SymbolicDynamics().fit(STATES, TIMES, **NAMES)
    assert not lost.found_
    with pytest.raises(DataError, match=r"nothing was found: it is noise\. Read more\. .* give its index"):
        USES[use](lost)
    USES[use](lost, index=1)
    assert ">>> nothing was found: it is noise" in repr(lost)
    assert "?     1" in repr(lost)
    assert lost.summary().startswith("nothing was found: it is noise")
    assert "<math" not in lost._repr_html_()
    assert "<math" in fitted._repr_html_()


HUGE = 10**400
"""No float64 holds it."""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.conf_int(level=3), "level is 3; it is a share"),
        (lambda model: model.conf_int(level=None), "level is None; it is a share"),
        (lambda model: model.predict(STATES, t={}), "t is "),
        (lambda model: model.predict(STATES, t=HUGE), "t has a whole number beyond"),
        (lambda model: model.next_experiment({}, times=["a", None]), "times "),
        (lambda model: model.plot([]), "it must be one of"),
        (lambda model: model.export([]), r"unknown export \[\]"),
        (lambda model: model.export("python", name=None), "name=None is no text"),
        (lambda model: model.fit(STATES, HUGE), "t must be the times"),
        (lambda model: model.fit(STATES, TIMES, states=3), "the names of states are a list of texts, is 3"),
        (lambda model: model.fit(STATES, TIMES, u=TIMES, controls=[1]), "the names of controls are a list of texts"),
    ],
)
def test_what_is_no_argument_is_told(fitted, call, message):
    with pytest.raises((TypeError, ValueError, DataError), match=message):
        call(fitted)


def test_rates_are_those_of_the_equations(fitted):
    np.testing.assert_array_equal(fitted.predict(STATES), np.column_stack([STATES[:, 1], -STATES[:, 0]]))
    np.testing.assert_array_equal(fitted.predict([3.0, 4.0]), [[4.0, -3.0]])
    np.testing.assert_array_equal(fitted.predict([3.0, 4.0], index=0), [[4.0, -0.5]])


def test_a_frame_gives_states_by_heading():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"v": STATES[:, 1], "t": TIMES, "x": STATES[:, 0]})
    model = shine.SymbolicDynamics().fit(frame[["x", "v", "t"]], "t")
    np.testing.assert_array_equal(model.predict(frame)[:, 0], STATES[:, 1])
    with pytest.raises(DataError, match="X has no column 'x'"):
        model.predict(frame[["v"]])


def test_simulations_are_the_solution(fitted):
    states = fitted.simulate([0.0, 2.0], TIMES)
    np.testing.assert_allclose(states, np.column_stack([2 * np.sin(TIMES), 2 * np.cos(TIMES)]), atol=1e-7)
    np.testing.assert_array_equal(fitted.simulate({"v": 2.0, "x": 0.0}, TIMES), states)
    means, deviations = fitted.simulate([0.0, 2.0], TIMES, return_std=True)
    np.testing.assert_allclose(means, states, rtol=1e-6, atol=1e-7)
    assert deviations[0].tolist() == [0, 0]
    # x'' = -k x with x(0) = 0 has x = 2 sin(sqrt(k) t)/sqrt(k), whose slope by k at k = 1 is t cos t - sin t.
    np.testing.assert_allclose(deviations[:, 0], 0.01 * abs(TIMES * np.cos(TIMES) - np.sin(TIMES)), atol=1e-6)


def test_the_score_is_r2_of_rollouts(fitted):
    assert fitted.score(STATES, TIMES) == pytest.approx(1.0)
    late = np.where(np.arange(61)[:, None] < 5, np.nan, STATES)
    late[:, 1] = STATES[:, 1]
    assert fitted.score([late, 2 * STATES], [TIMES, TIMES]) == pytest.approx(1.0)
    shifted = STATES + np.where(np.arange(61)[:, None] > 0, 0.1, 0.0)
    own = 1 - 0.01 * 60 / ((shifted - shifted.mean(axis=0)) ** 2).sum(axis=0)
    assert fitted.score(shifted, TIMES) == pytest.approx(own.mean(), abs=1e-6)


def test_an_explosion_scores_minus_infinity(monkeypatch):
    monkeypatch.setattr(run, "find_dynamics", known_search(["x0*x0"]))
    model = shine.SymbolicDynamics().fit(TIMES + 1, TIMES)
    assert model.score(TIMES + 1, TIMES) == -np.inf


def test_the_text_has_a_line_a_state_and_marks_the_choice(fitted):
    lines = repr(fitted).splitlines()
    assert lines[0] == "SymbolicDynamics, 2 systems"
    chosen = next(number for number, line in enumerate(lines) if line.startswith(">>>"))
    assert lines[chosen].endswith("x' = v")
    assert lines[chosen + 1].strip().startswith("v' = ")
    assert repr(shine.SymbolicDynamics(max_time=3)) == "SymbolicDynamics(max_time=3)"
    assert "<math" in fitted._repr_html_()


def test_a_start_may_be_a_row_of_a_table(fitted):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"t": [5.0, 6.0], "v": [2.0, 1.0], "x": [0.0, 3.0]})
    wanted = fitted.simulate([0.0, 2.0], TIMES)
    for start in (table[:1], table.iloc[0]):
        np.testing.assert_array_equal(fitted.simulate(start, TIMES), wanted)
    with pytest.raises(DataError, match="give one value for each of x, v"):
        fitted.simulate(table, TIMES)


def test_forms_are_those_of_the_chosen_system(fitted):
    sympy = pytest.importorskip("sympy")
    t = sympy.Symbol("t", real=True)
    x, v = sympy.Function("x")(t), sympy.Function("v")(t)
    assert fitted.sympy() == [sympy.Eq(x.diff(t), v), sympy.Eq(v.diff(t), -x)]
    assert r"\dot{x} &= v" in fitted.latex()
    assert "solve_ivp" in fitted.export("python")
    assert "v' = -0.5" in fitted.export("c", index=0)


@pytest.mark.parametrize(("kind", "count"), [("trajectories", 2), ("residuals", 2), ("phase", 1)])
def test_drawings_have_readings_and_rollouts(fitted, kind, count):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    axes = np.atleast_1d(fitted.plot(kind))
    assert len(axes) == count
    assert len(axes[0].lines) == 2
    own = pyplot.figure().subplots(1, count, squeeze=False)
    fitted.plot(kind, ax=own)
    with pytest.raises(ValueError, match="ax has 3 axes"):
        fitted.plot(kind, ax=pyplot.figure().subplots(1, 3))
    pyplot.close("all")


def test_arrows_of_a_vector_field_point_along_the_rates(fitted):
    pytest.importorskip("matplotlib")
    (arrows,) = [each for each in fitted.plot("vector_field").collections if hasattr(each, "U")]
    places, rates = arrows.XY, np.stack([arrows.U, arrows.V], axis=1)
    wanted = fitted.predict(places)
    np.testing.assert_allclose(rates * np.hypot(*wanted.T)[:, None], wanted * np.hypot(*rates.T)[:, None], atol=1e-9)
    assert (np.hypot(*rates.T)[np.hypot(*wanted.T) > 0] > 0).all()


@pytest.mark.parametrize("form", ["control", "time", "order", "hidden", "map"])
def test_a_vector_field_is_drawn_of_one_or_two_states_of_any_kind(monkeypatch, form):
    pytest.importorskip("matplotlib")
    given, rows, front, kinds = STATES[:, :1], {}, ("-x + 2*u",), {}
    if form == "control":
        rows = {"u": np.linspace(1, 2, len(TIMES))}
    if form == "time":
        front = ("-x + t",)
    if form in ("order", "hidden"):
        front, kinds = (("x_dot", "-x"), {"order": 2}) if form == "order" else (("h", "-x"), {"hidden": 0})
    if form == "map":
        front, rows = ("0.5*x",), {"t": np.arange(len(TIMES))}
    monkeypatch.setattr(run, "find_dynamics", known_search(front, **kinds))
    model = shine.SymbolicDynamics(kind="map" if form == "map" else "ode", autonomous=form != "time")
    axes = model.fit(given, **{"t": TIMES, "states": ["x"], **rows}).plot("vector_field")
    if form in ("order", "hidden"):
        assert axes.get_ylabel() == model.best_.states[1]
    elif form == "control":  # at the mean of the controls
        (x, rate) = axes.lines[0].get_data()
        np.testing.assert_allclose(rate, 3 - x)


def test_a_vector_field_of_more_states_is_refused(monkeypatch):
    monkeypatch.setattr(run, "find_dynamics", known_search(("y", "z", "-x")))
    model = shine.SymbolicDynamics().fit(np.column_stack([STATES, STATES[:, 0]]), TIMES, states=["x", "y", "z"])
    with pytest.raises(ValueError, match="one or two states, and this system x, y, z; draw 'phase'"):
        model.plot("vector_field")


def test_copies_simulate_the_same(fitted):
    states = fitted.simulate([0.0, 2.0], TIMES)
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(other.simulate([0.0, 2.0], TIMES), states)


def test_controls_are_asked_for(monkeypatch):
    monkeypatch.setattr(run, "find_dynamics", known_search(["u - x0"]))
    model = shine.SymbolicDynamics().fit(1 - np.exp(-TIMES), TIMES, np.ones(61))
    np.testing.assert_allclose(model.simulate([0.0], TIMES, np.ones(61))[:, 0], 1 - np.exp(-TIMES), atol=1e-7)
    np.testing.assert_allclose(model.simulate([0.0], TIMES, lambda t: 1.0)[:, 0], 1 - np.exp(-TIMES), atol=1e-7)
    with pytest.raises(DataError, match="the system has the controls u; give them as u"):
        model.simulate([0.0], TIMES)
    assert model.score(1 - np.exp(-TIMES), TIMES, np.ones(61)) == pytest.approx(1.0)


def test_the_time_occurs_only_if_it_may(monkeypatch):
    monkeypatch.setattr(run, "find_dynamics", known_search(["2*t"]))
    model = shine.SymbolicDynamics(autonomous=False).fit(TIMES**2, TIMES)
    np.testing.assert_allclose(model.simulate([1.0], TIMES)[:, 0], 1 + TIMES**2, atol=1e-8)
    with pytest.raises(DataError, match="the rates depend on t; give the times as t"):
        model.predict(TIMES)


def test_an_interrupted_fit_warns_and_keeps_what_it_found(monkeypatch):
    monkeypatch.setattr(run, "find_dynamics", known_search(SPRING, stopped_by="interrupted"))
    with pytest.warns(InterruptedFitWarning, match="has kept the best systems") as caught:
        shine.SymbolicDynamics().fit(STATES, TIMES, **NAMES)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda model: model.simulate([1.0], TIMES), DataError, "x0 has shape"),
        (lambda model: model.simulate({"x": 1.0}, TIMES), DataError, "x0 has x, and lacks v"),
        (lambda model: model.simulate([1.0, np.nan], TIMES), DataError, "x0 has 1 values that are NaN"),
        (lambda model: model.simulate([1.0, 0.0], TIMES[::-1]), DataError, "increasing times"),
        (lambda model: model.predict(np.ones((3, 3))), DataError, "x has 3 columns"),
        (lambda model: model.predict("text"), DataError, "x "),
        (lambda model: model.simulate([1.0, 0.0], TIMES, index=7), ValueError, "index must be a position"),
        (lambda model: model.score(STATES[:, :1], TIMES), DataError, "x has 1 state"),
        (lambda model: model.export("excel"), ValueError, "unknown export 'excel' of a system"),
        (lambda model: model.fit(STATES, TIMES, x_dot=STATES), TypeError, "unexpected keyword argument 'x_dot'"),
        (lambda model: model.fit(STATES, TIMES, states=["x"]), DataError, "x has 2 states, and 1 names"),
    ],
)
def test_bad_arguments_get_one_line(fitted, call, error, message):
    with pytest.raises(error, match=message) as caught:
        call(fitted)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"autonomous": "yes"}, "autonomous must be True or False, is 'yes'"),
        ({"max_time": -1}, "max_time"),
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0"),
        ({"settings": {"islnds": 2}}, "settings has no 'islnds'"),
        ({"verbose": -1}, "verbose must be 0, 1 or 2"),
    ],
)
def test_bad_parameters_name_themselves(parameters, message):
    with pytest.raises(ValueError, match=message):
        shine.SymbolicDynamics(**parameters).fit(STATES, TIMES)


def test_an_unknown_parameter_is_answered():
    with pytest.raises(TypeError, match="did you mean 'max_time'"):
        shine.SymbolicDynamics(timeout_in_seconds=3)
    with pytest.raises(ValueError, match="Invalid parameter 'optimizer'"):
        shine.SymbolicDynamics().set_params(optimizer=1)


def test_nothing_is_told_before_the_fit():
    from sklearn.exceptions import NotFittedError

    for call in ("predict", "score", "export"):
        with pytest.raises(NotFittedError):
            getattr(shine.SymbolicDynamics(), call)(STATES)


def test_the_next_experiment_is_that_of_the_front(fitted):
    told = fitted.next_experiment({"x": (0, 2), "v": 0.5}, TIMES)
    assert told.start["v"] == 0.5
    assert told.trajectories.shape == (2, len(told.times), 2)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="'ode', 'map' or 'pde'"):
        shine.SymbolicDynamics(kind="sde").fit(STATES, TIMES)


def fibonacci(count):
    found = [1.0, 1.0]
    while len(found) < count:
        found.append(0.5 * (found[-1] + found[-2]) + 0.1)
    return np.array(found)


@pytest.fixture
def lagged(monkeypatch):
    monkeypatch.setattr(run, "find_dynamics", known_search(("0.5*(x + x_lag1) + 0.1", "x"), lags=1))
    return shine.SymbolicDynamics(kind="map", lags=1).fit(fibonacci(20), states=["x"])


def test_a_map_with_lags_starts_from_its_history(lagged):
    np.testing.assert_allclose(lagged.simulate([1.0, 1.0], np.arange(19))[:, 0], fibonacci(20)[1:])
    np.testing.assert_allclose(lagged.simulate([[1.0], [1.0]], [0, 1, 2])[:, 0], fibonacci(4)[1:])
    found = lagged.predict(fibonacci(6))[:, 0]
    assert np.isnan(found[0])
    np.testing.assert_allclose(found[1:5], fibonacci(6)[2:])
    assert lagged.score(fibonacci(20)) == pytest.approx(1.0)
    with pytest.raises(DataError, match="give 2 rows, the oldest first, of x"):
        lagged.simulate([1.0], [0, 1])
    with pytest.raises(DataError, match="no time at which all states were read, after 1 such steps"):
        lagged.score([1.0, np.nan, 2.0, np.nan, 3.0, np.nan, 4.0])
    assert "x[k+1] = 0.5*(x + x_lag1) + 0.1" in lagged.export("python")


def test_a_second_order_starts_from_positions_and_rates(monkeypatch):
    monkeypatch.setattr(run, "find_dynamics", known_search(("x_dot", "-1.0*x"), order=2))
    model = shine.SymbolicDynamics(order=2).fit(STATES[:, 0], TIMES, states=["x"])
    assert model.best_.lines() == ["x'' = -1*x"] or model.best_.lines() == ["x'' = -x"]
    np.testing.assert_allclose(model.simulate([0.0, 2.0], TIMES)[:, 0], 2 * np.sin(TIMES), atol=1e-7)
    for start in ({"x": [0.0, 2.0]}, {"x": 0.0, "x_dot": 2.0}):
        np.testing.assert_allclose(model.simulate(start, TIMES)[:, 0], 2 * np.sin(TIMES), atol=1e-7)
    np.testing.assert_array_equal(model.predict([[3.0, 4.0]]), [[-3.0]])
    assert model.score(np.sin(TIMES + 1), TIMES) == pytest.approx(1.0)
    assert list(model.conf_int()) == ["x''[0]"]


def test_a_hidden_state_is_part_of_starts_and_of_the_system(monkeypatch):
    monkeypatch.setattr(run, "find_dynamics", known_search(("x*h", "-1.0*x"), hidden=0))
    times = TIMES[: len(TIMES) // 2]
    wanted = np.cosh(times) ** -2.0  # x' = x*h, h' = -x has x = 2/cosh(t)**2, h = -2*tanh(t)
    model = shine.SymbolicDynamics(hidden=1).fit(2 * wanted, times, states=["x"])
    assert model.best_.lines() == ["x' = x*h", "h' = -1*x"] or model.best_.lines() == ["x' = x*h", "h' = -x"]
    assert model.states_ == ["x"]
    for start in ([2.0, 0.0], {"x": 2.0, "h": 0.0}):
        np.testing.assert_allclose(model.simulate(start, times), 2 * wanted[:, None], atol=1e-7)
    np.testing.assert_array_equal(model.predict([[3.0, 4.0]]), [[12.0, -3.0]])
    # The start of a new run is fitted: 1/2/cosh(t/2 - 1)**2 follows the same equations.
    assert model.score(0.5 * np.cosh(times / 2 - 1) ** -2.0, times) == pytest.approx(1.0, abs=1e-6)
    assert model.score(np.cos(3 * times) + 2, times) < 0.9
    assert list(model.conf_int()) == ["h'[0]"]
    assert "h' = -1.0*x" in model.export("python")
    with pytest.raises(DataError, match="x0 has x, and lacks h"):
        model.simulate({"x": 1.0}, times)
    with pytest.raises(DataError, match="give one value for each of x, h"):
        model.simulate([1.0], times)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hidden": 2}, "hidden is 2; it must be 1, or the name of the one state that nobody read"),
        ({"hidden": "two words"}, "hidden is 'two words'; it must be 1"),
        ({"hidden": 1, "order": 2}, "hidden is for kind='ode' and order=1"),
        ({"hidden": 1, "template": "x' = v"}, "without template, conserve and units"),
        ({"hidden": "x"}, "x is a further state here; rename the column of this name"),
    ],
)
def test_a_hidden_state_that_cannot_be_is_refused(monkeypatch, given, message):
    monkeypatch.undo()
    with pytest.raises((ValueError, DataError), match=message):
        shine.SymbolicDynamics(max_time=1, **given).fit(STATES[:, 0], TIMES, states=["x"])


@pytest.mark.slow
def test_constants_of_a_run_are_taken_by_its_name(monkeypatch):
    monkeypatch.undo()
    runs = {"slow": np.exp(-0.5 * TIMES), "fast": np.exp(-2 * TIMES)}
    labels = np.repeat(list(runs), len(TIMES))
    readings, times = np.concatenate(list(runs.values())), np.tile(TIMES, 2)
    model = shine.SymbolicDynamics(template="x' = -k[run]*x", max_time=10, random_state=0)
    model.fit(readings, times, run=labels, states=["x"])
    assert model.best_.lines()[0] == "x' = -k[run]*x"
    np.testing.assert_allclose(model.simulate([1.0], TIMES, run="fast")[:, 0], runs["fast"], atol=1e-6)
    np.testing.assert_allclose(model.predict([[3.0]], run="slow"), [[-1.5]], rtol=1e-6)
    assert "-2" in model.latex(run="fast", precision=3)
    with pytest.raises(DataError, match="constants depend on the run; give run=, one of"):
        model.simulate([1.0], TIMES)
    with pytest.raises(DataError, match="not other"):
        model.predict([[1.0]], run="other")
    assert model.score(readings, times, run=labels) == pytest.approx(1.0)


def test_the_energy_of_a_spring_is_conserved(fitted):
    assert [each.formula for each in fitted.conserved()] == ["x**2 + v**2"]
