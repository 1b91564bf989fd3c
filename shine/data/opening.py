"""The readers of all file formats, by the ending of the file's name, and open sources: in memory or streamed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from shine.base.errors import DataError, placed
from shine.data.datasets.preparation import Categories, Missing, Reading
from shine.data.files.delimited import open_delimited
from shine.data.files.numerals import Decimal, Writing, writing_of
from shine.data.files.source import COMPRESSIONS, NO_MARKS, Marks, RawColumn, Source
from shine.data.files.tables import open_feather, open_npz, open_parquet, open_sheet
from shine.data.streams.sources import STREAMED, is_streamable, open_stream
from shine.data.streams.streams import Stream, source_of, without_marks
from shine.lang.forms.names import value_text


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
    with placed(source.path, DataError):
        return writing_of(own if source.cells is None else source.cells(), source.separator, wanted, known)


LARGEST = 1 << 30
"""Bytes of float64 numbers from which on data are streamed: 1 GiB. A search copies them once or twice."""


@dataclass(frozen=True, eq=False)
class Opened:
    """An open data source, and how to read it.

    Parameters
    ----------
    source : Source
        Headings, and columns for data in memory.
    reading : Reading
    stream : Stream, optional
        Their rows block by block, if they are too large for memory.
    """

    source: Source
    reading: Reading
    stream: Stream | None = None

    def __repr__(self) -> str:
        rows = "" if self.stream is None else f"{self.stream.rows} rows, "
        return f"Opened({str(self.source.path)!r}, {rows}{len(self.source.headings)} columns)"


def open_dataset(
    source: Any,
    *,
    missing: Missing = "error",
    categories: Categories = "error",
    where: Any = None,
    stream: bool | None = None,
    missing_marks: Sequence[str | float] = (),
) -> Opened:
    """Open data for `shine.evolve`, however large they are.

    Parameters
    ----------
    source : path, pyarrow.dataset.Dataset, polars.LazyFrame, duckdb.DuckDBPyRelation or numpy.memmap
        A path is that of a file (Parquet, Feather, Arrow IPC, NPY, or any other format of tables), or of a folder of
        Parquet or Arrow files, whose partitions of the form ``year=2024/`` are columns.
    missing : {"error", "drop", "mean"}
        What to do with missing values: refuse them, drop their rows, or put the mean of the column.
    categories : {"error", "one-hot", "ordinal", "ignore"}
        What to do with columns of text.
    where : str or pyarrow.compute.Expression, optional
        Rows to read, such as ``"year >= 2020 and region in ('north', 'west')"``, of Parquet and Arrow.
    stream : bool, optional
        Whether to read rows block by block; by default, if they have more than `LARGEST` bytes as float64.
    missing_marks : sequence of str or float
        What stands for a missing value in these data, besides ``NA``, ``-`` and the like: ``["k.A.", -999]``.

    Returns
    -------
    Opened
        To be passed to `shine.evolve` as `X`, with the heading of the target as `y`.

    Raises
    ------
    DataError
        If the data cannot be opened, or an option is none of those above.
    """
    for name, value, kinds in (("missing", missing, Missing), ("categories", categories, Categories)):
        if value not in get_args(kinds):
            raise DataError(f"{name} is one of {', '.join(map(repr, get_args(kinds)))}, not {value_text(value)}")
    known = not isinstance(missing_marks, str) and all(isinstance(mark, str | float | int) for mark in missing_marks)
    if not known:
        raise DataError(
            f"missing_marks lists texts and numbers, such as ['k.A.', -999], not {value_text(missing_marks)}"
        )
    marks = Marks(tuple(missing_marks))
    return opened(source, Reading(missing, categories, where=where, stream=stream, marks=marks))


def opened(source: Any, reading: Reading | None = None) -> Opened:
    """Data as `open_dataset` opens them, by the settings for reading."""
    reading = Reading() if reading is None else reading
    if not isinstance(source, str | Path) and not is_streamable(source):
        raise TypeError(
            f"a {type(source).__name__} is no file and no data set; shine.evolve takes data frames as they are"
        )
    if not is_streamable(source):
        if reading.where is not None or reading.stream:
            named = "where" if reading.where is not None else "stream"
            endings = ", ".join((*STREAMED, ".npy"))
            raise DataError(f"{source}: {named} needs a folder of data, or a file that ends in one of {endings}")
        return Opened(open_source(Path(source), reading.marks), reading)
    if isinstance(source, str | Path) and not reading.stream and reading.where is None:
        small = _small_file(Path(source))
        if small is not None:
            return Opened(small, reading)
    stream = without_marks(open_stream(source, reading.where), reading.marks)
    whole = source_of(stream)
    if (reading.stream is None and not is_large(stream)) or reading.stream is False:
        return Opened(whole, reading)
    return Opened(whole, reading, stream)


def is_large(stream: Stream) -> bool:
    """Whether rows are too many to hold them in memory."""
    return 8 * stream.rows * len(stream.headings) > LARGEST


def is_streamed(path: Path) -> bool:
    """Whether data in a file or a folder are too large for memory."""
    return path.exists() and is_streamable(path) and is_large(open_stream(path))


def _small_file(path: Path) -> Source | None:
    """A file of a table that fits into memory, as all formats are opened; None for other files, and folders."""
    if not path.is_file() or path.suffix.lower() not in (".parquet", ".feather"):
        return None
    try:
        stream = open_stream(path)
    except DataError:
        return open_source(path)  # its message, or a former version of the format
    return None if is_large(stream) else open_source(path)
