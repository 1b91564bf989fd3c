"""Objectives as scripts write them: bound arguments, defaults, lists of the module, functions, loops that sum."""

from __future__ import annotations

import functools
import inspect
import math
import random
from types import SimpleNamespace

import deap.benchmarks.gp
import numpy as np
import pytest
from deap import base, benchmarks
from deap.benchmarks import binary

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


TABLE = [[1.0, 2.0, 3.0, 4.0, 5.0], [0.5, 0.25, 0.125, 2.0, -1.0]]
SCALES = np.array(TABLE)


OF_NAMES = {"a": 2.0}


def total(x):
    """Of all elements."""
    return sum(x)


def mean(values):
    added = 0
    for v in values:
        added += v
    return added / len(values)


def spread(values, power=2):
    middle = mean(values)
    return sum(abs(a - middle) ** power for a in values)


def dot(a, b):
    return sum(p * q for p, q in zip(a, b, strict=False))


def penalty(x, limit):
    if total(x) > limit:
        return 0.0
    elif max(x) > limit:
        return len(x)
    return 3.0


def pair(x):
    return x[0], x[-1]


def scaled(values, factor):
    return sum(a * factor for a in values)


def calls_with_the_individual(x):
    first, last = pair(x)
    own = x[1]
    inside = sum(scaled(x, a) for a in x) + scaled(x, own) + sum(own * a for a in x)
    return total(x) + x[0], spread(x[1:]), spread(power=3, values=x), first - last + pair(x)[1] + inside


def calls_with_tables(x):
    rows = [sum(r * v for r, v in zip(row, x, strict=False)) for row in TABLE]
    return [*rows, max(dot(row, x) for row in SCALES), sum(SCALES[i, 1] * SCALES[i][2] * x[i] for i in range(2))]


def branches_inside(x):
    windows = 0
    for i in range(0, len(x) - 1, 2):
        windows += penalty(x[i : i + 2], 0.5)
    if penalty(x, 1.0) > 0.5:
        tail = x[2:]
        return windows, sum(tail) + tail[0] + len(tail)
    return windows, total(x[:2])


def counts_and_unpacks(x):
    a, b, c, d, e = x
    return a - b * c + d / e, len([v for v in x if v > 0 if v < 2]), len(x[1:]) * len([2 * w for w in TABLE[0]])


def keeps_what_a_name_was(x):
    level = sum(x)
    held = [level, x[0]]
    level = level + 1
    for m in range(2):
        part = x[m] + level
        held.append(part)
        level = level * part
    return [*held, level]


OF_VECTORS = [
    calls_with_the_individual,
    calls_with_tables,
    branches_inside,
    keeps_what_a_name_was,
    counts_and_unpacks,
]
OF_VECTORS += [lambda x: calls_with_tables(x), lambda x: (spread(x),)]


@pytest.mark.parametrize("function", OF_VECTORS, ids=range(len(OF_VECTORS)))
def test_functions_of_vectors_are_called_and_lists_written_out(function):
    objective, rng = CompiledObjective(function), random.Random(2)
    population = [[rng.uniform(-3, 3) for _ in range(5)] for _ in range(40)]
    assert np.allclose(objective.evaluate_all(population), [function(each) for each in population], rtol=1e-12)


def compiled(name, function):
    """Whether a benchmark compiles; it has the values of Python then."""
    try:
        objective = CompiledObjective(function)
    except UnsupportedSyntaxError:
        return False
    rng = random.Random(3)
    for length in (4, 5, 12, 40, 41):
        digits = [rng.randint(0, 1) for _ in range(length)] if hasattr(binary, name) else None
        x = digits or [rng.uniform(0, 1) for _ in range(length)]
        assert np.allclose(objective(x[:4] if name == "shekel" else x), function(x), rtol=1e-9), name
    return True


@pytest.mark.slow
def test_all_benchmarks_compile_but_those_that_draw_numbers_or_read_texts():
    bound_to = {name: {"alpha": 2} if name == "dtlz4" else {} for name in vars(benchmarks)}
    bound_to["shekel"] = {"a": SCALES[:, :4], "c": [0.2, 0.3]}
    refused = set()
    for module in (benchmarks, binary, deap.benchmarks.gp):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ != module.__name__:
                continue
            given = bound_to.get(name, {}) | {
                each: 3 for each in inspect.signature(function).parameters if each in ("obj", "n_objs", "order")
            }
            refused |= set() if compiled(name, functools.partial(function, **given)) else {name}
    assert refused == {"rand", "bin2float", "chuang_f3", "royal_road1", "royal_road2"}


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


def captures(x):
    total = 0
    for i in range(len(x)):
        own = x[i]
        total += sum(own * x[i] for i in range(2))
    return (total,)


def has_text(x):
    return (sum(x) if SETTINGS.mode else 0,)


def lacks_a_value(x, w=None):
    return (sum(x) * w,)


def changes_the_individual(x):
    first = x
    x = list(x)
    return (sum(first) + x[0],)


def calls_itself(x):
    return (calls_itself(x) + x[0],)


def grows_by_chance(x):
    found = []
    if x[0] > 0:
        found.append(x[0])
    return found


def beyond_the_slice(x):
    return (x[1:3][2],)


def reads_a_dict(x):
    return (sum(v * OF_NAMES["a"] for v in x),)


def of_numbers(x):
    return (x * x,)


def maps(x):
    return (sum(map(total, x)),)


def lacks_an_argument(x):
    return (penalty(x),)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (changes_the_individual, "'list' is a function that array formulas cannot call"),
        (calls_itself, "'calls_itself' cannot be called: 'calls_itself' calls itself; write a loop"),
        (grows_by_chance, "a list grows by a known number of items, and under no condition"),
        (beyond_the_slice, "the slice has no such element"),
        (maps, "'map' is a function that array formulas cannot call|'total' is a function, which array formulas only"),
        (reads_a_dict, r"'OF_NAMES' is \{'a': 2.0\} of type dict, no number, list or table of numbers; write lists"),
        (of_numbers, r"the objective reads no vector: write elements and reductions of the individual, x\[0\]"),
        (lacks_an_argument, r"'penalty' cannot be called: it takes \(x, limit\)"),
        (mixes, "a loop adds terms to a name"),
        (reads_what_is_left, "unknown name 'last'"),
        (captures, "a loop adds terms to a name"),
        (has_text, r"'SETTINGS.mode' is 'strict' of type str, .*constants=\{...\}"),
        (lacks_a_value, r"'w' is None of type NoneType, .*constants=\{...\}"),
        (functools.partial(bound, lower=1), r"bound takes \(v, low, high\), and other arguments are bound"),
    ],
)
def test_what_is_no_formula_is_refused_with_its_place(function, message):
    with pytest.raises(UnsupportedSyntaxError, match=message):
        CompiledObjective(function)


def test_a_missing_value_is_asked_for():
    with pytest.raises(ValueError, match=r"one vector is the individual, not w, x; give constants=\{...\} for others"):
        CompiledObjective("sum(a*b for a, b in zip(w, x))")
