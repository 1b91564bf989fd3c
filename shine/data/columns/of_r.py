"""Values from R: numbers without a fraction are floats, and missing integers are the least one."""

from __future__ import annotations

from typing import Any

import numpy as np

from shine.base.typing import AnyArray

MISSING = -(2**31)
"""How R represents NA in a vector of integers, and passes it on."""


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
