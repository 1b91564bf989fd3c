"""Conditions on runs and formulas, in the language of `df.shine.query` -> functions."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from shine.base.errors import UnsupportedSyntaxError, placed
from shine.faces.runs.entries import Entry, FormulaEntry, printable, word
from shine.lang.conditions.reading import HOLDS, Literal, Reader
from shine.lang.conditions.scanning import Name, Scanned, scan
from shine.lang.forms.names import listed, shown, similar, value_text

_TEXTS = ("name", "target", "data", "hash", "stopped_by", "shine", "problem")
_NUMBERS = ("generations", "evaluations", "seconds", "seed")

RUN_COLUMNS = ("name", "date", "target", "data", "hash", *_NUMBERS, "stopped_by", "shine", "problem")
"""Values of a run for conditions."""

FORMULA_COLUMNS = ("loss", "r2", "nodes", "formula")
"""Values of a formula for conditions."""

COLUMNS = (*RUN_COLUMNS, *FORMULA_COLUMNS)

_FIELDS = {"hash": "data_hash", "formula": "expression"}
"""Fields of entries that have another name than their column."""

BARE = {"r2": ">=", "loss": "<=", "nodes": "<=", "seconds": "<=", "date": ">="}
"""Comparison by a bare number: `r2` and `date` at least, the others at most."""

OTHER_NAMES = {"size": "nodes", "complexity": "nodes", "R2": "r2", "expression": "formula", "run": "name"}
"""Other words for columns."""

_NO_CONDITION = "is no condition; write a comparison, as in 'r2 > 0.9'"

_COMPARISON = re.compile(r"\s*(<=|>=|!=|==|<|>|=)?\s*(.*?)\s*\Z", re.DOTALL)
_HASH = re.compile(r"[0-9a-f]{6,64}")
"""A hash, or its beginning; shorter ones may be the names of files."""

Test = Callable[[str, Entry, FormulaEntry | None], bool | None]
"""Whether a run with its name, and one of its formulas, meet a condition; None if that is not known."""


def compared(key: str, text: object) -> str:
    """The condition that an option such as ``nodes="<12"`` stands for; a bare value means `BARE`, or equality.

    A `ValueError` if there is no value, or a number or a date is expected.
    """
    key = OTHER_NAMES.get(key, key)
    match = _COMPARISON.match(str(text))
    assert match is not None
    sign, value = match[1] or BARE.get(key, "=="), match[2]
    if not value:
        raise ValueError(f"{key}: has no value to compare with")
    known: object = value
    if key not in COLUMNS:
        known = comparable(_value(value))
    elif key == "date":
        moment(value)
    elif key in _NUMBERS or key in FORMULA_COLUMNS[:3]:
        try:
            known = float(value)
        except ValueError:
            allowed = "a number, or one after <=, <, >=, >, == or !=, such as '<12'"
            raise ValueError(f"{key}: {value!r} is not a number; write {allowed}") from None
    return f"`{key}` {'==' if sign == '=' else sign} {known!r}"


def condition(text: str) -> Scanned:
    """A condition such as ``r2 > 0.9 and evolution.population == 500``; a ValueError if it is none."""
    with placed(text, UnsupportedSyntaxError, kind=ValueError):
        scanned = scan(text)
        if isinstance(scanned.tree, ast.Name):  # told before all runs are read
            raise scanned.reject(f"{shown(text.strip())} {_NO_CONDITION}", scanned.tree)
    return scanned


def moment(text: object) -> float:
    """A date, or a date with a time, in local time: seconds since 1970; a ValueError if it is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{value_text(text)} is not a date; write 2026-01-31 or 2026-01-31T14:00") from None


def tests(given: Iterable[Scanned], runs: Collection[Entry]) -> tuple[list[Test], list[Test]]:
    """Conditions on runs alone, and those on formulas too, as functions.

    A `ValueError` if a condition is wrong, or about a setting that none of the runs has.
    """
    of_runs: list[Test] = []
    of_formulas: list[Test] = []
    settings = {key for run in runs for key in run.settings if key != "seed"}
    for scanned in given:
        reader = _Reader(scanned, settings)
        with placed(scanned.text, UnsupportedSyntaxError, kind=ValueError):
            test = reader.truth(reader.visit(scanned.tree), scanned.tree)
        (of_formulas if reader.asks_for_formulas else of_runs).append(test)
    return of_runs, of_formulas


def with_word(given: str, wanted: bool = True) -> Test:
    """A formula that uses a function, an operator or a feature; or one that does not."""
    known = word(given)
    return lambda name, run, formula: formula is not None and (known in formula.words) == wanted


def like(text: str) -> Test:
    """A formula that contains a text; blanks do not matter."""
    text = text.replace(" ", "")
    return lambda name, run, formula: formula is not None and text in formula.expression.replace(" ", "")


@dataclass(frozen=True)
class _Column:
    """A column of runs or formulas, or a setting: its name, and its value for a run, None if it is not known."""

    name: str
    value: Callable[[str, Entry, FormulaEntry | None], float | str | None]

    @property
    def kind(self) -> str:
        """Type of its values; settings have any."""
        if self.name not in COLUMNS:
            return "anything"
        return "times" if self.name == "date" else "texts" if self.name in (*_TEXTS, "formula") else "numbers"


class _Reader(Reader):
    """The result of a node is a `Literal`, a `_Column` or a `Test`."""

    def __init__(self, scanned: Scanned, settings: Collection[str]) -> None:
        super().__init__(scanned)
        self._settings = settings
        self.asks_for_formulas = False

    def column(self, name: Name) -> _Column:
        key = OTHER_NAMES.get(name.text, name.text)
        field = _FIELDS.get(key, key)
        if key in FORMULA_COLUMNS:
            self.asks_for_formulas = True
            return _Column(key, lambda name, run, formula: getattr(formula, field, None))
        if key == "name":
            return _Column(key, lambda name, run, formula: printable(name))
        if key in COLUMNS:
            return _Column(key, lambda name, run, formula: getattr(run, field))
        setting = _setting(key, self._settings)
        return _Column(
            setting, lambda name, run, formula: comparable(run.settings[setting]) if setting in run.settings else None
        )

    def visit_Attribute(self, node: ast.Attribute) -> _Column:
        try:
            return self.column(Name(ast.unparse(node)))
        except LookupError as error:
            self.reject(str(error.args[0]), node)

    def truth(self, value: Any, node: ast.AST) -> Any:
        if isinstance(value, _Column | Literal):
            what = shown(value.name) if isinstance(value, _Column) else value_text(value.value)
            self.reject(f"{what} {_NO_CONDITION}", node)
        return value

    def joined(self, name: str, left: Test, right: Test) -> Test:
        decides = name == "or"  # the value of one part that decides the whole

        def test(*of: Any) -> bool | None:
            first = left(*of)
            if first is decides:
                return first
            second = right(*of)
            return second if second is decides or first is not None else None

        return test

    def opposite(self, found: Test) -> Test:
        return lambda *of: None if (holds := found(*of)) is None else not holds

    def missing(self, value: Any, node: ast.AST) -> Test:
        return lambda *of: value.value(*of) is None

    def with_literal(self, comparison: str, left: Any, right: Literal, node: ast.AST) -> Test:
        self.of_column(left, node)
        value: Any = comparable(right.value) if left.kind == "anything" else right.value
        if left.kind == "times":
            try:
                value = moment(value)
            except ValueError as error:
                self.reject(str(error), node)
        elif left.kind != "anything" and isinstance(value, str) != (left.kind == "texts"):
            advice = "write them in quotes" if left.kind == "texts" else "leave out the quotes"
            self.reject(f"column {shown(left.name)} holds {left.kind}; {advice}", node)
        if left.name == "data" and comparison in ("==", "!="):
            return lambda name, run, formula: _is_of_data(run, value) == (comparison == "==")
        return lambda *of: _holds(comparison, left.value(*of), value)

    def of_columns(self, comparison: str, left: Any, right: Any, node: ast.AST) -> Test:
        self.of_column(left, node)
        self.of_column(right, node)
        if "anything" not in (left.kind, right.kind) and left.kind != right.kind:
            told = f"{left.name} holds {left.kind} and {right.name} {right.kind}; texts stand in quotes"
            self.reject(told, node)
        return lambda *of: None if (other := right.value(*of)) is None else _holds(comparison, left.value(*of), other)

    def of_column(self, value: Any, node: ast.AST) -> None:
        """Raise an error unless a value is a column."""
        if not isinstance(value, _Column):
            self.reject("a comparison is not compared again; join comparisons by 'and'", node)

    def member(self, left: Any, right: Any, left_node: ast.AST, right_node: ast.AST) -> Any:
        if isinstance(left, Literal) and isinstance(right, _Column) and right.kind in ("texts", "anything"):
            part = str(left.value).lower()
            return lambda *of: None if (text := right.value(*of)) is None else part in str(text).lower()
        return super().member(left, right, left_node, right_node)

    def among(self, left: Any, right: Literal, node: ast.AST) -> Test:
        assert isinstance(right.value, tuple)
        each = [self.with_literal("==", left, Literal(value), node) for value in right.value]
        return lambda *of: any(test(*of) for test in each)


def _holds(comparison: str, value: float | str | None, other: float | str) -> bool | None:
    if value is None:
        return None
    if isinstance(value, str) != isinstance(other, str):
        return comparison == "!="
    return HOLDS[comparison](value, other)


def _is_of_data(run: Entry, name: str) -> bool:
    """Whether a run is on a file, which is named by its path, by its name alone or by the beginning of its hash."""
    return (
        run.data in (name, os.path.realpath(name))
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
    from shine.lang.forms.synonyms import OTHER_WORDS

    if len(short) > 1:
        raise LookupError(f"{given}: may be {listed(short)}; write the whole name")
    meant = OTHER_WORDS.get(rest or given)
    ends = {name.split(".")[-1]: name for name in sorted(known, reverse=True)}
    near = ends.get(meant or "") or ends.get(rest) or similar(given, [*COLUMNS, *sorted(known)])
    told = f"; did you mean {near}?" if near else f"; there are {listed(COLUMNS)}, and the settings of configurations"
    raise LookupError(f"{given}: no run has a setting of this name{told}")
