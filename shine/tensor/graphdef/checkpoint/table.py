"""Tables of sorted keys and values (SSTables, in the format of LevelDB): the index of checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

from shine.base.errors import GraphImportError
from shine.tensor.graphdef.checkpoint.checksum import crc32c, masked
from shine.tensor.graphdef.checkpoint.numbers import varint
from shine.tensor.graphdef.checkpoint.snappy import decompressed

MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")
"""The last bytes of a table."""

MAX_ENTRIES = 1 << 20
"""Most entries of a table; each takes some hundred bytes of memory."""

_FOOTER = 48
"""Bytes of the footer: places of two blocks, filled up, and the magic number."""

_TRAILER = 5
"""Bytes after a block: its compression and its checksum."""

_PLAIN, _SNAPPY = 0, 1

_MAX_BLOCK = 64 << 20
"""Largest block that is decompressed, in bytes."""


def read_table(content: bytes) -> dict[bytes, bytes]:
    """The entries of a table.

    Raises
    ------
    GraphImportError
        If it is no table, or damaged.
    """
    if len(content) < _FOOTER or not content.endswith(MAGIC):
        raise GraphImportError("it does not end with the magic number of a table: it is no checkpoint, or truncated")
    footer = content[-_FOOTER:]
    _, position = _place(footer, 0)
    index, _ = _place(footer, position)
    entries: dict[bytes, bytes] = {}
    last = b""
    for _, place in _entries(_block(content, index)):
        for key, value in _entries(_block(content, _place(place, 0)[0])):
            if entries and key <= last:
                raise GraphImportError(f"key {key[:80]!r} comes after {last[:80]!r}; keys must ascend")
            if len(entries) == MAX_ENTRIES:
                raise GraphImportError(f"it has more than {MAX_ENTRIES} entries")
            entries[key] = value
            last = key
    return entries


def _place(content: bytes, position: int) -> tuple[tuple[int, int], int]:
    """Start and length of a block."""
    start, position = varint(content, position)
    size, position = varint(content, position)
    return (start, size), position


def _block(content: bytes, place: tuple[int, int]) -> bytes:
    """A block, verified and decompressed."""
    start, size = place
    end = start + size
    if end + _TRAILER > len(content) - _FOOTER:
        raise GraphImportError(f"a block of {size} bytes at {start} is beyond the end; the file may be truncated")
    expected = int.from_bytes(content[end + 1 : end + _TRAILER], "little")
    if masked(crc32c(content[start : end + 1])) != expected:
        raise GraphImportError(f"the checksum of the block at {start} does not agree; the file is damaged")
    compression = content[end]
    if compression not in (_PLAIN, _SNAPPY):
        raise GraphImportError(
            f"compression {compression} of the block at {start} is not supported; 0 and 1 (Snappy) are"
        )
    block = content[start:end]
    return decompressed(block, _MAX_BLOCK) if compression == _SNAPPY else block


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values. A key holds how much it shares with the key before; where it shares nothing, at the restarts
    whose places the block ends with, a search could begin."""
    restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (restarts + 1)
    if len(block) < 4 or end < 0:
        raise GraphImportError(f"a block of {len(block)} bytes cannot have {restarts} restarts")
    position, key = 0, b""
    while position < end:
        shared, position = varint(block, position)
        own, position = varint(block, position)
        size, position = varint(block, position)
        if shared > len(key) or position + own + size > end:
            raise GraphImportError("an entry is longer than its block")
        key = key[:shared] + block[position : position + own]
        position += own
        yield key, block[position : position + size]
        position += size
