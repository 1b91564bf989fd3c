"""The interface of all file formats: headings, and the columns of chosen headings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shine.errors import DataError
from shine.lang.lazy import cached_property
from shine.lang.names import cut, distinct_names, listed, normalized, shown
from shine.typing import Floats


@dataclass(frozen=True)
class Source:
    """A file of columns, opened.

    Parameters
    ----------
    path : Path
    headings : tuple of str
        The headings as they are in the file.
    read : callable
        Returns the columns at indices of headings as float64; raises a `DataError` if one holds anything but finite
        numbers.
    """

    path: Path
    headings: tuple[str, ...]
    read: Callable[[Sequence[int]], list[Floats]]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A distinct identifier for each heading (see `shine.lang.names.distinct_names`)."""
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


def checked_column(path: Path, heading: str, values: NDArray[np.generic]) -> Floats:
    """A column of an array file as finite float64 numbers.

    Raises
    ------
    DataError
        If it holds anything but finite real numbers.
    """
    if values.dtype.kind not in "biuf":
        raise DataError(
            f"{path}: column {shown(heading)} holds {cut(values.dtype, 60)}, not numbers; leave it out of 'features'"
        )
    column = values.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        raise DataError(
            f"{path}: column {shown(heading)}: {len(bad)} of {len(column)} values are missing, NaN or infinite, "
            f"the first in row {bad[0]}"
        )
    return column
