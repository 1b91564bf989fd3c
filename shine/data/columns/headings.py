"""Headings of columns: their names in formulas, and the columns that have a role: the target, those of a loss, ..."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import DataError
from shine.lang.forms.names import (
    distinct_names,
    identifier,
    is_list,
    listed,
    name_problem,
    normalized,
    shown,
    similar,
    value_text,
)

LossColumns = Mapping[str, ArrayLike] | Sequence[str]
"""The forms in which they are given: arrays by name, or headings of columns of the data frame."""


def all_headings(X: object) -> list[object] | None:
    """The headings of a data frame, texts or numbers; None for other tables."""
    columns = getattr(X, "column_names", getattr(X, "columns", None))  # of Arrow; of pandas and Polars
    return None if columns is None else list(columns)


def frame_headings(X: object) -> list[str] | None:
    """The headings of a data frame as texts; None for other tables, and for frames whose columns are only counted."""
    headings = all_headings(X)
    if headings is None or headings == list(range(len(headings))):
        return None
    # Years, say, are headings; those of several levels are not.
    known = all(isinstance(each, str | int | np.integer) for each in headings)
    return [str(each) for each in headings] if known else None


def names_of_headings(headings: Sequence[str]) -> tuple[str, ...]:
    """Distinct feature names for headings, which may be any text; a `DataError` if a heading occurs twice."""
    texts = [str(heading) for heading in headings]
    heading, uses = Counter(texts).most_common(1)[0] if texts else ("", 0)
    if uses > 1:
        raise DataError(f"feature name {shown(heading)} occurs twice; rename one of them")
    return distinct_names(texts)


def check_features(names: Sequence[str], what: str = "feature name") -> tuple[str, ...]:
    """Feature names that formulas can use, normalized as formulas are (see `shine.lang.forms.names.normalized`).

    Parameters
    ----------
    names : sequence of str
    what : str
        What they are, for messages.

    Raises
    ------
    DataError
        If a name is not an identifier, is a keyword, is too long, begins with two underscores, or occurs twice.
    """
    checked: dict[str, str] = {}
    for given in map(str, names):
        name = normalized(given)
        problem = name_problem(name)
        if problem is not None:
            would_do = shown(identifier(given))
            raise DataError(f"{what} {shown(given)} {problem}; rename the column, {would_do} would do")
        if name in checked:
            raise DataError(f"{what} {shown(given)} {_repetition(checked[name], given, name)}; rename one of them")
        checked[name] = given
    return tuple(checked)


def _repetition(first: str, second: str, name: str) -> str:
    if first == second:
        return "occurs twice"
    return f"and {shown(first)} are one name in formulas, which are read in Unicode's normal form: {shown(name)}"


def split_loss_columns(X: Any, loss_columns: LossColumns | None) -> tuple[Any, dict[str, ArrayLike]]:
    """The features, and the columns beside them by name.

    Parameters
    ----------
    X : array-like or data frame
    loss_columns : mapping of str to array-like, or sequence of str, optional
        Arrays by name; or headings of columns of the data frame, which are then no features. A heading that is not an
        identifier is turned into one, as for features.

    Raises
    ------
    DataError
        If a column is missing, or X has no headings.
    TypeError
        If it is neither.
    """
    if loss_columns is None:
        return X, {}
    if isinstance(loss_columns, Mapping):
        return X, {str(name): values for name, values in loss_columns.items()}
    if isinstance(loss_columns, str) or not is_list(loss_columns):
        allowed = "a mapping of names to arrays, or a list of columns of the data frame"
        raise TypeError(f"loss_columns must be {allowed}, is {value_text(loss_columns)}")
    for heading in loss_columns:
        check_heading(X, heading, "loss_columns")
    columns: dict[str, ArrayLike] = {
        name: np.asarray(X[heading])
        for name, heading in zip(names_of_headings(loss_columns), loss_columns, strict=True)
    }
    return without_columns(X, loss_columns), columns


def without_roles(X: Any, roles: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A data frame without the columns that have a role, and the values of each role.

    Parameters
    ----------
    X : array-like or data frame
    roles : mapping of str to object
        What is given for each role; a text is the heading of a column.

    Raises
    ------
    DataError
        If a column is missing, occurs twice or is given twice, or X has no headings.
    """
    taken = [heading for heading in roles.values() if isinstance(heading, str)]
    for role, heading in roles.items():
        if isinstance(heading, str):
            check_heading(X, heading, role)
            if taken.count(heading) > 1:
                raise DataError(f"column {shown(heading)} of X is given twice; a column has one role")
    values = {role: X[given] if isinstance(given, str) else given for role, given in roles.items()}
    return without_columns(X, taken), values


def with_columns(X: Any, headings: Sequence[str], role: str = "a feature") -> Any:
    """Some columns of a data frame, by their headings; a `DataError` if one is missing."""
    for heading in headings:
        check_heading(X, heading, role)
    return X.select(list(headings)) if hasattr(X, "select") else X[list(headings)]


def check_heading(X: Any, heading: str, role: str) -> None:
    """Raise a `DataError` unless exactly one column of a data frame has a heading; `role` says what it is given as."""
    headings = all_headings(X)
    if headings is None:
        raise DataError(
            f"{role} has {value_text(heading)}, a heading, but X is of type {type(X).__name__} and has none; give "
            "arrays, or a data frame as X"
        )
    if heading not in headings:
        texts = [str(each) for each in headings]
        near = similar(heading, texts)
        hint = f"did you mean {shown(near)}? " if near else ""
        if heading in getattr(getattr(X, "index", None), "names", ()):
            hint = "its index has this name: X.reset_index() makes it a column; "
        raise DataError(
            f"X has no column {value_text(heading)}, which is given as {role}; {hint}it has {listed(texts)}"
        )
    if headings.count(heading) > 1:
        raise DataError(f"X has {headings.count(heading)} columns with the heading {shown(heading)}; rename them")


def without_columns(X: Any, headings: Collection[str]) -> Any:
    """A data frame without some of its columns; anything else as it is."""
    own = all_headings(X)
    if own is None or not set(own) & set(headings):
        return X
    kept = [heading for heading in own if heading not in headings]
    return X.select(kept) if hasattr(X, "select") else X[kept]
