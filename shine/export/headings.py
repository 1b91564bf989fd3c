"""The original headings of columns in forms that name them."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from shine.errors import ExportError
from shine.lang.names import shortened, shown
from shine.lang.tree import Tree

Headings = Mapping[str, str]
"""Original heading of each feature's column, by the feature's name; a feature that it lacks is its own heading."""

_LONGEST = 200
"""Most characters of a heading in a comment."""


def notes(written: Mapping[str, str], headings: Headings | None) -> dict[str, str]:
    """The heading of each column that code calls otherwise, on one line and in quotes, by its name in the code.

    Parameters
    ----------
    written : mapping of str to str
        Name in the code of each feature.
    headings : mapping of str to str, optional
    """
    original = {name: (headings or {}).get(feature, feature) for feature, name in written.items()}
    return {name: repr(shortened(heading, _LONGEST)) for name, heading in original.items() if name != heading}


def column_headings(
    tree: Tree, headings: Headings | None, form: str, same: Callable[[str], str] = str
) -> dict[str, str]:
    """The headings of the columns that a formula uses, for a form that reads columns by them.

    Parameters
    ----------
    tree : Tree
    headings : mapping of str to str, optional
    form : str
        Name of the form, for errors.
    same : callable
        What the form compares of headings: ``str.lower`` if it ignores case.

    Raises
    ------
    ExportError
        If the form takes two columns for one.
    """
    every = {name: (headings or {}).get(name, name) for name in tree.parameters}
    used = {name: every[name] for name in tree.used_parameters}
    check_distinct(every, used, form, same)
    return used


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
