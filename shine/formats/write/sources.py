"""Sources of a formula's numbers: the columns of the user's table, with its texts, dates and missing values."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar

import numpy as np

from shine.base.errors import ExportError
from shine.base.typing import Floats
from shine.lang.forms.names import shown, value_text
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate

if TYPE_CHECKING:
    from shine.data.datasets.preparation import Preparation, PreparedColumn

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


_SHOWN = 1000
"""Most characters of a formula in a comment."""


class PreparedHeadings(dict[str, str]):
    """Original headings of columns, by feature, which also know how the columns became numbers."""

    def __init__(self, headings: Headings, preparation: Preparation) -> None:
        super().__init__(headings)
        self.preparation = preparation


def with_preparation(headings: Headings | None, preparation: Preparation | None) -> Headings:
    """Headings that know how the columns became numbers, if that is known."""
    return (headings or {}) if preparation is None else PreparedHeadings(headings or {}, preparation)


@dataclass(frozen=True)
class Source:
    """A column of the user's table, and the number that a formula has of it.

    Parameters
    ----------
    heading : str
    name : str
        Identifier of the heading.
    kind : {"number", "truth", "date", "duration", "text"}
        What the column holds.
    codes : mapping of str to float
        The number of each text.
    unit, origin : str
        The unit of dates and durations; the moment that dates count from, in ISO 8601.
    day_first : bool
        Whether dates as text begin with the day.
    mean : float, optional
        The number in place of a missing value; None if that gives no number.
    marks : tuple of float
        Numbers in the column that stand for a missing value.
    """

    heading: str
    name: str
    kind: Literal["number", "truth", "date", "duration", "text"] = "number"
    codes: Mapping[str, float] = field(default_factory=dict)
    unit: str = ""
    origin: str | None = None
    day_first: bool = False
    mean: float | None = None
    marks: tuple[float, ...] = ()

    @property
    def is_made(self) -> bool:
        """Whether the number is another one than that in the column."""
        return self.kind != "number" or self.mean is not None or bool(self.marks)

    def note(self, name: str) -> str:
        """Meaning of a number called `name`, for a comment on one line; empty if the name says it."""
        own = shown(self.heading, 200)  # most characters of a heading in a comment
        if self.kind == "text":
            texts: dict[float, list[str]] = {}
            for text, code in self.codes.items():
                texts.setdefault(code, []).append(repr(text))
            told = ", ".join(f"{code:.17g} where {own} is {' or '.join(each)}" for code, each in texts.items())
        elif self.kind == "truth":
            told = f"1 where {own} is true, 0 where it is false"
        elif self.kind != "number":
            told = f"{own} in {self.unit}" + (f" since {self.origin}" if self.origin else "")
        else:
            told = own if name != self.heading or self.is_made else ""
        told += f", missing where it is {' or '.join(f'{mark:.17g}' for mark in self.marks)}" if self.marks else ""
        return told if self.mean is None else f"{told}, and {self.mean!r} where that is missing"


def made_numbers(features: Sequence[str], headings: Headings | None) -> dict[str, str]:
    """Meaning of each feature, by name, whose numbers are not those in the column."""
    return {name: each.note(name) for name, each in sources_of(features, headings).items() if each.is_made}


def sources_of(features: Sequence[str], headings: Headings | None) -> dict[str, Source]:
    """The source of each feature."""
    known = {name: Source(heading, name) for name, heading in ((f, (headings or {}).get(f, f)) for f in features)}
    if isinstance(headings, PreparedHeadings):
        for column in headings.preparation.columns:
            marks = headings.preparation.marks.numbers if column.kind == "number" else ()
            own = {name: _source(column, place) for place, name in enumerate(column.names) if name in known}
            known |= {name: replace(source, marks=marks) for name, source in own.items()}
    return known


def _source(column: PreparedColumn, place: int) -> Source:
    codes: dict[str, float] = {}
    if column.kind == "ordinal":
        codes = {text: float(code) for code, text in enumerate(column.categories)}
    elif column.kind == "one-hot":
        own = column.categories[len(column.categories) - len(column.names) + place]
        codes = {own: 1.0, **{text: 0.0 for text in column.categories if text != own}}
    mean = column.means[place] if column.means else None
    return Source(
        column.heading, column.name, column.raw_kind, codes, column.unit, column.origin, column.order == "day", mean
    )


def notes(written: Mapping[str, str], headings: Headings | None) -> dict[str, str]:
    """Meaning of each number that code takes, on one line, by its name in the code; only where the name does not say
    it.

    Parameters
    ----------
    written : mapping of str to str
        Name in the code of each feature.
    headings : mapping of str to str, optional
    """
    sources = sources_of(tuple(written), headings)
    told = {name: sources[feature].note(name) for feature, name in written.items()}
    return {name: note for name, note in told.items() if note}


def abridged(text: str) -> str:
    """A formula as a comment quotes it: shortened if it is very long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."


def sourced(
    tree: Tree, headings: Headings | None, form: str, same: Callable[[str], str] | None = str
) -> tuple[Tree, dict[str, Source]]:
    """A formula for a form that reads the user's table by headings, and the source of each parameter that it uses.

    Assigned values that depend on nothing but the texts of a column, such as a constant by group, become parameters:
    the form has a number for each text.

    Parameters
    ----------
    tree : Tree
    headings : mapping of str to str, optional
    form : str
        Name of the form, for errors.
    same : callable, optional
        What the form compares of headings: ``str.lower`` if it ignores case; None if it does not read headings.

    Raises
    ------
    ExportError
        If the form takes two columns for one.
    """
    every = sources_of(tree.parameters, headings)
    tree, tables = _with_tables(tree, every)
    used = {name: (every | tables)[name] for name in tree.used_parameters}
    if same is not None:
        table = {source.name: source.heading for source in every.values()}
        if isinstance(headings, PreparedHeadings):
            table |= {column.name: column.heading for column in headings.preparation.columns}
        check_distinct(table, {source.name for source in used.values()}, form, same)
    return tree, used


def _with_tables(tree: Tree, sources: Mapping[str, Source]) -> tuple[Tree, dict[str, Source]]:
    """The formula with parameters in place of assigned values that depend on the texts of one column."""
    names, kept, tables = tree.parameters, [], {}
    for name, value in tree.assignments:
        alone = replace(tree, parameters=names, assignments=(), result=value)
        names = (*names, name)
        source = sources.get(alone.used_parameters[0]) if len(alone.used_parameters) == 1 else None
        numbers: Floats | None = None
        if source is not None and source.kind == "text":
            alone = replace(alone, parameters=alone.used_parameters)
            numbers = evaluate(alone, [np.array(list(source.codes.values()))])
        if source is None or numbers is None or not np.isfinite(numbers).all():
            kept.append((name, value))
        else:
            codes = dict(zip(source.codes, numbers.tolist(), strict=True))
            tables[name] = replace(source, codes=codes, mean=None)
    if not tables:
        return tree, {}
    return replace(tree, parameters=(*tree.parameters, *tables), assignments=tuple(kept)), tables


P = ParamSpec("P")
Made = TypeVar("Made")


class HasTree(Protocol):
    """A `shine.Model`."""

    @property
    def tree(self) -> Tree:
        """The formula."""

    @property
    def named(self) -> Tree:
        """The formula with the functions that have names of their own."""

    @property
    def headings(self) -> Mapping[str, str]:
        """Original headings of the columns, by feature."""

    @property
    def preparation(self) -> Preparation | None:
        """Conversion of the user's columns to numbers, if they did not hold numbers."""


def takes_models(write: Callable[Concatenate[Tree, P], Made]) -> Callable[Concatenate[Tree | HasTree, P], Made]:
    """Decorate an export of a tree: it takes models, too, and what is known of their columns if it takes headings."""
    takes_headings = "headings" in signature(write).parameters

    @wraps(write)
    def made(tree: Any, *arguments: P.args, **options: P.kwargs) -> Made:
        if isinstance(tree, Tree):
            return write(tree, *arguments, **options)
        if not isinstance(getattr(tree, "tree", None), Tree):
            given = value_text(tree) if isinstance(tree, str) else f"the {type(tree).__name__}"
            best = "; pass its best_" if hasattr(tree, "best_") else "; shine.parse makes a tree of text and functions"
            raise TypeError(f"{write.__name__} takes a shine.Model or a tree, not {given}{best}")
        if takes_headings:
            options.setdefault("headings", with_preparation(tree.headings, tree.preparation))
        return write(tree.named, *arguments, **options)

    return made  # type: ignore[return-value]  # mypy takes the first argument for a named one
