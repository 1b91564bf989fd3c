"""The readers of all file formats, by the ending of the file's name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from shine.base.errors import DataError
from shine.data.files.delimited import open_delimited
from shine.data.files.numerals import Decimal, Writing, writing_of
from shine.data.files.source import COMPRESSIONS, NO_MARKS, Marks, RawColumn, Source
from shine.data.files.tables import open_feather, open_npz, open_parquet, open_sheet
from shine.data.streams.sources import open_stream
from shine.data.streams.streams import source_of


def _open_streamable(path: Path) -> Source:
    return source_of(open_stream(path))


FORMATS: dict[str, Callable[..., Source]] = {
    **{f".{kind}{compression}": open_delimited for kind in ("csv", "tsv", "txt") for compression in COMPRESSIONS},
    ".npz": open_npz,
    ".npy": _open_streamable,
    ".parquet": open_parquet,
    ".feather": open_feather,
    ".arrow": _open_streamable,
    ".ipc": _open_streamable,
    ".xlsx": open_sheet,
    ".ods": open_sheet,
}
"""The function that opens a file, by the ending of the file's name."""

ENDINGS = ", ".join(ending for ending in FORMATS if ending.count(".") == 1)
"""Endings of data files, for messages."""

COMPRESSED = ", ".join(f".csv{ending}" for ending in COMPRESSIONS if ending)
"""Endings of compressed text, for messages."""


def open_source(path: Path, marks: Marks = NO_MARKS) -> Source:
    """Open a data file, or a folder of Parquet or Arrow files.

    Parameters
    ----------
    path : Path
    marks : Marks
        What also stands for a missing value, and is no unit below the headings. They stay in the columns.

    Raises
    ------
    DataError
        If the ending of its name is unknown, or the file cannot be read.
    """
    if path.is_dir():
        return _open_streamable(path)
    opener = next((opener for ending, opener in FORMATS.items() if path.name.lower().endswith(ending)), None)
    if opener is None:
        raise DataError(f"{path}: data files end in one of {ENDINGS}; text also in {COMPRESSED}")
    return opener(path, marks) if opener in (open_delimited, open_sheet) else opener(path)


def writing(
    source: Source, raws: Sequence[RawColumn], wanted: Decimal | None = None, known: Decimal | None = None
) -> Writing:
    """Spelling of numbers in a file: with points if no column has text.

    Parameters
    ----------
    source : Source
    raws : sequence of RawColumn
        The columns that are used; all columns tell.
    wanted, known : "." or ",", optional
        Decimal sign by the user, and of the training data (see `shine.data.files.numerals.writing_of`).

    Raises
    ------
    DataError
        If nothing decides what a comma means.
    """
    texts = [raw.values for raw in raws if raw.values.dtype.kind not in "biufmM"]
    if not texts:
        return Writing(".")
    own = (cell for values in texts for cell in values if isinstance(cell, str))
    try:
        return writing_of(own if source.cells is None else source.cells(), source.separator, wanted, known)
    except DataError as error:
        raise DataError(f"{source.path}: {error}") from None
