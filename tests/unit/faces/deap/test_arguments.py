"""Arguments in other forms are understood, and wrong ones get the call that is meant."""

from __future__ import annotations

import operator

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from deap import gp
from unit.faces.deap.sets import Individual, Several, arithmetic, compiled, evolving, population

import shine
import shine.deap

X = np.random.default_rng(3).normal(size=(30, 2))
Y = X[:, 0] - X[:, 1]


def pair():
    pset = gp.PrimitiveSet("MAIN", 2)
    pset.addPrimitive(operator.sub, 2)
    pset.renameArguments(ARG0="u", ARG1="v")
    return pset


@pytest.mark.parametrize("call", ["__call__", "predictions"])
@pytest.mark.parametrize("given", [Individual([]), 3, None, [1.0, 2.0], "sub(u, v)"], ids=str)
def test_a_population_is_a_list_of_trees(call, given):
    with pytest.raises(TypeError, match=r"takes a list of individuals, not .* call evaluator.evaluate\(individual\)"):
        getattr(compiled(pair(), X, Y), call)(given)


def test_an_evaluator_is_not_registered_as_the_map():
    with pytest.raises(TypeError, match=r"takes one argument; register evaluator\.map as the map"):
        compiled(pair(), X, Y)(len, population(pair(), 2, 0))


def test_one_individual_is_no_population():
    individual = population(pair(), 1, 0)[0]
    with pytest.raises(TypeError, match=r"^evaluator\(population\) takes a list of individuals, not one individual; "):
        compiled(pair(), X, Y)(individual)


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_population_is_no_individual(kind):
    several = population(pair(), 3, 0)
    with pytest.raises(TypeError, match=r"takes one individual, a tree, not a population; .* evaluator\(population\)"):
        compiled(pair(), X, Y).evaluate(kind(several))


def test_the_trees_of_one_individual_are_no_population():
    psets = evolving()
    individual = Several([population(pset, 1, 0)[0] for pset in psets])
    evaluator = compiled(psets, X[:, 0], Y)
    with pytest.raises(TypeError, match=r"a list of trees, not the trees of one individual; .* pool.map"):
        evaluator(individual)
    with pytest.raises(TypeError, match="a list of trees for its primitive sets, not a population"):
        evaluator.evaluate([individual])
    assert evaluator([individual]) == [evaluator.evaluate(individual)]


@pytest.mark.parametrize("dtype", [np.int64, "float16", None, 3, "float"])
def test_another_number_type_is_refused(dtype):
    if dtype == "float":
        assert compiled(pair(), X, Y, dtype=dtype).predictions([]).dtype == np.float64
        return
    with pytest.raises(ValueError, match=r"dtype must be one of float64, float32, is "):
        compiled(pair(), X, Y, dtype=dtype)


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_columns_of_a_data_frame_are_found_by_name(frame):
    individual = Individual.from_string("sub(u, v)", pair())
    for names in (["u", "v"], ["v", "u"]):
        data = frame({name: X[:, "uv".index(name)] for name in names})
        assert compiled(pair(), data, Y).evaluate(individual) == (0.0,)
    assert compiled(pair(), frame({"a": X[:, 0], "b": X[:, 1]}), Y).evaluate(individual) == (0.0,)


def test_a_column_with_the_name_of_another_argument_is_refused():
    frame = pandas.DataFrame({"v": X[:, 0], "w": X[:, 1]})
    with pytest.raises(
        shine.DataError, match=r"X has the columns \(v, w\), but the primitive set takes \(u, v\): give"
    ):
        compiled(pair(), frame, Y)


def mean_squared_error(y_true, y_pred, *, sample_weight=None):
    return np.mean((y_true - y_pred) ** 2)


@pytest.mark.parametrize(
    "objective",
    [mean_squared_error, lambda y, yhat: 0.0, lambda predictions, individual: 0.0, lambda y_pred, tree: 0.0],
)
def test_an_objective_with_other_arguments_is_refused_at_once(objective):
    with pytest.raises(ValueError, match=r"takes \(.*\), but is called with \(individual, predictions\); give lambda"):
        compiled(pair(), X, Y, objectives=objective)


@pytest.mark.parametrize(
    ("objective", "form", "error"),
    [
        (lambda a, b: float(np.mean(a * 1.0)) + len(b), r"\(individual, predictions\)", TypeError),
        (lambda a, b: a.mean(), r"\(individual, predictions\)", ValueError),
        (lambda a: a.mean(), r"\(individual\)", ValueError),
        (lambda a, b: b[:, 0], r"\(individual, predictions\)", ValueError),
    ],
)
def test_an_objective_that_fails_is_told_how_it_is_called(objective, form, error):
    with pytest.raises(error, match=f"objective <lambda> is called with {form} and raised .*Error: "):
        compiled(pair(), X, Y, objectives=objective)(population(pair(), 2, 0))


def test_a_function_is_no_loss():
    with pytest.raises(TypeError, match=r"loss is the name of a loss, not mean_squared_error of type function; .* obj"):
        compiled(pair(), X, Y, mean_squared_error)


# Functions without a file ---------------------------------------------------------------------------------------------

TEXT = "def protected(a, b):\n    try:\n        return a / b\n    except ZeroDivisionError:\n        return LIMIT\n"


def of_a_session(text=TEXT, name="protected"):
    """A set with a function that has no file."""
    scope = {"LIMIT": 7.0}
    exec(text, scope)
    pset = arithmetic(2)
    pset.addPrimitive(scope[name], 2, name="mine")
    return pset, Individual.from_string("mine(ARG0, 0)", pset)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mine", "protected"])
def test_a_function_without_a_file_is_given_as_text(name):
    pset, individual = of_a_session()
    sources = {name: TEXT}
    assert compiled(pset, X, np.full(30, 7.0), sources=sources).evaluate(individual) == (0.0,)
    assert shine.deap.compile(individual, pset, sources=sources)(1.0, 2.0) == 7
    assert str(shine.deap.tree(individual, pset, sources)) == "mine(ARG0, 0)"


@pytest.mark.parametrize(
    ("sources", "error", "message"),
    [
        (
            {"mine": "def mine(a): return a"},
            shine.UnsupportedSyntaxError,
            r"takes \(a\), but the function takes \(a, b",
        ),
        ({"mine": "a / b"}, shine.UnsupportedSyntaxError, "its text is not one definition"),
        ({"mine": "def mine(a, b:"}, shine.UnsupportedSyntaxError, "its text is not Python"),
        ({"other": TEXT, "mine": TEXT}, ValueError, "sources has 'other', which is the name of no own function"),
        (TEXT, TypeError, "sources maps names of functions to texts"),
        ({"mine": print}, TypeError, "sources maps names of functions to texts"),
    ],
)
def test_a_wrong_text_is_told(sources, error, message):
    with pytest.raises(error, match=message):
        compiled(of_a_session()[0], X, Y, sources=sources)


def test_the_error_for_a_function_without_a_file_says_how_to_give_its_text():
    with pytest.raises(shine.UnsupportedSyntaxError, match=r"sources=\{'protected': 'def protected\(a, b\): ...'\}"):
        compiled(of_a_session()[0], X, Y)
