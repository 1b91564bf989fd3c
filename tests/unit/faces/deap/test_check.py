"""The script's own function is called for a few individuals of the first population, and compared."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from deap import base, gp, tools
from unit.faces.deap.sets import compiled, created, evolving, mean_square, population, typed

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
    held = [{node.name for tree in trees for node in tree if node.arity} for trees in (calls, individuals)]
    assert held[0] == held[1]
    assert len(calls) <= len(held[0])


def test_the_smallest_individual_of_several_trees_is_among_the_first_compared():
    psets = evolving()
    parts = [population(pset, 30, seed, low=2, high=4) for seed, pset in enumerate(psets)]
    individuals = [Trees(trees) for trees in zip(*parts, strict=True)]
    evaluate, calls = recorded(lambda each: (mean_square(gp.compileADF(each, psets), X[:, :1], Y), nodes(each)))
    evaluator = compiled(psets, X[:, 0], Y, objectives=("mse", nodes))
    assert evaluator.map(evaluate, individuals) == evaluator(individuals)
    assert nodes(calls[0]) == min(map(nodes, individuals))


def divided(left, right):
    try:
        return left / right
    except ZeroDivisionError:
        return 1


def test_a_difference_in_one_primitive_is_noticed_beside_smaller_individuals_without_it():
    def other(left, right):
        return left / right if abs(right) > 0.5 else 1

    pset, own = (gp.PrimitiveSet("MAIN", 2) for _ in range(2))
    for each, division in ((pset, divided), (own, other)):
        each.addPrimitive(operator.add, 2)
        each.addPrimitive(division, 2, name="divided")
    individuals = [Tree.from_string(text, pset) for text in ("ARG0", "ARG1", "add(ARG0, ARG1)", "divided(ARG0, ARG1)")]
    evaluate, _ = recorded(lambda each: (mean_square(gp.compile(each, own), X, Y), len(each)))
    with pytest.raises(ValueError, match=r"for divided\(ARG0, ARG1\), but the compiled \(mse, len\)"):
        compiled(pset, X, Y, objectives=("mse", len)).map(evaluate, individuals)


def test_an_individual_that_hangs_on_the_last_bits_is_not_compared():
    pset = gp.PrimitiveSet("MAIN", 1)
    for function in (math.sin, math.exp):
        pset.addPrimitive(function, 1)
    rows = np.linspace(0.1, 5, 50)[:, None]
    individuals = [Tree.from_string(text, pset) for text in ("ARG0", "sin(exp(exp(ARG0)))")]
    evaluate, calls = recorded(lambda each: (mean_square(gp.compile(each, pset), rows, rows[:, 0]), len(each)))
    compiled(pset, rows, rows[:, 0], objectives=("mse", len)).map(evaluate, individuals)
    assert len(calls) == 2


def logarithms():
    pset = gp.PrimitiveSet("MAIN", 1)
    for function in (math.log, operator.neg):
        pset.addPrimitive(function, 1)
    return pset, [Tree.from_string(text, pset) for text in ("ARG0", "neg(ARG0)", "log(neg(ARG0))")]


def penalized(pset, penalty):
    def evaluate(individual):
        error = mean_square(gp.compile(individual, pset), np.array([[1.0], [2.0]]), np.array([1.0, 2.0]))
        return penalty if error is None else (error, len(individual))

    return recorded(evaluate)[0]


def test_a_script_with_a_fitness_of_its_own_for_failures_is_asked_to_tell_it():
    pset, individuals = logarithms()
    evaluator = compiled(pset, [1.0, 2.0], [1.0, 2.0], objectives=("mse", len))
    message = (
        r"returns \(1000000.0, 99\) for log\(neg\(ARG0\)\), but .* is \(inf, inf\), as .* failed=\(1000000.0, 99.0\)"
    )
    with pytest.raises(ValueError, match=message):
        evaluator.map(penalized(pset, (1e6, 99)), individuals)


@pytest.mark.parametrize("penalty", [1e6, (1e6, 99.0)])
def test_failed_is_the_fitness_of_individuals_without_a_value(penalty):
    pset, individuals = logarithms()
    values = (1e6, 1e6) if isinstance(penalty, float) else penalty
    evaluator = compiled(pset, [1.0, 2.0], [1.0, 2.0], objectives=("mse", len), failed=penalty)
    assert evaluator.map(penalized(pset, values), individuals) == [(0.0, 1.0), (10.0, 2.0), values]
    assert evaluator.evaluate(individuals[2]) == values


@pytest.mark.parametrize("penalty", [(math.inf, 3), (math.nan, math.nan), (None, None)])
def test_a_script_that_returns_no_number_for_failures_agrees(penalty):
    pset, individuals = logarithms()
    evaluator = compiled(pset, [1.0, 2.0], [1.0, 2.0], objectives=("mse", len))
    assert evaluator.map(penalized(pset, penalty), individuals)[2] == (math.inf, math.inf)


@pytest.mark.parametrize(("failed", "error"), [("no", TypeError), ((), TypeError), ((1.0, 2.0, 3.0), ValueError)])
def test_failed_has_a_number_for_each_value(failed, error):
    pset, individuals = logarithms()
    with pytest.raises(error, match=r"failed (is a number, or one for each value|has 3 values, and)"):
        compiled(pset, [1.0, 2.0], [1.0, 2.0], objectives=("mse", len), failed=failed)(individuals)


def test_an_individual_without_a_value_may_raise_in_the_script():
    pset = gp.PrimitiveSet("MAIN", 1)
    for function in (math.log, operator.neg):
        pset.addPrimitive(function, 1)
    rows = np.arange(5.0)[:, None]
    individuals = [Tree.from_string(text, pset) for text in ("log(ARG0)", "neg(neg(neg(ARG0)))")]
    evaluate, calls = recorded(lambda each: (mean_square(gp.compile(each, pset), rows, rows[:, 0]), len(each)))
    compiled(pset, rows, rows[:, 0], objectives=("mse", len)).map(evaluate, individuals)
    assert list(map(str, calls)) == ["neg(neg(neg(ARG0)))", "log(ARG0)"]


def test_values_are_compared_once_an_individual_has_one():
    pset = gp.PrimitiveSet("MAIN", 1)
    for function in (math.log, operator.neg):
        pset.addPrimitive(function, 1)
    evaluate, _ = recorded(lambda each: (0.0 if len(each) == 2 else math.inf, len(each)))
    evaluator = compiled(pset, [0.0, 1.0], [1.0, 2.0], objectives=("mse", len))
    evaluator.map(evaluate, [Tree.from_string("log(neg(ARG0))", pset)])
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
