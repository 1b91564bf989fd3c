"""Formulas as JAX functions, as objects and as text: the model's own predictions, and derivatives."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from helpers.formulas import APPROXIMATE
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from strategies import trees
from unit.formats.write.native import (
    EXACT,
    SMOOTH,
    application,
    chain_of_functions,
    deep_tree,
    differences,
    module_of,
    primitives_of_the_target,
    rows,
)

import shine
from shine.formats.write.jax import jax_function, jax_source
from shine.lang.forms.primitives import ARITIES
from shine.lang.interpret import evaluate

with warnings.catch_warnings():
    # Warnings of libraries during their import are not about this project.
    warnings.simplefilter("ignore")
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    import jax.numpy as jnp

pytestmark = pytest.mark.slow
DTYPES = ["float64", "float32"]


@pytest.fixture(scope="module", autouse=True)
def float64():
    """JAX with both dtypes, for these tests alone."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def called(function, columns):
    """Values for NumPy columns, as NumPy."""
    return np.asarray(function(*map(jnp.asarray, columns)))


@cache
def primitive(name):
    """A primitive of NumPy columns, and the same compiled as one function, as a formula is under `jax.jit`."""
    function = jax_function(application(name))
    compiled = jax.jit(function)
    return (lambda *columns: called(function, columns)), (lambda *columns: called(compiled, columns))


def without_subnormals(columns, dtype):
    """XLA takes subnormal numbers for zero."""
    smallest = np.finfo(dtype).tiny
    return [np.where(np.abs(column) < 2 * smallest, np.copysign(0, column), column).astype(dtype) for column in columns]


def flushed(values):
    """Numbers that may have been subnormal on the way as zeros without a sign."""
    tiny = 4 * np.finfo(values.dtype).tiny
    return np.where(np.abs(values) <= tiny, values.dtype.type(0), values)


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_primitive_has_the_same_value_except_for_subnormals(name):
    columns = without_subnormals(rows(0, 5000, "float64"), "float64")
    expected = evaluate(application(name), columns, "float64")
    for function in primitive(name):
        assert differences(flushed(function(*columns)), flushed(expected), columns) == []


@pytest.mark.parametrize("name", APPROXIMATE)
def test_a_primitive_is_within_its_bound(name):
    columns = without_subnormals(rows(1, 5000, "float32"), "float32")
    with np.errstate(all="ignore"):
        expected = evaluate(application(name), [c.astype(np.float64) for c in columns]).astype("float32")
    limit = 4 if name in ("sinh", "cosh", "tanh", "pow") else 2
    for function in primitive(name):
        assert differences(flushed(function(*columns)), flushed(expected), columns, limit) == []


@settings(max_examples=8, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(trees(EXACT), st.integers(0, 2**32), st.sampled_from(DTYPES))
def test_random_trees_of_exact_primitives_have_their_bits_as_objects_and_as_text(tree, seed, dtype):
    # Inexact values may depend on their place in a vector: the libraries' loop bodies and tails differ.
    columns = rows(seed, 500, dtype)
    with primitives_of_the_target({name: primitive(name)[0] for name in ARITIES}, ARITIES), np.errstate(all="ignore"):
        expected = evaluate(tree, columns, dtype)
    for function in (jax_function(tree), module_of(jax_source(tree))["f"]):
        # Compiled as a whole, XLA gathers constants, and divides by their reciprocals.
        with jax.disable_jit():
            found = called(function, columns)
        assert differences(found, expected, columns) == [], str(tree)


def test_grad_gives_the_derivative():
    tree = shine.parse(SMOOTH)
    rng = np.random.default_rng(0)
    columns = [rng.uniform(0.1, 2, 50) for _ in range(2)]
    derivative = jax.jit(jax.grad(lambda *values: jax_function(tree)(*values).sum(), argnums=(0, 1)))
    for found, name in zip(derivative(*columns), "ab", strict=True):
        assert np.asarray(found) == pytest.approx(np.asarray(shine.grad(tree, name)(*columns)), rel=1e-10)


def test_depth_is_no_special_case():
    tree = deep_tree(3000)
    columns = [np.arange(1.0, 4.0), np.arange(2.0, 5.0)]
    values = called(jax_function(tree), columns)
    assert differences(values, evaluate(tree, columns), columns) == []
    source = module_of(jax_source(deep_tree(1000)))["f"]
    assert differences(called(source, columns), evaluate(deep_tree(1000), columns), columns) == []


def test_functions_may_call_functions_to_any_depth():
    point = jnp.array([0.5, 3.0])
    assert jax_function(chain_of_functions(1000))(point, point, point).tolist() == [0.5, 3.0]
