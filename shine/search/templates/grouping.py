"""The column of groups: labels as users have them, values in formulas, numbers in the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import DataError
from shine.base.typing import AnyArray, Floats
from shine.data.columns.frames import frame_columns
from shine.data.columns.headings import frame_headings
from shine.data.columns.numbers import numbers
from shine.data.datasets.dataset import Dataset
from shine.data.datasets.preparation import Preparation, plain_preparation
from shine.lang.forms.names import listed, shown, value_text
from shine.search.templates.law import Groups

FIRST_MERGED = 2.0**53
"""Size from which on whole numbers run together in float64."""

_NEW = "refit its constants with refit_groups, or leave its rows out"


def numbered_by_group(dataset: Dataset, column: str, labels: Sequence[str] | None) -> tuple[Dataset, Groups]:
    """The data set with the number of the group, from 0, in the column of groups; and the groups.

    Parameters
    ----------
    dataset : Dataset
    column : str
        Name of the column of groups.
    labels : sequence of str, optional
        What the groups are called if the column numbers texts.

    Raises
    ------
    DataError
        If there is no such column, or its numbers are too large to be told apart.
    """
    if column not in dataset.features:
        raise DataError(f"the template has groups by {shown(column)}; the data have {listed(dataset.features)}")
    at = dataset.features.index(column)
    values, codes = np.unique(dataset.columns[at], return_inverse=True)
    if (np.abs(values) >= FIRST_MERGED).any():
        large = values[np.abs(values) >= FIRST_MERGED][0]
        raise DataError(
            f"column {shown(column)} has groups of about {large:.0f}; whole numbers from 2**53 on run together: make "
            "texts of the column"
        )
    columns = np.array(dataset.columns)
    columns[at] = codes.reshape(-1)
    # Numbers of texts that no row has any more are no groups.
    own = None if labels is None else tuple(labels[int(value)] for value in values)
    return replace(dataset, columns=columns), Groups(column, tuple(values.tolist()), own)


def in_values(dataset: Dataset, groups: Groups | None) -> Dataset:
    """The data set with the values of the column of groups in place of numbers: the inverse of `numbered_by_group`."""
    if groups is None:
        return dataset
    at = dataset.features.index(groups.column)
    columns = np.array(dataset.columns)
    columns[at] = np.array(groups.values)[columns[at].astype(np.int64)]
    return replace(dataset, columns=columns)


def with_numbers_for_texts(
    X: Any, headings: Sequence[str] | None, column: str, groups: Groups | None = None
) -> tuple[Any, tuple[str, ...] | None]:
    """A table with numbers in the column of groups, if that holds texts, and the texts in the order of their numbers.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_features)
    headings : sequence of str, optional
        Headings of the columns of an array.
    column : str
        Heading of the column of groups.
    groups : Groups, optional
        The known groups: another one is an error. By default those of the column, numbered in order.

    Returns
    -------
    X : array-like or data frame
        The same object if the column holds numbers.
    labels : tuple of str or None
        None if the column holds numbers.

    Raises
    ------
    DataError
        If a row has no group, or one that is not known.
    """
    given = frame_headings(X)
    names = given if given is not None else headings
    if names is None or column not in names:
        return X, None
    at = list(names).index(column)
    if given is None:
        table = np.asarray(X)
        if table.dtype.kind not in "OUS" or table.ndim != 2:
            return X, None
        cells = table[:, at]
    else:
        cells = _cells(list(frame_columns(X))[at][1])
    if all(isinstance(cell, int | float | np.number) and not isinstance(cell, bool) for cell in cells.tolist()):
        return X, None
    texts = _texts(cells, column)
    known = tuple(sorted(set(texts))) if groups is None else groups.names_as_texts
    values = range(len(known)) if groups is None else groups.values
    number_of = dict(zip(known, values, strict=True))
    new = next((text for text in texts if text not in number_of), None)
    if new is not None:
        raise unknown_group(column, new, known)
    codes = np.array([number_of[text] for text in texts], np.float64)
    return _replaced(X, at, codes, given), known


def _cells(values: Any) -> AnyArray:
    return np.asarray(values.to_pylist() if hasattr(values, "to_pylist") else values, dtype=object)


def _texts(cells: AnyArray, column: str) -> list[str]:
    missing = [cell is None or cell != cell for cell in cells.tolist()]
    if any(missing):
        raise DataError(f"column {shown(column)} has no group in row {missing.index(True)}; give every row a label")
    return [str(cell) for cell in cells.tolist()]


def _replaced(X: Any, at: int, codes: Floats, headings: Sequence[str] | None) -> Any:
    """A table with other values in one column."""
    if headings is None:
        table = np.array(X, dtype=object)
        table[:, at] = codes
        return numbers(table, "X", 2)
    if hasattr(X, "assign"):
        return X.assign(**{headings[at]: codes})
    if hasattr(X, "with_columns"):
        import polars

        return X.with_columns(polars.Series(headings[at], codes))
    return X.set_column(at, headings[at], [codes.tolist()])


def with_known_groups(X: ArrayLike, features: Sequence[str], headings: Mapping[str, str], groups: Groups) -> Any:
    """A table to predict for, with numbers for groups that have texts as names.

    A `DataError` if a row has a group that was not in the data of the search.
    """
    column = headings.get(groups.column, groups.column)
    table, _ = with_numbers_for_texts(X, [headings.get(name, name) for name in features], column, groups)
    given = frame_headings(table)
    if given is None:
        rows = numbers(table, "X", 2)
        if rows.shape[1] != len(features):
            return table
        values = rows[:, list(features).index(groups.column)]
    else:
        place = given.index(column) if column in given else given.index(groups.column) if groups.column in given else -1
        if place < 0:
            return table
        values = numbers(list(frame_columns(table))[place][1], f"column {shown(column)} of X", 1)
    known = np.isin(values, np.array(groups.values))
    if not known.all():
        raise unknown_group(column, values[~known][0], groups.names)
    return table


def grouped_preparation(features: Sequence[str], headings: Mapping[str, str], groups: Groups) -> Preparation:
    """Preparation of a table whose groups alone have texts as names."""
    assert groups.labels is not None
    plain = plain_preparation({name: headings.get(name, name) for name in features})
    label_of = dict(zip(groups.values, groups.labels, strict=True))
    # A text that no row of the search had any more has a number, but is no group.
    labels = tuple(label_of.get(float(number), "") for number in range(int(groups.values[-1]) + 1))
    columns = (
        replace(column, kind="ordinal", categories=labels) if column.name == groups.column else column
        for column in plain.columns
    )
    return replace(plain, columns=tuple(columns))


def unknown_group(column: str, label: Any, known: Sequence[Any]) -> DataError:
    """The error of a group that was not in the data of the search."""
    text = f"{float(label):g}" if isinstance(label, float | np.floating) else value_text(label)
    names = [f"{each:g}" if isinstance(each, float) else str(each) for each in known]
    return DataError(
        f"column {shown(column)} has the group {text}, which was not in the data of the search: {_NEW}; "
        f"known are {listed(names, 10)}"
    )
