"""Names of columns in formulas, made from headings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shine.data.columns.headings import frame_headings
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import distinct_names
from shine.search.evolution.complexity import CONSTANT_NAME


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
