"""A table's own marks for missing values, such as ``k.A.`` and -999, which the user names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine.base.lazy import cached_property
from shine.data.files.dates import dates_of
from shine.data.files.numerals import Decimal, is_missing, numeral


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
