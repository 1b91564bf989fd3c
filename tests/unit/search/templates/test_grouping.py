"""Columns of groups: texts, numbers, and groups that are not known."""

from __future__ import annotations

import numpy as np
import pytest

from shine.base.errors import DataError
from shine.data.datasets.dataset import Dataset
from shine.search.templates.grouping import numbered_by_group, with_known_groups, with_numbers_for_texts
from shine.search.templates.law import Groups

FEATURES = ("a", "who")
CELLS = [[1.0, "Bob"], [2.0, "Ann"], [3.0, "Bob"]]


COLUMNS = {"a": [1.0, 2.0, 3.0], "who": ["Bob", "Ann", "Bob"]}
TABLES = {"array": None, "pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


@pytest.mark.parametrize("library", TABLES)
def test_texts_are_numbered_in_their_order(library):
    made = TABLES[library]
    table = np.array(CELLS, object) if made is None else getattr(pytest.importorskip(library), made)(COLUMNS)
    numbered, labels = with_numbers_for_texts(table, FEATURES, "who")
    dataset = Dataset.from_arrays(numbered, np.zeros(3), features=FEATURES)
    assert labels == ("Ann", "Bob") and dataset.columns.tolist() == [[1, 2, 3], [1, 0, 1]]


def test_numbers_stay():
    table = np.array([[1.0, 5.0], [2.0, 3.0]])
    numbered, labels = with_numbers_for_texts(table, FEATURES, "who")
    assert numbered is table and labels is None


def test_a_row_without_a_label_is_named():
    with pytest.raises(DataError, match="no group in row 1"):
        with_numbers_for_texts(np.array([[1.0, "x"], [2.0, None]], object), FEATURES, "who")


def test_groups_are_numbered_from_zero_by_their_values():
    dataset = Dataset.from_arrays([[1, 7.0], [2, -1.0], [3, 7.0]], np.zeros(3), features=FEATURES)
    coded, groups = numbered_by_group(dataset, "who", None)
    assert coded.columns[1].tolist() == [1, 0, 1] and groups == Groups("who", (-1.0, 7.0))


def test_texts_of_groups_without_rows_do_not_shift_the_others():
    dataset = Dataset.from_arrays([[1, 0.0], [2, 2.0]], np.zeros(2), features=FEATURES)
    _, groups = numbered_by_group(dataset, "who", ("Ann", "Bob", "Cyd"))
    assert groups == Groups("who", (0.0, 2.0), ("Ann", "Cyd"))
    table = with_known_groups(np.array([[1.0, "Cyd"]], object), FEATURES, {}, groups)
    assert table.tolist() == [[1.0, 2.0]]
    with pytest.raises(DataError, match="group 'Bob'"):
        with_known_groups(np.array([[1.0, "Bob"]], object), FEATURES, {}, groups)


def test_numbers_that_are_no_group_are_named():
    with pytest.raises(DataError, match=r"group 3.*known are 1, 2"):
        with_known_groups(np.array([[1.0, 3.0]]), FEATURES, {}, Groups("who", (1.0, 2.0)))


def test_what_is_no_table_is_refused_in_the_words_of_other_models():
    groups = Groups("who", (1.0, 2.0))
    with pytest.raises(DataError, match="X has shape"):
        with_known_groups(3.0, FEATURES, {}, groups)
    narrow = np.array([[1.0]])
    assert with_known_groups(narrow, FEATURES, {}, groups) is narrow


@pytest.mark.parametrize("large", [2**53, 2**53 + 1, -(2**60)])
def test_whole_numbers_that_run_together_are_refused(large):
    rows = Dataset.from_arrays(np.array([[1, 1], [float(large), 2]]), np.ones(2), features=["who", "t"])
    with pytest.raises(DataError, match=r"'who' has groups of about.*make texts"):
        numbered_by_group(rows, "who", None)
