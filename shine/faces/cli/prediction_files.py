"""Predictions as a file in each of the formats that data come in."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from shine.base.errors import needing
from shine.base.typing import Floats
from shine.faces.cli.output import is_terminal, print_bytes, print_json, print_text, write_file

HEADING = "prediction"
"""Heading of the column of predictions."""

Columns = Mapping[str, Floats]
"""Columns of a file by heading: the predictions, and the ends of their intervals if they were asked for."""


def _delimited(columns: Columns, delimiter: str) -> bytes:
    rows = zip(*(map(repr, column.tolist()) for column in columns.values()), strict=True)
    return "\n".join([delimiter.join(columns), *map(delimiter.join, rows), ""]).encode()


def _to(write: Callable[[IO[bytes], Columns], object]) -> Callable[[Columns], bytes]:
    """A writer, by one that writes to a stream."""

    def written(columns: Columns) -> bytes:
        stream = io.BytesIO()
        write(stream, columns)
        return stream.getvalue()

    return written


def _npy(stream: IO[bytes], columns: Columns) -> None:
    np.save(stream, next(iter(columns.values())) if len(columns) == 1 else np.column_stack(list(columns.values())))


def _arrow() -> Any:
    with needing("this format", "pyarrow", "parquet"):
        import pyarrow.feather
        import pyarrow.parquet
    return pyarrow


def _sheet(engine: str) -> Callable[[Columns], bytes]:
    def write(stream: IO[bytes], columns: Columns) -> None:
        with needing("writing sheets", "pandas", "excel"):
            import pandas

            pandas.DataFrame(dict(columns)).to_excel(stream, index=False, engine=engine)

    return _to(write)


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
    ".npz": _to(lambda stream, columns: np.savez(stream, allow_pickle=False, **columns)),
    ".npy": _to(_npy),
    ".parquet": _to(lambda stream, columns: _arrow().parquet.write_table(_arrow().table(dict(columns)), stream)),
    **dict.fromkeys(
        (".feather", ".arrow", ".ipc"),
        _to(lambda stream, columns: _arrow().feather.write_feather(_arrow().table(dict(columns)), stream)),
    ),
    ".xlsx": _sheet("openpyxl"),
    ".ods": _sheet("odf"),
}
"""Writer of predictions by the ending of the file name."""


def deliver_table(columns: Columns, out: Path | None, ending: str, record: Mapping[str, Any] | None) -> None:
    """Write a table to a file, or print it as CSV, or as Parquet to another program; or a record with it as JSON."""
    if out is not None:
        write_file(out, WRITERS[ending](columns))
    if record is not None:
        lists = {heading: column.tolist() for heading, column in columns.items()}
        told = lists if out is None else {"rows": len(next(iter(columns.values()))), "file": str(out)}
        print_json({**record, **told}, indent=None)
    elif out is None and ending == ".parquet" and not is_terminal(sys.stdout):
        print_bytes(WRITERS[ending](columns), "Parquet")
    elif out is None:
        print_text(WRITERS[".csv"](columns).decode())
