"""Headings of tables, and the names that formulas have for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shine.base.errors import DataError
from shine.lang.forms.names import distinct_names, identifier, name_problem, normalized, shown


def all_headings(X: object) -> list[object] | None:
    """The headings of a data frame, texts or numbers; None for other tables."""
    columns = getattr(X, "column_names", getattr(X, "columns", None))  # of Arrow; of pandas and Polars
    return None if columns is None else list(columns)


def frame_headings(X: object) -> list[str] | None:
    """The headings of a data frame; None for other tables, and for frames whose columns have numbers."""
    texts = [heading for heading in all_headings(X) or () if isinstance(heading, str)]
    return texts if all_headings(X) == texts else None


def names_of_headings(headings: Sequence[str]) -> tuple[str, ...]:
    """Distinct feature names for headings, which may be any text.

    Raises
    ------
    DataError
        If a heading occurs twice.
    """
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
