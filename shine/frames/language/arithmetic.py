"""Arithmetic of a query: the types of its operations, and dates and durations as exact numbers."""

from __future__ import annotations

import ast
import datetime
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from shine.frames.language.steps import Adding, Typed, Value
from shine.frames.language.types import FLOATS, INTEGERS, UNITS, ColumnType
from shine.lang.conditions.reading import Literal
from shine.lang.forms.names import shown, value_text

_FOLDING: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow,
}  # fmt: skip
_LARGEST_EXPONENT = 4096
"""Of powers of whole numbers that are written out in a query."""

_WHOLE = frozenset({"add", "sub", "mul", "floordiv", "mod", "neg", "abs", "min", "max", "sign", "floor", "ceil",
                    "square", "cube", "relu", "clip", "trunc", "round"})  # fmt: skip
"""Primitives that make whole numbers of whole numbers; all others compute with float64."""

_UNCHANGED = frozenset({"floor", "ceil", "trunc", "round"})
"""Primitives that do nothing to whole numbers."""

_UNSIGNED = _UNCHANGED | {"abs", "add", "sub", "mul", "floordiv", "mod", "pow", "min", "max", "square", "cube"}
"""Operations of uint64."""


def list_hint(value: Value, other: str = "") -> str:
    """What to do instead of using a list as a number or a condition; `other` if the value is no list."""
    is_list = isinstance(value, Literal) and isinstance(value.value, tuple)
    return "; lists go with in, == and !=, a series is given as a column" if is_list else other


class Arithmetic(Adding):
    """Adds steps that compute."""

    def truth(self, value: Value, node: ast.AST) -> Typed:
        """A condition; numbers are none."""
        if isinstance(value, Literal) and isinstance(value.value, bool):
            return self._steps.add("constant", "bool", (), value.value)
        if isinstance(value, Literal) or value.kind != "bool":
            what = value_text(value.value) if isinstance(value, Literal) else f"{value}"
            hint = list_hint(value, "; write a comparison such as x != 0")
            self._reject(f"this is {what}, no condition to combine{hint}", node)
        return Typed(value.index, "bool")

    def numeric(self, value: Typed, node: ast.AST) -> Typed:
        """A value to compute with: a number, or 1 for true."""
        if value.meaning == "truth":
            return self._steps.convert(value, "int64")
        if value.meaning != "number":
            what = f"column {shown(value.name)} is {value.column}, not a number to compute with"
            self._reject(f"{what}; compute it before the query, as a column", node)
        if value.kind in INTEGERS and value.kind != "uint64":
            return self._steps.convert(value, "int64")
        return Typed(value.index, value.kind)

    def apply(self, name: str, values: Sequence[Value], nodes: Sequence[ast.AST], node: ast.AST) -> Value:
        """A primitive of the language, in the type that its arguments decide."""
        for value, place in zip(values, nodes, strict=True):
            if isinstance(value, Literal) and not is_number(value.value):
                self._reject(f"{value_text(value.value)} is not a number to compute with{list_hint(value)}", place)
        if all(isinstance(value, Literal) for value in values):
            return self._folded(name, values, node)  # type: ignore[arg-type]
        typed = [self.numeric(v, n) if isinstance(v, Typed) else v for v, n in zip(values, nodes, strict=True)]
        kind = self._arithmetic_kind(name, typed)
        if kind in INTEGERS and (name in _UNCHANGED or (kind == "uint64" and name == "abs")):
            assert isinstance(typed[0], Typed)
            return typed[0]
        arguments = [self._number(value, kind, place).index for value, place in zip(typed, nodes, strict=True)]
        return self._steps.add("apply", kind, tuple(arguments), name)

    def _arithmetic_kind(self, name: str, values: Sequence[Value]) -> str:
        kinds = {value.kind for value in values if isinstance(value, Typed)}
        numbers = [value.value for value in values if isinstance(value, Literal)]
        if kinds <= set(FLOATS):
            return max(kinds)  # float64 beside float32; numbers of the text take the columns' type
        if kinds & set(FLOATS) or any(isinstance(number, float) for number in numbers):
            return "float64"
        if name == "pow" and not (isinstance(values[1], Literal) and values[1].value >= 0):  # type: ignore[operator]
            return "float64"
        if name not in _WHOLE and name != "pow":
            return "float64"
        if kinds == {"int64"}:
            return "int64"
        fits = kinds == {"uint64"} and all(number >= 0 for number in numbers)  # type: ignore[operator]
        return "uint64" if fits and name in _UNSIGNED else "float64"

    def _number(self, value: Value, kind: str, node: ast.AST) -> Typed:
        if isinstance(value, Typed):
            return self._steps.convert(value, kind)
        number: Any = value.value
        if kind in INTEGERS:
            least, most = INTEGERS[kind]
            if not least <= number <= most:
                self._reject(f"{value_text(number)} does not fit {kind}; write a float such as 1e30", node)
            return self._steps.number(int(number), kind, value.is_variable)
        try:
            return self._steps.number(float(np.dtype(kind).type(float(number))), kind, value.is_variable)
        except OverflowError:
            self._reject(f"{value_text(number)} does not fit {kind}", node)

    def _folded(self, name: str, values: Sequence[Literal], node: ast.AST) -> Literal:
        """Arithmetic of numbers alone: Python's."""
        if name not in _FOLDING:
            self._reject("a function needs a column; compute the number before and pass it as @name", node)
        numbers: Any = [value.value for value in values]
        if name == "pow" and any(isinstance(n, int) and abs(n) > _LARGEST_EXPONENT for n in numbers[1:]):
            self._reject("the power is too large", node)
        try:
            result = _FOLDING[name](*numbers)
        except (ArithmeticError, ValueError) as error:
            self._reject(f"these numbers have no result: {error}", node)
        if isinstance(result, complex):
            self._reject("the result is a complex number", node)
        return Literal(result, any(value.is_variable for value in values))

    def chosen(self, values: Sequence[Value], nodes: Sequence[ast.AST]) -> Typed:
        """``body if test else orelse``; where the test is null, `orelse`."""
        test = self.truth(values[0], nodes[0])
        if all(_is_truth(value) for value in values[1:]):
            body, orelse = (self.truth(v, n) for v, n in zip(values[1:], nodes[1:], strict=True))
            return self._steps.add("where", "bool", (test.index, body.index, orelse.index))
        typed: list[Value] = []
        for value, node in zip(values[1:], nodes[1:], strict=True):
            if isinstance(value, Literal) and not is_number(value.value):
                self._reject(f"{value_text(value.value)} is not a number", node)
            typed.append(self.numeric(value, node) if isinstance(value, Typed) else value)
        if all(isinstance(value, Literal) for value in typed):
            kind = "int64" if all(isinstance(value.value, int) for value in typed) else "float64"  # type: ignore[union-attr]
        else:
            kind = self._arithmetic_kind("min", typed)
        parts = [self._number(value, kind, node).index for value, node in zip(typed, nodes[1:], strict=True)]
        return self._steps.add("where", kind, (test.index, *parts))


def is_number(value: object) -> bool:
    """Whether a literal's value is a number or a truth value."""
    return isinstance(value, int | float)


def _is_truth(value: Value) -> bool:
    return isinstance(value.value, bool) if isinstance(value, Literal) else value.kind == "bool"


_INSTANT = re.compile(
    r"(?P<local>\d{4}(-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?)?)?)?)\s*(?P<shift>Z|[+-]\d\d(:?\d\d)?)?"
)
_SHIFT = re.compile(r"([+-])(\d\d):?(\d\d)?")
_DURATION = re.compile(r"(?P<count>[+-]?\d+(\.\d+)?)\s*(?P<unit>[a-zµμ]+)")
_HOUR = 3600 * 10**9
_WORDS = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "sec": 10**9, "second": 10**9,
    "min": 60 * 10**9, "minute": 60 * 10**9, "h": _HOUR, "hour": _HOUR, "d": 24 * _HOUR, "day": 24 * _HOUR,
    "week": 7 * 24 * _HOUR,
}  # fmt: skip
_EPOCH = datetime.datetime(1970, 1, 1)

_DATES = "write a date such as '2024-02-29', '2024-02-29 13:30' or '2024-02-29T13:30:00+01:00'"


def instant(value: object, column: ColumnType) -> Fraction:
    """A date or time in a column's unit since 1970.

    A time without a zone beside a column with one is local time there; if clocks are set back, the earlier of the two.

    Parameters
    ----------
    value : str, datetime.date, datetime.datetime, pandas.Timestamp or numpy.datetime64
    column : ColumnType

    Raises
    ------
    ValueError
        If it is none, or has a time zone and the column has none.
    """
    nanoseconds, shift = _parts(value)
    if shift is None and column.zone is not None:
        shift = _local_shift(nanoseconds, column.zone)
    elif shift is not None and column.zone is None:
        raise ValueError(f"{value_text(value)} has a time zone, but the column has none; leave it out")
    return Fraction(nanoseconds - (shift or 0), UNITS[column.unit or "ns"])


def duration(value: object, column: ColumnType) -> Fraction:
    """A duration in a column's unit; errors as of `instant`.

    Parameters
    ----------
    value : str, datetime.timedelta, pandas.Timedelta or numpy.timedelta64
    column : ColumnType
    """
    scale = UNITS[column.unit or "ns"]
    if isinstance(value, datetime.timedelta):
        rest = getattr(value, "nanoseconds", 0)
        return Fraction((value.days * 86_400 + value.seconds) * 10**9 + value.microseconds * 1000 + rest, scale)
    if isinstance(value, np.timedelta64) and not np.isnat(value):
        unit, count = np.datetime_data(value.dtype)
        if unit not in ("Y", "M", "generic"):
            size = {"m": 60 * 10**9, "h": _HOUR, "W": 7 * 24 * _HOUR, **UNITS}.get(unit)
            if size is not None:
                return Fraction(int(value.astype(np.int64)) * count * size, scale)
    found = _DURATION.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    size = None if found is None else _WORDS.get(found["unit"]) or _WORDS.get(found["unit"].removesuffix("s"))
    if found is None or size is None:
        raise ValueError(f"{value_text(value)} is not a duration; write '3 days', '2h' or '1.5 s'")
    return Fraction(found["count"]) * size / scale


def _parts(value: object) -> tuple[int, int | None]:
    """Nanoseconds since 1970 on the clock, and those that the clock is ahead of UTC; None if it is not said."""
    if isinstance(value, np.datetime64) and not np.isnat(value):
        return _nanoseconds(value), None
    if isinstance(value, datetime.datetime) and value == value:
        offset = value.utcoffset()
        fields = (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
        clock = _exact(datetime.datetime(*fields) - _EPOCH) + getattr(value, "nanosecond", 0)
        return clock, None if offset is None else _exact(offset)
    if isinstance(value, datetime.date) and value == value:
        return _exact(datetime.datetime(value.year, value.month, value.day) - _EPOCH), None
    found = _INSTANT.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value_text(value)} is not a date; {_DATES}")
    try:
        clock = _nanoseconds(np.datetime64(found["local"]))
    except ValueError:
        raise ValueError(f"{shown(str(value))} is not a date of the calendar; {_DATES}") from None
    return clock, _shift(found["shift"])


def _nanoseconds(value: np.datetime64) -> int:
    unit, _ = np.datetime_data(value.dtype)
    if unit not in UNITS:
        value = value.astype("datetime64[s]" if unit in ("h", "m") else "datetime64[D]")
        unit, _ = np.datetime_data(value.dtype)
    return int(value.astype(np.int64)) * UNITS[unit]


def _shift(text: str | None) -> int | None:
    if text is None or text == "Z":
        return None if text is None else 0
    found = _SHIFT.fullmatch(text)
    assert found is not None
    size = (int(found[2]) * 60 + int(found[3] or 0)) * 60 * 10**9
    return -size if found[1] == "-" else size


def _local_shift(clock: int, zone: str) -> int:
    """Nanoseconds that local time is ahead of UTC at a time of the clock."""
    if _SHIFT.fullmatch(zone):
        return _shift(zone) or 0
    try:
        where = ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"the time zone {shown(zone)} is not known here; write the time with its shift") from None
    try:
        moment = _EPOCH + datetime.timedelta(microseconds=clock // 1000)
    except OverflowError:
        return 0
    return _exact(moment.replace(tzinfo=where).utcoffset() or datetime.timedelta())


def _exact(delta: datetime.timedelta) -> int:
    return (delta.days * 86_400 + delta.seconds) * 10**9 + delta.microseconds * 1000
