"""Conditions on runs and formulas, as people write them -> functions."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from shine.base.errors import ShineError
from shine.faces.runs.entries import Entry, FormulaEntry, printable
from shine.faces.runs.words import word
from shine.lang.forms.names import listed, similar

RUN_COLUMNS = ("name", "date", "target", "data", "hash", "generations", "evaluations", "seconds", "seed", "stopped_by",
               "shine", "problem")  # fmt: skip
"""What a condition can compare of a run."""

FORMULA_COLUMNS = ("loss", "r2", "nodes", "formula")
"""What a condition can compare of a formula."""

COLUMNS = (*RUN_COLUMNS, *FORMULA_COLUMNS)

_FIELDS = {"hash": "data_hash", "formula": "expression"}
"""Fields of entries that have another name than their column."""

BARE = {"r2": ">=", "loss": "<=", "nodes": "<=", "seconds": "<=", "date": ">="}
"""What a bare number means: a formula that reached it, or that is no larger."""

OTHER_NAMES = {"size": "nodes", "complexity": "nodes", "R2": "r2", "expression": "formula", "run": "name"}
"""Other words for columns."""

_SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne}

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


RunTest = Callable[[str, Entry], bool]
"""Whether a run, with its name, meets a condition."""

FormulaTest = Callable[[FormulaEntry], bool]
"""Whether a formula meets a condition."""


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


def tests(given: Iterable[Condition], runs: Collection[Entry]) -> tuple[list[RunTest], list[FormulaTest]]:
    """Conditions on runs and on formulas, as functions.

    Raises
    ------
    UnknownSettingError
        If a condition is about a setting that none of the runs has.
    """
    of_runs: list[RunTest] = []
    of_formulas: list[FormulaTest] = []
    for each in given:
        if each.key in FORMULA_COLUMNS:
            of_formulas.append(partial(_formula_meets, each))
        elif each.key in COLUMNS:
            of_runs.append(partial(_run_meets, each))
        else:
            known = {key for run in runs for key in run.settings if key != "seed"}
            of_runs.append(partial(_setting_meets, replace(each, key=_setting(each.key, known))))
    return of_runs, of_formulas


def with_word(given: str) -> FormulaTest:
    """A formula that uses a function, an operator or a feature."""
    known = word(given)
    return lambda formula: known in formula.words


def without_word(given: str) -> FormulaTest:
    """A formula that does not use a function, an operator or a feature."""
    known = word(given)
    return lambda formula: known not in formula.words


def like(text: str) -> FormulaTest:
    """A formula that contains a text; blanks do not matter."""
    text = text.replace(" ", "")
    return lambda formula: text in formula.expression.replace(" ", "")


def _formula_meets(given: Condition, formula: FormulaEntry) -> bool:
    return _compare(getattr(formula, _FIELDS.get(given.key, given.key)), given)


def _run_meets(given: Condition, name: str, run: Entry) -> bool:
    if given.key == "data" and given.sign in ("=", "!="):
        return _is_of_data(run, str(given.value)) == (given.sign == "=")
    return _compare(printable(name) if given.key == "name" else getattr(run, _FIELDS.get(given.key, given.key)), given)


def _setting_meets(given: Condition, name: str, run: Entry) -> bool:
    return given.key in run.settings and _compare(comparable(run.settings[given.key]), given)


def _compare(value: float | str | None, given: Condition) -> bool:
    if value is None:
        return False
    if given.sign == "~":
        return str(given.value).lower() in str(value).lower()
    if isinstance(value, str) != isinstance(given.value, str):
        return given.sign == "!="
    return bool(_SIGNS[given.sign](value, given.value))


def _is_of_data(run: Entry, name: str) -> bool:
    """Whether a run is on a file, which is named by its path, by its name alone or by the beginning of its hash."""
    return (
        run.data in (name, str(Path(name).absolute()))
        or bool(_HASH.fullmatch(name) and run.data_hash.startswith(name))
        or (Path(name).name == name and run.data.endswith((f"/{name}", f"\\{name}")))
    )


def comparable(value: Any) -> float | str:
    """A setting in the form that conditions compare: a number, or else a text."""
    if isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return json.dumps(value, ensure_ascii=False)


def _value(text: str) -> Any:
    """A value as the configuration would read it: a number, a truth value, a list or a text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if not text.startswith(("[", "{", '"', "'")):
        return {"true": True, "false": False, "null": None}.get(text.lower(), text)
    from shine.faces.config.document import parse_document  # slow to import

    return parse_document(f"value: {text}", "the value").value.get("value")


def _setting(given: str, known: Collection[str]) -> str:
    """The whole name of a setting, which may be given without its section if no other one is called so."""
    if given in known:
        return given
    _, _, rest = given.partition(".")
    short = sorted(name for name in known if name.endswith(f".{given}"))
    if len(short) == 1:
        return short[0]
    from shine.lang.synonyms import OTHER_WORDS

    if len(short) > 1:
        raise UnknownSettingError(f"{given}: may be {listed(short)}; write the whole name")
    meant = OTHER_WORDS.get(rest or given)
    ends = {name.split(".")[-1]: name for name in sorted(known, reverse=True)}
    near = ends.get(meant or "") or ends.get(rest) or similar(given, [*COLUMNS, *sorted(known)])
    told = f"; did you mean {near}?" if near else f"; there are {listed(COLUMNS)}, and the settings of configurations"
    raise UnknownSettingError(f"{given}: no run has a setting of this name{told}")
