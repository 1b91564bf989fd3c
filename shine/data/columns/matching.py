"""The columns of a table that a formula needs: those of a data frame by heading, those of an array by position."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.columns.frames import columns_problem, frame_columns
from shine.data.columns.headings import frame_headings
from shine.data.columns.numbers import numbers
from shine.lang.forms.names import listed, shown, similar


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
    if given is None or (not {*wanted, *wanted.values()} & {*given} and _are_numbered(wanted.values())):
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


def _are_numbered(names: Collection[str]) -> bool:
    """Whether names are those of columns without headings."""
    return all(name == f"x{number}" for number, name in enumerate(names))
