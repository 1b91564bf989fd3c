"""Parts of exact formulas give way to smaller expressions with the same values on the data."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine import PrimitiveSet
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.primitives import select
from shine.lang.parse import parse
from shine.lang.vocabulary import primitive_table
from shine.search.finishing.shorter import shortened
from shine.search.models.model import Model
from shine.search.problem.settings import DEFAULT_PRIMITIVES

RNG = np.random.default_rng(0)
NAMES = ("f", "b", "i", "n")
X = np.column_stack([RNG.uniform(1, 5, 300), RNG.integers(0, 2, 300), RNG.uniform(0, 3, 300), RNG.integers(1, 5, 300)])
ROWS = Dataset.from_arrays(X, np.ones(300), features=NAMES)
TABLE, FUNCTIONS = primitive_table(DEFAULT_PRIMITIVES)
PRIMITIVES = PrimitiveSet(select(TABLE, FUNCTIONS), NAMES)


def short(text, loss=0.0):
    found = shortened([Model(parse(text, NAMES), loss, 1.0)], 1e-20, ROWS, PRIMITIVES)
    return found[0].expression if found else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f*i + b*(1.5*b + 1.5)", "f*i + 3*b"),
        ("f*b*b*i + sin(b)", "b*f*i + 0.841470984808*b"),
        ("sqrt(b)*f + exp(2*i)", "b*f + exp(2*i)"),
        ("(1.884810149713108 - 0.67959614718163/n - 0.030575011695622*(n - 7.278396922407876)**2)*i", "i*log(n)"),
    ],
)
def test_columns_of_few_values_have_shorter_forms(text, expected):
    found = short(text)
    assert found is None if expected is None else parse(found, NAMES).size <= parse(expected, NAMES).size
    values = {name: X[:, at] for at, name in enumerate(NAMES)}
    functions = {name: getattr(np, name) for name in ("sin", "exp", "sqrt", "log")}
    assert eval(found, functions, values) == pytest.approx(eval(text, functions, values), abs=1e-9)


@pytest.mark.parametrize("text", ["f*i + 3*b", "sin(f*i) + exp(i)"])
def test_a_formula_without_a_shorter_form_stays(text):
    assert short(text) is None


def test_an_inexact_formula_stays():
    assert short("f*i + b*(1.5*b + 1.5)", loss=0.1) is None


@pytest.mark.slow
def test_a_search_hands_over_the_shortest_exact_formula():
    y = X[:, 0] * X[:, 2] + 3 * X[:, 1]
    guess = "f*i + b*(1.5*b + 1.5)"
    result = shine.evolve(X, y, features=NAMES, guesses=[guess], seeding=0, generations=1, threads=1)
    assert result.best.tree.size == 7


@pytest.mark.slow
def test_formulas_with_functions_of_the_user_stay_whole():
    y = np.hypot(X[:, 0], X[:, 2]) + 3 * X[:, 1]
    own = ["add", "mul", "def leg(a, b):\n    return sqrt(a*a + b*b)"]
    options = {"guesses": ["leg(f, i) + b*(1.5*b + 1.5)"], "seeding": 0, "generations": 1, "threads": 1}
    result = shine.evolve(X, y, features=NAMES, primitives=own, constraints={"nesting": {"leg": {"leg": 0}}}, **options)
    assert result.best.predict(X) == pytest.approx(y, rel=1e-9)
