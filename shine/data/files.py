"""Reading the bytes of a file, compressed or not, up to a limit."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from shine.errors import DataError

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


def read_bytes(path: Path) -> bytes:
    """All bytes of a file; `.gz` files are decompressed.

    Raises
    ------
    DataError
        If it cannot be read, is damaged, or exceeds the limit.
    """
    check_file(path)
    try:
        if path.suffix.lower() != ".gz":
            return path.read_bytes()
        with gzip.open(path, "rb") as stream:
            chunks: list[bytes] = []
            total = 0
            while chunk := stream.read(_CHUNK):
                total += len(chunk)
                check_size(path, total)
                chunks.append(chunk)
        return b"".join(chunks)
    except EOFError:
        raise DataError(f"{path}: the compressed data end too early; the file is truncated") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: is not a valid gzip file: {error}") from None
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> DataError:
    """The error for a file that the system cannot read."""
    return DataError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}")
