"""Equations that keep a quantity, and equations that share functions and constants."""

import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from shine.base.errors import DataError, UnsupportedSyntaxError
from shine.data.trajectories import Trajectories, Trajectory
from shine.search.dynamics.forms import conserving, form_of
from shine.search.dynamics.known_parts import parts_of
from shine.search.dynamics.run import find_dynamics
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.evolution.observers import Observers
from shine.search.problem.settings import SearchSettings

TIMES = np.linspace(0, 60, 101)


def settings(**options):
    search = SearchSettings(primitives=("add", "sub", "mul", "div"))
    stop, fitness = replace(search.stop, seconds=12.0), replace(search.fitness, threads=1)
    return DynamicsSettings(replace(search, stop=stop, fitness=fitness), **options)


@pytest.fixture(scope="module")
def epidemic():

    def rates(t, y):
        return [-0.4 * y[0] * y[1], 0.4 * y[0] * y[1] - 0.1 * y[1], 0.1 * y[1]]

    exact = solve_ivp(rates, (0, 60), [0.99, 0.01, 0], t_eval=TIMES, rtol=1e-9, atol=1e-12).y.T
    states = exact + 0.02 * exact.std(axis=0) * np.random.default_rng(0).standard_normal(exact.shape)
    return Trajectories((Trajectory(TIMES, states, np.zeros((101, 0))),), ("S", "I", "R"))


def rights(text, trajectories):
    form = form_of(trajectories, DynamicsSettings())
    return conserving(text, form.trajectories, form.smooth, trajectories.states)


@pytest.mark.slow
def test_of_three_states_one_rate_follows_from_the_others(epidemic):
    own = rights("2*S + I + R", epidemic)
    assert own == {"S": "f0(S, I, R)", "I": "f1(S, I, R)", "R": "-((2)*f0(S, I, R) + f1(S, I, R))"}


@pytest.mark.slow
def test_of_two_states_the_rates_share_a_factor(epidemic):
    two = Trajectories((replace(epidemic.runs[0], states=epidemic.runs[0].states[:, :2]),), ("x", "v"))
    assert rights("v**2/2 - cos(x)", two) == {"x": "f(x, v)*(v)", "v": "-f(x, v)*(sin(x))"}
    assert rights("2*x**2 + 3*v**2", two) == {"x": "f(x, v)*(1.5*v)", "v": "-f(x, v)*(x)"}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("S", DataError, "the readings do not keep S: nothing in it makes up"),
        ("R - S", DataError, "the readings do not keep R - S"),
        ("3", DataError, "the readings do not keep 3"),
        ("S + Z", UnsupportedSyntaxError, "conserve: .*Z.*it is a formula of S, I, R"),
        ("(S - 0.5)**2 + (I - 0.1)**2 + (R - 0.2)**2", DataError, "each derivative .* is 0 somewhere in the readings"),
    ],
)
def test_a_quantity_from_which_no_rate_follows_is_refused(epidemic, text, error, message):
    with pytest.raises(error, match=message):
        rights(text, epidemic)


def test_a_quantity_of_one_state_is_refused(epidemic):
    one = Trajectories((replace(epidemic.runs[0], states=epidemic.runs[0].states[:, :1]),), ("S",))
    with pytest.raises(DataError, match="S is the only state, and would stand still"):
        rights("S", one)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conserve": "x", "kind": "map"}, "conserve is for rates"),
        ({"conserve": "x", "template": "x' = f(x)"}, "conserve and template are both given"),
        ({"template": {"formula": "x' = f(x)", "groups": "a"}}, "as a mapping it has formula, unknown, parameters"),
        ({"template": {"formula": 5}}, "formula is text"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        DynamicsSettings(**options)


def test_lines_that_share_names_are_found_together():
    text = {"a": "f(a)", "b": "k*c", "c": "g(c) - f(a)", "d": "k*d"}
    parts, _ = parts_of(text, ("a", "b", "c", "d"), 1, {})
    assert [part.states for part in parts] == [("a", "c"), ("b", "d")]
    assert [len(part.known) for part in parts] == [0, 2]
    assert [equation.names for equation in parts[1].known] == [("k",), ("k",)]


def test_numbers_in_a_known_equation_are_known():
    (part,), _ = parts_of({"a": "3*a - k*a**2"}, ("a",), 1, {"parameters": {"k": 2.0}})
    assert part.known[0].names == ("", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parameters": {"q": (0, None)}}, "parameters has 'q', which no equation uses"),
        ({"unknown": {"h": ["a"]}}, "unknown has 'h', which no equation uses"),
        ({"parameters": {"k": {"integer": True}}}, "parameter k is integer"),
    ],
)
def test_options_of_nothing_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        parts_of({"a": "k*a"}, ("a",), 1, options)


@pytest.mark.slow
def test_each_system_of_the_front_keeps_the_quantity_and_the_law_is_chosen(epidemic):
    result = find_dynamics(epidemic, settings(conserve="S + I + R"), Observers(clock=time.process_time))
    states = np.random.default_rng(1).uniform(0, 1, (50, 3))
    for model in result.front:
        rates = model.rates(states)
        assert np.abs(rates.sum(axis=1)).max() < 1e-14 * np.abs(rates).max()
    law = np.column_stack([-0.4 * states[:, 0] * states[:, 1], 0.1 * states[:, 1]])
    np.testing.assert_allclose(result.chosen.rates(states)[:, [0, 2]], law, atol=0.01)
    assert list(result.equations) == ["S, I, R"]


@pytest.mark.slow
def test_each_system_of_the_front_keeps_to_bounds(epidemic):
    known = {"formula": "S' = -b*S*I; I' = b*S*I - f(I); R' = f(I)", "parameters": {"b": (0.0, 0.38)}}
    result = find_dynamics(epidemic, settings(template=known), Observers(clock=time.process_time))
    states = np.array([[1.0, 1.0, 0.0]])
    assert max(-model.rates(states)[0, 0] for model in result.front) <= 0.38
    assert result.chosen.rates(states)[0, 0] == -0.38
