"""Objectives as scripts write them: bound arguments, defaults, lists of the module, functions, loops that sum."""

from __future__ import annotations

import functools
import inspect
import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
from deap import base, benchmarks

from shine.base.errors import UnsupportedSyntaxError
from shine.deap import CompiledObjective

WEIGHTS = [12, 7, 11, 8, 9]
PRICES = np.array([24.0, 13.0, 23.0, 15.0, 16.0])
CAPACITY = 26
SETTINGS = SimpleNamespace(limit=30.0, prices=(1.0, 2.0, 3.0, 4.0, 5.0), mode="strict")


def knapsack(bag):
    weight = sum(w * taken for w, taken in zip(WEIGHTS, bag, strict=False))
    return (float(weight), sum(PRICES[i] * bag[i] for i in range(len(PRICES))) if weight <= CAPACITY else 0.0)


def of_a_namespace(x):
    return (sum(p * v for p, v in zip(SETTINGS.prices, x, strict=False)) / SETTINGS.limit,)


def bound(v, low=-1.0, high=1.0):
    if v < low:
        return low
    return min(v, high)


def with_helpers(x):
    return (sum(bound(v) ** 2 + math.hypot(v, bound(v, -2.0)) for v in x),)


def with_defaults(x, scale=0.5, powers=(1, 2, 3, 2, 1)):
    """Text that is no code."""
    return (scale * sum(v * p for v, p in zip(x, powers, strict=False)),)


def loops(x):
    total, product = 1.0, 1.0
    for i in range(len(x) - 1):
        difference = x[i + 1] - x[i] ** 2
        if difference > 0:
            difference = difference / 2
        total += 100 * difference * difference
        total = total - x[i]
        product *= 1 + x[i] ** 2
    for i in range(len(x)):
        inner = 0
        for j in range(i + 1):
            inner += x[j]
        if inner > 1:
            total += inner**2
        else:
            total -= 0.5
    return total, product


def positive(x):
    return (sum(v for v in x if v > 0 if v < 3) + math.prod(1 + v for v in x if v < 0),)


def array_calls(x):
    return (np.sum(x) + np.sqrt(x[0] ** 2 + x[1] ** 2) + np.prod(x),)


class Model:
    def __init__(self):
        self.scale, self.weights = 2.5, [1.0, -1.0, 2.0, 0.5, 0.25]

    def loss(self, x):
        return (self.scale * sum(w * v for w, v in zip(self.weights, x, strict=False)),)


TOOLBOX = base.Toolbox()
TOOLBOX.register("evaluate", with_defaults, powers=[5, 4, 3, 2, 1])
TOOLBOX.register("scaled", functools.partial(with_defaults, scale=3), powers=[1, 1, 1, 1, 1])

FUNCTIONS = [knapsack, of_a_namespace, with_helpers, with_defaults, loops, positive, array_calls, Model().loss]
FUNCTIONS += [TOOLBOX.evaluate, TOOLBOX.scaled, functools.partial(with_defaults, scale=2.0)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_it_computes_what_python_computes(function):
    objective, rng = CompiledObjective(function), random.Random(1)
    population = [[rng.uniform(-3, 3) for _ in range(5)] for _ in range(20)]
    population += [[float(rng.randint(0, 1)) for _ in range(5)] for _ in range(20)]
    assert np.allclose(objective.evaluate_all(population), [function(each) for each in population], rtol=1e-12)


def test_given_constants_replace_defaults():
    objective = CompiledObjective(with_defaults, constants={"scale": 4.0, "powers": [1.0, 1.0]})
    assert objective([3.0, 4.0]) == (28.0,)


@pytest.mark.slow
def test_the_benchmarks_of_one_vector_compile():
    unlike = {"rand", "shekel", "dtlz1", "dtlz2", "dtlz3", "dtlz4", "dtlz5", "dtlz6", "dtlz7"}
    x = [0.25, 0.5]
    for name, function in inspect.getmembers(benchmarks, inspect.isfunction):
        if function.__module__ == benchmarks.__name__ and name not in unlike:
            assert np.allclose(CompiledObjective(function)(x), function(x)), name


def carries(x):
    total, before = 0, 0
    for v in x:
        total += before * v
        before = v
    return (total,)


def reads_the_total(x):
    total = 1
    for v in x:
        total += total * v
    return (total,)


def mixes(x):
    total = 0
    for v in x:
        total += v
        total *= 2
    return (total,)


def reads_what_is_left(x):
    total, last = 0, 0
    for v in x:
        last = 2 * v
        total += last
    return (total + last,)


def reads_the_variable(x):
    total = 0
    for v in x:
        total += v
    return (total + v,)


def same_variable(x):
    total = 0
    for i in range(len(x)):
        for i in range(2):
            total += x[i]
        total += x[i]
    return (total,)


def captures(x):
    total = 0
    for i in range(len(x)):
        own = x[i]
        total += sum(own * x[i] for i in range(2))
    return (total,)


def has_else(x):
    total = 0
    for v in x:
        total += v
    else:
        total = 1
    return (total,)


def has_text(x):
    return (sum(x) if SETTINGS.mode else 0,)


def lacks_a_value(x, w=None):
    return (sum(x) * w,)


def passes_the_individual(x):
    return (of_a_namespace(x) + x[0],)


def attribute_of_the_individual(x):
    return (x.sum() + x[0],)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (carries, "a loop adds terms to a name"),
        (reads_the_total, "a loop adds terms to a name"),
        (mixes, "a loop adds terms to a name"),
        (reads_what_is_left, "unknown name 'last'"),
        (reads_the_variable, "unknown name 'v'"),
        (same_variable, "a loop adds terms to a name"),
        (captures, "a loop adds terms to a name"),
        (has_else, "a loop adds terms to a name"),
        (has_text, r"'SETTINGS.mode' is 'strict' of type str, .*constants=\{...\}"),
        (lacks_a_value, r"'w' is None of type NoneType, .*constants=\{...\}"),
        (passes_the_individual, "'of_a_namespace' cannot be called: functions take and return numbers"),
        (attribute_of_the_individual, "write the bare name of a function"),
        (functools.partial(bound, lower=1), r"bound takes \(v, low, high\), and other arguments are bound"),
    ],
)
def test_what_is_no_formula_is_refused_with_its_place(function, message):
    with pytest.raises(UnsupportedSyntaxError, match=message):
        CompiledObjective(function)


def test_a_missing_value_is_asked_for():
    with pytest.raises(ValueError, match=r"one vector is the individual, not w, x; give constants=\{...\} for others"):
        CompiledObjective("sum(a*b for a, b in zip(w, x))")
