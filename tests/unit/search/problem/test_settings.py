"""The settings of a search: their defaults are in one place, and every signature keeps to them."""

from __future__ import annotations

import inspect
import math
from dataclasses import fields
from functools import reduce
from random import Random
from typing import Any

import pytest

import shine
from shine.base.errors import DataError
from shine.evaluate.losses.form import LOSSES
from shine.evaluate.validation import _plainly_valid, _validator
from shine.faces.config import Config
from shine.faces.keywords import KEYWORDS, constraints_from, settings_from
from shine.search.constraints.constraints import Constraints
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.problem import DEFAULT_PRIMITIVES
from shine.search.problem.settings import FitnessSettings, SearchSettings

DATA_AND_REPORT = {
    "X",
    "y",
    "sample_weight",
    "sigma",
    "groups",
    "times",
    "loss_columns",
    "objective",
    "features",
    "report",
    "workers",
}
"""Parameters of `evolve` that are not settings."""

ESTIMATOR_NAMES = {"population_size": "population", "max_time": "seconds"}
"""Keyword of `evolve` for each parameter of an estimator that has another name."""

OWN_PARAMETERS = {
    "constraints": None,
    "units": None,
    "settings": None,
    "n_jobs": -1,
    "executor": None,
    "random_state": None,
    "model_selection": "best",
    "warm_start": False,
    "verbose": 0,
    "callbacks": (),
    "n_components": 5,
    "raw_features": True,
    "max_correlation": 0.95,
}
"""Parameters of estimators with scikit-learn's meaning or their own, and their defaults."""

OWN_DEFAULTS = {("SymbolicClassifier", "stop_loss"): 1e-3}
"""Other defaults of an estimator: log-loss falls to 0 with the certainty of a formula, not with its errors."""


def default(keyword: str) -> Any:
    """The default of the setting that a keyword of `evolve` sets."""
    return reduce(getattr, KEYWORDS[keyword], SearchSettings())


def explicit(function: Any) -> dict[str, Any]:
    """The parameters of a signature that have defaults, with these."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in DATA_AND_REPORT and p.kind != p.VAR_KEYWORD}


def test_the_signature_of_evolve_has_the_defaults_of_the_settings():
    given = explicit(shine.evolve)
    assert given.pop("constraints") is None
    assert given.pop("executor") is None
    assert given.pop("live") is False
    assert given == {keyword: default(keyword) for keyword in given}


def test_every_setting_is_a_keyword_of_evolve():
    further = {keyword for keyword, place in KEYWORDS.items() if place[0] == "evolution"}
    assert KEYWORDS.keys() - further == explicit(shine.evolve).keys() - {"executor", "live"}


@pytest.mark.parametrize("name", ["SymbolicRegressor", "SymbolicClassifier", "SymbolicTransformer"])
def test_the_signature_of_an_estimator_has_the_defaults_of_the_settings(name):
    for parameter, value in explicit(getattr(shine, name)).items():
        if parameter in OWN_PARAMETERS:
            assert value == OWN_PARAMETERS[parameter]
        else:
            assert value == OWN_DEFAULTS.get((name, parameter), default(ESTIMATOR_NAMES.get(parameter, parameter)))


@pytest.mark.parametrize("name", ["SymbolicRegressor", "SymbolicClassifier", "SymbolicTransformer"])
def test_an_estimator_stores_each_parameter(name):
    estimator = getattr(shine, name)
    marks = {parameter: object() for parameter in inspect.signature(estimator).parameters}
    assert vars(estimator(**marks)) == marks == estimator(**marks).get_params(deep=False)


def test_the_sections_of_the_file_have_the_defaults_of_the_settings():
    config = Config(data={"path": "a.csv", "target": "y"})
    assert config.search == SearchSettings(primitives=("add", "sub", "mul", "div"))
    assert set(config.search.primitives) < set(DEFAULT_PRIMITIVES)


@pytest.mark.parametrize("name", [*LOSSES, "poisson", "quantile(0.9)"])
def test_the_settings_have_the_loss_as_text(name):
    assert settings_from(loss=name).fitness.loss == name


def test_the_loss_of_a_function_is_its_definition():
    def fourth(y_true, y_pred):
        return (y_true - y_pred) ** 4

    text = settings_from(loss=fourth).fitness.loss
    assert text.startswith("def fourth(prediction, target):") and settings_from(loss=text).fitness.loss == text


def test_keywords_become_sections():
    settings = settings_from(population=20, loss="mae", stop_loss=0.5, guesses=["a"], constraints={"forbidden": ["b"]})
    assert (settings.evolution.population, settings.fitness.loss, settings.stop.loss) == (20, "mae", 0.5)
    assert (settings.guesses, settings.constraints) == (("a",), Constraints(forbidden=("b",)))
    assert settings_from() == SearchSettings()


def test_an_unknown_keyword_comes_before_unfit_data():
    with pytest.raises(TypeError, match=r"evolve\(\) got an unexpected keyword argument 'populatoin'"):
        shine.evolve([], [], populatoin=10)
    with pytest.raises(DataError):
        shine.evolve([], [])


def test_constraints_are_given_as_such_or_by_their_fields():
    constraints = Constraints(limits={"sin": 1})
    assert constraints_from(constraints) is constraints
    assert constraints_from({"limits": {"sin": 1}}) == constraints
    assert constraints_from(None) == Constraints()
    with pytest.raises(ValueError, match="constraints has no 'limit'; did you mean 'limits'\\? it has limits, nesting"):
        constraints_from({"limit": {}})


@pytest.mark.slow
def test_settings_of_plain_values_are_those_that_pydantic_makes():
    choose = Random(0).choice
    numbers = [0, 1, -1, 8, 1024, 1025, 10**7, 10**7 + 1, 0.5, 3.5, 1e-20, math.inf, math.nan]
    values = [*numbers, True, None, (1.0, 2.0), {}, "mse", "auto", "machine"]
    quick = 0
    for _ in range(4000):
        kind = choose([EvolutionSettings, StopSettings, FitnessSettings])
        given = {choose(fields(kind)).name: choose(values) for _ in range(choose([1, 1, 2]))}
        found = _plainly_valid(kind, given)
        if found is not None:
            quick += 1
            assert repr(found) == repr(_validator(kind).validate_python(given))
    assert quick > 500
