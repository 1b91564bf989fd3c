"""Columns of numbers -> files, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from shine.base.errors import DataError, needing
from shine.base.files import replacing, target
from shine.base.typing import Floats
from shine.lang.forms.names import value_text

Write = Callable[[Mapping[str, Floats]], object]
"""Writes the next rows of all columns, by their headings."""


def checked_target(path: object) -> Path:
    """A path that a user gives for a file to be written.

    A `DataError` if it is no path, its ending is none of `WRITERS`, or its folder does not exist.
    """
    if not isinstance(path, str | Path) or Path(path).suffix.lower() not in WRITERS:
        named = value_text(path) if not isinstance(path, Path) else path
        raise DataError(f"{named}: predictions of streamed rows go to a file that ends in one of {', '.join(WRITERS)}")
    found = Path(path)
    if not found.parent.is_dir():
        raise DataError(f"{found}: there is no folder {str(found.parent)!r}; create it")
    if found.is_dir():
        raise DataError(f"{found}: is a folder; give the file in it a name")
    return found


def check_output(out: Path, data: object) -> None:
    """Raise a `DataError` if writing a file would change the data that it is made from."""
    if not isinstance(data, str | Path):
        return
    written, read = out.resolve(), Path(data).resolve()
    if written == read or written in read.parents:
        raise DataError(f"{out}: is what the data are read from; write the predictions to another file")
    if read.is_dir() and read in written.parents:
        raise DataError(f"{out}: lies in the folder of the data, {data}; write the predictions to another folder")


@contextmanager
def writer_of(path: Path, headings: tuple[str, ...], rows: int) -> Iterator[Write]:
    """Writer of a file, by the ending of its name: it writes completely or not at all.

    Parameters
    ----------
    path : Path
        With an ending of `WRITERS`; it is replaced if it exists.
    headings : tuple of str
    rows : int
        How many will be written.

    Raises
    ------
    DataError
        If a library is missing.
    OSError
        If it cannot be written.
    """
    with replacing(target(path)) as file, WRITERS[path.suffix.lower()](path, file, headings, rows) as write:
        yield write


@contextmanager
def _arrow(path: Path, stream: Any, headings: tuple[str, ...], rows: int) -> Iterator[Write]:
    with needing(f"{path}: writing it", "pyarrow", "parquet"):
        import pyarrow
        from pyarrow import ipc, parquet
    schema = pyarrow.schema([(heading, "float64") for heading in headings])
    is_parquet = path.suffix.lower() == ".parquet"
    # Predictions hardly repeat: a dictionary of them would take time and no less space.
    options = {"use_dictionary": False, "write_page_checksum": True}
    file: Any = parquet.ParquetWriter(stream, schema, **options) if is_parquet else ipc.new_file(stream, schema)
    with file:
        yield lambda columns: file.write(pyarrow.table(dict(columns), schema=schema))


@contextmanager
def _delimited(path: Path, stream: Any, headings: tuple[str, ...], rows: int) -> Iterator[Write]:
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    stream.write((separator.join(headings) + "\n").encode())

    def write(columns: Mapping[str, Floats]) -> None:
        for row in zip(*(map(repr, column.tolist()) for column in columns.values()), strict=True):
            stream.write((separator.join(row) + "\n").encode())

    yield write


@contextmanager
def _numpy(path: Path, stream: Any, headings: tuple[str, ...], rows: int) -> Iterator[Write]:
    shape = (rows,) if len(headings) == 1 else (rows, len(headings))
    form = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.float64)), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, form)
    yield lambda columns: stream.write(np.column_stack(list(columns.values())).astype(np.float64).tobytes())


WRITERS: dict[str, Callable[[Path, Any, tuple[str, ...], int], AbstractContextManager[Write]]] = {
    **dict.fromkeys((".parquet", ".feather", ".arrow", ".ipc"), _arrow),
    **dict.fromkeys((".csv", ".tsv", ".txt"), _delimited),
    ".npy": _numpy,
}
"""Writers by the ending of the file's name. A matrix in a file of NumPy's has its columns in their order."""
