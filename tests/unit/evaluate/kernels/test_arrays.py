"""Compiled array formulas agree with Python, with the interpreter, and with themselves one individual at a time."""

from __future__ import annotations

import math
import pickle
import threading

import numpy as np
import pytest
from deap import benchmarks
from helpers.array_formulas import Formulas, by_python

import shine
from shine.compiler.arrays import COMPILED
from shine.lang.arrays.interpret import evaluate_arrays

EXPRESSIBLE = [
    "sphere", "cigar", "plane", "rosenbrock", "h1", "ackley", "bohachevsky", "griewank", "rastrigin",
    "rastrigin_scaled", "rastrigin_skew", "schaffer", "schwefel", "himmelblau", "kursawe", "schaffer_mo", "zdt1",
    "zdt2", "zdt3", "zdt4", "zdt6", "fonseca", "poloni",
]  # fmt: skip


def same_bits(a, b):
    return np.array_equal(np.asarray(a).view(np.uint64), np.asarray(b).view(np.uint64))


def check_benchmark(name, sizes, dtype="float64"):
    function = getattr(benchmarks, name)
    kernel = shine.jit(function, dtype=dtype)
    rng = np.random.default_rng(5)
    for rows, length in sizes:
        # Positive and below 1 where roots of genes or of g/f1 are taken.
        X = rng.uniform(0.01, 1, (rows, length)) if name.startswith("zdt") else rng.uniform(-5, 5, (rows, length))
        X = X.astype(dtype)
        got = np.atleast_2d(np.array(kernel(X)))
        want = np.array([function(x.tolist()) for x in X], float).T
        scale = np.abs(want).max() + 1
        assert np.allclose(got, want, rtol=1e-13, atol=1e-13 * scale) or dtype == "float32"
        assert np.allclose(got, want, rtol=1e-3, atol=1e-4 * scale)
        alone = np.array([np.atleast_1d(kernel(x)) for x in X]).T
        assert np.array_equal(got, alone)
        if dtype == "float64":
            assert same_bits(got, np.array(evaluate_arrays(kernel.formula, [X], functions=COMPILED)))
        assert np.allclose(got, np.array(evaluate_arrays(kernel.formula, [X], dtype)), rtol=1e-3, atol=1e-4 * scale)


@pytest.mark.parametrize("name", ["rosenbrock"])
def test_a_benchmark_of_deap_has_its_values(name):
    check_benchmark(name, [(1, 2), (9, 3)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "float64") for name in EXPRESSIBLE), ("rosenbrock", "float32"), ("ackley", "float32")]
)
def test_all_benchmarks_of_deap_have_their_values(name, dtype):
    check_benchmark(name, [(1, 2), (7, 3), (8, 4), (17, 41)], dtype)


def check_random(seed, functions, exact):
    text = Formulas(seed, functions).text()
    rng = np.random.default_rng(seed)
    kernel = shine.jit(text)
    for length in (3, 4, 7):
        X, a = rng.uniform(-2, 2, (9, length)), rng.uniform(-1, 1, 9)
        arguments = {"x": X, "a": a}
        given = [arguments[name] for name in kernel.parameters]
        got = kernel(*given)
        interpreted = evaluate_arrays(kernel.formula, given, functions=COMPILED)[0]
        assert same_bits(got, interpreted), text
        want = np.array([by_python(text, x.tolist(), b) for x, b in zip(X, a.tolist(), strict=True)])
        if exact:
            assert np.array_equal(got, want), text
        else:
            assert np.allclose(got, want, rtol=1e-7, atol=1e-7 * (1 + np.abs(want).max())), text
        first = [each[0] for each in given]
        assert same_bits(np.array(kernel(*first)), got[0]), text


@pytest.mark.parametrize("seed", range(2))
def test_random_formulas_have_pythons_bits(seed):
    check_random(seed, ["abs", "-"], exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 14))
def test_many_random_formulas_have_pythons_bits(seed):
    check_random(seed, ["abs", "-"], exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1006))
def test_random_formulas_with_sines_are_near_pythons_values(seed):
    check_random(seed, ["sin", "cos", "abs"], exact=False)


def test_lengths_vary_from_call_to_call_and_empty_ranges_have_pythons_values():
    kernel = shine.jit("sum(x) + 10*prod(x[1:]) + n")
    assert [kernel([]), kernel([2.0]), kernel([2.0, 3.0])] == [10.0, 13.0, 37.0]
    assert kernel(np.empty((0, 3))).shape == (0,)
    assert shine.jit("sum(i for i in range(5, 2))")() == 0


def test_an_index_out_of_range_is_an_error_before_the_loop():
    kernel = shine.jit("sum(x[i + 1] - x[i] for i in range(n))")
    with pytest.raises(IndexError, match=r"x\[i \+ 1\] is element 4 at i = 3, but x has 4 elements"):
        kernel([1.0, 2.0, 3.0, 4.0])
    assert kernel([]) == 0
    with pytest.raises(IndexError, match=r"x\[-3\] is element -3, but x has 2 elements"):
        shine.jit("x[-3]")([1.0, 2.0])
    nested = shine.jit("sum(sum(x[i + j] for j in range(i)) for i in range(n))")
    with pytest.raises(IndexError, match="element 3 at i = 2, j = 1"):
        nested([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"max.* has no terms \(len\(x\) = 1\)"):
        shine.jit("max(v for v in x[1:])")([1.0])


def test_special_numbers_follow_ieee():
    kernel = shine.jit("(sum(x), max(x), prod(x))")
    total, top, product = kernel([[1.0, math.nan], [math.inf, -math.inf], [-0.0, -0.0], [1e308, 1e308]])
    assert np.isnan(total[:2]).all() and total[3] == math.inf
    assert math.copysign(1, total[2]) == 1  # as Python's sum, which begins with 0
    assert np.isnan(top[0]) and top[1] == math.inf
    assert np.isnan(product[0]) and product[1] == -math.inf and math.copysign(1, product[2]) == 1


@pytest.mark.slow
def test_numbers_and_vectors_are_shared_or_of_each_individual():
    kernel = shine.jit("a*sum(v*w for v, w in zip(x, c))")
    X, c, a = np.arange(6.0).reshape(3, 2), [1.0, 10.0], [1.0, 2.0, 3.0]
    assert kernel.parameters == ("c", "x", "a")
    assert kernel(c, X, 2).tolist() == [20.0, 64.0, 108.0]
    assert kernel(x=X, c=c, a=a).tolist() == [10.0, 64.0, 162.0]
    assert kernel(c, X[1], a).tolist() == [32.0, 64.0, 96.0]
    assert kernel(np.tile(c, (3, 1)), np.asfortranarray(X)[:, ::1], 1).tolist() == [10.0, 32.0, 54.0]
    X.setflags(write=False)
    assert kernel(c, X[::2], 1).tolist() == [10.0, 54.0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1.0], [1.0], 1.0, 2.0), TypeError, r"the formula takes \(x, y, a\): too many"),
        (([1.0],), TypeError, "missing 'y'"),
        ((["a"], [1.0], 1.0), TypeError, "argument 'x' has dtype <U1; numbers are needed"),
        (([[1.0], [2.0, 3.0]], [1.0], 1.0), ValueError, "rows of unequal lengths"),
        ((1.0, [1.0], 1.0), ValueError, r"argument 'x' has shape \(\); it needs shape \(length,\)"),
        (([1.0], [1.0], [[1.0]]), ValueError, r"argument 'a' has shape \(1, 1\)"),
        (
            ([[1.0], [2.0]], [1.0], [1.0, 2.0, 3.0]),
            ValueError,
            "different numbers of individuals: 'x' has 2, 'a' has 3",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        shine.jit("a*(x[0] + y[0])")(*arguments)


def test_integers_are_no_type_of_array_formulas():
    with pytest.raises(ValueError, match="array formulas have dtype float64 or float32, not 'int64'"):
        shine.jit("sum(x)", dtype="int64")


@pytest.mark.slow
def test_kernels_are_pickled_and_called_by_threads():
    kernel = pickle.loads(pickle.dumps(shine.jit("sum(v*v for v in x)")))
    X = np.arange(4000.0).reshape(1000, 4)
    want, results = (X * X).sum(axis=1), []
    threads = [threading.Thread(target=lambda: results.append(kernel(X))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(np.array_equal(each, want) for each in results)
