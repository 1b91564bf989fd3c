"""Columns by heading and functions by any of their words, in constraints and complexities of every face."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import shine
from shine.base.errors import ConfigError
from shine.data.datasets.dataset import Dataset
from shine.faces.config import read_job
from shine.search.constraints.constraints import Constraints
from shine.search.evolution.complexity import CONSTANT_NAME
from shine.search.problem.names import any_name, constraints_in_formulas, renamed

FRAME = pd.DataFrame(np.random.default_rng(0).uniform(1, 3, (30, 3)), columns=["my area (m²)", "sin", "rooms"])
NAMES = ["my_area_m2", "sin_", "rooms"]
DATASET = Dataset.from_arrays(FRAME, FRAME["rooms"], features=NAMES, headings=list(FRAME))
QUICK = {"generations": 1, "seeding": 0.0, "population": 20}


def test_columns_are_named_by_heading_or_name_and_functions_by_any_word():
    given = Constraints(
        limits={"+": 1, "np.exp": 2, "my area (m²)": 3, "constant": 4, "sin": 5},
        nesting={"^": {"math.sqrt": 0, "rooms": 1}},
        required=("my area (m²)", "sin"),
        monotonic={"sin": "increasing"},
        units={"my area (m²)": "m^2", "sin": "1", "rooms": "1"},
        target_unit="1",
    )
    found = constraints_in_formulas(given, DATASET)
    assert found.limits == {"add": 1, "exp": 2, "my_area_m2": 3, CONSTANT_NAME: 4, "sin": 5}
    assert found.nesting == {"pow": {"sqrt": 0, "rooms": 1}}
    assert found.required == ("my_area_m2", "sin_")
    assert found.monotonic == {"sin_": "increasing"}
    assert found.units == {"my_area_m2": "m^2", "sin_": "1", "rooms": "1"}


def test_two_words_for_one_thing_are_refused():
    with pytest.raises(ValueError, match=r"limits has '\+' and 'add', which are the same; remove one of them"):
        renamed({"+": 1, "add": 2}, any_name(DATASET), "limits")


def used(front, text):
    return any(text in model.expression for model in front)


CONSTRAINTS = {"forbidden": ["my area (m²)"], "limits": {"*": 0}}


def test_evolve_understands_them():
    given = {"primitives": ["+", "*"], "constraints": CONSTRAINTS, "complexity": {"rooms": 2, "+": 3}}
    front = shine.evolve(FRAME, FRAME["rooms"], **given, **QUICK).front
    assert not used(front, "my_area") and not used(front, "*")
    assert front.best.weights == {"rooms": 2, "add": 3}


@pytest.mark.parametrize("kind", [shine.SymbolicRegressor, shine.SymbolicClassifier])
def test_the_estimators_understand_them(kind):
    settings = {"seeding": 0.0, "complexity": {"sin": 9, "rooms": 2, "+": 3}}
    given = {"generations": 1, "population_size": 20, "primitives": ["+", "*", "sin"], "settings": settings}
    front = kind(constraints=CONSTRAINTS, **given).fit(FRAME, FRAME["rooms"] > 2).front_
    assert not used(front, "my_area")
    assert front.best.weights == {"sin": 9, "rooms": 2, "add": 3}
    dear = given | {"settings": {"seeding": 0.0, "complexity": {"my area (m²)": 2}}}
    assert kind(**dear).fit(FRAME, FRAME["rooms"] > 2).best_.weights == {"my_area_m2": 2}


def test_the_unknown_functions_of_a_template_understand_words_of_functions():
    unknown = {"f": {"arguments": ["rooms"], "constraints": {"limits": {"*": 0}}}}
    given = {"primitives": ["+", "*"], "template": {"formula": "k*f(rooms)", "unknown": unknown}}
    front = shine.evolve(FRAME, FRAME["rooms"] ** 2, complexity={"+": 3}, **given, **QUICK).front
    assert all("*" not in str(model.functions["f"]) for model in front)
    unknown["f"]["constraints"]["limits"] = {"*": 0, "mul": 1}
    with pytest.raises(ValueError, match=r"unknown 'f': limits has '\*' and 'mul'"):
        shine.evolve(FRAME, FRAME["rooms"], **given, **QUICK)


def config(tmp_path, **parts):
    FRAME.assign(price=FRAME["rooms"]).to_csv(tmp_path / "flats.csv", index=False)
    path = tmp_path / "flats.yaml"
    given = {"data": {"path": "flats.csv", "target": "price"}, "primitives": ["+", "*"], "seed": 0} | parts
    path.write_text(json.dumps(given), encoding="utf-8")
    return path


def test_a_configuration_understands_them_too(tmp_path):
    units = {"my area (m²)": "m^2", "sin": "1", "rooms": "1"}
    constraints = {"limits": {"+": 1}, "forbidden": ["my area (m²)"], "units": units, "target_unit": "1"}
    evolution = {"complexity": {"my area (m²)": 2, "*": 3}}
    job = read_job(config(tmp_path, constraints=constraints, evolution=evolution))
    assert job.config.constraints.limits == {"+": 1}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"constraints": {"limits": {"-": 1}}}, r'limits.*"sub"'),
        ({"constraints": {"forbidden": ["my area"]}}, 'unknown feature "my area"; did you mean'),
        ({"constraints": {"limits": {"+": 1, "add": 1}}}, r"limits has '\+' and 'add'"),
        ({"evolution": {"complexity": {"/": 2}}}, 'unknown name "/"'),
        ({"evolution": {"complexity": {"*": 2, "mul": 2}}}, r"complexity has '\*' and 'mul'"),
    ],
)
def test_mistakes_in_a_configuration_have_their_place(tmp_path, parts, message):
    with pytest.raises(ConfigError, match=message):
        read_job(config(tmp_path, **parts))
