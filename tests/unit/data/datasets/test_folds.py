"""Folds: every row is kept back once, and groups stay together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.base.errors import DataError
from shine.data.datasets.dataset import Dataset
from shine.data.datasets.folds import fold_problem, kept_back_by


def rows(count: int, groups: object = None) -> Dataset:
    """Some rows."""
    return Dataset.from_arrays(np.arange(count)[:, None] * 1.0, np.arange(count) * 1.0, groups=groups)


@given(st.integers(2, 40), st.integers(2, 9))
def test_every_row_is_kept_back_once_in_parts_of_equal_size(count: int, folds: int):
    count = max(count, folds)
    kept = np.array([kept_back_by(rows(count), f"{number}/{folds}") for number in range(1, folds + 1)])
    assert (kept.sum(axis=0) == 1).all()
    assert np.ptp(kept.sum(axis=1)) <= 1


def test_groups_stay_together():
    groups = np.repeat([3, 1, 2, 7], 5)
    kept = kept_back_by(rows(20, groups), "1/2")
    assert all(len(set(kept[groups == group])) == 1 for group in set(groups.tolist())) and kept.sum() == 10


def test_fewer_rows_than_folds_are_told():
    with pytest.raises(DataError, match="5 folds need as many rows, not 3"):
        kept_back_by(rows(3), "1/5")


@pytest.mark.parametrize("fold", ["", "1", "0/3", "4/3", "1/1", "1 / 3", "a/b", "-1/3", "1/3/3"])
def test_what_is_no_fold_is_told(fold: str):
    assert fold_problem(fold) == f"{fold!r} is no fold; write 1/5 for the first of five"
