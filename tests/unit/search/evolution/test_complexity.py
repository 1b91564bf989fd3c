"""Complexity by weights: of populations, trees, models, archives and searches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.search.evolution.oracles import population_of, primitive_set, scores_without_lines

import shine
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.growth import Terminals
from shine.lang.population import Population
from shine.search.evolution.archive import Archive
from shine.search.evolution.complexity import CONSTANT_NAME, complexities, tree_complexity
from shine.search.evolution.operators.creation import ptc2
from shine.search.models.model import Model

PRIMITIVES = PrimitiveSet(select(STANDARD, ("add", "mul", "cos", "sin", "where")), ("x", "y"))
NAMES = (CONSTANT_NAME, "x", "y", "add", "mul", "cos", "sin", "where")

weights_of_names = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 9))


def counted(population, index, weights):
    """The sum of the weights of an individual's nodes."""
    names = [NAMES[code] for code in population.tape(index).codes.tolist()]
    return sum(weights.get(name, 1) for name in names)


@given(weights_of_names, st.integers(0, 2**32))
def test_complexity_is_the_sum_of_the_weights_of_the_nodes(weights, seed):
    population = ptc2(20, PRIMITIVES, 15, 6, Terminals(), np.random.default_rng(seed))
    found = complexities(population, weights)
    assert found.tolist() == [counted(population, i, weights) for i in range(20)]
    assert [tree_complexity(population.tree(i), weights) for i in range(20)] == found.tolist()


@pytest.mark.parametrize(
    ("text", "weights", "complexity"),
    [
        ("a + b", {}, 3),
        ("sin(a) + sin(b)", {"sin": 5}, 13),
        ("2.5*a + 2.5", {"constant": 3}, 9),
        ("a*b", {"a": 4, "add": 9}, 6),
        ("-a", {"neg": 2}, 3),
    ],
)
def test_the_complexity_of_a_model_follows_the_weights(text, weights, complexity):
    assert Model(shine.parse(text, ("a", "b")), 0.0, 1.0, weights).complexity == complexity


POWERS = PrimitiveSet(tuple(STANDARD[name] for name in ("add", "mul", "exp", "log")), ("x", "y"))


@pytest.mark.parametrize(
    ("text", "complexity"),
    [
        ("exp(1.37*log(x))", 3),
        ("exp(log(x)*1.37)", 3),
        ("exp(1.37*log(x + y))", 5),
        ("y*exp(1.37*log(x)) + exp(0.2*log(y))", 9),
        ("exp(x*log(y))", 5),
        ("exp((x + 2.0)*log(y))", 7),
        ("exp(2.5*x)", 4),
    ],
)
def test_a_power_written_with_exp_and_log_counts_as_a_power(text, complexity):
    population = Population.from_trees([shine.parse(text, ("x", "y"))], POWERS)
    assert complexities(population, {}).tolist() == [complexity]
    assert complexities(population, {"y": 1, "mul": 1}).tolist() == [complexity]


def test_an_archive_has_room_for_the_most_complex_individual():
    weights = {"x": 7, "add": 7}
    primitives = primitive_set()
    largest = population_of(["x x add x add"], primitives, 5)
    archive = Archive.empty(primitives, 5, weights).updated(largest, scores_without_lines([1.0]))
    assert archive.best_loss == 1.0


def test_a_weight_of_an_unknown_name_is_an_error_with_the_known_names():
    with pytest.raises(ValueError, match=r"complexity has 'sine'.*known are constant, x, y, add"):
        Archive.empty(PRIMITIVES, 5, {"sine": 2})


def test_fractions_are_added_and_the_sum_is_rounded_a_half_upwards():
    weights = {"exp": 1.5, "x": 0.25, "mul": 0.3}
    trees = [shine.parse(text, ["x"]) for text in ("x", "exp(x)", "exp(exp(x))", "exp(x)*exp(x)", "x*x*x*x + 1")]
    # 0.25, 1.75, 3.25, 3.8 and 3.9; a complexity is at least 1.
    assert [tree_complexity(tree, weights) for tree in trees] == [1, 2, 3, 4, 4]
    population = Population.from_trees(trees, PrimitiveSet(select(STANDARD, ("add", "mul", "exp")), ("x",)))
    assert complexities(population, weights).tolist() == [1, 2, 3, 4, 4]


def test_a_search_with_fractions_shows_them_in_its_front():
    X = np.random.default_rng(0).uniform(0, 1, (50, 1))
    weights = {"exp": 2.6, "x0": 0.4, "constant": 0.1, "mul": 0.7}
    quick = {
        "generations": 5,
        "population": 60,
        "islands": 2,
        "seeding": 0.0,
        "seconds": None,
        "primitives": ["add", "mul", "exp"],
    }
    found = shine.evolve(X, np.exp(X[:, 0]) * X[:, 0], complexity=weights, **quick)
    assert found.best.weights == weights
    assert found.best.expression in ("x0*exp(x0)", "exp(x0)*x0") and found.best.complexity == 4
    assert [model.complexity for model in found.front] == [
        tree_complexity(model.tree, weights) for model in found.front
    ]


@pytest.mark.parametrize("weight", [0, -1, 1000.5, float("nan"), "a"])
def test_other_weights_are_refused(weight):
    with pytest.raises(ValueError, match=r"complexity\.exp must be "):
        shine.evolve([[1.0], [2.0]], [1.0, 2.0], complexity={"exp": weight})
