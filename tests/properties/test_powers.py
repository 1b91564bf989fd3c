"""A power with the exponent 2 or 3 has the bits of a product, in every tier and with exponents of every origin."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.equality import same_bits
from helpers.rows import random_rows

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.kernels.kernel import Kernel
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.evaluate.tiers.native_tier import NativeEvaluator
from shine.evaluate.tiers.reference_tier import ReferenceEvaluator
from shine.lang.forms.library import STANDARD
from shine.lang.population import Population

DTYPES = ["float64", "float32"]
PRODUCTS = {2: ("x*x", "square(x)"), 3: ("x*x*x", "cube(x)")}
"""Other formulas for the power with each exponent."""

each_power = pytest.mark.parametrize(
    ("dtype", "exponent"),
    [("float64", 3), ("float32", 2)],
)

WRITTEN = ("x**{0}", "x**{0}.0", "pow(x, {0})", "x**n", "x**(n + 0*x)", "pow(x, 4 - {1})", "x**({0} if n > 1 else x)")
"""Ways to write a power: the column n is the exponent, too; {1} is 4 minus the exponent."""


def products(x: np.ndarray, exponent: int) -> np.ndarray:
    """The power as a product."""
    with np.errstate(all="ignore"):
        return x * x if exponent == 2 else x * x * x


def numbers(rng: np.random.Generator, rows: int, dtype: str) -> np.ndarray:
    """Ordinary numbers, numbers of all magnitudes, special values, and whole numbers."""
    return np.concatenate([random_rows(rng, rows, dtype)[0], np.arange(-40, 41).astype(dtype)])


def texts(exponent: int) -> list[str]:
    """All ways to write a power."""
    finite = [text.format(exponent, 4 - exponent) for text in WRITTEN]
    return [*finite, *PRODUCTS[exponent]]


@pytest.mark.slow
@each_power
@pytest.mark.parametrize("level", ["O0", "O2"])
def test_kernels_multiply(level, dtype, exponent):
    x = numbers(np.random.default_rng(0), 500, dtype)
    # Where x is infinite or NaN, the exponent n + 0*x is NaN.
    x_finite = x[np.isfinite(x)]
    for text in texts(exponent):
        kernel, n = Kernel(shine.parse(text, ("x", "n")), dtype, level), np.full_like(x_finite, exponent)
        assert same_bits(kernel(x_finite, n), products(x_finite, exponent)).all(), text
        assert all(same_bits(np.array(kernel(float(v), exponent), dtype), products(v, exponent)) for v in x_finite[:9])


@pytest.mark.slow
@each_power
@pytest.mark.parametrize("evaluator", [MachineEvaluator, NativeEvaluator, ReferenceEvaluator])
def test_evaluators_multiply(evaluator, dtype, exponent):
    x = numbers(np.random.default_rng(1), 500, dtype)
    x = x[np.isfinite(x)]
    dataset = Dataset(np.array([x, np.full(len(x), exponent)], np.float64), np.zeros(len(x)), None, ("x", "n"))
    primitives = shine.PrimitiveSet(tuple(STANDARD.values()), dataset.features)
    population = Population.from_trees([shine.parse(text, ("x", "n")) for text in texts(exponent)], primitives)
    predicted = evaluator(dataset, "mse", False, dtype).predict(population)
    for text, row in zip(texts(exponent), predicted, strict=True):
        assert same_bits(row, products(x, exponent)).all(), text


@pytest.mark.slow
@pytest.mark.parametrize("exponent", PRODUCTS)
def test_the_gradient_machine_multiplies_in_values_and_derivatives(exponent):
    named = f"{'square' if exponent == 2 else 'cube'}(x + 0.3)"
    values = [named, "(x + 0.3)**n", f"(x + 0.3)**{exponent}", "*".join(["(x + 0.3)"] * exponent)]
    for x in numbers(np.random.default_rng(2), 20, "float64"):
        expected = products(x + 0.3, exponent)
        if not np.isfinite(expected):
            continue
        # For one row and the target 0, the sum of absolute errors is the absolute prediction.
        dataset = Dataset(np.array([[x], [exponent]]), np.zeros(1), None, ("x", "n"))
        primitives = shine.PrimitiveSet(tuple(STANDARD.values()), dataset.features)
        population = Population.from_trees([shine.parse(text, ("x", "n")) for text in values], primitives)
        one = np.ones(len(values))
        equations = MachineLinearizer(dataset, "mae").normal_equations(population, one, 0 * one, one * np.inf)
        assert (equations.errors == abs(expected)).all()
        # The first two have the same constant, and so the same derivative with respect to it.
        assert same_bits(equations.matrices[0, :3, :3], equations.matrices[1, :3, :3]).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_lane_s_power_does_not_depend_on_its_neighbours(dtype):
    rng = np.random.default_rng(4)
    x = numbers(rng, 2000, dtype)
    n = rng.choice([2, 3, 2.5, -1, 0, 1, 4, 0.5, np.nan, np.inf], len(x), p=[0.4, 0.4, *[0.025] * 8]).astype(dtype)
    kernel = Kernel(shine.parse("x**n", ("x", "n")), dtype)
    one_by_one = np.array([kernel(float(a), float(b)) for a, b in zip(x, n, strict=True)], dtype)
    assert same_bits(kernel(x, n), one_by_one).all()
    for exponent in PRODUCTS:
        assert same_bits(kernel(x, n), products(x, exponent))[n == exponent].all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_powers_of_integers_wrap_like_products(dtype):
    x = np.random.default_rng(6).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 100, dtype)
    for exponent, ways in PRODUCTS.items():
        kernels = [shine.jit(t, params=("x", "n"), dtype=dtype) for t in (f"x**{exponent}", "x**n", *ways)]
        assert len({tuple(k(x, np.full_like(x, exponent)).tolist()) for k in kernels}) == 1
