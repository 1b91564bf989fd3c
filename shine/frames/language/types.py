"""Types of columns, and the typed form of a query: steps in the order of their computation."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

INTEGERS: dict[str, tuple[int, int]] = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
"""Smallest and largest number of each integer type."""

FLOATS = ("float32", "float64")

UNITS: dict[str, int] = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""Nanoseconds of each unit of time."""


@dataclass(frozen=True)
class ColumnType:
    """Type of a column.

    Parameters
    ----------
    storage : str
        Layout of values in memory, of codes if it holds text: a type of numbers, "bool", which is a byte, or "bit", one
        of Arrow's bitmaps.
    missing : {"none", "bits", "bytes", "least", "negative"}
        Marks of missing values: none; a bitmap of the values that are there (Arrow); a byte that is not 0 for those
        missing (pandas' masked arrays); the smallest integer (NaT); any negative integer (codes of categories).
    meaning : {"number", "text", "time", "duration"}
        Times count units since 1970, in UTC if the column has a time zone.
    unit : str, optional
        One of `UNITS`, of times and durations.
    zone : str, optional
        Name of the time zone, or a shift such as ``+02:00``.
    """

    storage: str
    missing: str = "none"
    meaning: str = "number"
    unit: str | None = None
    zone: str | None = None

    def __str__(self) -> str:
        if self.meaning == "number":
            return "bool" if self.storage == "bit" else self.storage
        zone = f", {self.zone}" if self.zone else ""
        return self.meaning if self.unit is None else f"{self.meaning}[{self.unit}{zone}]"


@dataclass(frozen=True)
class Step:
    """One value for each row.

    Parameters
    ----------
    operation : str
        One of the table `shine.frames.steps.RULES`.
    kind : str
        Type of the value: an integer or floating-point type, or bool.
    arguments : tuple of int
        Earlier steps.
    detail : hashable
        What else the operation needs: the position of a column or of a slot, a number, a comparison, a primitive.
    """

    operation: str
    kind: str
    arguments: tuple[int, ...] = ()
    detail: Hashable = None


@dataclass(frozen=True)
class Code:
    """The code of a text in a column's dictionary, looked up at each call."""

    column: int
    text: str


@dataclass(frozen=True)
class Member:
    """A long list that a column's values are looked up in.

    Parameters
    ----------
    column : str
    values : tuple of (int, float or str)
        Of the column's own type.
    """

    column: str
    values: tuple[int | float | str, ...]


@dataclass(frozen=True)
class SameTexts:
    """Two columns whose texts are compared: their codes are those of different dictionaries."""

    column: str
    other: str


@dataclass(frozen=True)
class Plan:
    """Compilation unit of a query: equal plans have the same code.

    Parameters
    ----------
    columns : tuple of ColumnType
    steps : tuple of Step
        The last one is the result.
    slots : tuple of str
        Kinds of the numbers that are passed at each call.
    """

    columns: tuple[ColumnType, ...]
    steps: tuple[Step, ...]
    slots: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Type of the result."""
        return self.steps[-1].kind

    @property
    def can_miss(self) -> bool:
        """Whether a value can be missing: one of a column, or a quotient of whole numbers by zero."""
        whole = [step for step in self.steps if step.operation == "apply" and step.kind in INTEGERS]
        return any(column.missing != "none" for column in self.columns) or any(
            step.detail in ("floordiv", "mod") for step in whole
        )


@dataclass(frozen=True)
class Query:
    """A verified query of a schema.

    Parameters
    ----------
    plan : Plan
    columns : tuple of (str, Member or SameTexts)
        Names of the columns that it reads, as the query writes them, and what is looked up before it runs.
    slots : tuple of (int, float or Code)
        Numbers that are passed at each call.
    """

    plan: Plan
    columns: tuple[str | Member | SameTexts, ...]
    slots: tuple[int | float | Code, ...]
