"""What every file format offers: headings, and the columns behind some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shine.data import identifier
from shine.errors import DataError
from shine.lang.lazy import cached_property

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Source:
    """A file of columns, opened.

    Parameters
    ----------
    path : Path
    headings : tuple of str
        As the file has them.
    read : callable
        Indices of headings -> finite float64 columns; a DataError if one holds anything else.
    """

    path: Path
    headings: tuple[str, ...]
    read: Callable[[Sequence[int]], list[Array]]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """An identifier for each heading, all different."""
        names: dict[str, None] = {}
        for heading in self.headings:
            base = name = identifier(heading)
            count = 1
            while name in names:
                count += 1
                name = f"{base}_{count}"
            names[name] = None
        return tuple(names)

    def index(self, wanted: str) -> int:
        """Where a column is, by its heading or its name.

        Raises
        ------
        DataError
            If there is none, or several have this heading.
        """
        matches = [i for i, heading in enumerate(self.headings) if heading == wanted]
        if len(matches) > 1:
            named = " or ".join(repr(self.names[i]) for i in matches)
            raise DataError(f"{self.path}: {len(matches)} columns have the heading {wanted!r}; write {named}")
        if not matches and wanted not in self.names:
            known = ", ".join(repr(heading) for heading in self.headings[:20])
            more = ", ..." if len(self.headings) > 20 else ""
            raise DataError(f"{self.path}: there is no column {wanted!r}; the file has {known}{more}")
        return matches[0] if matches else self.names.index(wanted)


def checked_column(path: Path, heading: str, values: NDArray[np.generic]) -> Array:
    """A column of an array file as finite float64 numbers.

    Raises
    ------
    DataError
        If it holds anything but real numbers, or numbers that are not finite.
    """
    if values.dtype.kind not in "biuf":
        raise DataError(f"{path}: column {heading!r} holds {values.dtype}, not numbers; leave it out of 'features'")
    column = values.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        raise DataError(
            f"{path}: column {heading!r}: {len(bad)} of {len(column)} values are missing, NaN or infinite, "
            f"the first in row {bad[0]}"
        )
    return column
