"""Formulas as torch functions, as objects and as text: the model's own predictions, and derivatives."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from helpers.formulas import APPROXIMATE as WITHOUT_SQRT
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from strategies import trees
from unit.formats.write.native import (
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
from shine.evaluate.kernels.kernel import Kernel
from shine.formats.write.torch import torch_function, torch_source
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import ARITIES
from shine.lang.interpret import evaluate

with warnings.catch_warnings():
    # Warnings of libraries during their import are not about this project.
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch", reason="torch is not installed")

pytestmark = pytest.mark.slow
# torch's vectorized square root is not always the nearest number.
APPROXIMATE = ("sqrt", *WITHOUT_SQRT)
EXACT = [name for name in ARITIES if name not in APPROXIMATE]
DTYPES = ["float64", "float32"]
FUNCTIONS = {name: torch_function(application(name)) for name in STANDARD}


def called(function, columns):
    """Values for NumPy columns, as NumPy."""
    return function(*map(torch.from_numpy, columns)).numpy()


PRIMITIVES = {name: (lambda *columns, f=function: called(f, columns)) for name, function in FUNCTIONS.items()}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXACT)
def test_an_exact_primitive_has_the_same_bits(name, dtype):
    columns = rows(0, 10_000, dtype)
    assert differences(PRIMITIVES[name](*columns), evaluate(application(name), columns, dtype), columns) == []


@pytest.mark.parametrize("name", APPROXIMATE)
def test_a_primitive_is_within_two_ulp_of_the_compiled_one(name):
    columns = rows(1, 10_000)
    assert differences(PRIMITIVES[name](*columns), Kernel(application(name))(*columns), columns, 2) == []


@settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(trees(EXACT), st.integers(0, 2**32), st.sampled_from(DTYPES))
def test_random_trees_of_exact_primitives_have_their_bits_as_objects_and_as_text(tree, seed, dtype):
    # Inexact values may depend on their place in a vector: the libraries' loop bodies and tails differ.
    columns = rows(seed, 500, dtype)
    with primitives_of_the_target(PRIMITIVES, APPROXIMATE), np.errstate(all="ignore"):
        expected = evaluate(tree, columns, dtype)
    for function in (torch_function(tree), module_of(torch_source(tree))["f"]):
        assert differences(called(function, columns), expected, columns) == [], str(tree)


def test_autograd_gives_the_derivative():
    tree = shine.parse(SMOOTH)
    rng = np.random.default_rng(0)
    columns = [rng.uniform(0.1, 2, 50) for _ in range(2)]
    tensors = [torch.from_numpy(column).requires_grad_() for column in columns]
    torch_function(tree)(*tensors).sum().backward()
    for tensor, name in zip(tensors, "ab", strict=True):
        expected = shine.grad(tree, name)(*columns)
        assert tensor.grad.numpy() == pytest.approx(np.asarray(expected), rel=1e-10)


def test_ten_thousand_levels_are_no_special_case():
    tree = deep_tree(10_000)
    columns = rows(3, 20, features=2)
    expected = evaluate(tree, columns)
    for function in (torch_function(tree), module_of(torch_source(tree))["f"]):
        assert differences(called(function, columns), expected, columns) == []


def test_functions_may_call_functions_to_any_depth():
    point = torch.tensor([0.5, 3.0], dtype=torch.float64)
    assert torch_function(chain_of_functions(1200))(point, point, point).tolist() == [0.5, 3.0]
