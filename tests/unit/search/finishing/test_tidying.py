"""Models take the form that people write where its values are the same and the constraints hold."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.parse import parse
from shine.search.constraints.compiled import CompiledConstraints
from shine.search.constraints.constraints import Constraints
from shine.search.finishing.shorter import tidied
from shine.search.models.model import Model

ROWS = Dataset.from_arrays(np.random.default_rng(0).uniform(-3, 3, (50, 2)), np.ones(50), features=["x", "y"])
NONE = PrimitiveSet((), ("x", "y"))


def written(text, **constraints):
    """The expression of a model after tidying under constraints."""

    def rules(primitives):
        return CompiledConstraints(Constraints(**constraints), primitives, "written")

    (model,) = tidied([Model(parse(text, ("x", "y")), 0.5, 0.5)], ROWS, NONE, rules if constraints else None)
    return model.expression


@pytest.mark.parametrize(
    ("text", "expected"), [("-1.0*(x*y)", "-x*y"), ("sqrt(square(x))*y", "y*abs(x)"), ("x*x*x*x", "x**4")]
)
def test_a_model_takes_the_form_that_people_write(text, expected):
    assert written(text) == expected


def test_a_model_stays_if_the_form_has_other_values_on_the_data():
    assert written("log(x) + log(y)") == "log(x) + log(y)"


@pytest.mark.parametrize(
    ("text", "constraints", "expected"),
    [
        ("-1.0*(x*y)", {"limits": {"neg": 0}}, "-1*(x*y)"),
        ("-1.0*(x*y)", {"limits": {"sin": 0}}, "-x*y"),
        ("sin(x)/cos(x)", {"limits": {"tan": 0}}, "sin(x)/cos(x)"),
        ("sin(x)/cos(x)", {"units": {"x": "1", "y": "m"}, "target_unit": "1"}, "tan(x)"),
    ],
)
def test_a_model_stays_if_the_form_breaks_a_constraint(text, constraints, expected):
    assert written(text, **constraints) == expected


def test_a_constrained_search_gives_tidy_formulas():
    X = np.random.default_rng(0).uniform(1, 5, (100, 2))
    result = shine.evolve(
        X,
        -0.5 * X[:, 0] * X[:, 1] ** 2,
        features=["m", "v"],
        constraints={"units": {"m": "kg", "v": "m/s"}, "target_unit": "J"},
        generations=5,
        population=100,
    )
    assert result.best.expression == "-0.5*m*v**2"
