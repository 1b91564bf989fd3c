"""CompiledObjective evaluates DEAP's vectors as their Python functions do, alone, in populations and in whole runs."""

from __future__ import annotations

import array
import gc
import math
import pickle
import random
import sys
import threading

import numpy as np
import pytest
from deap import algorithms, base, benchmarks, tools

import shine.deap
from shine.base.errors import UnsupportedSyntaxError
from shine.evaluate.kernels.individuals import reader_of, reading_words
from shine.faces.deap.vectors import CompiledObjective

TEXT = "w" if "w" in array.typecodes else "u"
"""Type code of characters; Python 3.13 has a new one."""

SPHERE = "sum(v*v for v in x)"


class Smallest(base.Fitness):
    weights = (-1.0,)


class Largest(base.Fitness):
    weights = (1.0,)


class Two(base.Fitness):
    weights = (-1.0, 1.0)


class Genes(list):
    def __init__(self, genes, fitness=Smallest):
        super().__init__(genes)
        self.fitness = fitness()


def genes(rows, length, seed=0):
    rng = random.Random(seed)
    return [[rng.uniform(-5, 5) for _ in range(length)] for _ in range(rows)]


def run(evaluate, mapped, generations=6, kind=Genes):
    toolbox = base.Toolbox()
    toolbox.register("mate", tools.cxOnePoint)
    toolbox.register("mutate", tools.mutGaussian, mu=0, sigma=0.5, indpb=0.2)
    toolbox.register("select", tools.selTournament, tournsize=3)
    toolbox.register("evaluate", evaluate)
    toolbox.register("map", mapped)
    random.seed(4)
    last, _ = algorithms.eaSimple([kind(each) for each in genes(20, 6)], toolbox, 0.5, 0.3, generations, verbose=False)
    return [(list(each), each.fitness.values) for each in last]


def test_a_run_of_deap_takes_two_lines_and_keeps_its_trajectory():
    objective = CompiledObjective(benchmarks.sphere)
    compiled = run(objective, objective.map)

    def in_order(individual):
        total = 0.0  # sum() of Python 3.12 and later carries the rounding errors along
        for gene in individual:
            total += gene * gene
        return (total,)

    assert compiled == run(in_order, map)
    assert compiled == run(objective, map)
    interpreted = CompiledObjective(benchmarks.sphere, tier="reference")
    assert compiled == run(interpreted, interpreted.map)
    # The function that stands in the script already may stay: the objective takes its place in `map`.
    assert compiled == run(benchmarks.sphere, CompiledObjective(SPHERE).map)


def test_all_kinds_of_individuals_have_the_same_fitness():
    objective, raw = CompiledObjective(benchmarks.rastrigin), genes(13, 7)
    want = objective.evaluate_all(raw)
    assert want == [objective(each) for each in raw]
    assert np.allclose(want, [benchmarks.rastrigin(each) for each in raw], rtol=1e-13)
    kinds = [Genes, tuple, np.array, lambda each: array.array("d", each), lambda each: list(np.array(each))]
    for kind in kinds:
        assert objective.evaluate_all(map(kind, raw)) == want
    assert objective.evaluate_all([raw[0], tuple(raw[1]), np.array(raw[2])]) == want[:3]
    assert objective.evaluate_all([np.repeat(raw[0], 2)[::2]]) == want[:1]
    floats = [array.array("f", each) for each in raw]
    assert objective.evaluate_all(floats) == objective.evaluate_all([each.tolist() for each in floats])
    assert objective.evaluate_all([[True, 2, 3.5]]) == objective.evaluate_all([[1.0, 2.0, 3.5]])


def test_individuals_of_unequal_lengths_are_evaluated_in_groups():
    individuals = [[1.0], [2.0, 3.0], [4.0], [], [1.0, 1.0]]
    assert CompiledObjective(SPHERE).evaluate_all(individuals) == [(1.0,), (13.0,), (16.0,), (0.0,), (2.0,)]
    assert CompiledObjective(SPHERE).evaluate_all([]) == []
    with pytest.raises(IndexError, match=r"x\[1\] is element 1, but x has 1 elements"):
        CompiledObjective("x[0] + x[1]").evaluate_all(individuals)


@pytest.mark.parametrize(
    ("individuals", "message"),
    [
        ([[1.0], ["2.0"]], "element 0 of individual 1 is '2.0'"),
        ([[1.0, None]], "element 1 of individual 0 is None"),
        ([[1.0], [1j]], "element 0 of individual 1 is 1j"),
        ([[[1.0]]], r"element 0 of individual 0 is \[1.0\]"),
        ([1.0], "individual 0 is 1.0; individuals are sequences"),
        (["ab"], "individual 0 is 'ab'"),
        ([np.ones((2, 2))], r"element 0 of individual 0 is array\(\[1., 1.\]\)"),
        ([np.array(["a"])], r"element 0 of individual 0 is .*'a'"),
        ([[10**400]], "an individual has a number that is no float64"),
        ([array.array(TEXT, "ab")], "element 0 of individual 0 is 'a'"),
    ],
)
def test_what_is_no_vector_of_numbers_is_named(individuals, message):
    with pytest.raises(TypeError, match=message):
        CompiledObjective(SPHERE).evaluate_all(individuals)


def read(*individuals):
    """What native code reads, a row an individual; None if it refuses."""
    matrix = np.zeros((len(individuals), 2))
    answer = reader_of(individuals[0])(reading_words(individuals[0], matrix), list(individuals))
    return None if answer is None else matrix.tolist()


NUMBERS = [np.float64(1.5), 2, -(2**62), True, np.int64(-7), 2**53 + 1]


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_native_code_reads_arrays_of_every_number_type(code):
    rows = np.array([[1, 2], [3, 4], [100, 0]], code)
    assert read(*rows) == rows.astype(float).tolist()
    assert read(*(np.repeat(row, 3)[::3] for row in rows)) == rows.astype(float).tolist()
    assert read(*(array.array(code, row.tolist()) for row in rows)) == rows.astype(float).tolist()
    assert read(rows[0], np.ones(2, "d" if code != "d" else "f")) is None
    assert read(rows[0], np.ones((2, 2), code)) is None
    assert read(array.array(code, [1, 2]), array.array("d" if code != "d" else "f", [1, 2])) is None


def test_what_is_not_as_expected_is_not_read():
    class Other(list):
        def __iter__(self):
            return iter([1.0, 2.0])

    for other in ([1.0], [1.0, 2.0, 3.0], (1.0, 2.0), [1.0, 2**64], [1.0, None], object(), None, [], Genes([1.0, 2.0])):
        assert read([1.0, 2.0], other) is None, other
    for kind in (Other, dict, set, str, object):
        assert reader_of(kind()) is None
    # What the subclass yields counts.
    assert CompiledObjective(SPHERE)(Other([5.0, 5.0])) == (5.0,)


def test_objects_are_neither_kept_nor_lost():
    objective = CompiledObjective("(sum(x), 1/x[0])", failed=1.0)
    individuals = [[number, 0.25] for number in (1.5, 2, np.float64(3.0), np.int64(4), True)]
    gc.collect()  # what other tests left holds None, too, and may go at any time
    before = [sys.getrefcount(each) for each in (*individuals, *(each[0] for each in individuals), None, False)]
    for _ in range(1000):
        objective.evaluate_all(individuals)
        objective.evaluate_all([*individuals, [0.0, 0.0]])
        read(individuals[0], [None, 1.0])
    gc.collect()
    after = [sys.getrefcount(each) for each in (*individuals, *(each[0] for each in individuals), None, False)]
    assert np.allclose(before, after, atol=100)


@pytest.mark.parametrize("given", [{0: 5.0}, {5.0}, frozenset(), {0: 5.0}.values(), range, 3.0, None])
def test_what_has_no_elements_in_order_is_no_individual(given):
    objective = CompiledObjective("x[0]")
    for tier in (objective, CompiledObjective("x[0]", tier="reference")):
        with pytest.raises(TypeError, match=r"individual 0 is .*; individuals are sequences of numbers"):
            tier(given)


def test_values_that_are_not_finite_are_the_worst():
    text, points = "1/x[0] + sum(x)", [[0.0], [math.nan], [1e308, 1e308], [1.0]]
    for fitness, worst in ((Smallest, math.inf), (Largest, -math.inf)):
        individuals = [Genes(each, fitness) for each in points]
        objective = CompiledObjective(text)
        assert objective.map(objective, individuals) == [(worst,)] * 3 + [(2.0,)]
    assert CompiledObjective(text, failed=1e6).evaluate_all(points)[0] == (1e6,)
    several = CompiledObjective("(1/x[0], x[0])")
    assert several.evaluate_all([Genes([0.0], Two), Genes([2.0], Two)]) == [(math.inf, -math.inf), (0.5, 2.0)]


@pytest.mark.slow
def test_constants_are_numbers_and_vectors_of_all_individuals():
    text = "a*sum((v - c)**2 for v, c in zip(x, center))"
    objective = CompiledObjective(text, constants={"center": [1.0, 2.0], "a": 10})
    assert objective.individual == "x" and objective.evaluate_all([[1.0, 4.0], [2.0, 2.0]]) == [(40.0,), (10.0,)]
    single = CompiledObjective(text, constants={"center": [1.0, 2.0], "a": 10}, dtype="float32", tier="reference")
    assert single([1.0, 4.0]) == (40.0,)
    with pytest.raises(ValueError, match=r"takes \(center, x, a\): give constants=\{...\} for a"):
        CompiledObjective(text, constants={"center": [1.0]})
    with pytest.raises(ValueError, match="one vector is the individual, not center, x"):
        CompiledObjective(text, constants={"a": 1.0})
    with pytest.raises(ValueError, match="'b' is no parameter"):
        CompiledObjective(text, constants={"b": 1.0})
    for wrong in (3, [1.0, np.nan], [[1.0], [2.0, 3.0]], [1e300]):
        with pytest.raises(TypeError, match="center is a sequence of finite numbers in float32, not"):
            CompiledObjective(text, constants={"a": 1.0, "center": wrong}, dtype="float32")


@pytest.mark.slow
def test_another_function_than_the_registered_one_is_refused():
    toolbox = base.Toolbox()
    toolbox.register("evaluate", benchmarks.sphere)
    individuals = [Genes(each) for each in genes(5, 3)]
    with pytest.raises(ValueError, match=r"computes .* for an individual, and the objective"):
        CompiledObjective("sum(v for v in x)").map(toolbox.evaluate, individuals)
    assert len(CompiledObjective("sum(v for v in x)", check=False).map(toolbox.evaluate, individuals)) == 5


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("a + b", {}, UnsupportedSyntaxError, "the objective reads no vector"),
        ("sum(x[i*i] for i in range(n))", {}, UnsupportedSyntaxError, "line 1, column 7"),
        (3, {}, TypeError, "an objective is a text or a Python function, not 3"),
        (SPHERE, {"tier": "machine"}, ValueError, "tier must be one of native, reference, is 'machine'"),
        (SPHERE, {"dtype": "int64"}, ValueError, "dtype must be one of float64, float32"),
        (SPHERE, {"failed": (1.0, 2.0)}, ValueError, "failed has 2 values, but the fitness has 1"),
        (SPHERE, {"constant": 1}, TypeError, "constants"),
    ],
)
def test_options_that_do_not_fit_are_refused(source, options, error, message):
    with pytest.raises(error, match=message):
        CompiledObjective(source, **options)


@pytest.mark.slow
def test_objectives_are_pickled_and_shared_by_threads():
    objective, raw = CompiledObjective(benchmarks.rastrigin), genes(200, 10)
    want = objective.evaluate_all(raw)
    assert pickle.loads(pickle.dumps(objective)).evaluate_all(raw) == want
    results = []
    threads = [
        threading.Thread(target=lambda: results.extend(objective.evaluate_all(raw) == want for _ in range(20)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 80


def test_a_toolbox_with_an_objective_that_was_called_can_be_pickled_and_copied():
    toolbox = base.Toolbox()
    toolbox.register("evaluate", CompiledObjective(SPHERE))
    assert toolbox.evaluate([3.0, 4.0]) == (25.0,)  # DEAP's `register` has copied the objective's attributes
    for again in (pickle.loads(pickle.dumps(toolbox.evaluate)), toolbox.clone(toolbox.evaluate)):
        assert again([3.0, 4.0]) == (25.0,)


def test_the_class_is_public_and_shows_its_formula():
    assert shine.deap.CompiledObjective is CompiledObjective
    assert repr(CompiledObjective(SPHERE)) == "<CompiledObjective 'sum(x[i]*x[i] for i in range(len(x)))' of x>"
