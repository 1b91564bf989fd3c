"""A fitness of several values is the one that plain DEAP computes, and leads a run to the same individuals."""

from __future__ import annotations

import functools
import math
import operator
import random

import numpy as np
import pytest
from deap import algorithms, base, gp, tools
from unit.faces.deap.sets import arithmetic, compiled, created, population, script

import shine.deap

X = np.linspace(-2, 2, 41)[:, None]
Y = X[:, 0] ** 2 - X[:, 0]
ROWS = np.arange(-3.0, 5.0)[:, None]
TARGET = (ROWS**3 - 2 * ROWS + 1)[:, 0]


def kind(name, *weights, base_class=gp.PrimitiveTree):
    """A class of individuals whose fitness has these weights."""
    fitness = created(f"TestedFitness{name}", base.Fitness, weights=weights)
    return created(f"TestedTree{name}", base_class, fitness=fitness)


def whole_numbers():
    """A set whose sums, differences and products of small whole numbers are exact: the same to the last bit."""
    pset = gp.PrimitiveSet("MAIN", 1)
    for function, arity in ((operator.add, 2), (operator.sub, 2), (operator.mul, 2), (operator.neg, 1), (max, 2)):
        pset.addPrimitive(function, arity)
    return pset


def predicted(individual, pset, rows=ROWS):
    function = gp.compile(individual, pset)
    return [float(function(*row)) for row in rows.tolist()]


def mean_square_and_size(individual, pset):
    errors = [(p - y) ** 2 for p, y in zip(predicted(individual, pset), TARGET.tolist(), strict=True)]
    return math.fsum(errors) / len(errors), len(individual)


def case_errors(individual, pset):
    return tuple(abs(p - y) for p, y in zip(predicted(individual, pset), TARGET.tolist(), strict=True))


def right_signs(individual, pset):
    pairs = zip(predicted(individual, pset), TARGET.tolist(), strict=True)
    return (sum((p > 0) == (y > 0) for p, y in pairs) / len(TARGET), len(individual))


def penalized(individual, predictions):
    return np.mean((predictions - TARGET) ** 2) + 0.125 * len(individual)


def penalized_alone(individual, pset):
    error, size = mean_square_and_size(individual, pset)
    return (error + 0.125 * size,)


RUNS = {
    "NSGA-II": (("mse", len), mean_square_and_size, (-1.0, -1.0), tools.selNSGA2, {}),
    "SPEA2": (("mse", len), mean_square_and_size, (-1.0, -1.0), tools.selSPEA2, {}),
    "lexicase": ("errors", case_errors, (-1.0,) * 8, tools.selLexicase, {}),
    "epsilon-lexicase": ("errors", case_errors, (-1.0,) * 8, tools.selAutomaticEpsilonLexicase, {}),
    "accuracy": (("accuracy", len), right_signs, (1.0, -1.0), tools.selTournament, {"tournsize": 3}),
    "parsimony": (penalized, penalized_alone, (-1.0,), tools.selTournament, {"tournsize": 3}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_makes_the_same_decisions_as_plain_deap(name):
    objectives, plain, weights, select, options = RUNS[name]
    pset, individual = whole_numbers(), kind(name.replace("-", ""), *weights)

    def run(map_):
        toolbox = script(pset, ROWS, TARGET, functools.partial(plain, pset=pset))
        toolbox.register("individual", tools.initIterate, individual, toolbox.expression)
        toolbox.register("population", tools.initRepeat, list, toolbox.individual)
        toolbox.register("select", select, **options)
        toolbox.register("map", map_)
        random.seed(11)
        start, front = toolbox.population(n=30), tools.ParetoFront()
        last, _ = algorithms.eaMuPlusLambda(start, toolbox, 30, 30, 0.6, 0.3, 6, halloffame=front, verbose=False)
        return [[(str(each), each.fitness.values) for each in some] for some in (last, front)]

    ours = run(compiled(pset, ROWS, TARGET, objectives=objectives).map)
    assert ours == run(map)
    assert len({text for text, _ in ours[0]}) > 1


def test_a_function_gets_the_predictions_of_its_individual():
    pset = arithmetic(1)
    individuals, seen = population(pset, 20, 5, kind=gp.PrimitiveTree), []

    def largest(individual, predictions):
        seen.append((individual, predictions))
        return predictions.max()

    evaluator = compiled(pset, X, Y, objectives=largest)
    fitnesses, predictions = evaluator(individuals), evaluator.predictions(individuals)
    assert predictions.shape == (20, 41)
    assert [each is other for (each, _), other in zip(seen, individuals, strict=True)] == [True] * 20
    assert all(np.array_equal(p, expected) for (_, p), expected in zip(seen, predictions, strict=True))
    assert fitnesses == [(row.max(),) for row in predictions]


def test_a_function_may_return_several_values():
    pset = arithmetic(1)
    tree = gp.PrimitiveTree.from_string("neg(ARG0)", pset)

    def hinge(individual, predictions):
        return np.maximum(0, 1 - np.sign(Y) * predictions)

    fitness = compiled(pset, X, Y, objectives=(hinge, len)).evaluate(tree)
    assert fitness == (*np.maximum(0, 1 + np.sign(Y) * X[:, 0]).tolist(), 2.0)


def unsafe():
    pset = gp.PrimitiveSet("MAIN", 1)
    for function in (math.log, math.exp):
        pset.addPrimitive(function, 1)
    return pset


def test_an_individual_without_a_value_is_worst_in_every_objective():
    pset, calls = unsafe(), []
    tree = kind("Mixed", -1.0, 1.0, -1.0, 1.0, -1.0)

    def called(individual, predictions):
        calls.append(str(individual))
        return 0.5

    evaluator = compiled(pset, X, Y, objectives=("mse", "accuracy", len, called, called))
    fitnesses = evaluator([tree.from_string(text, pset) for text in ("log(ARG0)", "exp(ARG0)", "exp(log(-1))")])
    worst = (math.inf, -math.inf, math.inf, -math.inf, math.inf)
    assert (fitnesses[0], fitnesses[2]) == (worst, worst)
    assert np.isfinite(fitnesses[1]).all()
    assert calls == ["exp(ARG0)"] * 2


def test_a_function_of_predictions_need_not_know_individuals_without_a_value():
    pset, trees = unsafe(), [gp.PrimitiveTree.from_string("log(ARG0)", unsafe())] * 3

    def strict(individual, predictions):
        assert np.isfinite(predictions).all()
        return np.abs(predictions - Y)

    assert compiled(pset, X, Y, objectives=(strict, len))(trees) == [(math.inf,) * 42] * 3


def test_accuracy_counts_rows_by_their_weight():
    pset = arithmetic(1)
    weights = np.arange(41.0)
    expected = weights[(X[:, 0] > 0) == (Y > 0)].sum() / weights.sum()
    tree = gp.PrimitiveTree.from_string("ARG0", pset)
    accuracy = compiled(pset, X, Y, objectives="accuracy", sample_weight=weights).evaluate(tree)
    assert accuracy == (pytest.approx(expected, rel=1e-15),)


def test_with_linear_scaling_predictions_are_those_of_the_best_line():
    pset = arithmetic(1)
    individuals = population(pset, 20, 6, low=2, kind=gp.PrimitiveTree)
    evaluator = compiled(pset, X, Y, objectives=("mse", "errors"), linear_scaling=True)
    fitnesses, predictions = np.array(evaluator(individuals)), evaluator.predictions(individuals)
    for values, row, raw in zip(fitnesses, predictions, compiled(pset, X, Y).predictions(individuals), strict=True):
        np.testing.assert_allclose(values[1:], np.abs(row - Y), rtol=1e-12)
        assert values[0] == pytest.approx(np.mean((row - Y) ** 2), rel=1e-9)
        if np.ptp(raw) > 1e-9:
            np.testing.assert_allclose(row, np.polyval(np.polyfit(raw, Y, 1), raw), atol=1e-9)


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objectives", "message"),
    [
        ((), "objectives is empty; give at least one, such as 'mse' or len"),
        (("mse", "accurracy"), "unknown loss 'accurracy'; did you mean 'accuracy'"),
        ("size", "unknown loss 'size'; use one of mse, .*, errors, accuracy, or a function such as len"),
        (("mse", 3), "an objective is the name of a loss or a function of an individual, not 3"),
        (lambda a, b, c: 0, "needs the arguments a, b, c; it is called with an individual, or with an individual and"),
    ],
)
def test_unknown_objectives_are_rejected(objectives, message):
    with pytest.raises((ValueError, TypeError), match=message):
        compiled(arithmetic(1), X, Y, objectives=objectives)


def test_a_loss_and_objectives_are_too_much():
    with pytest.raises(ValueError, match="loss='mae' and objectives are given; name the loss among the objectives"):
        compiled(arithmetic(1), X, Y, "mae", objectives=len)


def test_a_loss_that_divides_by_zero_is_rejected_wherever_it_stands():
    with pytest.raises(shine.DataError, match="the target is constant, so loss 'r2' would divide by zero"):
        compiled(arithmetic(1), X, 0 * Y, objectives=("mse", "r2"))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("bad", "objective <lambda> returned 'bad' of type str; it must return a number"),
        (None, "returned None of type NoneType"),
        ([], "objective <lambda> returned 0 values .* at least one"),
    ],
)
def test_results_that_are_no_numbers_are_rejected(result, message):
    tree = gp.PrimitiveTree.from_string("ARG0", arithmetic(1))
    evaluator = compiled(arithmetic(1), X, Y, objectives=lambda individual: result)
    with pytest.raises((ValueError, TypeError), match=message):
        evaluator([tree])


def test_as_many_values_for_each_individual():
    pset = arithmetic(1)
    trees = [gp.PrimitiveTree.from_string(text, pset) for text in ("ARG0", "neg(ARG0)")]
    with pytest.raises(ValueError, match="returned 1 values for one individual and 2 for another"):
        compiled(pset, X, Y, objectives=lambda individual: [0.0] * len(individual))(trees)


def test_map_compares_the_weights_of_the_fitness():
    pset = arithmetic(1)
    evaluator = compiled(pset, X, Y, objectives=("mse", len))
    one, wrong = kind("One", -1.0), kind("Wrong", 1.0, -1.0)
    with pytest.raises(ValueError, match=r"the fitness has 1 weight, and \(mse, len\) has 2 values: create the class"):
        evaluator.map(evaluator.evaluate, population(pset, 3, 11, kind=one))
    with pytest.raises(ValueError, match="a positive weight for mse, which is least for the best individual"):
        evaluator.map(evaluator.evaluate, population(pset, 3, 11, kind=wrong))
    assert len(evaluator(population(pset, 3, 11, kind=one))[0]) == 2  # measured, not selected
