"""Formulas as torch functions, as objects and as text: the model's own predictions, and derivatives."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from helpers.formulas import APPROXIMATE as WITHOUT_SQRT
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from strategies import trees
from unit.export.native import (
    application,
    chain_of_functions,
    deep_tree,
    differences,
    module_of,
    primitives_of_the_target,
    rows,
)

import shine
from shine.export.torch import torch_function, torch_source
from shine.kernels.kernel import Kernel
from shine.lang.interpret import evaluate
from shine.lang.library import STANDARD
from shine.lang.primitives import ARITIES
from shine.lang.tree import Tree

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


@pytest.mark.parametrize("name", APPROXIMATE)
def test_a_float32_primitive_is_within_two_ulp(name):
    columns = rows(1, 10_000, "float32")
    with np.errstate(all="ignore"):
        expected = evaluate(application(name), [c.astype(np.float64) for c in columns]).astype(np.float32)
    assert differences(PRIMITIVES[name](*columns), expected, columns, 2) == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [name for name in STANDARD if name not in ARITIES])
def test_a_composite_is_made_of_the_same_primitives(name, dtype):
    columns = rows(2, 10_000, dtype)
    with primitives_of_the_target(PRIMITIVES, APPROXIMATE):
        expected = evaluate(application(name), columns, dtype)
    assert differences(PRIMITIVES[name](*columns), expected, columns) == []


@settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(trees(EXACT), st.integers(0, 2**32), st.sampled_from(DTYPES))
def test_random_trees_of_exact_primitives_have_their_bits_as_objects_and_as_text(tree, seed, dtype):
    # Inexact values may depend on their place in a vector: the libraries' loop bodies and tails differ.
    columns = rows(seed, 500, dtype)
    with primitives_of_the_target(PRIMITIVES, APPROXIMATE), np.errstate(all="ignore"):
        expected = evaluate(tree, columns, dtype)
    for function in (torch_function(tree), module_of(torch_source(tree))["f"]):
        assert differences(called(function, columns), expected, columns) == [], str(tree)


@pytest.mark.parametrize("text", ["a - b", "2.5", "b"])
@pytest.mark.parametrize("kind", ["object", "text"])
def test_a_matrix_and_its_columns_have_the_same_values(text, kind):
    tree = shine.parse(text, ("a", "b"))
    function = torch_function(tree) if kind == "object" else module_of(torch_source(tree))["f"]
    matrix = torch.arange(12.0).reshape(2, 3, 2).double()
    expected = evaluate(tree, matrix.reshape(6, 2).numpy().T).reshape(2, 3)
    assert function(matrix).tolist() == function(matrix[..., 0], matrix[..., 1]).tolist() == expected.tolist()
    assert function(matrix[0]).tolist() == expected[0].tolist()


def test_one_feature_is_a_column_or_a_matrix():
    function = torch_function(shine.parse("2*a"))
    assert function(torch.ones(3)).tolist() == function(torch.ones(3, 1)).tolist() == [2, 2, 2]
    assert torch_function(shine.parse("2.5"))(torch.ones(3, 0)).tolist() == [2.5] * 3


def test_another_number_of_features_and_other_dtypes_are_errors():
    function = torch_function(shine.parse("a - b"))
    with pytest.raises(ValueError, match="has 2 features, not 3"):
        function(torch.ones(5, 3))
    with pytest.raises(TypeError, match="floating-point numbers"):
        torch_function(shine.parse("a - 2.5"))(torch.arange(3))


SMOOTH = "a*sin(b) + exp(-a*a) - log(b)/sqrt(a + b) + tanh(a)**3 + atan(a/b) + cosh(a)*sinh(b) + log1p(a)*hypot(a, b)"


def test_autograd_gives_the_derivative():
    tree = shine.parse(SMOOTH)
    rng = np.random.default_rng(0)
    columns = [rng.uniform(0.1, 2, 50) for _ in range(2)]
    tensors = [torch.from_numpy(column).requires_grad_() for column in columns]
    torch_function(tree)(*tensors).sum().backward()
    for tensor, name in zip(tensors, "ab", strict=True):
        expected = shine.grad(tree, name)(*columns)
        assert tensor.grad.numpy() == pytest.approx(np.asarray(expected), rel=1e-10)


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("log1p(a)", 0.0, 1.0),
        ("log1p(a)", 1e-20, 1.0),
        ("expm1(a)", 0.0, 1.0),
        ("expm1(a)", -800.0, 0.0),
        ("sigmoid(a)", -800.0, 0.0),
        ("hypot(a, 0)", 0.0, 0.0),
        ("hypot(a, 0)", -3.0, -1.0),
        ("protected_div(1, a)", 0.0, 0.0),
        ("protected_log(a)", 0.0, 0.0),
        ("sinh(a)", 0.0, 1.0),
        ("sinh(a)", 705.0, np.sinh(705.0)),
        ("a % 3", 7.0, 1.0),
        ("-7 % a", 3.0, 3.0),
        ("max(a, 0)", 0.0, 0.0),
    ],
)
def test_derivatives_are_numbers_where_the_value_is_one(text, at, expected):
    point = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    torch_function(shine.parse(text))(point).backward()
    assert point.grad.item() == pytest.approx(expected, rel=1e-12)


def test_vmap_takes_rows():
    matrix = torch.rand(5, 2, dtype=torch.float64)
    function = torch_function(shine.parse("a*exp(2*b)"))
    assert torch.func.vmap(function)(matrix).tolist() == function(matrix).tolist()


def test_ten_thousand_levels_are_no_special_case():
    tree = deep_tree(10_000)
    columns = rows(3, 20, features=2)
    expected = evaluate(tree, columns)
    for function in (torch_function(tree), module_of(torch_source(tree))["f"]):
        assert differences(called(function, columns), expected, columns) == []


def test_functions_may_call_functions_to_any_depth():
    point = torch.tensor([0.5, 3.0], dtype=torch.float64)
    assert torch_function(chain_of_functions(1200))(point, point, point).tolist() == [0.5, 3.0]


def test_functions_of_the_user_are_functions_in_the_text():
    table, _ = shine.lang.parse.primitive_table([blend])
    tree = shine.parse("blend(a, b) + where", ("a", "b", "where"), table)
    source = torch_source(tree, "my formula")
    assert "def blend(a, b):" in source
    columns = rows(5, 100)
    values = called(module_of(source)["my_formula"], columns)
    assert differences(values, evaluate(tree, columns), columns) == []


def blend(a, b):
    return a / 2 + b / 2 if a < b else a


@pytest.mark.parametrize("name", ["torch", "number", "minimum", "def", "1x", "", "é"])
def test_any_name_becomes_one_that_python_has(name):
    tree = shine.parse(
        "min(torch, number) + minimum*columns + arguments", ("torch", "number", "minimum", "columns", "arguments")
    )
    functions = module_of(torch_source(tree, name))
    function = [value for key, value in functions.items() if key.startswith((name or "f")[:1]) or key == "f1x"][-1]
    assert function(torch.full((3, 5), 2.0)).tolist() == [8.0] * 3


def test_a_function_without_a_meaning_is_named():
    with pytest.raises(shine.ExportError, match="'cbrt' cannot be exported to torch"):
        torch_function(Tree(("a",), shine.parse("cbrt(a)").result))


def test_without_torch_the_error_says_what_to_install():
    code = """
import sys
sys.modules["torch"] = None
import shine
from shine.export.torch import torch_function
try:
    torch_function(shine.parse("a + b"))
except shine.ExportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "the export to torch needs torch; install it with: pip install 'shine[torch]'\n"
