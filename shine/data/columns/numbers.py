"""Values as users give them -> arrays of finite numbers, groups, and columns for features and formulas."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import DataError
from shine.base.typing import AnyArray, Floats, Indices
from shine.data.columns.frames import array_problem, columns_problem, frame_columns, frame_problem
from shine.data.columns.headings import check_features, frame_headings
from shine.data.columns.kinds import digits_note, recognized
from shine.data.files.source import RawColumn
from shine.lang.forms.names import listed, shown, similar, value_text

_CHECKED = 1 << 20
"""Numbers checked at a time, to bound memory."""

MISSING = -(2**31)
"""R's NA in a vector of integers."""


def check_present(values: object, name: str) -> None:
    """Raise a `DataError` if values are still to be computed, such as a generator's, or some are masked."""
    names = ("__array__", "__array_interface__", "__float__", "get_columns", "column_names", "nnz")
    is_array = any(hasattr(values, name) for name in names)
    is_sequence = hasattr(values, "__len__") and hasattr(values, "__getitem__") and not hasattr(values, "columns")
    if not (is_array or is_sequence or values is None or isinstance(values, complex)):
        kind = type(values).__name__
        raise DataError(f"{name} is of type {kind}, which is no array; make an array or a data frame of it")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise DataError(f"{name} has masked values; fill them, or leave their rows out")


COMPLEX = (
    "take real and imaginary parts as two columns of X, or as two outputs of a template, template='f(x0, x1), "
    "g(x0, x1)' with y=np.column_stack([y.real, y.imag])"
)
"""What to do with complex numbers."""


def too_large(name: str) -> DataError:
    """The error for a whole number beyond the range of float64."""
    return DataError(f"{name} has a whole number beyond 1.8e308, the largest float64; scale it")


def floats(values: ArrayLike, name: str, dimensions: int) -> Floats:
    """A float64 array of numbers, some of which may be missing; the same object if it is one already.

    A `DataError` if values are no real numbers, or the array has other dimensions.
    """
    check_present(values, name)
    problem = frame_problem(values, name)
    if problem is not None:
        raise DataError(problem)
    try:
        given = np.asarray(values)
        if given.dtype.kind == "c":
            raise DataError(f"{name} has complex numbers; real ones are needed: {COMPLEX}")
        with np.errstate(over="ignore"):  # too large numbers become infinite
            array = np.asarray(given, dtype=np.float64)
        warn_of_digits(given if isinstance(values, list) else values, name)
    except OverflowError:
        raise too_large(name) from None
    except (TypeError, ValueError):
        raise DataError(array_problem(values, name) or f"{name} is {value_text(values)}; numbers are needed") from None
    if array.ndim != dimensions:
        shape = "(n_rows, n_features)" if dimensions == 2 else "(n_rows,)"
        raise DataError(f"{name} has shape {array.shape}; {shape} is needed")
    return array


def warn_of_digits(values: Any, name: str) -> None:
    """Warn of whole numbers that float64 does not hold, in columns of a data frame or else in an array."""
    for heading, column in [*frame_columns(values)] or [(None, values)]:
        array, title = np.asarray(column), name if heading is None else f"column {shown(heading)}"
        if array.dtype.kind in "iuO":
            array = array.ravel()
            with suppress(TypeError, ValueError):  # missing, or no numbers
                for note in digits_note(title, array, array.astype(np.float64)):
                    warnings.warn(note, UserWarning, stacklevel=2)


def numbers(values: ArrayLike, name: str, dimensions: int) -> Floats:
    """A float64 array of finite numbers; the same object if it is one already.

    Raises
    ------
    DataError
        Naming the first offending row, and column if there are two dimensions.
    """
    array = floats(values, name, dimensions)
    step = max(_CHECKED // max(array[:1].size, 1), 1)
    if not all(np.isfinite(array[start : start + step]).all() for start in range(0, len(array), step)):
        finite = np.isfinite(array)
        place = np.argwhere(~finite)[0].tolist()
        headings = [*map(shown, frame_headings(values) or ())] or [*range(array[0].size)]
        where = f"row {place[0]}" + (f", column {headings[place[1]]}" if dimensions == 2 else "")
        told = f"{name} has {(~finite).sum()} values that are NaN or infinite, the first in {where}"
        raise DataError(f"{told}; finite numbers are needed: correct them, or leave their rows out")
    return array


def numbered_groups(labels: ArrayLike, rows: int) -> Indices:
    """Number of each row's group, in the order of their labels.

    Parameters
    ----------
    labels : array-like of shape (n_rows,)
        Numbers or strings.
    rows : int
        Number of rows that need a label.

    Raises
    ------
    DataError
        If there is not one label for each row, or a label is missing.
    """
    check_present(labels, "groups")
    given = np.asarray(labels)
    if given.shape != (rows,):
        raise DataError(f"groups has shape {given.shape}; X has {rows} rows, so ({rows},) is needed")
    if given.dtype.kind == "O":
        # A column of a data frame has its texts, and None or NaN where one is missing.
        missing = [label is None or label != label for label in given]
        given = given.astype(str)
    else:
        missing = list(np.isnan(given)) if given.dtype.kind == "f" else []
    if any(missing):
        raise DataError(f"groups has no label in row {missing.index(True)}; give every row a label")
    numbers: Indices = np.unique(given, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return numbers


def instants(times: ArrayLike, rows: int) -> Floats:
    """Times of rows as numbers: those of dates count microseconds.

    A `DataError` if there is not one for each row, or one is missing or infinite.
    """
    check_present(times, "times")
    given = np.asarray(times.to_numpy() if hasattr(times, "to_numpy") else times)
    if given.shape != (rows,):
        raise DataError(f"times has shape {given.shape}; X has {rows} rows, so ({rows},) is needed")
    column = recognized(RawColumn("times", given, "row {}".format), ".")
    if column.kind == "text" or given.dtype.kind == "c":
        raise DataError(f"times begins with {value_text(given.tolist()[0])}; numbers or dates are needed")
    if column.problems:
        raise DataError(column.problems[0])
    if column.missing.any():
        raise DataError(f"times has no value in row {int(column.missing.argmax())}; give every row a time")
    whole = column.values.astype(np.int64) if column.kind in ("date", "duration") else column.values
    return np.asarray(whole, dtype=np.float64)


def check_loss_columns(loss_columns: Mapping[str, ArrayLike], rows: int) -> dict[str, Floats]:
    """Columns beside the features, with normalized names.

    A `DataError` if a name is invalid or occurs twice, or a column has not one finite number for each row.
    """
    names = check_features(list(loss_columns), "column")
    columns = {
        name: np.ascontiguousarray(numbers(values, f"column {shown(name)}", 1))
        for name, values in zip(names, loss_columns.values(), strict=True)
    }
    for name, column in columns.items():
        if len(column) != rows:
            raise DataError(f"X has {rows} rows, but column {shown(name)} has {len(column)}")
    return columns


def int_if_exact(number: Any) -> Any:
    """A float without a fraction as an int, since 20 is 20.0 in R; anything else as it is."""
    return int(number) if isinstance(number, float | np.floating) and number.is_integer() else number


def check_integers(values: Any, array: AnyArray, name: str) -> None:
    """Reject integers that are missing values of R.

    Parameters
    ----------
    values : array-like
        As given; a data frame names the column.
    array : ndarray
        The same as an array; only numbers are checked.
    name : str
        Its name in messages.

    Raises
    ------
    ValueError
        Naming the first place.
    """
    if array.dtype.kind not in "fi" or array.dtype.itemsize < 4:
        return  # labels, or numbers that cannot be so low
    for row, column in np.argwhere(np.atleast_2d(array) == MISSING).tolist()[:1]:
        if array.ndim == 1:
            given, place = values, f"row {column}"
        else:
            headings = getattr(values, "columns", None)
            given = values if headings is None else values[headings[column]]
            place = f"row {row} of column {column if headings is None else repr(headings[column])}"
        if np.asarray(given).dtype.kind == "i":  # among floats it is a number
            raise ValueError(
                f"{name} has {MISSING} in {place}, which is NA in whole numbers of R: drop such rows in R (na.omit), "
                "or pass as.numeric(...) and fill them in"
            )


def columns_for(
    X: ArrayLike, names: Sequence[str], headings: Mapping[str, str], needed: Collection[str]
) -> list[Floats]:
    """A column for each parameter of a formula, float64.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_columns)
        A data frame may have its columns in any order, and others beside them: a parameter's column has its heading,
        or else its name. If the parameters are ``x0, x1, ...``, and the frame has none of them, its columns are taken
        by position, like those of an array, which has one for each parameter.
    names : sequence of str
        The parameters.
    headings : mapping of str to str
        Original heading of each parameter's column; its name if it is not listed.
    needed : collection of str
        The parameters whose values matter. The others are 0 if X is a data frame with headings.

    Raises
    ------
    DataError
        If a column is missing, occurs twice, or holds something else than finite numbers.
    """
    given = frame_headings(X)
    wanted = {name: headings.get(name, name) for name in names}
    numbered = all(name == f"x{number}" for number, name in enumerate(wanted.values()))  # as without headings
    if given is None or (not {*wanted, *wanted.values()} & {*given} and numbered):
        matrix = numbers(X, "X", 2)
        if matrix.shape[1] != len(names):
            raise DataError(f"X has {matrix.shape[1]} columns; the formula needs {len(names)}: {', '.join(names)}")
        return list(matrix.T)
    columns = list(frame_columns(X))
    own = {name: _place(name, wanted[name], given) for name in names if name in needed}
    problem = columns_problem([columns[place] for place in own.values()], "X")
    if problem is not None:
        raise DataError(problem)
    read = {name: numbers(columns[at][1], f"column {shown(given[at])} of X", 1) for name, at in own.items()}
    nothing = np.zeros(len(X))  # type: ignore[arg-type]
    return [read.get(name, nothing) for name in names]


def _place(name: str, heading: str, given: Sequence[str]) -> int:
    """Position of the column of a parameter."""
    called = heading if heading in given else name
    if called not in given:
        near = similar(heading, given)
        hint = f"did you mean {shown(near)}? " if near else ""
        raise DataError(f"X has no column {shown(heading)}, which the formula needs; {hint}it has {listed(given)}")
    if given.count(called) > 1:
        raise DataError(f"X has {given.count(called)} columns with the heading {shown(called)}; rename them")
    return given.index(called)
