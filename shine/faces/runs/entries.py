"""Entries of runs, read from their folders, and comparisons of them; a damaged file is a remark, never an error.

Only the formula that a run chose is parsed, as a check. Functions and names of formulas are read from their texts: a
query reads hundreds of thousands, of any depth; a parser would take minutes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from shine.base.errors import ExportError, ShineError, reason
from shine.base.lazy import cached_property
from shine.faces.runs.files import record_in
from shine.lang.forms.names import cut, identifier
from shine.lang.forms.synonyms import FUNCTIONS, OPERATORS, OTHER_NAMES
from shine.lang.parse import parse
from shine.lang.vocabulary import primitive_table

UNFINISHED, DAMAGED = "unfinished", "damaged"
"""Values of `stopped_by` of runs without a result, and of those whose result cannot be read."""

_LAST_LINES = 1 << 16
"""Bytes at the end of a log that are read; a line is far shorter."""


@dataclass(frozen=True)
class FormulaEntry:
    """A formula of a front.

    Parameters
    ----------
    index : int
        Its place in the front.
    best : bool
        Whether the run chose it.
    """

    index: int
    best: bool
    expression: str
    loss: float | None
    r2: float | None
    nodes: int | None

    @cached_property
    def words(self) -> frozenset[str]:
        """The functions and names that it uses."""
        return words_of(self.expression)


@dataclass(frozen=True)
class Entry:
    """A run, as its folder tells.

    Parameters
    ----------
    date : float
        When its result was written, or else its log: seconds since 1970.
    configuration : mapping of str to JSON value
    formulas : tuple of FormulaEntry
        The front; of a run without a result the formula in the last line of the log.
    problem : str
        What could not be read; empty if everything could.
    """

    date: float
    target: str
    data: str
    data_hash: str
    configuration: Mapping[str, Any]
    generations: int | None
    evaluations: int | None
    seconds: float | None
    seed: int | None
    stopped_by: str
    shine: str
    formulas: tuple[FormulaEntry, ...]
    problem: str = ""

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The values of the configuration, by their names with dots: ``evolution.population``."""
        return {printable(key): value for key, value in flat(self.configuration)}


def read_entry(folder: Path) -> Entry:
    """Read the entry of a run from the files in its folder.

    Parameters
    ----------
    folder : Path
        Of a run, finished or not.
    """
    result, front, no_result = _result(folder / "result.json")
    settings, no_settings = _mapping(result.get("settings")), ""
    if not settings:  # reading YAML takes fifty times as long
        settings, no_settings = _settings(folder / "config.yaml")
    log = {} if result else _last_line(folder / "log.jsonl")
    told: Mapping[str, Any] = result or log
    data, target = _data(settings)
    return Entry(
        date=_date(folder),
        target=printable(told.get("target", target)),
        data=data,
        data_hash=printable(told.get("data") or _hash_of_checkpoint(folder)),
        configuration=settings,
        generations=_integer(told.get("generations", log.get("generation"))),
        evaluations=_integer(told.get("evaluations")),
        seconds=_real(told.get("seconds")),
        seed=_integer(told.get("seed", settings.get("seed"))),
        stopped_by=printable(result.get("stopped_by")) if result else DAMAGED if no_result else UNFINISHED,
        shine=printable(_mapping(told.get("versions")).get("shine")),
        formulas=front if result else tuple(_so_far(log)),
        problem="; ".join(filter(None, (no_result, no_settings))),
    )


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested mappings, each with its keys joined by dots; an empty mapping is a value."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _settings(path: Path) -> tuple[dict[str, Any], str]:
    """The settings in a configuration, and why they cannot be read."""
    from shine.faces.config.document import read_document  # slow to import, and not needed where nothing has changed

    try:
        document = read_document(path)
    except ShineError as error:
        return {}, cut(str(error).splitlines()[0].replace(str(path), path.name))  # the folder may be moved
    return document.value, cut(f"{path.name}: {document.problems[0][1]}") if document.problems else ""


def _result(path: Path) -> tuple[dict[str, Any], tuple[FormulaEntry, ...], str]:
    """The values in result.json, its front, and why they cannot be read; all are empty if there is none."""
    try:
        if not path.is_file():
            return {}, (), f"{path.name}: is not a file" if path.exists() else ""
        value = from_json(path.read_bytes(), cache_strings="keys")
        if isinstance(value, dict) and value.get("front"):
            return value, tuple(_front(value)), ""
        return {}, (), f"{path.name}: is not the result of a run"
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, ShineError) as error:
        return {}, (), cut(f"{path.name}: cannot be read: {reason(error)}")


def _front(result: Mapping[str, Any]) -> Iterator[FormulaEntry]:
    chosen = [model["expression"] for model in result["front"]].index(result["best"]["expression"])
    if result.keys() >= {"features", "primitives"} and not result["best"].get("template"):  # as for `Run.result`
        parse(result["best"]["expression"], result["features"], primitive_table(result["primitives"])[0])
    for index, model in enumerate(result["front"]):
        yield _formula(index, model, model["complexity"], index == chosen)


def _formula(index: int, model: Mapping[str, Any], nodes: object, best: bool) -> FormulaEntry:
    text = model.get("expression", model.get("formula"))
    if not isinstance(text, str):
        raise ValueError("an expression is not text")
    loss, r2 = _real(model["loss"]), _real(model.get("r2"))
    return FormulaEntry(index, best, printable(text), loss, r2, _integer(nodes))


def _so_far(log: Mapping[str, Any]) -> Iterator[FormulaEntry]:
    """The formula of a line of the log."""
    if isinstance(log.get("formula"), str) and "loss" in log:
        yield _formula(0, log, log.get("size"), True)


def _last_line(path: Path) -> dict[str, Any]:
    """The last complete line of a log; empty without one."""
    try:
        if not path.is_file():
            return {}
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - _LAST_LINES))
            lines = stream.read().splitlines(keepends=True)
    except OSError:
        return {}
    return next((record for line in reversed(lines) if (record := record_in(line)) is not None), {})


def _hash_of_checkpoint(folder: Path) -> object:
    """The hash of the data in the newest checkpoint, for runs without a result."""
    from shine.faces.runs.checkpoints import Shelf, header_of

    for path in Shelf(folder).paths:
        header = header_of(path)
        if header:
            return header.get("data")
    return None


def _data(settings: Mapping[str, Any]) -> tuple[str, str]:
    """Source of the data, a file or a formula, and the name of the target."""
    data = _mapping(settings.get("data"))
    if data.get("path") is not None:
        return printable(data["path"]), printable(data.get("target"))
    return printable(_mapping(data.get("generate")).get("target")), "y"


def _date(folder: Path) -> float:
    for name in ("result.json", "log.jsonl", "config.yaml"):
        try:
            return (folder / name).stat().st_mtime
        except OSError:
            continue
    return 0.0


def printable(value: object) -> str:
    """A value as text that can be printed: half of a surrogate pair is written as its code."""
    return "" if value is None else str(value).encode("utf-8", "backslashreplace").decode()


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _real(value: object) -> float | None:
    if type(value) is float:
        return value if math.isfinite(value) else None
    try:
        number = float(value) if type(value) is int else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


POWERS = {"square": "pow", "cube": "pow"}
"""Functions that people read as a power."""

_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)|(?P<sign>\*\*|//|[<>=!]=|[-+*/%<>])"
    r"|(?P<open>[(,])|(?P<close>\))"
)
_WORDS_BETWEEN = {"if", "else", "and", "or", "not"}


def words_of(formula: str) -> frozenset[str]:
    """The primitives, features and other names in a formula.

    Parameters
    ----------
    formula : str
        In Shine's language.

    Examples
    --------
    >>> sorted(words_of("2.5*exp(-a) + b"))
    ['a', 'add', 'b', 'exp', 'mul', 'neg']
    """
    words = set()
    operand = False  # whether the last token ends an operand, so that a sign after it has two of them
    for token in _TOKEN.finditer(formula):
        text = token.group()
        match token.lastgroup:
            case "name" if text in _WORDS_BETWEEN:
                words.add(OPERATORS.get(text, ""))
                operand = False
            case "name":
                words.update((text, POWERS.get(text, "")))
                operand = True
            case "sign" if text == "-" and not operand:
                # The sign of a number is part of the number.
                if not formula[token.end() : token.end() + 1].isdigit():
                    words.add("neg")
            case "sign":
                words.add(OPERATORS[text])
                operand = False
            case kind:
                operand = kind in ("number", "close")
    return frozenset(words - {""})


def word(given: str) -> str:
    """The word for a function, an operator or a feature, which may go by its heading, as users name it."""
    known = OPERATORS.get(given) or FUNCTIONS.get(given) or OTHER_NAMES.get(given)
    return known or (identifier(given) if any(map(str.isalnum, given)) else given)


@dataclass(frozen=True)
class Comparison:
    """Several runs beside each other.

    Parameters
    ----------
    folders : tuple of Path
    runs : tuple of Entry
        What the folders tell.
    """

    folders: tuple[Path, ...]
    runs: tuple[Entry, ...]

    @property
    def settings(self) -> dict[str, tuple[Any, ...]]:
        """The value of each run, by setting, of the settings that differ; None where a run does not have one."""
        keys = dict.fromkeys(key for run in self.runs for key in run.settings)
        values = {key: tuple(run.settings.get(key) for run in self.runs) for key in keys}
        return {key: each for key, each in values.items() if any(value != each[0] for value in each)}

    @property
    def same_data(self) -> bool | None:
        """Whether all searched in the same names and numbers; None if they did not note that in the same way."""
        hashes = {run.data_hash for run in self.runs}
        # Rows that are read block by block have another hash than the same rows in memory.
        apart = len({(run.data, run.settings.get("data.stream")) for run in self.runs})
        alike = apart == 1 or len({run.data for run in self.runs}) > 1
        return len(hashes) == 1 if "" not in hashes and (alike or len(hashes) == 1) else None

    @property
    def fronts(self) -> dict[int, tuple[FormulaEntry | None, ...]]:
        """The formula of each run, by number of nodes: None where its front has none of this size."""
        sizes = sorted({each.nodes for run in self.runs for each in run.formulas if each.nodes is not None})
        by_size = [{each.nodes: each for each in reversed(run.formulas)} for run in self.runs]
        return {size: tuple(front.get(size) for front in by_size) for size in sizes}


def compare(folders: Sequence[str | Path]) -> Comparison:
    """Runs beside each other.

    Parameters
    ----------
    folders : sequence of path

    Returns
    -------
    Comparison

    Raises
    ------
    ExportError
        If a folder holds no run.
    """
    paths = tuple(Path(folder) for folder in folders)
    for path in paths:
        if not any((path / name).exists() for name in ("config.yaml", "result.json")):
            raise ExportError(f"{path}: holds no run; a run has a config.yaml, and a result.json once it has ended")
    return Comparison(paths, tuple(map(read_entry, paths)))
