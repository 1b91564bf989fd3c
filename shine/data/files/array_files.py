"""Files of arrays: NumPy's NPZ."""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine.base.errors import DataError
from shine.data.files.files import check_file, check_size
from shine.data.files.source import RawColumn, Source
from shine.lang.forms.names import cut, listed, shown


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

    def place(row: int) -> str:
        return f"{path}: row {row}"

    def read(indices: Sequence[int], as_text: Collection[int] = ()) -> list[RawColumn]:
        return [RawColumn(headings[i], columns[headings[i]], place) for i in indices]

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
