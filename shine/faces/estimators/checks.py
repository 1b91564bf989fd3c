"""Checks of the data of estimators, with scikit-learn's messages, and rows in a canonical form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import validation

from shine.base.typing import Floats
from shine.data.columns.frames import array_problem, columns_with, dense, frame_problem, repeated_heading
from shine.data.columns.headings import all_headings, frame_headings
from shine.data.columns.numbers import (
    COMPLEX,
    check_integers,
    check_present,
    instants,
    numbers,
    too_large,
    warn_of_digits,
)
from shine.data.datasets.dataset import MOST_MERGED, ordinary_weights
from shine.data.opening import Opened
from shine.data.streams.sources import is_streamable
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import distinct_names, shortened, value_text
from shine.search.evolution.complexity import CONSTANT_NAME

LONGEST_MESSAGE = 1000
"""Characters of a message of scikit-learn's that is passed on in full."""


def check_in_memory(X: Any) -> None:
    """Raise a `TypeError` if X is no table but says where one is, as a path or a relation does."""
    if isinstance(X, np.memmap) or not (isinstance(X, str | Path | Opened) or is_streamable(X)):
        return
    given = value_text(X) if isinstance(X, str) else f"of type {type(X).__name__}"
    raise TypeError(
        f"X is {given}; estimators take arrays and data frames. shine.evolve(X, 'heading of the target') searches in "
        "files and data sets, and predict_file, of its result and of regressors, predicts from file to file"
    )


def check_table(estimator: BaseEstimator, data: Sequence[Any]) -> None:
    """Raise an error if X is a data frame without columns or with equal headings, or y says where the target is."""
    if all_headings(data[0]) == []:
        raise ValueError(f"X has no columns; {type(estimator).__name__} needs at least one feature")
    repeated = repeated_heading(all_headings(data[0]) or (), "X")
    if repeated is not None:
        raise ValueError(repeated)
    if len(data) > 1 and all_headings(data[1]) == []:
        raise ValueError("y has no columns; it needs a value for each row")
    if len(data) > 1 and isinstance(data[1], str):
        y = value_text(data[1])
        advice = f"fit(X.drop(columns={y}), X[{y}]); shine.evolve(X, {y}) takes a heading"
        raise TypeError(f"y is {y}; estimators take the values of the target: {advice}")


def validated(estimator: BaseEstimator, *data: Any, **checks: Any) -> Any:
    """Arrays of finite float64 numbers; the estimator stores or compares the number and the names of the features."""
    checks = {"dtype": np.float64} | checks
    check_in_memory(data[0])
    for name, values in zip(("X", "y"), data, strict=False):
        check_present(values, name)
    check_table(estimator, data)
    data = tuple(map(dense, data))
    named = [("X", data[0]), *([("y", data[1])] if len(data) > 1 and checks.get("y_numeric") else [])]
    if _has_other_headings(estimator, data[0], checks):
        named = []  # scikit-learn's message says which are too many, whatever they hold
    for name, values in named:
        if name == "X" and hasattr(values, "nnz"):
            break  # scikit-learn has a message for sparse features
        problem = frame_problem(values, name)
        if problem is None and name == "y" and not _is_array_of_numbers(values):
            problem = array_problem(values, name)  # scikit-learn lets texts pass as targets
        if problem is not None:
            raise ValueError(problem)
    # scikit-learn finds infinite numbers by a sum, whose overflow is harmless.
    with np.errstate(all="ignore"), brief_errors():
        try:
            if hasattr(validation, "validate_data"):
                arrays = validation.validate_data(estimator, *data, **checks)
            else:
                arrays = estimator._validate_data(*data, **checks)  # before scikit-learn 1.6
        except OverflowError:
            raise too_large("X or y") from None
        except (TypeError, ValueError) as error:
            raise _explained(error, estimator, named) from None
    for name, values, array in zip(("X", "y"), data, arrays if isinstance(arrays, tuple) else (arrays,), strict=False):
        check_integers(values, array, name)
        warn_of_digits(values, name)
    return arrays


def _is_array_of_numbers(values: Any) -> bool:
    """Whether NumPy reads values, and not as texts."""
    try:
        return np.asarray(values).dtype.kind not in "US"
    except ValueError:  # rows of several lengths
        return False


def _has_other_headings(estimator: BaseEstimator, X: Any, checks: Mapping[str, Any]) -> bool:
    """Whether the columns of a fitted estimator's X are not those of `fit`."""
    fitted = getattr(estimator, "feature_names_in_", None)
    given = frame_headings(X)
    return not checks.get("reset", True) and fitted is not None and given is not None and given != list(fitted)


_CONVERSION = ("could not convert", "setting an array element", "Cannot cast array", "float() argument")
"""Beginnings of NumPy's errors for values that are no numbers."""


def _explained(error: Exception, estimator: BaseEstimator, named: Sequence[tuple[str, Any]]) -> Exception:
    """scikit-learn's or NumPy's error, with the columns that it is about."""
    text = str(error)
    if text.startswith("Complex data"):
        return ValueError(f"{text.splitlines()[0]}: {COMPLEX}")
    if text.startswith("The feature names should match"):
        advice = "Pass the columns of fit, in their order: X[model.feature_names_in_]."
        if is_regressor(estimator):
            advice += " Formulas take theirs by heading: model.best_.predict(X)."
        return ValueError(f"{text.rstrip()}\n{advice}")
    if "NA is ambiguous" in text:  # pandas, of missing values among texts
        return ValueError("Input y contains missing values; leave these rows out")
    for name, values in named:
        if text.startswith(f"Input {name} contains"):
            infinite = "infinity" in text
            first = text.splitlines()[0].rstrip(".")
            fill = f", or fill them: make_pipeline(SimpleImputer(), {type(estimator).__name__}())"
            advice = f"leave these rows out{'' if infinite or name == 'y' else fill}"
            return ValueError(f"{first}: {columns_with(values, infinite)}; {advice}")
        problem = array_problem(values, name) if text.startswith(_CONVERSION) else None
        if problem is not None:
            # scikit-learn's checks ask for the kind and the words of NumPy's error.
            told = isinstance(error, TypeError)
            return TypeError(f"{problem}: {text.splitlines()[0]}") if told else ValueError(problem)
    return error


@contextmanager
def brief_errors() -> Iterator[None]:
    """Shorten the messages of scikit-learn that repeat the data."""
    try:
        yield
    except ValueError as error:
        if len(str(error)) <= LONGEST_MESSAGE:
            raise
        raise ValueError(shortened(" ".join(str(error).split()), LONGEST_MESSAGE)) from None


def checked_weights(sample_weight: ArrayLike | None, X: Floats) -> Floats | None:
    """Sample weights, shape (n_rows,), float64.

    A `ValueError` if there is not one for each row, one is negative or not finite, or none is positive.
    """
    if sample_weight is None:
        return None
    check_present(sample_weight, "sample_weight")
    try:
        np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        what = array_problem(sample_weight, "sample_weight") or f"sample_weight is {value_text(sample_weight)}"
        raise ValueError(f"{what}; give a number for each row") from None
    with brief_errors():
        weights: Floats = validation._check_sample_weight(sample_weight, X, dtype=np.float64)
    if np.isnan(weights).any():
        raise ValueError("Input sample_weight contains NaN.")  # scikit-learn looks at arrays only
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return ordinary_weights(weights)


def checked_sigma(sigma: ArrayLike, X: Floats) -> Floats:
    """Standard deviations of the rows, shape (n_rows,), float64.

    A `ValueError` if there is not one for each row, or one is not finite or not positive.
    """
    deviations = numbers(sigma, "sigma", 1)
    if len(deviations) != len(X):
        raise ValueError(f"sigma has {len(deviations)} values for {len(X)} rows")
    if not (deviations > 0).all():
        raise ValueError(f"sigma must be positive in every row; its least value is {deviations.min()}")
    return deviations


def seen(weights: Floats | None, *columns: Any, shuffled: bool = False, times: Any = None) -> tuple[Any, ...]:
    """The rows of positive weight; up to `MOST_MERGED` sorted by their values if they may be in any order.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,), optional
        Not negative, one positive.
    *columns : ndarray of shape (n_rows,) or (n_rows, n_columns), or None
    shuffled : bool
        Whether the rows may be in any order.
    times : array-like of shape (n_rows,), optional
        When rows were read, numbers or dates; by default, their places.

    Returns
    -------
    weights, *columns, times
        None for columns that are not given; the weights, too, if all are equal and repeat no row.
    """
    if weights is not None and (weights == weights[0]).all() and (weights[0] <= 1 or weights[0] % 1):
        weights = None
    given = (*columns, weights)
    at = slice(None) if weights is None or weights.all() else np.flatnonzero(weights)
    if shuffled and len(columns[0][at]) <= MOST_MERGED:
        keys = np.column_stack([each for each in given if each is not None])
        rows = np.arange(len(keys))[at]
        at = rows[np.lexsort(keys[rows].T[::-1])]
    times = np.arange(len(columns[0])) * 1.0 if times is None else instants(times, len(columns[0]))
    *found, weights, times = (None if each is None else each[at] for each in (*given, times))
    return weights, *found, times


def formula_names(headings: Sequence[object] | None, count: int) -> tuple[str, ...]:
    """A distinct identifier for each column.

    See `shine.lang.forms.names.distinct_names`; names of Shine's primitives count as taken.

    Parameters
    ----------
    headings : sequence, optional
        The names are ``x0, x1, ...`` without headings.
    count : int
        Number of columns.

    Examples
    --------
    >>> formula_names(["mass", "my col", "my-col", "lambda", "sin"], 5)
    ('mass', 'my_col', 'my_col_2', 'lambda_', 'sin_')
    """
    if headings is None:
        return tuple(f"x{i}" for i in range(count))
    return distinct_names(headings, STANDARD.keys() | {CONSTANT_NAME})


def names_and_headings(X: Any) -> tuple[tuple[str, ...], list[str]]:
    """Names in formulas, and headings, of the columns of a table that scikit-learn has not validated."""
    headings = frame_headings(X)
    try:
        shape = np.shape(X)
    except ValueError:  # rows of several lengths, of which the check of X tells
        shape = ()
    names = formula_names(headings, shape[1] if len(shape) > 1 else 1)
    return names, list(names) if headings is None else headings
