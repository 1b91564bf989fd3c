"""Rows that are kept back: which, how many, and what cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from shine.base.errors import DataError
from shine.data.datasets.dataset import Dataset
from shine.search.finishing.kept_rows import kept_back

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (60, 2))


def rows(X=X, groups=None, weights=None):
    return Dataset.from_arrays(X, X[:, 0], sample_weight=weights, groups=groups)


@pytest.mark.parametrize(("fraction", "count"), [(0.25, 15), (0.26, 16), (0.001, 1), (0.98, 59)])
def test_a_share_of_the_rows_is_kept_back(fraction, count):
    for validation in ("random", "time"):
        assert np.count_nonzero(kept_back(rows(), validation, fraction, 0)) == count


def test_the_last_rows_are_the_future():
    assert np.flatnonzero(kept_back(rows(), "time", 0.1, 0)).tolist() == [54, 55, 56, 57, 58, 59]


@pytest.mark.parametrize("validation", [None, "groups"])
@pytest.mark.parametrize("seed", range(2))
def test_groups_are_kept_back_as_a_whole(validation, seed):
    labels = np.array([f"patient {number}" for number in RNG.integers(0, 9, 60)])
    kept = kept_back(rows(groups=labels), validation, 0.25, seed)
    assert not set(labels[kept]) & set(labels[~kept])
    assert 15 <= np.count_nonzero(kept) < 60


def test_other_seeds_keep_other_rows():
    kept = [kept_back(rows(), "random", 0.25, seed) for seed in (0, 0, 1)]
    assert (kept[0] == kept[1]).all()
    assert (kept[0] != kept[2]).any()


def test_replicates_stay_together():
    repeated = np.repeat(X[:12], 5, axis=0)
    kept = kept_back(rows(repeated), "random", 0.25, 0).reshape(12, 5)
    assert (kept.all(axis=1) | ~kept.any(axis=1)).all()
    assert kept.sum() == 15


def test_one_group_stays_for_the_search():
    kept = kept_back(rows(groups=np.repeat([0, 1], 30)), None, 0.9, 0)
    assert np.count_nonzero(kept) == 30


@pytest.mark.parametrize(
    ("validation", "fraction", "message"),
    [
        ("last", 0.25, "unknown validation 'last'; use None or one of random, groups, time"),
        ("time", 0.0, "validation_fraction must be above 0 and below 1, is 0.0"),
        ("time", 1, "validation_fraction must be above 0 and below 1, is 1"),
        ("time", True, "validation_fraction must be above 0 and below 1, is True"),
    ],
)
def test_impossible_wishes_are_refused(validation, fraction, message):
    with pytest.raises(ValueError, match=message):
        kept_back(rows(), validation, fraction, 0)


@pytest.mark.parametrize(
    ("given", "validation", "message"),
    [
        (rows(), "groups", "validation='groups' needs groups"),
        (rows(groups=np.arange(60)), "time", "validation='time' does not use the groups"),
        (rows(groups=np.zeros(60)), None, "needs groups of positive weight to search in, and others to keep back"),
        (rows(np.ones((9, 1))), "random", "needs rows with different features"),
        (rows(X[:1]), "time", "there are too few"),
        (rows(weights=[1.0] * 30 + [0.0] * 30), "time", "of positive weight"),
    ],
)
def test_what_the_data_cannot_give_is_refused(given, validation, message):
    with pytest.raises(DataError, match=message):
        kept_back(given, validation, 0.25, 0)
