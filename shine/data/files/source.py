"""The interface of all file formats: headings, the columns of chosen headings, and the marks of missing values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shine.base.errors import DataError
from shine.base.lazy import cached_property
from shine.data.files.dates import dates_of
from shine.data.files.numerals import Decimal, is_missing, numeral
from shine.lang.forms.names import distinct_names, listed, normalized, shown


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column as a file holds it.

    Parameters
    ----------
    heading : str
    values : ndarray of shape (n_rows,)
        float64, with NaN where a value is missing; datetime64 or timedelta64; or object, of texts.
    place : callable
        The place of a row for messages, such as ``d.csv:7``.
    """

    heading: str
    values: NDArray[np.generic]
    place: Callable[[int], str]

    def problem(self, row: int, text: str) -> str:
        """A line that says what is wrong in a row."""
        return f"{self.place(row)}: column {shown(self.heading)}: {text}"


class Read(Protocol):
    """Reads columns by index; those that `as_text` names stay text, even if all their cells are numbers."""

    def __call__(self, indices: Sequence[int], as_text: Collection[int] = ()) -> list[RawColumn]: ...


@dataclass(frozen=True)
class Source:
    """A file of columns, opened.

    Parameters
    ----------
    path : Path
    headings : tuple of str
        The headings as they are in the file.
    read : callable
        Returns the columns at indices of headings.
    cells : callable, optional
        Returns all texts that may tell how the file writes numbers; without it, the columns that are read tell.
    separator : str
        What separates columns of text.
    notes : tuple of str
        What a user should know about the way the file was read.
    """

    path: Path
    headings: tuple[str, ...]
    read: Read
    cells: Callable[[], Iterable[str]] | None = None
    separator: str = ","
    notes: tuple[str, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A distinct identifier for each heading (see `shine.lang.forms.names.distinct_names`)."""
        return distinct_names(self.headings)

    @cached_property
    def _by_heading(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for place, heading in enumerate(self.headings):
            places.setdefault(heading, []).append(place)
        return places

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def index(self, wanted: str) -> int:
        """Position of a column, by its heading or its name.

        Raises
        ------
        DataError
            If there is no such column, or several have this heading.
        """
        matches = self._by_heading.get(wanted, [])
        if len(matches) > 1:
            named = " or ".join(shown(self.names[i]) for i in matches[:20])
            raise DataError(f"{self.path}: {len(matches)} columns have the heading {shown(wanted)}; write {named}")
        place = matches[0] if matches else self._by_name.get(normalized(wanted))
        if place is None:
            known = listed(shown(heading) for heading in self.headings)
            raise DataError(f"{self.path}: there is no column {shown(wanted)}; the file has {known}")
        return place


@dataclass(frozen=True)
class Marks:
    """Marks for missing values, besides those of `shine.data.files.numerals.MISSING`.

    Parameters
    ----------
    extra : tuple of str or float
        As the user wrote them. A number, or the text of one, means all ways to write the number; a date those of the
        date; the case of other texts does not matter.
    """

    extra: tuple[str | float, ...] = ()

    @cached_property
    def _texts(self) -> frozenset[str]:
        return frozenset(str(mark).strip().lower() for mark in self.extra)

    @cached_property
    def numbers(self) -> tuple[float, ...]:
        """The marks that are numbers."""
        found = (_number(mark) for mark in self.extra)
        return tuple(number for number in found if number is not None)

    def are(self, cell: str, decimal: Decimal = ".") -> bool:
        """Whether a cell, without blanks around it, stands for a missing value."""
        if is_missing(cell) or cell.lower() in self._texts:
            return True
        found = numeral(cell, decimal) if self.numbers else None
        return found is not None and found.value in self.numbers

    def without(self, values: NDArray[Any]) -> NDArray[Any]:
        """Numbers or moments with NaN or NaT for marks; the same array if it has none."""
        kind = values.dtype.kind
        if kind in "iuf" and self.numbers:
            # A mark such as -99.9 is another number in float32, as the file has it.
            with np.errstate(over="ignore"):
                marks = np.array(self.numbers, values.dtype if kind == "f" else None)
            return np.where(np.isin(values, marks), np.nan, values)
        if kind == "M" and self.extra:
            moments = dates_of([str(mark).strip() for mark in self.extra], "day").values
            return np.where(np.isin(values.astype("datetime64[us]"), moments), np.datetime64("NaT"), values)
        return values


NO_MARKS = Marks()


def _number(mark: str | float) -> float | None:
    try:
        return float(mark)
    except ValueError:
        return None
