"""Formulas as functions of a Python array library, as objects and as text: what holds for JAX and torch alike."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from unit.formats.write.native import module_of

import shine
from shine.formats.write.jax import jax_function, jax_source
from shine.formats.write.torch import torch_function, torch_source
from shine.lang.interpret import evaluate

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Library:
    """A library of arrays and the export to it.

    Parameters
    ----------
    form, package, alias : str
        Names of the library in messages, as a package, and in exported text.
    function, source : callable
        The exports of a formula.
    array : callable
        Makes an array of NumPy's.
    derivative : callable
        Derivative of a function of one number, at a number.
    vmap : callable
    """

    form: str
    package: str
    alias: str
    function: Callable[..., Any]
    source: Callable[..., str]
    array: Callable[..., Any]
    derivative: Callable[[Callable[..., Any], float], float]
    vmap: Callable[..., Any]


def imported(package: str) -> Any:
    """A library; warnings during its import are not about this project."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(package, reason=f"{package} is not installed")


@contextmanager
def with_jax() -> Iterator[Library]:
    jax = imported("jax")

    def derivative(function, at):
        return float(jax.grad(function)(at))

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield Library("JAX", "jax", "jnp", jax_function, jax_source, jax.numpy.asarray, derivative, jax.vmap)
    jax.config.update("jax_enable_x64", before)


@contextmanager
def with_torch() -> Iterator[Library]:
    torch = imported("torch")

    def derivative(function, at):
        point = torch.tensor(at, dtype=torch.float64, requires_grad=True)
        function(point).backward()
        return point.grad.item()

    yield Library("torch", "torch", "torch", torch_function, torch_source, torch.tensor, derivative, torch.func.vmap)


@pytest.fixture(scope="module", params=[with_jax, with_torch], ids=["JAX", "torch"])
def library(request):
    with request.param() as library:
        yield library


@pytest.mark.parametrize("text", ["a - b", "2.5", "b"])
@pytest.mark.parametrize("kind", ["object", "text"])
def test_a_matrix_and_its_columns_have_the_same_values(library, text, kind):
    tree = shine.parse(text, ("a", "b"))
    function = library.function(tree) if kind == "object" else module_of(library.source(tree))["f"]
    numbers = np.arange(12.0).reshape(2, 3, 2)
    matrix = library.array(numbers)
    expected = evaluate(tree, numbers.reshape(6, 2).T).reshape(2, 3)
    assert function(matrix).tolist() == function(matrix[..., 0], matrix[..., 1]).tolist() == expected.tolist()
    assert function(matrix[0]).tolist() == expected[0].tolist()


def test_another_number_of_features_and_other_dtypes_are_errors(library):
    function = library.function(shine.parse("a - b"))
    with pytest.raises(ValueError, match="has 2 features, not 3"):
        function(library.array(np.ones((5, 3))))
    with pytest.raises(TypeError, match="floating-point numbers"):
        library.function(shine.parse("a - 2.5"))(library.array(np.arange(3)))


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
def test_derivatives_are_numbers_where_the_value_is_one(library, text, at, expected):
    assert library.derivative(library.function(shine.parse(text)), at) == pytest.approx(expected, rel=1e-12)


def test_vmap_takes_rows(library):
    matrix = library.array(np.random.default_rng(2).normal(size=(5, 2)))
    function = library.function(shine.parse("a*exp(2*b)"))
    assert library.vmap(function)(matrix).tolist() == function(matrix).tolist()


@pytest.mark.parametrize("name", ["{alias}", "number", "minimum", "def", "1x", "", "é"])
def test_any_name_becomes_one_that_python_has(library, name):
    name = name.format(alias=library.alias)
    features = (library.alias, "number", "minimum", "columns", "arguments")
    tree = shine.parse(f"min({library.alias}, number) + minimum*columns + arguments", features)
    functions = module_of(library.source(tree, name))
    function = [value for key, value in functions.items() if key.startswith((name or "f")[:1]) or key == "f1x"][-1]
    assert function(library.array(np.full((3, 5), 2.0))).tolist() == [8.0] * 3
