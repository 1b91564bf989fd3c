"""Conditions on runs and formulas, as people write them -> SQL."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from shine.errors import ShineError
from shine.lang.names import listed, similar
from shine.runs.index import comparable, spaced
from shine.runs.words import word
from shine.words import FORMER

RUN_COLUMNS = {
    "name": "runs.name", "date": "runs.date", "target": "runs.target", "data": "runs.data", "hash": "runs.data_hash",
    "generations": "runs.generations", "evaluations": "runs.evaluations", "seconds": "runs.seconds",
    "seed": "runs.seed", "stopped_by": "runs.stopped_by", "shine": "runs.shine", "problem": "runs.problem",
}  # fmt: skip
"""What a condition can compare of a run, and the column of the index."""

FORMULA_COLUMNS = {
    "loss": "formulas.loss", "r2": "formulas.r2", "nodes": "formulas.nodes", "formula": "formulas.expression",
}  # fmt: skip
"""What a condition can compare of a formula."""

COLUMNS = {**RUN_COLUMNS, **FORMULA_COLUMNS}

BARE = {"r2": ">=", "loss": "<=", "nodes": "<=", "seconds": "<=", "date": ">="}
"""What a bare number means: a formula that reached it, or that is no larger."""

OTHER_NAMES = {"size": "nodes", "complexity": "nodes", "R2": "r2", "expression": "formula", "run": "name"}
"""Other words for columns."""

_COMPARISON = re.compile(r"\s*(<=|>=|!=|==|<|>|=|~)?\s*(.*?)\s*\Z", re.DOTALL)
_CONDITION = re.compile(r"\s*([^\W\d][\w.]*)\s*((?:<=|>=|!=|==|<|>|=|~).*)\Z", re.DOTALL)
_HASH = re.compile(r"[0-9a-f]{6,64}")
"""A hash, or its beginning; shorter ones may be the names of files."""


class UnknownSettingError(ShineError):
    """No run has a setting of this name."""


@dataclass(frozen=True)
class Condition:
    """A comparison of a column or a setting with a value.

    Parameters
    ----------
    key : str
        One of `COLUMNS`, or a setting such as ``evolution.population``.
    sign : str
        ``<``, ``<=``, ``>``, ``>=``, ``=``, ``!=``, or ``~`` for a text that contains another.
    value : float or str
    """

    key: str
    sign: str
    value: float | str


@dataclass(frozen=True)
class Clause:
    """A part of an SQL condition, and its values."""

    text: str
    values: tuple[Any, ...] = ()
    of_formula: bool = False


def condition(text: str) -> Condition:
    """A condition such as ``r2 > 0.9`` or ``evolution.population = 500``.

    Raises
    ------
    ValueError
        If it is none.
    """
    match = _CONDITION.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a condition; write a name, a comparison and a value, as in 'r2 > 0.9'")
    return compared(match[1], match[2])


def compared(key: str, text: object) -> Condition:
    """A comparison of a name with a text such as ``<12``; a bare value means `BARE`, or equality.

    Raises
    ------
    ValueError
        If there is no value, or a number or a date is expected.
    """
    key = OTHER_NAMES.get(key, key)
    match = _COMPARISON.match(str(text))
    assert match is not None
    sign, value = match[1] or BARE.get(key, "="), match[2]
    sign = "=" if sign == "==" else sign
    if not value:
        raise ValueError(f"{key}: {str(text)!r} has no value to compare with")
    if key not in COLUMNS:
        return Condition(key, sign, value if sign == "~" else comparable(_value(value)))
    if key == "date":
        return Condition(key, sign, moment(value))
    if key in ("name", "target", "data", "hash", "stopped_by", "shine", "problem", "formula") or sign == "~":
        return Condition(key, sign, value)
    try:
        return Condition(key, sign, float(value))
    except ValueError:
        raise ValueError(f"{key}: {value!r} is not a number; write for example '{key} {sign} 10'") from None


def moment(text: str) -> float:
    """A date, or a date with a time, in local time: seconds since 1970.

    Raises
    ------
    ValueError
        If it is none.
    """
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r} is not a date; write 2026-01-31 or 2026-01-31T14:00") from None


def clause(given: Condition, connection: sqlite3.Connection) -> Clause:
    """The SQL of a condition.

    Raises
    ------
    UnknownSettingError
        If it is about a setting that no run has.
    """
    column = COLUMNS.get(given.key)
    if column is None:
        key = _setting(given.key, connection)
        compare, value = _compare("value", given)
        text = f"runs.choice IN (SELECT choice FROM settings WHERE key = ? AND {compare})"
        return Clause(text, (key, value))
    if given.key == "data" and given.sign in ("=", "!="):
        return _of_data(str(given.value), given.sign == "=")
    compare, value = _compare(column, given)
    return Clause(compare, (value,), given.key in FORMULA_COLUMNS)


def with_word(given: str) -> Clause:
    """A formula that uses a function, an operator or a feature."""
    return Clause("instr(formulas.words, ?) > 0", (spaced(frozenset([word(given)])),), True)


def without_word(given: str) -> Clause:
    """A formula that does not use a function, an operator or a feature."""
    return Clause("instr(formulas.words, ?) = 0", (spaced(frozenset([word(given)])),), True)


def like(formula: str) -> Clause:
    """A formula that contains a text; blanks do not matter."""
    return Clause("instr(replace(formulas.expression, ' ', ''), ?) > 0", (formula.replace(" ", ""),), True)


def all_of(clauses: Iterable[Clause]) -> Clause:
    """The conjunction of clauses."""
    parts = list(clauses)
    text = " AND ".join(f"({part.text})" for part in parts) or "1"
    return Clause(text, tuple(value for part in parts for value in part.values), any(each.of_formula for each in parts))


def _compare(column: str, given: Condition) -> tuple[str, float | str]:
    if given.sign == "~":
        return f"instr(lower({column}), lower(?)) > 0", given.value
    # SQLite takes every text for greater than every number.
    kind = "" if isinstance(given.value, str) else f"typeof({column}) IN ('integer', 'real') AND "
    return f"{kind}{column} {given.sign} ?", given.value


def _of_data(name: str, wanted: bool) -> Clause:
    """Runs on a file, which is named by its path, by its name alone or by the beginning of the data's hash."""
    ways = ["runs.data = ?", "runs.data = ?"]
    values = [name, str(Path(name).absolute())]
    if _HASH.fullmatch(name):
        ways.append("substr(runs.data_hash, 1, ?) = ?")
        values += [len(name), name]  # type: ignore[list-item]
    if Path(name).name == name:
        ways.append("substr(runs.data, -?) IN (?, ?)")
        values += [len(name) + 1, f"/{name}", f"\\{name}"]  # type: ignore[list-item]
    either = " OR ".join(ways)
    return Clause(either if wanted else f"NOT ({either})", tuple(values))


def _value(text: str) -> Any:
    """A value as the configuration would read it: a number, a truth value, a list or a text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if not text.startswith(("[", "{", '"', "'")):
        return {"true": True, "false": False, "null": None}.get(text.lower(), text)
    from shine.config.document import parse_document  # slow to import

    return parse_document(f"value: {text}", "the value").value.get("value")


def _setting(given: str, connection: sqlite3.Connection) -> int:
    """The row of a setting, which may be named without its section if no other one is called so."""
    known: dict[str, int] = dict(connection.execute("SELECT key, id FROM keys"))
    first, dot, rest = given.partition(".")
    key = f"{FORMER.get(first, first)}{dot}{rest}"
    if key in known:
        return known[key]
    short = [name for name in known if name.endswith(f".{key}")]
    if len(short) == 1:
        return known[short[0]]
    from shine.words import OTHER_WORDS

    if len(short) > 1:
        raise UnknownSettingError(f"{given}: may be {listed(sorted(short))}; write the whole name")
    meant = OTHER_WORDS.get(rest or key)
    near = next((name for name in known if meant and name.split(".")[-1] == meant), None)
    near = near or next((name for name in known if name.split(".")[-1] == rest), None)
    near = near or similar(given, [*COLUMNS, *known])
    told = f"; did you mean {near}?" if near else f"; there are {listed(COLUMNS)}, and the settings of configurations"
    raise UnknownSettingError(f"{given}: no run has a setting of this name{told}")


Reader = Callable[[str], Clause]
WORDS: Mapping[str, Reader] = {"uses": with_word, "without": without_word, "formula": like}
"""Conditions on the text of formulas."""
