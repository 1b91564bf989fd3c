"""Steps of a query: made once each, with the conversions between their types and exact comparisons.

The number of a comparison may have any size and any fraction: the comparison holds for the same values as in exact
arithmetic, which is Python's meaning of ``<`` between int and float. A comparison in a small type reads as many values
at a time as fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np

from shine.frames.language.types import FLOATS, INTEGERS, UNITS, Code, ColumnType, Member, Plan, Query, SameTexts, Step
from shine.lang.conditions.reading import FLIPPED, HOLDS, Literal

MOST_STEPS = 5_000
"""Most steps of a query: the time of LLVM's passes is not linear in their number."""


@dataclass(frozen=True)
class Typed:
    """A step, and what its numbers mean.

    Parameters
    ----------
    index : int
    kind : str
    column : ColumnType, optional
        The column that they are read from, unchanged.
    name : str
        Its name.
    """

    index: int
    kind: str
    column: ColumnType | None = None
    name: str = ""

    @property
    def meaning(self) -> str:
        """Number, text, time, duration, or truth."""
        if self.kind == "bool":
            return "truth"
        return "number" if self.column is None else self.column.meaning

    def __str__(self) -> str:
        return self.kind if self.column is None else str(self.column)


Value = Literal | Typed
"""Translation of a node of a query's syntax tree."""


class Steps:
    """The steps of one query, in the order of their computation.

    Parameters
    ----------
    type_of : callable
        Type of a column by its name; raises `LookupError` or `TypeError` with a message.
    """

    def __init__(self, type_of: Callable[[str], ColumnType]) -> None:
        self._type_of = type_of
        self._steps: dict[Step, int] = {}
        self._columns: dict[str | Member | SameTexts, ColumnType] = {}
        self._slots: list[tuple[str, int | float | Code]] = []

    def add(self, operation: str, kind: str, arguments: tuple[int, ...] = (), detail: Hashable = None) -> Typed:
        """A step; the earlier one if there is the same already."""
        # 1 == 1.0 == True and 0.0 == -0.0, which are different numbers.
        if operation == "constant":
            detail = detail, repr(detail)
        step = Step(operation, kind, arguments, detail)
        index = self._steps.setdefault(step, len(self._steps))
        if index >= MOST_STEPS:
            raise OverflowError(f"the query has more than {MOST_STEPS} steps; split it")
        return Typed(index, kind)

    def column(self, name: str) -> Typed:
        """The values of a column."""
        if name not in self._columns:
            self._columns[name] = self._type_of(name)
        type_ = self._columns[name]
        position = list(self._columns).index(name)
        kind = "bool" if type_.storage == "bit" else type_.storage
        made = self.add("column", kind, (), position)
        return Typed(made.index, made.kind, type_, name)

    def member(self, value: Typed, values: tuple[int | float | str, ...]) -> Typed:
        """Whether a column's value is in a list of values of its type."""
        assert value.column is not None
        missing = value.column.missing
        type_ = ColumnType("bool", "bytes" if missing in ("least", "negative") else missing)
        return self._lookup_column(Member(value.name, values), type_)

    def same_texts(self, left: Typed, right: Typed) -> Typed:
        """Whether two columns have the same text."""
        return self._lookup_column(SameTexts(left.name, right.name), ColumnType("bool", "bytes"))

    def _lookup_column(self, key: Member | SameTexts, type_: ColumnType) -> Typed:
        self._columns[key] = type_
        return self.add("column", "bool", (), list(self._columns).index(key))

    def number(self, value: int | float | Code, kind: str, is_variable: bool = False) -> Typed:
        """A number of a type."""
        if not is_variable:
            assert not isinstance(value, Code)
            return self.add("constant", kind, (), value)
        slot = (kind, value)
        if slot not in self._slots or value == 0 or value != value:  # 0.0 is not -0.0
            self._slots.append(slot)
            return self.add("slot", kind, (), len(self._slots) - 1)
        return self.add("slot", kind, (), self._slots.index(slot))

    def is_text(self, value: Typed, text: str) -> Typed:
        """Whether a column has a text: a comparison of codes, in a type that also holds -1, which means no text."""
        kind = "int64" if value.kind in ("int64", "uint64", "uint32") else "int32"
        code = self.number(Code(list(self._columns).index(value.name), text), kind, True)
        return self.add("compare", "bool", (self.convert(value, kind).index, code.index), "==")

    def convert(self, value: Typed, kind: str) -> Typed:
        """A number in another type; truth becomes 1 and 0."""
        if value.kind == kind:
            return Typed(value.index, kind)
        return self.add("convert", kind, (value.index,))

    def bounded(self, value: Typed, bound: Bound, is_variable: bool) -> Typed:
        """A comparison with a number of the same type."""
        comparison, number = bound
        return self.compare(comparison, value, self.number(number, value.kind, is_variable))

    def compare(self, comparison: str, left: Typed, right: Typed) -> Typed:
        """An exact comparison of any two numbers."""
        kinds = {left.kind, right.kind}
        if "bool" in kinds:
            left, right = (self.convert(each, "int8") if each.kind == "bool" else each for each in (left, right))
        if left.kind == right.kind:
            return self.add("compare", "bool", (left.index, right.index), comparison)
        kind = _common(left.kind, right.kind)
        if kind is not None:
            return self.compare(comparison, self.convert(left, kind), self.convert(right, kind))
        # No type holds both: 64-bit integers beside floats, or signed beside unsigned ones.
        widest = [self.convert(each, _WIDEST[each.kind]) for each in (left, right)]
        return self.add("compare_exactly", "bool", tuple(each.index for each in widest), comparison)

    def compare_units(self, comparison: str, left: Typed, right: Typed) -> Typed:
        """An exact comparison of columns that count different units of time."""
        assert left.column is not None and right.column is not None
        coarse, fine = UNITS[left.column.unit or "ns"], UNITS[right.column.unit or "ns"]
        if coarse < fine:
            return self.compare_units(FLIPPED[comparison], right, left)
        sides = self.convert(left, "int64").index, self.convert(right, "int64").index
        return self.add("compare_units", "bool", sides, (comparison, coarse // fine))

    def query(self, result: Typed) -> Query:
        """The query with a result."""
        steps = list(self._steps)
        if result.index != len(steps) - 1:
            steps.append(Step("same", result.kind, (result.index,)))
        kinds = tuple(kind for kind, _ in self._slots)
        # What the numbers mean is in the steps: columns of other units and zones have the same code.
        columns = tuple(ColumnType(each.storage, each.missing) for each in self._columns.values())
        plan = Plan(columns, tuple(steps), kinds)
        return Query(plan, tuple(self._columns), tuple(value for _, value in self._slots))


_WIDEST: Mapping[str, str] = {
    **{kind: "uint64" if kind == "uint64" else "int64" for kind in INTEGERS},
    **dict.fromkeys(FLOATS, "float64"),
}


def _common(left: str, right: str) -> str | None:
    """The smallest type that holds the values of two types exactly; None if there is none."""
    if left in FLOATS or right in FLOATS:
        exact = all(kind in FLOATS or INTEGERS[kind][1] < 2**32 for kind in (left, right))
        return "float64" if exact else None
    least = min(INTEGERS[left][0], INTEGERS[right][0])
    most = max(INTEGERS[left][1], INTEGERS[right][1])
    holding = [kind for kind, (low, high) in INTEGERS.items() if low <= least and most <= high]
    return min(holding, key=lambda kind: INTEGERS[kind][1] - INTEGERS[kind][0], default=None)


class Adding:
    """Adds steps of one kind to a query."""

    def __init__(self, steps: Steps, reject: Callable[..., NoReturn]) -> None:
        self._steps, self._reject = steps, reject


Bound = tuple[str, int | float]
"""A comparison and the number to compare with."""


def integer_bound(comparison: str, number: int | float | Fraction, storage: str) -> Bound:
    """A comparison of integers of a type with any number.

    Examples
    --------
    >>> integer_bound("<", 2.5, "int8")
    ('<=', 2)
    >>> integer_bound("<", 1000, "int8")
    ('<=', 127)
    """
    least, most = INTEGERS[storage]
    always, never = (">=", least), ("<", least)
    if isinstance(number, float) and not math.isfinite(number):
        holds = HOLDS[comparison](0.0, number)  # each integer stands to an infinity and to NaN as 0 does
        return always if holds else never
    if comparison in ("==", "!="):
        whole = math.floor(number)
        if whole == number and least <= whole <= most:
            return comparison, whole
        return always if comparison == "!=" else never
    # x < c is x <= ceil(c) - 1, and so on.
    if comparison in ("<", "<="):
        bound = math.ceil(number) - 1 if comparison == "<" else math.floor(number)
        return never if bound < least else ("<=", min(bound, most))
    bound = math.floor(number) + 1 if comparison == ">" else math.ceil(number)
    return ("<", least) if bound > most else (">=", max(bound, least))


def float_bound(comparison: str, number: int | float, storage: str) -> Bound:
    """A comparison of floats of a type with any number.

    Examples
    --------
    >>> float_bound("<", 2**53 + 1, "float64")
    ('<=', 9007199254740992.0)
    """
    with np.errstate(over="ignore"):
        near = _nearest(number, storage)
    if math.isnan(near) or near == number:
        return comparison, near
    if comparison in ("==", "!="):
        # Nothing is below -inf; everything is unequal to NaN.
        return ("<", -math.inf) if comparison == "==" else ("!=", math.nan)
    if comparison in ("<", "<="):
        return ("<" if near > number else "<="), near
    return (">=" if near > number else ">"), near


def _nearest(number: int | float, storage: str) -> float:
    try:
        return float(np.dtype(storage).type(float(number)))
    except OverflowError:
        return math.inf if number > 0 else -math.inf
