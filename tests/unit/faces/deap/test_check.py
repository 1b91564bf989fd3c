"""The script's own function is called for a few individuals of the first population, and compared."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from deap import base, gp, tools
from unit.faces.deap.sets import compiled, created, mean_square, population, typed

X = np.random.default_rng(3).normal(size=(30, 2))
ROWS = np.column_stack([X, np.arange(30) % 3 == 0]).astype(float)
Y = X[:, 0] - X[:, 1]
Two = created("TestedTwo", base.Fitness, weights=(-1.0, -1.0))
Tree = created("TestedTreeOfTwo", gp.PrimitiveTree, fitness=Two)


def recorded(plain):
    calls = []

    def evaluate(individual):
        calls.append(individual)
        return plain(individual)

    toolbox = base.Toolbox()
    toolbox.register("evaluate", evaluate)
    return toolbox.evaluate, calls


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


@pytest.mark.parametrize(
    "other", [lambda each: (1e9, len(each)), lambda each: (1.0,), lambda each: "no", lambda _: None]
)
def test_other_values_are_noticed(other):
    pset = typed()
    evaluate, _ = recorded(other)
    with pytest.raises(ValueError, match="give the evaluator the loss or objectives, X and y of that function"):
        compiled(pset, ROWS, Y, objectives=("mse", len)).map(evaluate, population(pset, 10, 2, kind=Tree))


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
