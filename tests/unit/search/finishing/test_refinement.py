"""The front keeps the formula of each complexity that the choice prefers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import loss_of
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.search.finishing.refinement import Draft, surprise
from shine.search.models.certainty import choose
from shine.search.models.model import Model
from shine.search.problem.reference_losses import Evidence, description_length

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 9, (12, 1))
Y = 5 * X[:, 0] ** 2 / (X[:, 0] ** 2 + 4) + 0.04 * RNG.standard_normal(12)
ROWS = Dataset.from_arrays(X, Y, features=("x",))


def model(text: str) -> Model:
    tree = shine.parse(text, ("x",))
    return Model(tree, float(np.mean((Model(tree, 0.0, 1.0).predict(X) - Y) ** 2)), 1.0)


def surprises(*models: Model, as_written: bool = False) -> list[float]:
    described = None if as_written else description_length(ROWS, "mse")
    return [surprise(each, Evidence.of(ROWS, "mse"), described) for each in models]


def test_digits_that_the_rows_do_not_determine_have_no_price():
    law, short = model("5.01 - 20.09/(4.012 + x*x)"), model("1/(0.7/(x*x) + 0.2)")
    first, second = surprises(law, short)
    assert first < second
    constant = Model(shine.parse("3.2", ("x",)), float(np.var(Y)), 0.0)
    assert choose([constant, short, law], 0.0, description_length(ROWS, "mse")).index == 2


def test_a_front_has_no_law_twice():
    draft = Draft(SimpleNamespace(loss=loss_of("mse"), enough=0.0), None, ROWS)
    draft.primitives = PrimitiveSet(tuple(STANDARD.values()), ("x",))
    draft.kept = [model(text) for text in ("5*x/exp(0.2*x)", "5*x/(exp(0.2*x) + 1e-9)", "5*x")]
    assert [each.expression for each in draft.plainest(draft.kept)] == ["5*x", "5*x/exp(0.2*x)"]


@pytest.mark.parametrize(
    ("law", "guess"),
    [
        ("sqrt(a**2 + b**2)", "1.349*sqrt(0.5495*(a**2 + b**2 - 0.01) - 0.001)"),
        ("2*log(a*b + 1)", "2.1*log(1.1*a*b + 1.1) - 0.2"),
        ("sqrt(2*a + 3)", "1.3*sqrt(1.2*a + 1.8)"),
        ("a/(b + 2)", "(1.1*a + 0.1)/(1.2*b + 2.3 + 0.01*a)"),
        ("a*exp(b/3)", "1.2*a*exp(0.3*b + 0.1) + 0.01"),
        ("2*sin(a + b)", "2.1*sin(1.01*a + 0.99*b + 0.01) + 0.01"),
    ],
)
def test_exact_formulas_have_no_constants_that_the_rows_do_not_see(law, guess):
    X = np.random.default_rng(0).uniform(0.5, 5, (100, 2))
    y = shine.jit(law, params=("a", "b"))(*X.T)
    found = shine.evolve(
        X, y, features=["a", "b"], guesses=[guess], generations=0, seconds=None, seeding=0, population=10, threads=1,
    )  # fmt: skip
    assert found.best.expression == law
