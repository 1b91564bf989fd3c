import numpy as np
import pytest
from helpers.markers import mostly_slow

import shine

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan, -np.nan, np.finfo(float).smallest_subnormal, -1e-60, 1e-60]
)
CONSTANTS = ["0.0", "-0.0", "2.5", "-1e-60"]


def first_or_second(operation, a, b):
    """What min and max mean: the first operand if it precedes the second, or is NaN; else the second."""
    with np.errstate(invalid="ignore"):
        precedes = a < b if operation == "min" else a > b
    return np.where(precedes | np.isnan(a), a, b)


def assert_same_bits(got, want):
    kind = f"u{want.itemsize}"
    assert got.view(kind).tolist() == want.view(kind).tolist()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("operation", ["min", "max"])
def test_extrema_have_the_bits_of_an_operand(operation, dtype):
    a, b = (each.ravel().astype(dtype) for each in np.meshgrid(SPECIAL, SPECIAL))
    kernel = shine.jit(shine.parse(f"{operation}(a, b)"), dtype=dtype)
    assert_same_bits(kernel(a, b), first_or_second(operation, a, b))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("operation", ["min", "max"])
@pytest.mark.parametrize("constant", mostly_slow(CONSTANTS, fast=CONSTANTS[:1]))
def test_extrema_with_a_constant_have_the_bits_of_an_operand(operation, constant, dtype):
    with np.errstate(over="ignore"):
        a, c = SPECIAL.astype(dtype), np.full(SPECIAL.size, float(constant)).astype(dtype)
    after = shine.jit(shine.parse(f"{operation}(a, {constant})"), dtype=dtype)
    before = shine.jit(shine.parse(f"{operation}({constant}, a)"), dtype=dtype)
    assert_same_bits(after(a), first_or_second(operation, a, c))
    assert_same_bits(before(a), first_or_second(operation, c, a))
