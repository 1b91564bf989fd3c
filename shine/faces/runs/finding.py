"""Past runs and formulas that meet conditions, in the folders of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from shine.base.errors import ExportError, placed, reason
from shine.base.stages import stage
from shine.faces.runs.conditions import COLUMNS, OTHER_NAMES, compared, condition, like, tests, with_word
from shine.faces.runs.entries import Entry, FormulaEntry, printable, read_entry
from shine.lang.conditions.scanning import Scanned
from shine.lang.forms.names import listed

RUNS = Path("runs")
"""Default folder of runs."""

DESCENDING = {"date", "r2", "generations", "evaluations"}
"""Columns that are sorted with the largest value first."""


class Found(NamedTuple):
    """A run, and a formula of its front; what is not known is None."""

    name: str
    """Path of its folder within the folder of the runs."""
    folder: str
    """Path of its folder."""
    date: datetime
    """Date of its result, in local time."""
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
    """End of the search, as in ``result.json``; ``unfinished`` without a result, ``damaged`` if that cannot be read."""
    shine: str
    """Version of Shine."""
    problem: str
    """Error of reading the run; empty if there was none."""
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

    @property
    def source(self) -> str:
        """Name of the file, whose path is absolute in the folder of a run, or else the formula of the data."""
        return os.path.basename(self.data) if os.path.isabs(self.data) else self.data


@dataclass(frozen=True)
class Query:
    """Conditions on runs and formulas, and the order of those that meet all of them.

    Parameters
    ----------
    uses, without : tuple of str
        Functions, operators or features that the formula must, or must not, have.
    formula : str, optional
        Text that the formula contains; blanks do not matter.
    conditions : tuple of Scanned
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
    conditions: tuple[Scanned, ...] = ()
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
    texts = [compared(key, value) for key, value in given if value is not None]
    conditions = [condition(text) for text in (*texts, *_several(where))]
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
        Further conditions, in the language of `df.shine.query`: ``"seconds < 60 and stopped_by == 'loss'"``,
        ``"'exp' in primitives"``.
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


def found(folder: Path, asked: Query) -> list[Found]:
    """The result of a query among the runs in a folder (see `find`)."""
    names = run_names(folder)
    with stage(f"reading {len(names)} runs in {folder}"):
        entries = {name: read_entry(folder / name) for name in names}
    rows = [_found(folder, name, entries[name], formula) for name, formula in _matches(entries, asked)]
    value = attrgetter("data_hash" if asked.sort == "hash" else asked.sort)
    rows.sort(key=lambda row: (row.name, row.place or 0))
    known, unknown = [row for row in rows if value(row) is not None], [row for row in rows if value(row) is None]
    known.sort(key=value, reverse=(asked.sort in DESCENDING) != asked.reverse)
    return [*known, *unknown][: asked.limit]


def _matches(entries: Mapping[str, Entry], asked: Query) -> Iterator[tuple[str, FormulaEntry | None]]:
    """The runs that meet a query, each with a formula that does; None where the query says nothing about formulas."""
    run_tests, formula_tests = tests(asked.conditions, entries.values())
    formula_tests += [*map(with_word, asked.uses), *(with_word(each, False) for each in asked.without)]
    formula_tests += [like(asked.formula)] if asked.formula else []
    about_formulas = asked.formulas or asked.best or bool(formula_tests)
    for name, entry in entries.items():
        if not all(test(name, entry, None) for test in run_tests):
            continue
        formulas = sorted(
            entry.formulas, key=lambda each: (not each.best, each.loss is None, each.loss or 0.0, each.index)
        )
        found = [
            each
            for each in formulas[: 1 if asked.best else None]
            if all(test(name, entry, each) for test in formula_tests)
        ]
        if not about_formulas:
            yield name, formulas[0] if formulas else None
        for each in found[: None if asked.formulas else 1] if about_formulas else ():
            yield name, each


def _found(folder: Path, name: str, entry: Entry, formula: FormulaEntry | None) -> Found:
    run = (printable(name), os.path.join(folder, name), datetime.fromtimestamp(entry.date), entry.target, entry.data,
           entry.data_hash, entry.generations, entry.evaluations, entry.seconds, entry.seed, entry.stopped_by,
           entry.shine, entry.problem)  # fmt: skip
    if formula is None:
        return Found(*run, None, None, None, None, None, False)
    return Found(*run, formula.expression, formula.loss, formula.r2, formula.nodes, formula.index, formula.best)


def _several(given: str | Iterable[str]) -> Iterable[str]:
    return (given,) if isinstance(given, str) else given


DEEPEST = 4
"""Most folders between a folder and a run in it: the runs of a sweep are in a folder of their own."""


def run_names(folder: Path) -> list[str]:
    """The paths of the runs in a folder, within it; an `ExportError` if the folder is missing or cannot be read."""
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "no such folder"
        raise ExportError(f"{folder}: {problem}; name the folder that holds the runs")
    with placed(f"{folder}: cannot be read", OSError, kind=ExportError, told=reason):
        return list(_runs_below(os.fspath(folder), "", 0))


def _runs_below(place: str, prefix: str, depth: int) -> Iterator[str]:
    with os.scandir(place) as entries:
        folders = [each for each in entries if not each.name.startswith(".") and _is_folder(each)]
    for each in folders:
        name = prefix + each.name
        if os.path.exists(f"{each.path}/result.json") or os.path.exists(f"{each.path}/config.yaml"):
            yield name
        elif depth < DEEPEST:
            try:
                yield from _runs_below(each.path, f"{name}/", depth + 1)
            except OSError:  # it is not readable, or has just been removed
                continue


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        if not entry.is_dir():
            return False
        # A link to a folder around it would list runs twice.
        return not entry.is_symlink() or not _same_branch(entry.path)
    except OSError:
        return False


def _same_branch(link: str) -> bool:
    """Whether a link leads to something in its own folder, or to a folder around it."""
    target, home = os.path.realpath(link), os.path.realpath(os.path.dirname(link))
    try:
        return os.path.commonpath([target, home]) in (target, home)
    except ValueError:  # on another drive
        return False
