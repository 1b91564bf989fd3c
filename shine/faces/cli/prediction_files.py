"""Predictions as a file in each of the formats that data come in."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import click
import numpy as np

from shine.base.typing import Floats

HEADING = "prediction"
"""Heading of the column of predictions."""

Columns = Mapping[str, Floats]
"""Columns of a file by heading: the predictions, and the ends of their intervals if they were asked for."""


def _delimited(columns: Columns, delimiter: str) -> bytes:
    rows = zip(*(map(repr, column.tolist()) for column in columns.values()), strict=True)
    return "\n".join([delimiter.join(columns), *map(delimiter.join, rows), ""]).encode()


def _npz(columns: Columns) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **columns)
    return stream.getvalue()


def _npy(columns: Columns) -> bytes:
    stream = io.BytesIO()
    np.save(stream, next(iter(columns.values())) if len(columns) == 1 else np.column_stack(list(columns.values())))
    return stream.getvalue()


def _arrow() -> Any:
    try:
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        raise click.ClickException("this format needs pyarrow; pip install 'shine[parquet]'") from None
    return pyarrow


def _parquet(columns: Columns) -> bytes:
    stream, arrow = io.BytesIO(), _arrow()
    arrow.parquet.write_table(arrow.table(dict(columns)), stream)
    return stream.getvalue()


def _feather(columns: Columns) -> bytes:
    stream, arrow = io.BytesIO(), _arrow()
    arrow.feather.write_feather(arrow.table(dict(columns)), stream)
    return stream.getvalue()


def _sheet(engine: str) -> Callable[[Columns], bytes]:
    def write(columns: Columns) -> bytes:
        stream = io.BytesIO()
        try:
            import pandas

            pandas.DataFrame(dict(columns)).to_excel(stream, index=False, engine=engine)
        except ImportError:
            raise click.ClickException("writing sheets needs pandas; pip install 'shine[excel]'") from None
        return stream.getvalue()

    return write


def _zip(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        # A member of its own name has the time of 1980, so the same predictions are the same file.
        archive.writestr(zipfile.ZipInfo(f"{HEADING}s.csv"), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _zstandard(content: bytes) -> bytes:
    compressed: bytes = _arrow().compress(content, codec="zstd", asbytes=True)
    return compressed


_COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda content: content,
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zip": _zip,
    ".zst": _zstandard,
}


_DELIMITERS = {"csv": ",", "tsv": "\t", "txt": ","}


def _text(kind: str, ending: str) -> Callable[[Columns], bytes]:
    return lambda columns: _COMPRESSORS[ending](_delimited(columns, _DELIMITERS[kind]))


WRITERS: dict[str, Callable[[Columns], bytes]] = {
    **{f".{kind}{ending}": _text(kind, ending) for kind in _DELIMITERS for ending in _COMPRESSORS},
    ".npz": _npz,
    ".npy": _npy,
    ".parquet": _parquet,
    **dict.fromkeys((".feather", ".arrow", ".ipc"), _feather),
    ".xlsx": _sheet("openpyxl"),
    ".ods": _sheet("odf"),
}
"""Writer of predictions by the ending of the file name."""
