"""Bitwise primitives have values for 0 and 1 only: a search tells if no column can be their argument."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.primitives import select
from shine.lang.vocabulary import primitive_table
from shine.search.problem.preparation import warn_of_bitwise

INTEGERS = np.arange(40).reshape(20, 2) % 7 + 0.0
FLAGS = np.column_stack([np.arange(20) % 2, np.arange(20) + 0.5])


def told(primitives: Sequence[Any], columns: Any) -> list[str]:
    dataset = Dataset.from_arrays(columns, np.arange(len(columns)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_bitwise(select(*primitive_table(primitives)), dataset)
    return [str(each.message) for each in caught]


def mixed(a: float, b: float) -> float:
    return (a ^ b) + 1  # type: ignore[operator]


@pytest.mark.parametrize(
    "primitive", [operator.xor, operator.and_, operator.or_, np.bitwise_xor, "np.bitwise_or", mixed]
)
def test_a_bitwise_primitive_of_integers_is_told(primitive: Any) -> None:
    (text,) = told(["add", primitive], INTEGERS)
    assert " is defined for 0 and 1 only and has no value for other numbers; no column holds only 0 and 1" in text


@pytest.mark.parametrize("primitive", [np.logical_xor, np.logical_and, "logical_not", "add", "log"])
def test_primitives_with_values_for_all_numbers_are_not_told(primitive: Any) -> None:
    assert told([primitive], INTEGERS) == []


def test_a_column_of_flags_is_enough() -> None:
    assert told([operator.xor], FLAGS) == []


@pytest.mark.parametrize("other", ["lt", "eq", "logical_not", "def step(x): return 1 if x > 2 else 0"])
def test_a_primitive_that_makes_truth_values_is_enough(other: str) -> None:
    assert told([operator.xor, other], INTEGERS) == []


def test_a_function_that_compares_first_has_values() -> None:
    assert told(["def f(a, b): return (a > 2) ^ (b > 2)", "def g(a, b): return (a > 2) & (b > 2)"], INTEGERS) == []


@pytest.mark.slow
def test_a_search_tells() -> None:
    with pytest.warns(UserWarning, match="bitwise_xor is defined for 0 and 1 only"):
        shine.evolve(INTEGERS, np.arange(20.0), primitives=[operator.xor], generations=1, seconds=None)


@pytest.mark.slow
def test_a_search_with_a_template_tells() -> None:
    options: dict[str, Any] = {"primitives": ["add", operator.xor], "generations": 1, "seconds": None, "population": 20}
    with pytest.warns(UserWarning, match="bitwise_xor is defined for 0 and 1 only"):
        shine.evolve(INTEGERS, np.arange(20.0), template="f(x0, x1)", **options)
    shine.evolve(INTEGERS, np.arange(20.0), template="f(x0 > 3, x1 > 2)", **options)


@pytest.mark.slow
def test_a_bitwise_function_around_unknown_ones_ends_in_a_front() -> None:
    options: dict[str, Any] = {"primitives": ["add"], "generations": 1, "seconds": None, "population": 20}
    assert shine.evolve(FLAGS[:, :1], FLAGS[:, 0], template="f(x0)^g(x0)", **options).front
