"""Every parameter of an estimator takes a value, or names itself in one line of an error before any search."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from helpers.markers import mostly_slow

from shine import SymbolicDynamics
from shine.base.errors import ShineError
from shine.estimators import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer
from shine.search.evolution import evolution

X = np.random.default_rng(0).uniform(1, 5, (20, 2))
y = X[:, 0]
PATH = np.exp(-0.1 * np.arange(20.0))[:, None]
LONGEST = 700


class Verbose:
    """Its text is a whole page."""

    def __repr__(self):
        return "page" * 50_000


class Broken:
    def __repr__(self):
        raise RuntimeError("no text")


AWKWARD = [
    None, float("nan"), float("inf"), -1, 0, 2.5, 1e308, 10**400, 1j, True, "text", "", "5", b"x", [], [1, 2], {"a": 1},
    {1}, len, int, object(), Verbose(), Broken(), np.int64(5), np.float32(0.5), np.True_, np.array(5), np.arange(3.0),
    np.zeros(100_000), list(range(100_000)), "x" * 100_000, pandas.DataFrame({"a": range(5)}), (i for i in range(0)),
]  # fmt: skip


class BegunError(Exception):
    """The search has begun."""


@pytest.fixture(autouse=True)
def _no_search(monkeypatch):
    def begin(*arguments, **options):
        raise BegunError

    monkeypatch.setattr(evolution, "evolve", begin)


PARAMETERS = [
    *((SymbolicRegressor, name) for name in SymbolicRegressor().get_params()),
    *((SymbolicDynamics, name) for name in SymbolicDynamics().get_params()),
    (SymbolicTransformer, "n_components"),
    (SymbolicTransformer, "raw_features"),
    (SymbolicTransformer, "max_correlation"),
    (SymbolicClassifier, "stop_loss"),
    (SymbolicClassifier, "dtype"),
]


@pytest.mark.parametrize(
    ("kind", "name"),
    mostly_slow(PARAMETERS, fast=PARAMETERS[::8]),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_each_awkward_value_is_used_or_told_in_one_line(kind, name):
    given = {"noise": "absolute"} if kind is SymbolicRegressor else {}
    rows, target = {SymbolicClassifier: (X, y > 3), SymbolicDynamics: (PATH, 1.0)}.get(kind, (X, y))
    for value in AWKWARD:
        try:
            kind(**{**given, name: value}).fit(rows, target)
        except BegunError:
            continue
        except (ValueError, TypeError, ShineError) as error:
            if name == "objective" and callable(value):
                continue  # its own error, which is the user's to see
            message = str(error)
            assert name in message
            assert "\n" not in message
            assert len(message) < LONGEST


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_time": 0}, "max_time must be above 0, is 0"),
        ({"max_time": "2"}, "max_time must be a number, is '2'"),
        ({"population_size": 1}, "population_size must be at least 2, is 1"),
        ({"population_size": True}, "population_size must be at least 2, is True"),
        ({"n_jobs": 1.5}, "n_jobs must be a whole number other than 0, or None, is 1.5"),
        ({"random_state": -1}, "random_state must be a whole number of at least 0, .* is -1"),
        ({"stop_loss": -1}, "stop_loss must be at least 0, is -1"),
        ({"verbose": "yes"}, "verbose must be 0, 1 or 2, is 'yes'"),
        ({"callbacks": "print"}, "callbacks must be a function, or a list of functions, is 'print'"),
        ({"guesses": "x0*x1"}, r"guesses must be a list of formulas, such as \['x0\*x1'\], is 'x0\*x1'"),
        ({"guesses": ["x0", "x9"]}, r"guesses\[1\]: line 1, column 1: unknown name 'x9'; known names are x0, x1"),
        ({"loss": "mse2"}, "unknown loss 'mse2'; did you mean 'mse'"),
        ({"units": {"units": {"x0": "m"}}}, "units must be a pair: .* is {'units': {'x0': 'm'}}"),
        ({"units": (["m", "?"], "m")}, r"units: the unit of 'x1': unit '\?' cannot be read"),
        ({"units": (["m", "m"], "m2")}, "units: the unit of the target: "),
        ({"units": (["m"], "m")}, "units has 1 units of features; there are 2 columns"),
        ({"units": (["m", 3], "m")}, "units: the unit of 'x1' must be text, such as 'm/s' or '1', is 3"),
        ({"units": ({"x0": "m", "x9": "m"}, "m")}, "units has an unknown feature 'x9'; .*there are x0, x1"),
        ({"primitives": "add"}, "primitives is the text 'add'; give a list"),
        ({"primitives": iter(["add"])}, "primitives must be a list, such as .*, is <list_iterator"),
        ({"guesses": iter(["x0"])}, "guesses must be a list of formulas, .*, is <list_iterator"),
        ({"callbacks": iter([print])}, "callbacks must be a function, or a list of functions, is <list_iterator"),
        ({"warm_start": 5}, "warm_start must be True or False, is 5"),
        ({"guesses": ["g.pbtxt"]}, r"guesses\[0\]: g.pbtxt: it cannot be read: No such file"),
    ],
)
def test_a_wrong_value_is_told_in_the_words_that_were_typed(parameters, message):
    with pytest.raises((ValueError, TypeError, ShineError), match=message):
        SymbolicRegressor(**{"noise": "absolute"} | parameters).fit(X, y)


@pytest.mark.parametrize("parameters", [
    {"population_size": np.int64(5)}, {"max_time": np.float32(0.5)}, {"linear_scaling": np.True_}, {"guesses": None},
    {"callbacks": None}, {"random_state": np.random.RandomState(0)}, {"n_jobs": None}, {"generations": None},
    {"verbose": True}, {"primitives": np.array(["add", "mul"])}, {"settings": {"stagnation": None, "evidence": 10}},
    {"units": (("m", "s"), "m")}, {"units": ({"x0": "m", "x1": "s"}, "m/s²")},
])  # fmt: skip
def test_numbers_of_numpy_and_what_is_left_out_are_used(parameters):
    with pytest.raises(BegunError):
        SymbolicRegressor(**{"noise": "absolute"} | parameters).fit(X, y)


@pytest.mark.parametrize("parameters", [
    {"order": 2.0}, {"periodic": 1}, {"autonomous": np.True_}, {"conserve": ""}, {"template": ""}, {"lags": 0.0},
    {"derivatives": np.float64(3)}, {"settings": {"tier": "reference"}},
])  # fmt: skip
def test_whole_numbers_truth_values_and_defaults_of_dynamics_are_used(parameters):
    with pytest.raises(BegunError):
        SymbolicDynamics(**parameters).fit(PATH)


def test_evidence_is_not_for_dynamics():
    with pytest.raises(ValueError, match="evidence is not for dynamics, which estimates it from the readings"):
        SymbolicDynamics(settings={"evidence": 10}).fit(PATH)
