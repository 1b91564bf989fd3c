"""The tables of a checkpoint: blocks of keys and values, compressed and with checksums."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from shine.base.errors import GraphImportError
from shine.base.typing import AnyArray


def varint(content: bytes, position: int) -> tuple[int, int]:
    """A number in base 128, lowest digit first, and the position after it.

    A `GraphImportError` if it is cut off or too long.
    """
    value = 0
    for digit, byte in enumerate(content[position : position + 10]):  # bytes of the longest number, which has 64 bits
        value |= (byte & 127) << 7 * digit
        if byte < 128:
            return value, position + digit + 1
    raise GraphImportError("a number is cut off or too long")


def ordered_key(name: str, extents: tuple[tuple[int, int], ...]) -> bytes:
    """The key of a slice of a tensor: its name and, for each axis, the first index and the length; -1 for a whole axis.

    Parts are written so that keys compare as the parts do: TensorFlow's `OrderedCode`.
    """
    text = name.encode().replace(b"\0", b"\0\xff") + b"\0\1"
    numbers = b"".join(_signed(start) + _signed(length) for start, length in extents)
    return _unsigned(0) + text + _unsigned(len(extents)) + numbers


def _unsigned(value: int) -> bytes:
    """The number of bytes, and the bytes, highest first."""
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(digits)]) + digits


def _signed(value: int) -> bytes:
    """As many ones as bytes (zeros, if negative), a zero, and the number in two's complement."""
    size = 1
    while not -(1 << 7 * size - 1) <= value < 1 << 7 * size - 1:
        size += 1
    header = (1 << size) - 1 << 7 * size
    return (header ^ value & (1 << 8 * size) - 1).to_bytes(size, "big")


_LITERAL, _NEAR, _FAR = 0, 1, 2
"""Kinds of elements, in the low bits of their first byte: bytes as they are, and copies of bytes before."""

_SHORT_LITERALS = 60
"""Most bytes of a literal with its length in the first byte; longer ones have it in the next one to four."""


def decompressed(content: bytes, most: int) -> bytes:
    """The bytes of a block; a `GraphImportError` if the content is damaged, or larger.

    Parameters
    ----------
    content : bytes
    most : int
        Largest size that is decompressed.
    """
    size, position = varint(content, 0)
    if size > most:
        raise GraphImportError(f"a compressed block has {size} bytes; at most {most} are read")
    result = bytearray()
    while position < len(content):
        tag = content[position]
        position += 1
        if tag & 3 == _LITERAL:
            length = (tag >> 2) + 1
            if length > _SHORT_LITERALS:
                extra = length - _SHORT_LITERALS
                length = int.from_bytes(content[position : position + extra], "little") + 1
                position += extra
            result += content[position : position + length]
            position += length
        else:
            position = _copy(content, position, tag, result)
        if len(result) > size or position > len(content):
            break
    if len(result) != size:
        raise GraphImportError(f"a compressed block must have {size} bytes, but its elements do not fit that")
    return bytes(result)


def _copy(content: bytes, position: int, tag: int, result: bytearray) -> int:
    """Repeat bytes that were written before; return the position of the next element."""
    if tag & 3 == _NEAR:
        length, width, high = (tag >> 2 & 7) + 4, 1, (tag >> 5) << 8
    else:
        length, width, high = (tag >> 2) + 1, 2 if tag & 3 == _FAR else 4, 0
    offset = high | int.from_bytes(content[position : position + width], "little")
    if not 0 < offset <= len(result):
        raise GraphImportError(f"a compressed block copies from {offset} bytes before, of {len(result)}")
    # The bytes may overlap what they make.
    pattern = bytes(result[-offset:][:length])
    result += (pattern * (length // len(pattern) + 1))[:length]
    return position + width


_ONES = 0xFFFFFFFF

_PIECE = 20
"""Bytes that are processed at a time, as a power of two: small enough for the cache of a processor."""


def crc32c(content: bytes | memoryview) -> int:
    """The checksum of bytes.

    The register is linear in the bytes. Those of pairs of bytes come from a table; then registers of neighbours are
    joined, in pairs, until one is left: the left one is advanced over as many zeros as the right one has bytes.
    """
    values = np.frombuffer(content, np.uint8)
    register = _ONES
    for bit in range(values.size.bit_length()):
        if values.size >> bit & 1:
            register = _advanced(register, bit)
    total = 0
    # Zeros before the first byte do not change a register that is 0, so the first piece is filled up with them.
    first = values.size % (1 << _PIECE)
    for start in range(first - (1 << _PIECE) if first else 0, values.size, 1 << _PIECE):
        piece = values[max(start, 0) : start + (1 << _PIECE)]
        total = _advanced(total, _PIECE) ^ _register(piece)
    return register ^ total ^ _ONES


def masked(checksum: int) -> int:
    """A checksum as files hold it."""
    # Added by files that hold checksums of themselves
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & _ONES


def _register(piece: AnyArray) -> int:
    """The register after the bytes of a piece, started with 0."""
    size = max(1, (piece.size - 1).bit_length())
    filled = np.zeros(1 << size, np.uint8)
    filled[filled.size - piece.size :] = piece
    registers = _of_pairs()[filled.view("<u2")]
    for bit in range(1, size):
        registers = _apply(_zeros(bit), registers[0::2]) ^ registers[1::2]
    return int(registers[0])


def _advanced(register: int, bit: int) -> int:
    """A register after 2**bit zeros."""
    return int(_apply(_zeros(bit), np.array([register], np.uint32))[0])


def _apply(table: AnyArray, registers: AnyArray) -> AnyArray:
    """A linear map, given by its values for each byte of a register."""
    result = table[0][registers & 255]
    for place in range(1, 4):
        result = result ^ table[place][registers >> np.uint32(8 * place) & 255]
    return result


@cache
def _zeros(bit: int) -> AnyArray:
    """The map that advances registers over 2**bit zeros, of shape (4, 256)."""
    if bit:
        half = _zeros(bit - 1)
        return np.stack([_apply(half, row) for row in half])
    registers = np.arange(256, dtype=np.uint32) << np.array([[0], [8], [16], [24]], np.uint32)
    for _ in range(8):
        # Castagnoli's, with the bits reversed
        registers = registers >> np.uint32(1) ^ np.where(registers & 1, np.uint32(0x82F63B78), np.uint32(0))
    return registers


@cache
def _of_pairs() -> AnyArray:
    """The register after two bytes, by the number that they are in little-endian order."""
    pairs = np.arange(1 << 16, dtype=np.uint32)
    after = _apply(_zeros(0), pairs & 255)
    return _apply(_zeros(0), after ^ pairs >> np.uint32(8))


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
    """The entries of a table; a `GraphImportError` if it is no table, or damaged."""
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
