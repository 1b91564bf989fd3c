"""A fitness of several values is the one that plain DEAP computes, and leads a run to the same individuals."""

from __future__ import annotations

import functools
import math
import operator
import pickle
import random
from dataclasses import dataclass

import numpy as np
import pytest
from deap import algorithms, base, gp, tools
from unit.faces.deap.sets import Several, arithmetic, compiled, created, evolving, population, script, typed

import shine.deap
from shine.evaluate.losses.form import LOSSES

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


@pytest.mark.parametrize(("exact_sums", "linear_scaling"), [(False, False), (False, True), (True, False)])
def test_several_losses_are_those_computed_alone(exact_sums, linear_scaling):
    pset = arithmetic(1)
    individuals = population(pset, 40, 3, kind=gp.PrimitiveTree)
    options = {"exact_sums": exact_sums, "linear_scaling": linear_scaling}
    together = compiled(pset, X, Y, objectives=tuple(LOSSES), **options)(individuals)
    for number, loss in enumerate(LOSSES):
        alone = [fitness for (fitness,) in compiled(pset, X, Y, loss, **options)(individuals)]
        assert [values[number] for values in together] == pytest.approx(alone, rel=1e-14, abs=1e-28)


def test_objectives_have_the_order_they_are_given_in():
    pset = arithmetic(1)
    individuals = population(pset, 20, 4, kind=gp.PrimitiveTree)
    evaluator = compiled(pset, X, Y, objectives=(operator.attrgetter("height"), "mae", len, "mse"))
    mae, mse = (compiled(pset, X, Y, loss)(individuals) for loss in ("mae", "mse"))
    expected = [(each.height, a, len(each), s) for each, (a,), (s,) in zip(individuals, mae, mse, strict=True)]
    assert evaluator(individuals) == expected


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


def test_a_function_may_write_to_its_predictions():
    def squared(individual, predictions):
        predictions -= Y
        return (predictions**2).mean()

    individuals = population(arithmetic(1), 10, 14, kind=gp.PrimitiveTree)
    fitnesses = compiled(arithmetic(1), X, Y, objectives=(squared, "errors", squared, "mse"))(individuals)
    for first, *_, second, mse in fitnesses:
        assert (first, second) == (pytest.approx(mse, rel=1e-12, abs=1e-25),) * 2


@pytest.mark.parametrize("function", [lambda individual, predictions=None: predictions[0], lambda a, b, c=2: b[0]])
def test_predictions_are_the_second_argument_or_have_its_name(function):
    pset = arithmetic(1)
    tree = gp.PrimitiveTree.from_string("ARG0", pset)
    assert compiled(pset, X, Y, objectives=function).evaluate(tree) == (-2.0,)


def scaled(individual, predictions, factor):
    return factor * predictions[0]


def test_a_function_may_be_partial_or_an_object():
    @dataclass  # which is not hashable
    class Spread:
        def __call__(self, individual, predictions):
            return np.ptp(predictions)

    tree = gp.PrimitiveTree.from_string("ARG0", arithmetic(1))
    objectives = (functools.partial(scaled, factor=3), Spread(), operator.methodcaller("count", tree[0]))
    assert compiled(arithmetic(1), X, Y, objectives=objectives).evaluate(tree) == (-6.0, 4.0, 1.0)


def test_a_count_of_right_rows_is_a_function():
    pset = gp.PrimitiveSet("MAIN", 3)
    for function, arity in ((operator.and_, 2), (operator.or_, 2), (operator.not_, 1)):
        pset.addPrimitive(function, arity)
    inputs = [[bool(number >> bit & 1) for bit in range(3)] for number in range(8)]
    outputs = [a and (b or not c) for a, b, c in inputs]
    individuals = population(pset, 50, 12, kind=kind("Hits", 1.0))
    evaluator = compiled(pset, inputs, outputs, objectives=lambda individual, predictions: sum(predictions == outputs))
    functions = [gp.compile(individual, pset) for individual in individuals]
    expected = [
        (sum(function(*row) == out for row, out in zip(inputs, outputs, strict=True)),) for function in functions
    ]
    assert evaluator(individuals) == expected


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


def test_errors_of_rows_without_a_value_are_large_and_finite():
    pset = unsafe()
    errors = compiled(pset, X, Y, objectives="errors").evaluate(gp.PrimitiveTree.from_string("log(ARG0)", pset))
    expected = [abs(math.log(x) - y) if x > 0 else 1e100 for x, y in zip(X[:, 0].tolist(), Y.tolist(), strict=True)]
    assert errors == pytest.approx(expected, rel=1e-14)


def test_lexicase_survives_a_population_that_has_mostly_no_value():
    pset, tree = unsafe(), kind("Cases", *(-1.0,) * 41)
    individuals = [tree.from_string(text, pset) for text in ["log(ARG0)"] * 9 + ["exp(ARG0)"]]
    for each, values in zip(individuals, compiled(pset, X, Y, objectives="errors")(individuals), strict=True):
        each.fitness.values = values
    chosen = {str(each) for each in tools.selAutomaticEpsilonLexicase(individuals, 20)}
    assert "exp(ARG0)" in chosen


def test_accuracy_counts_rows_by_their_weight():
    pset = arithmetic(1)
    weights = np.arange(41.0)
    expected = weights[(X[:, 0] > 0) == (Y > 0)].sum() / weights.sum()
    tree = gp.PrimitiveTree.from_string("ARG0", pset)
    accuracy = compiled(pset, X, Y, objectives="accuracy", sample_weight=weights).evaluate(tree)
    assert accuracy == (pytest.approx(expected, rel=1e-15),)


def test_accuracy_of_truth_values():
    pset = typed()
    rows = np.array([[1, 2, 0], [2, 1, 1], [3, 4, 0], [4, 3, 1]], dtype=float)
    tree = gp.PrimitiveTree.from_string("if_then_else(lt(ARG0, ARG1), 2.5, 0.0)", pset)
    assert compiled(pset, rows, [1, 0, 1, 1], objectives="accuracy").evaluate(tree) == (0.75,)


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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_predictions_have_the_number_type(dtype):
    pset = arithmetic(1)
    individuals = population(pset, 3, 7)
    assert compiled(pset, X, Y, dtype=dtype).predictions(individuals).dtype == dtype
    assert compiled(pset, X, Y, dtype=dtype, linear_scaling=True).predictions(individuals).dtype == dtype


def test_nothing_is_predicted_for_no_individual():
    evaluator = compiled(arithmetic(1), X, Y, objectives=("errors", len))
    assert evaluator([]) == []
    assert evaluator.predictions([]).shape == (0, 41)


def test_more_predictions_than_fit_into_memory_are_made_in_groups(monkeypatch):
    pset = arithmetic(1)
    individuals = population(pset, 20, 8, kind=gp.PrimitiveTree)
    evaluator = compiled(pset, X, Y, objectives=("mse", "errors", len))
    expected = evaluator(individuals)
    monkeypatch.setattr("shine.faces.deap.evaluator._MOST_PREDICTIONS", 3 * 41)
    assert evaluator(individuals) == expected
    monkeypatch.setattr("shine.faces.deap.evaluator._MOST_CELLS", 40)
    assert evaluator(individuals) == expected


def spread(individual, predictions):
    return np.ptp(predictions)


def test_an_evaluator_with_objectives_travels():
    individuals = population(arithmetic(1), 5, 10, kind=gp.PrimitiveTree)
    evaluator = compiled(arithmetic(1), X, Y, objectives=("mse", len, spread, "errors"))
    assert pickle.loads(pickle.dumps(evaluator))(individuals) == evaluator(individuals)


def test_objectives_of_several_trees():
    psets = evolving()
    tree = kind("Evolving", -1.0, -1.0, base_class=list)
    parts = [population(pset, 10, seed, high=2) for seed, pset in enumerate(psets)]
    individuals = [tree(trees) for trees in zip(*parts, strict=True)]
    evaluator = compiled(psets, X, Y, objectives=("mse", lambda individual: sum(map(len, individual))))
    plain = compiled(psets, X, Y)([Several(each) for each in individuals])
    sizes = [sum(map(len, individual)) for individual in individuals]
    assert evaluator(individuals) == [(mse, size) for (mse,), size in zip(plain, sizes, strict=True)]


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
