"""`shine.grad`: calling conventions, number types, and the agreement of compiled derivatives with the reference."""

import ast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import PARAMETERS, trees

import shine
from shine.evaluate.kernels.jit import GradientKernel
from shine.lang.derivative import gradient
from shine.lang.interpret import evaluate


def test_all_parameters_give_a_tuple_and_one_parameter_gives_a_number():
    assert shine.grad("a*a*b")(3.0, 2.0) == (12.0, 9.0)
    assert shine.grad("a*a*b", wrt="b")(3.0, 2.0) == shine.grad("a*a*b", wrt=1)(3.0, 2.0) == 9.0
    assert shine.grad("a*a*b", wrt=["b", 0])(3.0, 2.0) == (9.0, 12.0)
    assert shine.grad("a*a*b", wrt=["b"])(3.0, 2.0) == (9.0,)
    assert shine.grad("x*x")(3.0) == 6.0


def test_the_value_is_the_first_output_and_the_seed_the_first_argument():
    assert shine.grad("a*b", keep_outputs=True)(3.0, 2.0) == (6.0, 2.0, 3.0)
    assert shine.grad("x*x", keep_outputs=True)(3.0) == (9.0, 6.0)
    kernel = shine.grad("a*b", seedable=True)
    assert kernel.parameters == ("seed", "a", "b")
    assert kernel(10.0, 3.0, 2.0) == kernel(seed=10, b=2, a=3) == (20.0, 30.0)
    assert shine.grad("seed*b", seedable=True).parameters == ("seed_1", "b", "seed")
    assert shine.grad("x*x", keep_outputs=True, seedable=True)(10.0, 3.0) == (9.0, 60.0)


def test_functions_kernels_and_trees_are_differentiated():
    def f(a, b):
        if a > 0:
            return a * b
        return b

    kernel = shine.jit("a - b*b", params=("b", "a"), dtype="float32")
    assert shine.grad(f)(2.0, 3.0) == (3.0, 2.0)
    assert shine.grad(f)(-2.0, 3.0) == (0.0, 1.0)
    assert shine.grad(shine.parse("a*b"))(2.0, 3.0) == (3.0, 2.0)
    assert (shine.grad(kernel).dtype, shine.grad(kernel)(3.0, 5.0)) == ("float32", (-6.0, 1.0))
    assert shine.grad("a - b", params=("b", "a"))(0, 0) == (-1.0, 1.0)


def test_gradients_have_gradients():
    assert shine.grad(shine.grad("x**3"))(2.0) == 12.0
    mixed = shine.grad(shine.grad("sin(a*b)", wrt="a"), wrt="b")
    assert mixed(0.5, 2.0) == pytest.approx(np.cos(1.0) - np.sin(1.0), rel=1e-15)
    seeded = shine.grad(shine.grad("x**3", seedable=True), wrt="x")
    assert seeded(10.0, 2.0) == 120.0


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 1, 9, 1000])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_row_count_gives_the_bits_of_single_rows(rows, dtype):
    kernel = shine.grad("exp(sin(a)*b) + a/b", dtype=dtype, keep_outputs=True)
    rng = np.random.default_rng(rows)
    a, b = rng.normal(size=(2, rows)).astype(dtype)
    results = kernel(a, b)
    assert [(result.dtype, result.shape) for result in results] == [(np.dtype(dtype), (rows,))] * 3
    singles = [kernel(x, y) for x, y in zip(a, b, strict=True)]
    assert [tuple(row) for row in np.array(results).T.tolist()] == singles


def test_arrays_broadcast_and_keep_their_shape():
    by_a, by_b = shine.grad("a*b")(np.arange(6.0).reshape(2, 3), [[2.0], [3.0]])
    assert by_a.tolist() == [[2.0] * 3, [3.0] * 3]
    assert by_b.tolist() == np.arange(6.0).reshape(2, 3).tolist()
    wide = np.arange(40.0).reshape(10, 4)
    assert shine.grad("a*a", wrt="a")(wide[::2, 1]).tolist() == (2 * wide[::2, 1]).tolist()


@pytest.mark.slow
@given(trees(), st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_compiled_derivatives_are_those_of_the_reference(tree, seed):
    columns = list(np.random.default_rng(seed).uniform(-3, 3, (3, 9)))
    found = shine.grad(tree, wrt=PARAMETERS, opt_level="O0")(*columns)
    for result, expected in zip(found, gradient(tree, PARAMETERS), strict=True):
        reference = evaluate(expected, columns)
        # The formula amplifies rounding errors of elementary functions; NaN is not compared.
        close = np.isclose(result, reference, rtol=1e-6, atol=1e-6)
        assert (close | ~np.isfinite(result) | ~np.isfinite(reference)).mean() > 0.7


@pytest.mark.parametrize("source", ["a*exp(-b*b)*sin(a + b)", "hypot(a, b)/(1 + log1p(a*a))", "a**b + tanh(a/b)"])
def test_compiled_derivatives_are_central_differences(source):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.5, 2.0, (2, 100))
    value, by_a, by_b = shine.grad(source, keep_outputs=True)(a, b)
    f, step = shine.jit(source), 1e-6
    assert value.tolist() == f(a, b).tolist()
    assert by_a == pytest.approx((f(a + step, b) - f(a - step, b)) / (2 * step), rel=1e-8, abs=1e-8)
    assert by_b == pytest.approx((f(a, b + step) - f(a, b - step)) / (2 * step), rel=1e-8, abs=1e-8)


@pytest.mark.slow
def test_a_deep_formula_compiles():
    node: ast.expr = ast.Name("x", ast.Load())
    for _ in range(2_000):
        node = ast.BinOp(ast.Constant(1.0), ast.Div(), ast.BinOp(ast.Constant(1.0), ast.Add(), node))
    kernel = shine.grad(node)
    assert kernel.opt_level == 0
    (tree,) = kernel.trees
    x = np.linspace(0.5, 1, 9)
    assert kernel(x).tobytes() == evaluate(tree, [x]).tobytes()


def test_a_formula_that_does_not_depend_on_a_parameter_has_the_derivative_zero():
    assert shine.grad("floor(a) + b", keep_outputs=True)(2.5, 1.0) == (3.0, 0.0, 1.0)
    assert shine.grad("floor(a)")(np.ones(3)).tolist() == [0.0] * 3


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: shine.grad("a*b", wrt="c"), ValueError, "no parameter 'c'.*parameters are a, b"),
        (lambda: shine.grad("a*b", wrt=2), ValueError, "position 2, but the formula has 2 parameters: a, b"),
        (lambda: shine.grad("a*b", wrt=-1), ValueError, "position -1"),
        (lambda: shine.grad("a*b", wrt=[]), ValueError, "nothing to differentiate"),
        (lambda: shine.grad("2*3"), ValueError, "nothing to differentiate.*none"),
        (lambda: shine.grad("a*b", wrt=[1.5]), TypeError, "names or positions of parameters .a, b., not 1.5"),
        (lambda: shine.grad("a*b", wrt=True), TypeError, "not True"),
        (lambda: shine.grad("a*b", dtype="int32"), ValueError, "'int32' numbers have no derivatives; use dtype"),
        (lambda: shine.grad(shine.jit("a*b", dtype="int64")), ValueError, "'int64' numbers have no derivatives"),
        (lambda: shine.grad(shine.grad("a*b")), ValueError, "returns a tuple of 2; choose one"),
        (lambda: shine.grad("a*b", opt_level="O9"), ValueError, "O9"),
        (lambda: shine.grad("import os"), shine.UnsupportedSyntaxError, "not a Python expression"),
        (lambda: shine.grad(3), TypeError, "a formula is a string"),
        (lambda: shine.grad("a*b")(1), TypeError, "missing 'b'"),
        (lambda: shine.grad("a*b")(1, "x"), TypeError, "numbers are needed"),
    ],
)
def test_bad_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_kernel_says_what_it_is():
    kernel = shine.grad("a*b")
    assert isinstance(kernel, GradientKernel)
    assert repr(kernel) == "<GradientKernel of 2 results of (a, b), float64>"
