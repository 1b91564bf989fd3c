"""Parquet, Feather, Excel and OpenDocument, through pyarrow and pandas, where they are installed."""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine.base.errors import DataError, needing, placed
from shine.data.files.grids import Grid, fitted, has_units, rectangular, units_note
from shine.data.files.source import NO_MARKS, Marks, RawColumn, Source, check_file, check_size
from shine.lang.forms.names import cut, listed, shown


def open_parquet(path: Path) -> Source:
    """Open a Parquet file; a `DataError` if it is damaged or too large, a `MissingExtraError` without pyarrow."""
    check_file(path)
    with needing(f"{path}: reading Parquet", "pyarrow", "parquet"):
        from pyarrow import parquet
    with _damages(f"{path}: is not a valid Parquet file"):
        file = parquet.ParquetFile(path, page_checksum_verification=True)
        headings = tuple(file.schema_arrow.names)
        metadata = file.metadata
        check_size(path, sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)))
        check_size(path, 8 * metadata.num_rows * len(headings))
    return _arrow_source(path, headings, metadata.num_rows, file.read)


def open_feather(path: Path) -> Source:
    """Open a Feather file, which is an Arrow IPC file.

    A `DataError` if it is damaged, a `MissingExtraError` without pyarrow.
    """
    check_file(path)
    with needing(f"{path}: reading Feather", "pyarrow", "parquet"):
        from pyarrow import feather
    with _damages(f"{path}: is not a valid Feather file"):
        table = feather.read_table(path)
    return _arrow_source(path, tuple(table.column_names), table.num_rows, lambda: table)


def _damages(what: str) -> AbstractContextManager[None]:
    """A `DataError` for what pyarrow raises."""
    import pyarrow

    errors = OSError, pyarrow.ArrowException
    return placed(what, *errors, kind=DataError, told=cut, but=MemoryError)  # pyarrow's is one of its own errors, too


def _arrow_source(path: Path, headings: tuple[str, ...], rows: int, table: Any) -> Source:
    """A source of the columns of an Arrow table, which `table` returns."""
    if not rows:
        raise DataError(f"{path}: there is no row of data")

    def place(row: int) -> str:
        return f"{path}: row {row}"

    def read(indices: Sequence[int], as_text: Collection[int] = ()) -> list[RawColumn]:
        with _damages(f"{path}: cannot be read"):
            # By position, because two columns of a file may have the same heading.
            whole = table()
            arrays = [readable(str(path), headings[i], whole.column(i)).to_numpy() for i in indices]
        return [RawColumn(headings[i], array, place) for i, array in zip(indices, arrays, strict=True)]

    return Source(path, headings, read, separator="")


def readable(name: str, heading: str, column: Any) -> Any:
    """A column of Arrow's as numbers, moments, texts or a dictionary of them; a `DataError` if it holds something else.

    Parameters
    ----------
    name, heading : str
        Of the file and the column, for the message.
    column : pyarrow.Array or pyarrow.ChunkedArray
    """
    from pyarrow import types

    kind = column.type
    if types.is_boolean(kind) or types.is_decimal(kind) or types.is_null(kind):
        return column.cast("float64")
    if types.is_binary(kind) or types.is_large_binary(kind):  # some programs write texts without saying so
        return column.cast("large_string")
    texts = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    numbers = types.is_integer(kind) or types.is_floating(kind)
    moments = types.is_temporal(kind) and not types.is_interval(kind)
    if not (texts or numbers or moments or types.is_dictionary(kind)):
        raise unusable(name, heading, kind)
    return column


def unusable(name: str, heading: str, held: object) -> DataError:
    """The error for a column of values that are no numbers, moments or texts."""
    return DataError(
        f"{name}: column {shown(heading)} holds {cut(held, 60)}, not numbers; leave it out of the features"
    )


def open_sheet(path: Path, marks: Marks = NO_MARKS) -> Source:
    """Open the first sheet of an Excel or OpenDocument file.

    A `DataError` if it is damaged or holds no table, a `MissingExtraError` without pandas or its reader.
    """
    check_file(path)
    extra = needing(f"{path}: reading sheets", "pandas with its readers", "excel")
    with extra, _invalid(path, path.suffix.lower()):
        import pandas

        _check_unpacked(path)
        frame = pandas.read_excel(path, header=None, dtype=object, na_filter=False)
    cells = [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    filled = [number for number, row in enumerate(cells) if any(row)]
    if not filled:
        raise DataError(f"{path}: the first sheet is empty; a header row with the names of the columns is needed")
    head = fitted(cells[filled[0]], 1)
    return _sheet_source(path, tuple(head), frame, cells, filled[1:], marks)


def _invalid(path: Path, kind: str) -> AbstractContextManager[None]:
    """A `DataError` for what zipfile, XML parsers, NumPy and the readers of sheets raise: errors of many types."""
    passing = DataError, MemoryError, ImportError
    return placed(f"{path}: is not a valid {kind} file", Exception, kind=DataError, told=cut, but=passing)


def _cell(value: object) -> str:
    """A cell of a sheet as text."""
    if value is None or value != value:
        return ""
    if isinstance(value, datetime | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value).strip()


def _sheet_source(
    path: Path, headings: tuple[str, ...], frame: Any, cells: list[list[str]], filled: list[int], marks: Marks
) -> Source:
    rows = [fitted(cells[number], len(headings)) for number in filled]
    numbered = list(zip((number + 1 for number in filled), rows, strict=True))
    rectangular(path, len(headings), numbered, lambda number: f"{path}: row {number}")
    notes: list[str] = []
    if rows and has_units(rows, marks):
        notes.append(units_note(f"{path}: row {filled[0] + 1}", rows[0]))
        filled, rows = filled[1:], rows[1:]
    if not rows:
        raise DataError(f"{path}: there is a header, but no row of data below it")
    grid = Grid(path, headings, rows, lambda row: f"{path}: row {filled[row] + 1}")

    def read(indices: Sequence[int], as_text: Collection[int] = ()) -> list[RawColumn]:
        columns = dict(zip(indices, grid.columns(indices), strict=True))
        return [columns[i] if i in as_text else _numeric(columns[i], frame.iloc[filled, i].tolist()) for i in indices]

    def texts() -> list[str]:
        values = frame.to_numpy()[filled].ravel()
        return [value for value in values if isinstance(value, str)]

    return Source(path, headings, read, texts, "", tuple(notes))


def _numeric(column: RawColumn, values: list[object]) -> RawColumn:
    """A column of a sheet: of numbers if all its values are numbers or empty, otherwise of text."""
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values if _cell(value)):
        return column
    numbers = np.array([float(str(value)) if _cell(value) else np.nan for value in values])
    return RawColumn(column.heading, numbers, column.place)


def open_npz(path: Path) -> Source:
    """Open an NPZ archive: 1-D arrays are columns by their name; the columns of a 2-D array X are x0, x1, ...

    Raises
    ------
    DataError
        If it is damaged or too large, or its arrays are not columns of one length. Pickled objects are never loaded.
    """
    check_file(path)
    with _invalid(path, "NPZ"):
        _check_unpacked(path)
        with np.load(path, allow_pickle=False) as loaded:
            arrays = {name: _member(path, loaded, name) for name in loaded.files}
    columns = _columns(path, arrays)
    headings = tuple(columns)

    def place(row: int) -> str:
        return f"{path}: row {row}"

    def read(indices: Sequence[int], as_text: Collection[int] = ()) -> list[RawColumn]:
        return [RawColumn(headings[i], columns[headings[i]], place) for i in indices]

    return Source(path, headings, read)


def _check_unpacked(path: Path) -> None:
    """Raise a `DataError` if the files in an archive exceed the limit together."""
    with zipfile.ZipFile(path) as archive:
        check_size(path, sum(member.file_size for member in archive.infolist()))


def _member(path: Path, archive: Any, name: str) -> NDArray[np.generic]:
    with placed(
        f"{path}: array {shown(name)} cannot be read", Exception, kind=DataError, told=cut
    ):  # also a lack of memory: a damaged header may ask for any
        array = archive[name]
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path}: member {shown(name)} is not an array")
    return array


def _columns(path: Path, arrays: dict[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
    columns: dict[str, NDArray[np.generic]] = {}
    for name, array in arrays.items():
        if array.ndim == 2 and name == "X":
            columns.update({f"x{i}": column for i, column in enumerate(array.T)})
        elif array.ndim == 1:
            columns[name] = array
        else:
            raise DataError(
                f"{path}: array {shown(name)} has shape {array.shape}; "
                "columns are 1-D, and only 'X' may have two dimensions"
            )
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        some = listed((f"{name} has {len(column)}" for name, column in columns.items()), 8)
        raise DataError(f"{path}: the columns differ in their number of rows: {some}")
    if not lengths or lengths == {0}:
        raise DataError(f"{path}: there is no row of data")
    return columns
