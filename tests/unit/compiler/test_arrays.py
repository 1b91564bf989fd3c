"""Array functions: the bits of formulas, and sums in a fixed order."""

import math

import numpy as np
import pytest
from helpers.markers import mostly_slow

import shine
from shine.compiler.arrays import Panels, apply, dot, exp, gram_matrix, inner, log, power
from shine.lang.forms.library import STANDARD

VALUES = np.concatenate([
    np.random.default_rng(0).uniform(-3, 3, 200),
    np.random.default_rng(1).lognormal(0, 20, 100),
    [0.0, -0.0, 1.0, -1.0, 5e-324, -1e308, 1e308, np.inf, -np.inf, np.nan],
])  # fmt: skip
ONE_OR_TWO = sorted(name for name in STANDARD if STANDARD[name].arity <= 2)


@pytest.mark.parametrize("name", mostly_slow(ONE_OR_TWO[::4], fast=ONE_OR_TWO[::8]))
def test_a_primitive_of_arrays_has_the_bits_of_the_compiled_formula(name):
    primitive = STANDARD[name]
    arguments = [VALUES, np.roll(VALUES, 7)][: primitive.arity]
    call = f"{name}({', '.join(['a', 'b'][: primitive.arity])})"
    expected = shine.jit(call, ["a", "b"][: primitive.arity])(*arguments)
    assert np.array_equal(apply(primitive, *arguments), expected, equal_nan=True)


def test_arguments_broadcast_and_need_not_be_contiguous():
    table = np.arange(1.0, 13).reshape(3, 4)
    assert log(table.T).shape == (4, 3)
    assert np.array_equal(log(table.T)[2], log(np.ascontiguousarray(table[:, 2])))
    assert np.array_equal(apply(STANDARD["pow"], table, np.array(0.3)), apply(STANDARD["pow"], table, 0.3 + 0 * table))
    assert float(exp(np.array(0.0))) == 1.0
    assert log(np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("exponent", [-3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0, 1 / 3, 0.0, 40.0])
def test_powers_are_powers(exponent):
    values = np.array([0.3, 1.0, 2.5, 100.0])
    assert power(values, exponent) == pytest.approx([math.pow(v, exponent) for v in values.tolist()], rel=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "m", "length"), [(1, 1, 1), (6, 16, 5), (7, 33, 13), (5, 3, 0), (0, 4, 3), (13, 0, 2)])
def test_inner_products_are_added_from_the_first_to_the_last(dtype, n, m, length):
    rng = np.random.default_rng(n + m)
    a, b = (rng.standard_normal((count, length)).astype(dtype) for count in (n, m))
    found = inner(a, b)
    assert found.shape == (n, m) and found.dtype == np.dtype(dtype)
    expected = np.zeros((n, m), dtype)
    for k in range(length):
        expected = expected + a[:, k, None] * b[None, :, k]
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("count", [0, 1, 3, 255, 256, 257, 601])
def test_a_matrix_of_inner_products_has_the_bits_of_inner_products(count):
    rows = np.random.default_rng(count).normal(size=(count, 7)).astype(np.float32)
    assert gram_matrix(rows).tobytes() == inner(rows, rows).tobytes()


def test_a_layout_serves_many_products():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((20, 9))
    panels = Panels(matrix)
    for count in (1, 6, 11):
        others = rng.standard_normal((count, 9))
        assert np.allclose(panels.inner(others), others @ matrix.T)


def test_sums_of_products_run_over_the_last_axis():
    a, b = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    assert np.array_equal(dot(a, b), (a * b).sum(axis=1))
