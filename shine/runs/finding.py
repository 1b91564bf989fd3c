"""Past runs and formulas that meet conditions."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from shine.lang.names import listed
from shine.runs.conditions import (
    COLUMNS,
    OTHER_NAMES,
    Clause,
    Condition,
    UnknownSettingError,
    all_of,
    clause,
    compared,
    condition,
    like,
    with_word,
    without_word,
)
from shine.runs.index import with_index

RUNS = Path("runs")
"""Where `shine evolve` puts runs."""

DESCENDING = {"date", "r2", "generations", "evaluations"}
"""Columns that are sorted with the largest value first."""

_SELECTED = (
    "runs.name, runs.date, runs.target, runs.data, runs.data_hash, runs.generations, runs.evaluations, runs.seconds,"
    " runs.seed, runs.stopped_by, runs.shine, runs.problem, formulas.expression, formulas.loss, formulas.r2,"
    " formulas.nodes, formulas.place, formulas.best"
)


class Found(NamedTuple):
    """A run, and a formula of its front; what is not known is None."""

    name: str
    """Path of its folder within the folder of the runs."""
    folder: str
    """Path of its folder."""
    date: datetime
    """When its result was written, in local time."""
    target: str
    """Name of what it explains."""
    data: str
    """The file, or the formula that the data were made by."""
    data_hash: str
    """SHA-256 of the names and numbers that it searched in; empty if the run did not note it."""
    generations: int | None
    """Generations after the first population."""
    evaluations: int | None
    """Formulas whose loss was computed."""
    seconds: float | None
    """Duration of the search."""
    seed: int | None
    """Seed of every random choice."""
    stopped_by: str
    """What ended it, as in ``result.json``; ``unfinished`` without a result, ``damaged`` if that cannot be read."""
    shine: str
    """Version of Shine."""
    problem: str
    """What could not be read of the run; empty if everything could."""
    formula: str | None
    """In Shine's language."""
    loss: float | None
    """Its loss."""
    r2: float | None
    """Its R2."""
    nodes: int | None
    """Its nodes, as ``result.json`` counts its complexity."""
    place: int | None
    """Its place in the front, from 0: the --index of other commands."""
    best: bool
    """Whether the run chose it."""


@dataclass(frozen=True)
class Query:
    """Conditions on runs and formulas, and the order of those that meet all of them.

    Parameters
    ----------
    uses, without : tuple of str
        Functions, operators or features that the formula must, or must not, have.
    formula : str, optional
        Text that the formula contains; blanks do not matter.
    conditions : tuple of Condition
    formulas : bool
        Find every formula of the fronts; otherwise one of each run: the chosen one if it meets the conditions, else
        that of the least loss.
    best : bool
        Consider only the formulas that runs chose.
    sort : str
        A column.
    reverse : bool
    limit : int, optional
        Most to find.
    """

    uses: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    formula: str | None = None
    conditions: tuple[Condition, ...] = ()
    formulas: bool = False
    best: bool = False
    sort: str = "date"
    reverse: bool = False
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.sort not in COLUMNS:
            raise ValueError(f"sort: cannot sort by {self.sort!r}; there are {listed(COLUMNS)}")
        if self.limit is not None and self.limit < 0:
            raise ValueError(f"limit: is a number from 0 on, not {self.limit}")


def query(
    *,
    uses: str | Iterable[str] = (),
    without: str | Iterable[str] = (),
    formula: str | None = None,
    nodes: object = None,
    r2: object = None,
    loss: object = None,
    data: str | Path | None = None,
    target: str | None = None,
    since: object = None,
    until: object = None,
    settings: Mapping[str, object] | Iterable[tuple[str, object]] = (),
    where: str | Iterable[str] = (),
    formulas: bool = False,
    best: bool = False,
    sort: str = "date",
    reverse: bool = False,
    limit: int | None = None,
) -> Query:
    """The query that the keywords of `find` stand for; a ValueError if one is wrong."""
    given = [
        ("nodes", nodes), ("r2", r2), ("loss", loss), ("data", None if data is None else f"={data}"),
        ("target", None if target is None else f"={target}"), ("date", None if since is None else f">={since}"),
        ("date", None if until is None else f"<{until}"),
        *(settings.items() if isinstance(settings, Mapping) else settings),
    ]  # fmt: skip
    conditions = [compared(key, value) for key, value in given if value is not None]
    conditions += [condition(text) for text in _several(where)]
    sort = OTHER_NAMES.get(sort, sort)
    words = tuple(_several(uses)), tuple(_several(without))
    return Query(*words, formula, tuple(conditions), formulas, best, sort, reverse, limit)


def find(folder: str | Path = RUNS, **keywords: Any) -> list[Found]:
    """Past runs and their formulas.

    Parameters
    ----------
    folder : path
        The folder that holds the runs; folders within it are searched too.
    uses, without : str or several
        Functions, operators or features that the formula must, or must not, have: ``"exp"``, ``"/"``, ``"x1"``.
    formula : str
        Text that the formula contains; blanks do not matter.
    nodes, r2, loss : number or str
        A comparison, such as ``"<12"``; a number alone is the most nodes, the least R2, the largest loss.
    data : path
        The file of the data: its path, its name, or the beginning of the data's hash.
    target : str
    since, until : str
        Dates: ``"2026-01-31"``, the latter without its last day.
    settings : mapping
        Values, or comparisons, of settings by name: ``{"evolution.population": 500, "stop.seconds": ">10"}``.
    where : str or several
        Further comparisons: ``"seconds < 60"``, ``"stopped_by = loss"``, ``"primitives ~ exp"``.
    formulas : bool
        Find every formula of the fronts; otherwise one of each run: the chosen one if it meets the conditions, else
        that of the least loss.
    best : bool
        Consider only the formulas that runs chose.
    sort : str
        ``"date"``, ``"r2"``, ``"loss"``, ``"nodes"``, ``"seconds"``, ``"name"``, ...; the best, or the latest, first.
    reverse : bool
        The other way round.
    limit : int
        Most to find.

    Returns
    -------
    list of Found
        A pandas DataFrame can be made of it.

    Raises
    ------
    ValueError
        If a condition is wrong, or about a setting that no run has.
    ExportError
        If there is no such folder.
    """
    return found(Path(folder), query(**keywords))


def found(folder: Path, asked: Query, *, rebuild: bool = False) -> list[Found]:
    """What a query finds among the runs in a folder (see `find`)."""
    rows = _asked(folder, asked, lambda connection: _rows(connection, asked), rebuild)
    place = os.path.join(folder, "")
    return [_found(place, row) for row in rows]


def count(folder: Path, asked: Query) -> int:
    """Number of runs or formulas that a query would find without its limit."""
    return int(_asked(folder, asked, lambda connection: _count(connection, asked), False))


def _asked(folder: Path, asked: Query, use: Any, rebuild: bool) -> Any:
    try:
        return with_index(folder, use, rebuild=rebuild)
    except UnknownSettingError as error:
        raise ValueError(str(error)) from None


def _rows(connection: sqlite3.Connection, asked: Query) -> list[tuple[Any, ...]]:
    text, values = _select(connection, asked)
    column, descending = COLUMNS[asked.sort], (asked.sort in DESCENDING) != asked.reverse
    order = f"ORDER BY {column} IS NULL, {column} {'DESC' if descending else 'ASC'}, runs.name, formulas.place"
    limit = "" if asked.limit is None else f" LIMIT {asked.limit}"
    return connection.execute(f"{text} {order}{limit}", values).fetchall()


def _count(connection: sqlite3.Connection, asked: Query) -> int:
    text, values = _select(connection, asked, "1")
    return int(connection.execute(f"SELECT count(*) FROM ({text})", values).fetchone()[0])


def _select(connection: sqlite3.Connection, asked: Query, columns: str = _SELECTED) -> tuple[str, tuple[Any, ...]]:
    """The query in SQL, and its values."""
    parts = [
        *(clause(each, connection) for each in asked.conditions),
        *map(with_word, asked.uses),
        *map(without_word, asked.without),
        *([like(asked.formula)] if asked.formula else []),
    ]
    of_runs = all_of(part for part in parts if not part.of_formula)
    of_formulas = all_of([part for part in parts if part.of_formula] + ([_CHOSEN] if asked.best else []))
    if asked.formulas:
        where = all_of([of_runs, of_formulas])
        return f"SELECT {columns} FROM runs JOIN formulas ON formulas.run = runs.id WHERE {where.text}", where.values
    if not of_formulas.of_formula:
        joined = "runs LEFT JOIN formulas ON formulas.run = runs.id AND formulas.rank = 0"
        return f"SELECT {columns} FROM {joined} WHERE {of_runs.text}", of_runs.values
    first = (
        f"SELECT formulas.run, min(formulas.rank) AS rank FROM formulas WHERE {of_formulas.text} GROUP BY formulas.run"
    )
    joined = (
        f"({first}) AS first JOIN runs ON runs.id = first.run"
        " JOIN formulas ON formulas.run = first.run AND formulas.rank = first.rank"
    )
    return f"SELECT {columns} FROM {joined} WHERE {of_runs.text}", (*of_formulas.values, *of_runs.values)


_CHOSEN = Clause("formulas.rank = 0", (), True)


def _found(folder: str, row: tuple[Any, ...]) -> Found:
    name, date, *rest, best = row
    return Found._make((name, folder + name, datetime.fromtimestamp(date), *rest, bool(best)))


def _several(given: str | Iterable[str]) -> Iterable[str]:
    return (given,) if isinstance(given, str) else given
