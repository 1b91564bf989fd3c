"""Rows as users give them -> arrays that native code reads, with codes for categories."""

from __future__ import annotations

from typing import Any

import numpy as np

from shine.base.typing import AnyArray
from shine.trees.reading import Reading

_READ = (np.dtype(np.float64), np.dtype(np.float32))


def rows_of(X: Any, reading: Reading) -> AnyArray:
    """An array of shape (n_rows, n_features), float64 or float32; not a copy if it can be read as it is.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_features)
    reading : Reading

    Raises
    ------
    TypeError
        If it is sparse.
    ValueError
        If it has another shape, other columns, or values that are not numbers.
    """
    if type(X) is np.ndarray and X.dtype in _READ and not reading.categories and X.ndim == 2:
        array: AnyArray = X
    else:
        array = _converted(X, reading)
    count = reading.ensemble.n_features
    if array.shape[1] != count:
        raise ValueError(f"X has {array.shape[1]} features; the {reading.name} was fitted to {count}")
    size = array.itemsize
    if not array.flags.aligned or array.strides[0] % size or array.strides[1] % size:
        array = np.ascontiguousarray(array)
    return array


def _converted(X: Any, reading: Reading) -> AnyArray:
    if hasattr(X, "tocsr"):
        raise TypeError("X is a sparse matrix; give X.toarray()")
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else []
    _check_names(names, reading)
    if names and reading.categories:
        columns = [X[name] for name in X.columns]
    else:
        array = _array(X, reading)
        if not reading.categories or array.shape[1] != reading.ensemble.n_features:
            return _numbers(array, names, reading)
        columns = [array[:, place] for place in range(array.shape[1])]
    out = np.empty((len(X), len(columns)))
    for place, column in enumerate(columns):
        values = np.asarray(column)
        if place in reading.categories:
            out[:, place] = _codes(values, reading.categories[place])
        else:
            name = names[place : place + 1]
            out[:, place] = _numbers(values.reshape(-1, 1), name, reading)[:, 0]
    return out


def _array(X: Any, reading: Reading) -> AnyArray:
    try:
        array = np.asarray(X)
    except ValueError:
        raise ValueError("the rows of X have different lengths") from None
    if array.ndim == 1 and len(array) == reading.ensemble.n_features:
        raise ValueError("X has one dimension; for one row, give X.reshape(1, -1)")
    if array.ndim != 2:
        raise ValueError(f"X has {array.ndim} dimensions; give rows of {reading.ensemble.n_features} features")
    return array


def _numbers(array: AnyArray, names: list[str], reading: Reading) -> AnyArray:
    """Numbers in a type that can be read: rounded once, to the type in which they are compared."""
    if array.dtype in _READ:
        return array
    if array.dtype.kind not in "biufO":
        raise ValueError(f"X has values of type {array.dtype}; give numbers")
    try:
        with np.errstate(over="ignore"):
            return array.astype(reading.ensemble.rounding)
    except (TypeError, ValueError):
        place = next(place for place in range(array.shape[1]) if not _is_numeric(array[:, place]))
        what = repr(names[place]) if names else place
        raise ValueError(f"column {what} of X has values that are not numbers, and the model no categories") from None


def _is_numeric(column: AnyArray) -> bool:
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _check_names(names: list[str], reading: Reading) -> None:
    expected = [str(name) for name in reading.feature_names]
    if names and expected and names != expected:
        missing = [name for name in expected if name not in names]
        said = f"no column {', '.join(map(repr, missing[:3]))}" if missing else "its columns in another order"
        raise ValueError(f"X has {said}; the {reading.name} was fitted to {', '.join(expected[:20])}")


def _codes(values: AnyArray, categories: AnyArray) -> AnyArray:
    """Positions of values among categories; NaN for others, and for missing values."""
    if values.dtype.kind in "biuf" and categories.dtype.kind in "biuf":
        known = categories[~np.isnan(categories)] if categories.dtype.kind == "f" else categories
        if not len(known):
            return np.full(len(values), np.nan)
        place = np.minimum(np.searchsorted(known, values), len(known) - 1)
        return np.where(known[place] == values, place, np.nan)
    numbers = {
        value: float(code) for code, value in enumerate(categories.tolist()) if value is not None and value == value
    }
    return np.array([numbers.get(value, np.nan) for value in values.tolist()], np.float64)
