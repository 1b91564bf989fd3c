"""Reading the bytes of a file, compressed or not, up to a limit."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from shine.base.errors import DataError

MAX_BYTES = 4 << 30
"""Most bytes of a file after decompression: 4 GiB. A few kilobytes can decompress to more than any memory holds."""

_CHUNK = 1 << 24


def check_file(path: Path) -> None:
    """Raise a `DataError` unless the path is a file within the limit."""
    try:
        if not path.exists():
            raise DataError(f"{path}: no such file")
        if not path.is_file():
            raise DataError(f"{path}: is not a file")
        size = path.stat().st_size
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        raise unreadable(path, error) from None
    check_size(path, size)


def check_size(path: Path, size: int, limit: int | None = None) -> None:
    """Raise a `DataError` if decompressed data exceed the limit."""
    limit = MAX_BYTES if limit is None else limit
    if size > limit:
        raise DataError(f"{path}: holds more than {limit} bytes; split it, or keep fewer rows or columns")


def _zip_member(path: Path) -> IO[bytes]:
    archive = zipfile.ZipFile(path)
    members = [info for info in archive.infolist() if not info.is_dir() and not info.filename.startswith("__MACOSX/")]
    if len(members) != 1:
        raise DataError(f"{path}: holds {len(members)} files; an archive with exactly one is needed")
    return archive.open(members[0])


def _zstandard(path: Path) -> IO[bytes]:
    try:
        import pyarrow
    except ImportError:
        raise DataError(f"{path}: reading Zstandard needs pyarrow; pip install 'shine[parquet]'") from None
    stream: IO[bytes] = pyarrow.input_stream(str(path), compression="zstd")
    return stream


_STREAMS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    ".gz": ("gzip", gzip.open),
    ".bz2": ("bzip2", bz2.open),
    ".xz": ("xz", lzma.open),
    ".zip": ("zip", _zip_member),
    ".zst": ("Zstandard", _zstandard),
}
"""Name and reader of each compression, by the ending of the file's name."""

_DAMAGES = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError, RuntimeError)
"""Errors of the readers; the last two are for zip files with an unusual compression, and with a password."""

COMPRESSIONS = ("", *_STREAMS)
"""Endings of names of compressed files; none for a file that is not."""


def read_bytes(path: Path) -> bytes:
    """All bytes of a file, decompressed if the ending of its name says so.

    Raises
    ------
    DataError
        If it cannot be read, is damaged, or exceeds the limit.
    """
    check_file(path)
    if path.suffix.lower() not in _STREAMS:
        try:
            return path.read_bytes()
        except OSError as error:
            raise unreadable(path, error) from None
    kind, opened = _STREAMS[path.suffix.lower()]
    try:
        with opened(path) as stream:
            chunks: list[bytes] = []
            total = 0
            while chunk := stream.read(_CHUNK):
                total += len(chunk)
                check_size(path, total)
                chunks.append(chunk)
        return b"".join(chunks)
    except EOFError:
        raise DataError(f"{path}: the compressed data end too early; the file is truncated") from None
    except _DAMAGES as error:
        raise DataError(f"{path}: is not a valid {kind} file: {error}") from None
    except OSError as error:
        # bz2 and pyarrow have no errors of their own for damaged data; the system's errors have a number.
        if error.errno is None:
            raise DataError(f"{path}: is not a valid {kind} file: {error}") from None
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> DataError:
    """The error for a file that the system cannot read."""
    return DataError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}")
