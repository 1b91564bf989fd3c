"""Files of arrays: NumPy's NPZ, and Parquet through pyarrow."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine.data.files import check_file, check_size
from shine.data.source import Source, checked_column
from shine.errors import DataError
from shine.lang.names import cut, listed, shown
from shine.typing import Floats


def open_npz(path: Path) -> Source:
    """Open an NPZ archive: 1-D arrays are columns by their name; the columns of a 2-D array X are x0, x1, ...

    Raises
    ------
    DataError
        If it is damaged or too large, or its arrays are not columns of one length. Pickled objects are never loaded.
    """
    check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            check_size(path, sum(member.file_size for member in archive.infolist()))
        with np.load(path, allow_pickle=False) as loaded:
            arrays = {name: _member(path, loaded, name) for name in loaded.files}
    except DataError:
        raise
    except Exception as error:  # zipfile and NumPy raise errors of many types
        raise DataError(f"{path}: is not a valid NPZ file: {cut(error)}") from None
    columns = _columns(path, arrays)
    headings = tuple(columns)

    def read(indices: Sequence[int]) -> list[Floats]:
        return [checked_column(path, headings[i], columns[headings[i]]) for i in indices]

    return Source(path, headings, read)


def _member(path: Path, archive: Any, name: str) -> NDArray[np.generic]:
    try:
        array = archive[name]
    except Exception as error:
        raise DataError(f"{path}: array {shown(name)} cannot be read: {cut(error)}") from None
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


def open_parquet(path: Path) -> Source:
    """Open a Parquet file.

    Raises
    ------
    DataError
        If pyarrow is not installed, or the file is damaged or too large.
    """
    check_file(path)
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise DataError(f"{path}: reading Parquet needs pyarrow; pip install 'shine[parquet]'") from None
    try:
        file = parquet.ParquetFile(path)
        headings = tuple(file.schema_arrow.names)
        metadata = file.metadata
        check_size(path, sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)))
        check_size(path, 8 * metadata.num_rows * len(headings))
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path}: is not a valid Parquet file: {cut(error)}") from None
    if not metadata.num_rows:
        raise DataError(f"{path}: there is no row of data")

    def read(indices: Sequence[int]) -> list[Floats]:
        try:
            # By position, because two columns of a file may have the same heading.
            table = file.read()
            arrays = [table.column(i).to_numpy() for i in indices]
        except (OSError, pyarrow.ArrowException) as error:
            raise DataError(f"{path}: cannot be read: {cut(error)}") from None
        return [checked_column(path, headings[i], values) for i, values in zip(indices, arrays, strict=True)]

    return Source(path, headings, read)
