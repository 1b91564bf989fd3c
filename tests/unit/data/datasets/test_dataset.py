"""Data sets: valid input, and the message for each invalid one."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from shine.base.errors import DataError
from shine.data.columns import numbers as checks
from shine.data.columns.numbers import numbers
from shine.data.datasets import dataset as data
from shine.data.datasets.dataset import Dataset, stable_mean, stable_sum

X, Y = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0]
NAN, INF = float("nan"), float("inf")


def test_rows_become_contiguous_columns():
    dataset = Dataset.from_arrays(X, Y)
    assert dataset.columns.tolist() == [[1, 3, 5], [2, 4, 6]]
    assert dataset.columns.flags.c_contiguous
    assert dataset.columns.dtype == dataset.target.dtype == np.float64
    assert dataset.n_rows == 3


def test_large_rows_are_not_copied(monkeypatch):
    monkeypatch.setattr(data, "COPIED_BYTES", 47)
    X_ = np.array(X)
    dataset = Dataset.from_arrays(X_, Y)
    assert dataset.columns.tolist() == [[1, 3, 5], [2, 4, 6]]
    assert np.shares_memory(dataset.columns, X_)
    for part, expected in ((dataset.take([2, 0]), [[5, 1], [6, 2]]), (dataset.without({"x0"}), [[2, 4, 6]])):
        assert part.columns.tolist() == expected
        assert part.columns.flags.c_contiguous


@pytest.mark.parametrize("place", [(0, 0), (7, 1), (8, 0), (19, 1)])
def test_a_value_that_is_not_finite_is_found_in_any_block(place, monkeypatch):
    monkeypatch.setattr(checks, "_CHECKED", 16)
    wrong = np.ones((20, 2))
    wrong[place] = NAN
    with pytest.raises(DataError, match=f"X has 1 values .* the first in row {place[0]}, column {place[1]}"):
        Dataset.from_arrays(wrong, np.ones(20))


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
        ((X, Y, None, ["a"]), "X has 2 columns, but features has 1 names"),
        (
            ([[1.0, 2.0], [3.0, NAN], [INF, 6.0]], Y),
            "X has 2 values that are NaN or infinite, the first in row 1, column 1; finite numbers are needed: correct",
        ),
        ((pd.DataFrame({"a b": [0, INF, 0]}), Y), "infinite, the first in row 1, column 'a b'; finite numbers"),
        ((X, [1.0, INF, 3.0]), "y has 1 values that are NaN or infinite, the first in row 1"),
        ((X, Y, [1.0, 1.0, NAN]), "sample_weight has 1 values that are NaN or infinite, the first in row 2"),
        ((X, Y, [1.0, -1.0, 1.0]), "sample weights must not be negative, and one must be positive"),
        ((X, Y, [0.0, 0.0, 0.0]), "sample weights must not be negative, and one must be positive"),
        (([["a", "b"]] * 3, Y), "X: column 0 holds text, such as 'a'"),
        (([[1.0], [2.0, 3.0]], Y), "X has 1 values in row 0 and 2 in row 1; all rows need as many"),
        ((X, [None, object(), 1]), "y has a value of type object in row 1; numbers are needed"),
        ((X, Y, None, ["a", "a"]), "feature name 'a' occurs twice"),
        ((X, Y, None, ["a b", "c"]), "feature name 'a b' is not an identifier; rename the column, 'a_b' would do"),
        ((X, Y, None, ["if", "c"]), "feature name 'if' is a keyword of Python; rename the column, 'if_' would do"),
        (
            (X, Y, None, ["__x", "c"]),
            "feature name '__x' begins with two underscores, .*; rename the column, 'x' would do",
        ),
    ],
)
def test_invalid_data_are_named(arguments, message):
    X, y, *others = arguments
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays(X, y, **dict(zip(("sample_weight", "features"), others, strict=False)))


def test_the_target_is_described_by_its_weighted_mean_and_deviations():
    dataset = Dataset.from_arrays(X, [1.0, 2.0, 6.0], sample_weight=[1.0, 1.0, 2.0])
    assert dataset.weight == 4.0
    assert dataset.target_mean == 15 / 4
    assert dataset.target_square == (11 / 4) ** 2 + (7 / 4) ** 2 + 2 * (9 / 4) ** 2


def test_squares_beyond_float64_are_infinite_without_a_warning():
    assert Dataset.from_arrays(X, [1e200, -1e200, 0.0]).target_square == np.inf


@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (1023,), (1025,), (3, 7)])
def test_a_stable_sum_is_the_sum_along_the_last_axis(shape):
    values = np.random.default_rng(0).normal(size=shape)
    expected = [float(sum(map(Fraction, row))) for row in values.reshape(-1, shape[-1]).tolist()]
    assert np.ravel(stable_sum(values)).tolist() == pytest.approx(expected, rel=1e-14, abs=1e-14)


LARGEST = float(np.finfo(np.float64).max)


@pytest.mark.parametrize("size", [LARGEST, 1e160, 1.0, 5e-324])
@pytest.mark.parametrize("weights", [None, [1, 2, 3, 5, 0]])
@pytest.mark.parametrize("shares", [[1, 1, 1, 1, 1], [1, -1, 1, 1, -1], [1, 0, 0, -1, 1], [0, 0, 1e-3, 1, 1], [0] * 5])
def test_a_mean_is_exact_up_to_the_ends_of_the_range(size, weights, shares):
    values = np.array(shares) * size
    counts = weights or [1] * 5
    expected = sum(Fraction(value) * count for value, count in zip(values.tolist(), counts, strict=True)) / sum(counts)
    found = stable_mean(values, None if weights is None else np.array(weights, float))
    assert found == pytest.approx(float(expected), rel=1e-15, abs=1e-16 * size)


@pytest.mark.parametrize("share", [1e-150, 1e-200, 1e-300])
@pytest.mark.parametrize("sigma", [None, np.ones(4)])
def test_rows_with_tiny_weights_count_as_many_as_others(share, sigma):
    data = Dataset.from_arrays(
        np.ones((4, 1)), np.arange(4.0), sample_weight=[1.0, share, 2 * share, share], sigma=sigma
    )
    assert data.take([1, 2, 3]).effective_rows == pytest.approx(16 / 6)


def weighted_rows(n=100):
    rng = np.random.default_rng(0)
    return Dataset.from_arrays(
        rng.normal(size=(n, 2)), np.arange(n), sample_weight=rng.uniform(1, 2, n), features=["a", "b"]
    )


def test_taken_rows_bring_their_target_and_weight_with_them():
    dataset = weighted_rows()
    taken = dataset.take([5, 0, 5])
    assert taken.columns.tolist() == [[row[5], row[0], row[5]] for row in dataset.columns.tolist()]
    assert taken.target.tolist() == [5.0, 0.0, 5.0]
    assert taken.weights is not None and dataset.weights is not None
    assert taken.weights.tolist() == [dataset.weights[i] for i in (5, 0, 5)]
    assert taken.features == ("a", "b")
    assert taken.columns.flags.c_contiguous


def test_a_sample_is_some_rows_in_their_order_each_once():
    dataset = weighted_rows()
    sample = dataset.sampled(30, np.random.default_rng(1))
    assert sample.n_rows == 30
    assert (np.diff(sample.target) > 0).all()
    rows = sample.target.astype(int)
    assert np.array_equal(sample.columns, dataset.columns[:, rows])
    assert np.array_equal(sample.row_weights, dataset.row_weights[rows])


def test_every_row_is_drawn_as_often_as_any_other():
    dataset, rng, drawn = weighted_rows(20), np.random.default_rng(2), np.zeros(20)
    for _ in range(2000):
        drawn[dataset.sampled(5, rng).target.astype(int)] += 1
    assert drawn.tolist() == pytest.approx([500] * 20, rel=0.2)


def test_a_seed_draws_the_same_sample():
    one, other = (weighted_rows().sampled(10, np.random.default_rng(3)).target for _ in range(2))
    assert one.tolist() == other.tolist()


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([1.0 + 1j], "complex numbers"),
        (np.ma.masked_array([1.0, 2.0], [False, True]), "masked values"),
        ([10**400, 1], "a whole number beyond"),
        (np.array(["1e400"], np.longdouble), "the first in row 0"),
    ],
)
def test_numbers_beyond_float64_are_refused_with_the_reason(values, problem):
    with pytest.raises(DataError, match=problem):
        numbers(values, "y", 1)


def test_a_mask_that_hides_nothing_is_allowed():
    assert numbers(np.ma.masked_array([1.0, 2.0], [False, False]), "y", 1).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("weights", "rows"),
    [
        (None, 4),
        ([1, 2, 3, 2], 8),  # whole weights are repeated rows
        ([0.5, 0.5, 0.5, 0.5], 4),
        ([0.5, 0.25, 0.0, 0.25], 1 / (0.25 + 2 * 0.0625)),
    ],
)
def test_effective_rows_are_equally_weighted_rows_of_the_same_information(weights, rows):
    X = np.arange(8.0).reshape(4, 2)
    assert Dataset.from_arrays(X, X[:, 0], sample_weight=weights).effective_rows == pytest.approx(rows)


def test_columns_beside_the_features_follow_their_rows():
    dataset = Dataset.from_arrays([[1.0], [2.0], [3.0]], [4.0, 5.0, 6.0], loss_columns={"censored": [0, 1, 0]})
    assert dataset.loss_columns["censored"].tolist() == [0.0, 1.0, 0.0]
    assert dataset.take([2, 1]).loss_columns["censored"].tolist() == [0.0, 1.0]
    assert dataset.with_deviations(np.ones(3)).loss_columns["censored"].tolist() == [0.0, 1.0, 0.0]
    assert pickle.loads(pickle.dumps(dataset)).loss_columns["censored"].tolist() == [0.0, 1.0, 0.0]
    sample = Dataset.from_arrays(
        np.arange(9.0)[:, None], np.arange(9.0), loss_columns={"twin": np.arange(9.0)}
    ).sampled(4, np.random.default_rng(0))
    assert sample.loss_columns["twin"].tolist() == sample.target.tolist()


@pytest.mark.parametrize(
    ("loss_columns", "message"),
    [
        ({"a b": [1, 2]}, "column 'a b' is not an identifier"),
        ({"a": [1, 2, 3]}, "X has 2 rows, but column 'a' has 3"),
        ({"a": [1, np.nan]}, "column 'a' has 1 values that are NaN or infinite, the first in row 1"),
        ({"a": ["x", "y"]}, "column 'a' holds text, such as 'x'; numbers are needed"),
    ],
)
def test_columns_beside_the_features_are_checked(loss_columns, message):
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays([[1.0], [2.0]], [4.0, 5.0], loss_columns=loss_columns)


def test_a_sample_has_no_rows_of_weight_zero():
    weights = np.where(np.arange(100) % 10 == 3, 2.0, 0.0)
    data = Dataset.from_arrays(np.arange(100.0)[:, None], np.arange(100.0), sample_weight=weights)
    assert data.sampled(20, np.random.default_rng(0)).target.tolist() == [*range(3, 100, 10)]
    assert data.sampled(4, np.random.default_rng(0)).row_weights.tolist() == [2.0] * 4
