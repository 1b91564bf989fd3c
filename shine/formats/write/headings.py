"""The original headings of columns in forms that name them."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from shine.base.errors import ExportError
from shine.lang.forms.names import shown

Headings = Mapping[str, str]
"""Original heading of each feature's column, by the feature's name; a feature that it lacks is its own heading."""


def check_distinct(headings: Headings, used: Container[str], form: str, same: Callable[[str], str] = str) -> None:
    """Raise an `ExportError` if a form takes a column that a formula uses for another column of the table.

    Parameters
    ----------
    headings : mapping of str to str
        Heading of each column of the table, by a name.
    used : container of str
        Names of the columns that the formula uses.
    form : str
        Name of the form, for the error.
    same : callable
        What the form compares of headings: ``str.lower`` if it ignores case.
    """
    owners: dict[str, str] = {}
    for name, heading in headings.items():
        first = owners.setdefault(same(heading), name)
        if first != name and (first in used or name in used):
            alike = (
                "two have the heading"
                if headings[first] == heading
                else f"{shown(headings[first])} is for it the same as"
            )
            raise ExportError(f"{form} finds columns by heading, but {alike} {shown(heading)}; rename one of them")
