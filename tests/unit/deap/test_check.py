"""The script's own function is called once, for the smallest individual, and compared."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from deap import base, gp, tools
from unit.deap.sets import compiled, created, evolving, mean_square, population, typed

X = np.random.default_rng(3).normal(size=(30, 2))
ROWS = np.column_stack([X, np.arange(30) % 3 == 0]).astype(float)
Y = X[:, 0] - X[:, 1]
Two = created("TestedTwo", base.Fitness, weights=(-1.0, -1.0))
Tree = created("TestedTreeOfTwo", gp.PrimitiveTree, fitness=Two)
Trees = created("TestedTreesOfTwo", list, fitness=Two)


def nodes(individual):
    return sum(map(len, individual))


def recorded(plain):
    calls = []

    def evaluate(individual):
        calls.append(individual)
        return plain(individual)

    toolbox = base.Toolbox()
    toolbox.register("evaluate", evaluate)
    return toolbox.evaluate, calls


def test_several_values_of_a_typed_set():
    pset = typed()
    individuals = population(pset, 30, 1, kind=Tree)
    evaluate, calls = recorded(lambda each: (mean_square(gp.compile(each, pset), ROWS, Y), len(each)))
    evaluator = compiled(pset, ROWS, Y, objectives=("mse", len))
    assert evaluator.map(evaluate, individuals) == evaluator(individuals)
    assert [len(each) for each in calls] == [min(map(len, individuals))]


def test_the_smallest_individual_of_several_trees_has_the_fewest_nodes():
    psets = evolving()
    parts = [population(pset, 30, seed, low=2, high=4) for seed, pset in enumerate(psets)]
    individuals = [Trees(trees) for trees in zip(*parts, strict=True)]
    evaluate, calls = recorded(lambda each: (mean_square(gp.compileADF(each, psets), X[:, :1], Y), nodes(each)))
    evaluator = compiled(psets, X[:, 0], Y, objectives=("mse", nodes))
    assert evaluator.map(evaluate, individuals) == evaluator(individuals)
    assert list(map(nodes, calls)) == [min(map(nodes, individuals))]


def test_individuals_without_a_value_are_not_compared():
    pset = gp.PrimitiveSet("MAIN", 1)
    for function in (math.log, operator.neg):
        pset.addPrimitive(function, 1)
    rows = np.arange(5.0)[:, None]
    individuals = [Tree.from_string(text, pset) for text in ("log(ARG0)", "neg(neg(neg(ARG0)))")]
    evaluate, calls = recorded(lambda each: (mean_square(gp.compile(each, pset), rows, rows[:, 0]), len(each)))
    compiled(pset, rows, rows[:, 0], objectives=("mse", len)).map(evaluate, individuals)
    assert list(map(str, calls)) == ["neg(neg(neg(ARG0)))"]


def test_nothing_is_compared_before_an_individual_has_a_value():
    pset = gp.PrimitiveSet("MAIN", 1)
    for function in (math.log, operator.neg):
        pset.addPrimitive(function, 1)
    evaluate, calls = recorded(lambda each: (0.0, len(each)))
    evaluator = compiled(pset, [0.0, 1.0], [1.0, 2.0], objectives=("mse", len))
    evaluator.map(evaluate, [Tree.from_string("log(neg(ARG0))", pset)])
    assert calls == []
    with pytest.raises(
        ValueError, match=r"returns \(0.0, 2\) for neg\(ARG0\), but the compiled \(mse, len\) is \(5.0,"
    ):
        evaluator.map(evaluate, [Tree.from_string("neg(ARG0)", pset)])


@pytest.mark.parametrize(
    "other", [lambda each: (1e9, len(each)), lambda each: (1.0,), lambda each: "no", lambda _: None]
)
def test_other_values_are_noticed(other):
    pset = typed()
    evaluate, _ = recorded(other)
    with pytest.raises(ValueError, match="give the evaluator the loss or objectives, X and y of that function"):
        compiled(pset, ROWS, Y, objectives=("mse", len)).map(evaluate, population(pset, 10, 2, kind=Tree))


def test_a_message_about_many_values_shows_the_first():
    pset = typed()
    cases = created("TestedCases", base.Fitness, weights=(-1.0,) * 30)
    tree = created("TestedTreeOfCases", gp.PrimitiveTree, fitness=cases)
    evaluate, _ = recorded(lambda each: (0.5,) * 30)
    with pytest.raises(ValueError, match=r"returns \((0.5, ){6}... 30 values\)") as error:
        compiled(pset, ROWS, Y, objectives="errors").map(evaluate, population(pset, 10, 3, kind=tree))
    assert len(str(error.value)) < 500


def test_a_decorated_evaluator_is_called_for_each_individual():
    pset = typed()
    evaluator = compiled(pset, ROWS, Y)
    toolbox = base.Toolbox()
    toolbox.register("evaluate", evaluator.evaluate)
    toolbox.decorate("evaluate", tools.DeltaPenalty(lambda each: len(each) < 4, 1e6))
    one = created("TestedOne", base.Fitness, weights=(-1.0,))
    individuals = population(pset, 20, 4, kind=created("TestedTreeOfOne", gp.PrimitiveTree, fitness=one))
    plain = evaluator(individuals)
    expected = [f if len(each) < 4 else (1e6,) for each, f in zip(individuals, plain, strict=True)]
    assert list(evaluator.map(toolbox.evaluate, individuals)) == expected
