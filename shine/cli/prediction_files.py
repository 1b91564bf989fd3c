"""Predictions as a file in each of the formats that data come in."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from typing import Any

import click
import numpy as np

from shine.typing import Floats

HEADING = "prediction"
"""Heading of the column of predictions."""


def _csv(predictions: Floats) -> bytes:
    return "\n".join([HEADING, *map(repr, predictions.tolist()), ""]).encode()


def _npz(predictions: Floats) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, prediction=predictions)
    return stream.getvalue()


def _arrow() -> Any:
    try:
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        raise click.ClickException("this format needs pyarrow; pip install 'shine[parquet]'") from None
    return pyarrow


def _parquet(predictions: Floats) -> bytes:
    stream, arrow = io.BytesIO(), _arrow()
    arrow.parquet.write_table(arrow.table({HEADING: predictions}), stream)
    return stream.getvalue()


def _feather(predictions: Floats) -> bytes:
    stream, arrow = io.BytesIO(), _arrow()
    arrow.feather.write_feather(arrow.table({HEADING: predictions}), stream)
    return stream.getvalue()


def _sheet(engine: str) -> Callable[[Floats], bytes]:
    def write(predictions: Floats) -> bytes:
        stream = io.BytesIO()
        try:
            import pandas

            pandas.DataFrame({HEADING: predictions}).to_excel(stream, index=False, engine=engine)
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


def _text(ending: str) -> Callable[[Floats], bytes]:
    return lambda predictions: _COMPRESSORS[ending](_csv(predictions))


WRITERS: dict[str, Callable[[Floats], bytes]] = {
    **{f".{kind}{ending}": _text(ending) for kind in ("csv", "tsv", "txt") for ending in _COMPRESSORS},
    ".npz": _npz,
    ".parquet": _parquet,
    ".feather": _feather,
    ".xlsx": _sheet("openpyxl"),
    ".ods": _sheet("odf"),
}
"""Writer of predictions by the ending of the file name; one column needs no delimiter."""
