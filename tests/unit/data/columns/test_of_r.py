"""Numbers as R hands them over."""

from __future__ import annotations

import numpy as np
import pytest

from shine.data.columns.numbers import MISSING, check_integers, int_if_exact


@pytest.mark.parametrize("number", [20.0, np.float64(20), np.float32(20)])
def test_a_float_without_a_fraction_is_an_int(number):
    assert int_if_exact(number) == 20
    assert type(int_if_exact(number)) is int


@pytest.mark.parametrize("value", [20, 20.5, float("inf"), True, None, "20", np.int32(20)])
def test_anything_else_is_as_it_is(value):
    assert int_if_exact(value) is value


def test_only_integers_are_missing_ones():
    check_integers([float(MISSING)], np.array([float(MISSING)]), "y")
    check_integers(["a"], np.array(["a"]), "y")
    with pytest.raises(ValueError, match="y has -2147483648 in row 1, which is NA in whole numbers of R: drop"):
        check_integers([1, MISSING], np.array([1.0, MISSING]), "y")


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint8", "int64", "bool"])
def test_numbers_of_any_size_are_looked_at_without_a_warning(dtype):
    check_integers([1, 0], np.array([1, 0], dtype), "y")
