"""Models take the form that people write where its values are the same and the constraints hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import shine
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.parse import parse
from shine.search.constraints.compiled import CompiledConstraints
from shine.search.constraints.constraints import Constraints
from shine.search.finishing.tidying import tidied, without_trifles
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


def trifles(loss: float, size: float, scale: float = 1.0) -> int:
    """Number of models left of a line and the same with a further term of some size."""
    x = np.linspace(0, 1, 50)
    rows = Dataset.from_arrays(x[:, None], scale * 2 * x, features=["x"])
    trees = [parse(f"{2 * scale!r}*x", ["x"]), parse(f"{2 * scale!r}*x + {size * scale!r}*exp(x)", ["x"])]
    models = [Model(tree, at, 1.0) for tree, at in zip(trees, (2 * loss, loss), strict=True)]
    return len(without_trifles(models, 1e-28 * scale**2, rows))


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_terms_that_matter_on_no_row_are_left_out_unless_the_formula_is_exact(scale):
    assert trifles(1e-18 * scale**2, 1e-8, scale) == 1
    assert trifles(1e-30 * scale**2, 1e-8, scale) == 2
    assert trifles(1e-18 * scale**2, 1e-4, scale) == 2


def test_a_constant_target_has_no_trifles():
    rows = Dataset.from_arrays(np.arange(5.0)[:, None], np.ones(5), features=["x"])
    models = [Model(parse(text, ["x"]), 0.1, 0.0) for text in ("1.0", "1.0 + 1e-9*x")]
    assert without_trifles(models, 1e-28, rows) == models


@pytest.mark.slow
@pytest.mark.parametrize("law", ["linear", "waves"])
def test_laws_from_rates_of_splines_have_no_terms_for_the_errors_of_the_spline(law):
    t = np.linspace(0, 10, 101)
    if law == "linear":
        x = 0.84 + 1.66 * np.exp(-0.36075 * t)
        X, y, expected = x[:, None], CubicSpline(t, x)(t, 1), "0.303 - 0.36075*x0"
    else:
        u = t / 2.5 + 0.1
        X, expected = np.column_stack([np.sin(u), np.cos(1.3 * u)]), "1.5*x0*x1"
        y = 1.5 * X[:, 0] * X[:, 1] * (1 + 1e-8 * np.sin(9 * u) * np.exp(u / 2))
    best = shine.evolve(X, y, generations=20, seconds=None, seed=0).best
    wanted = parse(expected, [f"x{at}" for at in range(X.shape[1])])
    assert best.tree.size == wanted.size
    assert best.predict(X) == pytest.approx(y, abs=1e-4)
