"""Lines as new users type them, at all faces, and what Shine answers."""

from __future__ import annotations

import inspect
import math
import operator
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import shine
from shine.base.errors import ShineError
from shine.estimators import SymbolicRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (100, 2))
Y = 2.5 * X[:, 0] * X[:, 1]
FAST = {"random_state": 0, "n_jobs": 1, "generations": 1}


@pytest.fixture(scope="module")
def fitted():
    return SymbolicRegressor(primitives=["+", "*", "sin"], **FAST).fit(X, Y)


def answer(call):
    """The message of the error that a call ends with; it is one line, or a line for each column."""
    with pytest.raises((TypeError, ValueError, ShineError)) as caught:
        call()
    assert len(str(caught.value)) < 1000
    return str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: shine.evolve(X, Y, max_time=2), ["max_time", "seconds"]),
        (lambda: shine.evolve(X, Y, population_size=100), ["population_size", "population"]),
        (lambda: shine.evolve(X, Y, random_state=1), ["random_state", "seed"]),
        (lambda: shine.evolve(X, Y, n_jobs=1), ["n_jobs", "threads"]),
        (lambda: shine.evolve(X, Y, callbacks=print), ["callbacks", "report"]),
        (lambda: SymbolicRegressor(seconds=2), ["seconds", "max_time"]),
        (lambda: SymbolicRegressor(population=100), ["population", "population_size"]),
        (lambda: SymbolicRegressor().fit(X, Y, weights=Y), ["weights", "sample_weight"]),
        (lambda: SymbolicRegressor(nested_constraints={}), ["nested_constraints", "nesting"]),
        (lambda: SymbolicRegressor(max_samples=0.5), ["max_samples", "rows"]),
        (lambda: SymbolicRegressor(loss="MAE").fit(X, Y), ["loss", "mae"]),
        (lambda: SymbolicRegressor(primitives=["cosine"]).fit(X, Y), ["cosine", "'cos'"]),
        (lambda: SymbolicRegressor(niterations=40), ["niterations", "generations"]),
        (lambda: SymbolicRegressor(maxsize=20), ["maxsize", "max_size"]),
        (lambda: SymbolicRegressor().set_params(maxsize=1), ["maxsize", "max_size"]),
        (lambda: SymbolicRegressor(max_time=0).fit(X, Y), ["max_time must be", "is 0"]),
        (lambda: SymbolicRegressor(population_size=-1).fit(X, Y), ["population_size must be", "is -1"]),
        (lambda: SymbolicRegressor(primitives="add").fit(X, Y), ["primitives", "'add'", "list"]),
        (lambda: SymbolicRegressor(primitives=["ad"]).fit(X, Y), ["primitives", "'ad'", "add"]),
        (lambda: SymbolicRegressor(units={"units": "m"}).fit(X, Y), ["units"]),
        (lambda: SymbolicRegressor(units=(["parsec per", "m"], "m")).fit(X, Y), ["unit", "parsec per"]),
    ],
)
def test_a_mistake_is_answered_in_the_words_that_were_typed(call, words):
    message = answer(call)
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize("index", [99, "best", 1.5, -99, [0, 0]])
def test_a_wrong_index_is_answered(index, fitted):
    message = answer(lambda: fitted.predict(X, index=index))
    assert "index" in message
    assert "\n" not in message


def test_a_mistake_after_a_fit_does_not_print_the_front(fitted):
    assert len(answer(lambda: fitted.set_params(maxsize=1))) < 400


@pytest.mark.parametrize(
    "value", ["x" * 100_000, list(range(100_000)), np.zeros(100_000), {"a": ["b" * 1000] * 100}], ids=type
)
def test_an_error_cuts_what_it_shows(value):
    assert len(answer(lambda: SymbolicRegressor(loss=value).fit(X, Y))) < 1000
    assert len(answer(lambda: SymbolicRegressor(max_size=value).fit(X, Y))) < 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    "primitives",
    [
        ["+", "*", "sin"],
        [operator.add, operator.mul, math.sin],
        [np.add, np.multiply, np.sin],
        ["add", "*", np.sin],
        ["+", "*", "def wave(x):\n    return math.sin(x)"],
    ],
    ids=["signs", "operator and math", "numpy", "mixed", "text"],
)
def test_functions_are_named_in_any_of_the_usual_ways(primitives):
    model = SymbolicRegressor(primitives=primitives, **FAST).fit(X, Y)
    assert model.predict(X) == pytest.approx(Y)


@pytest.mark.slow
def test_own_functions_may_call_modules():
    def own(x):
        return operator.mul(np.log(x), math.sin(x))

    y = 3 * np.log(X[:, 0]) * np.sin(X[:, 0])
    model = SymbolicRegressor(primitives=["add", "mul", own], **FAST).fit(X, y)
    assert model.predict(X) == pytest.approx(y)
    assert "own(" in model.best_.formula()


def clipped(x):
    return max(0, x)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("primitives", "y"),
    [
        ([operator.add, operator.mul, clipped], np.maximum(0, X[:, 0] - 3) + X[:, 1] ** 2),
        ([operator.truediv, operator.sub, np.tanh], 1 - 0.4 * np.tanh(X[:, 0])),
        (["+", math.exp], 7.5 * X[:, 0]),
    ],
)
def test_a_result_is_a_guess_for_the_same_search_in_all_its_forms(primitives, y):
    options = {"primitives": primitives, "threads": 1, "seed": 0}
    best = shine.evolve(X, y, generations=1, **options).best
    for guess in (best, best.tree, best.expression, best.formula()):
        again = shine.evolve(X, y, generations=0, seeding=0, guesses=[guess], **options).best
        assert again.loss <= 1.01 * best.loss + 1e-12


def test_a_formula_is_printed_with_its_figures(fitted):
    text = str(fitted.best_)
    assert text.startswith("2.5*x0*x1")
    for figure in ("complexity", "loss", "R2"):
        assert figure.lower() in text.lower()
    assert "2.5" in repr(fitted.best_)
    assert fitted.best_._repr_latex_().startswith("$")
    assert "<math" in fitted.best_._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-1*x0", "-x0"),
        ("square(x0)", "x0**2"),
        ("exp(x0/3.3333333333333335)", "exp(0.3*x0)"),
        ("x0*x0 + -1.0*x1", "x0**2 - x1"),
    ],
)
def test_formulas_are_written_as_people_write_them(text, shown):
    result = shine.evolve(X, X[:, 0], guesses=[text], primitives=["add", "mul", "div", "square", "exp"], generations=0)
    model = next(iter(result.front))
    written = type(model)(shine.parse(text, ("x0", "x1")), 0.0, 1.0)
    assert written.formula() == shown


def test_headings_reach_sql_that_a_database_executes():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"my area (m²)": X[:, 0], "unit price (€)": X[:, 1]})
    model = SymbolicRegressor(primitives=["*", "+"], **FAST).fit(frame, Y)
    text = model.best_.export("sql", dialect="sqlite")
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute('CREATE TABLE t ("my area (m²)", "unit price (€)")')
        base.executemany("INSERT INTO t VALUES (?, ?)", X.tolist())
        values = [value for (value,) in base.execute(f"SELECT {text} FROM t")]
    assert values == pytest.approx(Y)
    assert "²" in model.latex() or "^{2}" in model.latex()
    assert all(name.isidentifier() for name in model.formula_names_)


@pytest.mark.slow
def test_absolute_errors_find_the_law_despite_gross_outliers():
    rows = RNG.uniform(1, 5, (200, 2))
    y = 3 * rows[:, 0] * rows[:, 1] + 1
    y[RNG.choice(200, 6, replace=False)] += 1000
    model = SymbolicRegressor(loss="mae", primitives=["+", "*"], **FAST).fit(rows, y)
    assert model.best_.formula() == "3*x0*x1 + 1"


def test_estimators_take_no_word_that_evolve_has_for_another_meaning():
    ours = {*inspect.signature(shine.evolve).parameters} & {*inspect.signature(SymbolicRegressor).parameters}
    assert {"generations", "primitives", "guesses", "loss"} <= ours
    assert not {"seconds", "population", "seed", "threads", "report"} & {
        *inspect.signature(SymbolicRegressor).parameters
    }
