"""Data sets: what is accepted, and what each refusal says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from shine.data import Dataset, check_features, identifier, stable_sum
from shine.errors import DataError

X, Y = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0]
NAN, INF = float("nan"), float("inf")


def test_rows_become_contiguous_columns():
    dataset = Dataset.from_arrays(X, Y)
    assert dataset.columns.tolist() == [[1, 3, 5], [2, 4, 6]]
    assert dataset.columns.flags.c_contiguous
    assert dataset.columns.dtype == dataset.target.dtype == np.float64
    assert dataset.n_rows == 3


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.bool_, ">f8", object])
def test_numbers_of_any_type_are_read_as_float64(kind):
    assert Dataset.from_arrays(np.array([[1, 0], [0, 1]]).astype(kind), [1, 0]).columns.tolist() == [[1, 0], [0, 1]]


def test_views_with_strides_are_read_right():
    wide = np.arange(40.0).reshape(10, 4)
    assert Dataset.from_arrays(wide[::3, ::2], wide[::3, 1]).columns.tolist() == [[0, 12, 24, 36], [2, 14, 26, 38]]


def test_features_are_numbered_unless_named():
    assert Dataset.from_arrays(X, Y).features == ("x0", "x1")
    assert Dataset.from_arrays(X, Y, features=["é", "b_2"]).features == ("é", "b_2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], Y), r"X has shape \(2,\); \(n_rows, n_features\) is needed"),
        ((X, [[1.0], [2.0], [3.0]]), r"y has shape \(3, 1\); \(n_rows,\) is needed"),
        ((np.empty((0, 2)), []), r"X has shape \(0, 2\); at least one row and one feature"),
        ((np.empty((3, 0)), Y), r"X has shape \(3, 0\); at least one row and one feature"),
        ((X, [1.0, 2.0]), "X has 3 rows, but y has 2"),
        ((X, Y, [1.0, 2.0]), "X has 3 rows, but sample_weight has 2"),
        ((X, Y, None, ["a"]), "X has 2 columns, but 1 feature names are given"),
        (
            ([[1.0, 2.0], [3.0, NAN], [INF, 6.0]], Y),
            "X has 2 values that are NaN or infinite, the first in row 1, column 1",
        ),
        ((X, [1.0, INF, 3.0]), "y has 1 values that are NaN or infinite, the first in row 1"),
        ((X, Y, [1.0, 1.0, NAN]), "sample_weight has 1 values that are NaN or infinite, the first in row 2"),
        ((X, Y, [1.0, -1.0, 1.0]), "sample weights must not be negative, and one must be positive"),
        ((X, Y, [0.0, 0.0, 0.0]), "sample weights must not be negative, and one must be positive"),
        (([["a", "b"]] * 3, Y), "X cannot be read as numbers"),
        (([[1.0], [2.0, 3.0]], Y), "X cannot be read as numbers"),
        ((X, [None, object(), 1]), "y cannot be read as numbers"),
        ((X, Y, None, ["a", "a"]), "feature name 'a' occurs twice"),
        ((X, Y, None, ["a b", "c"]), "feature name 'a b' is not an identifier; rename the column, 'a_b' would do"),
        ((X, Y, None, ["if", "c"]), "feature name 'if' is not an identifier; rename the column, 'if_' would do"),
        ((X, Y, None, ["__x", "c"]), "feature name '__x' is not an identifier; rename the column, 'x' would do"),
    ],
)
def test_what_cannot_be_used_is_named(arguments, message):
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays(*arguments)


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("height (cm)", "height__cm_"),
        ("2nd", "x_2nd"),
        ("class", "class_"),
        ("__dunder", "dunder"),
        ("  padded ", "padded"),
        ("größe", "größe"),
        ("%", "x"),
        ("", "x"),
    ],
)
def test_a_heading_has_a_nearest_name_that_formulas_can_use(heading, name):
    assert identifier(heading) == name
    assert check_features([identifier(heading)]) == (name,)


def test_the_target_is_described_by_its_weighted_mean_and_deviations():
    dataset = Dataset.from_arrays(X, [1.0, 2.0, 6.0], [1.0, 1.0, 2.0])
    assert dataset.weight == 4.0
    assert dataset.target_mean == 15 / 4
    assert dataset.target_square == (11 / 4) ** 2 + (7 / 4) ** 2 + 2 * (9 / 4) ** 2


def test_rows_weigh_one_unless_told():
    assert Dataset.from_arrays(X, Y).row_weights.tolist() == [1, 1, 1]
    assert Dataset.from_arrays(X, Y).weights is None


@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (1023,), (1025,), (3, 7)])
def test_a_stable_sum_is_the_sum_along_the_last_axis(shape):
    values = np.random.default_rng(0).normal(size=shape)
    expected = [float(sum(map(Fraction, row))) for row in values.reshape(-1, shape[-1]).tolist()]
    assert np.ravel(stable_sum(values)).tolist() == pytest.approx(expected, rel=1e-14, abs=1e-14)
