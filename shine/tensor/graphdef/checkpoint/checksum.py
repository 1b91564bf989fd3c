"""CRC-32C, the checksum of checkpoints (Castagnoli et al. 1993), of many bytes at a time."""

from __future__ import annotations

from functools import cache

import numpy as np

from shine.base.typing import AnyArray

_POLYNOMIAL = 0x82F63B78
"""Castagnoli's, with the bits reversed."""

_ONES = 0xFFFFFFFF

_PIECE = 20
"""Bytes that are processed at a time, as a power of two: small enough for the cache of a processor."""

_MASK = 0xA282EAD8
"""Added by files that hold checksums of themselves."""


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
    return ((checksum >> 15 | checksum << 17) + _MASK) & _ONES


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
        registers = registers >> np.uint32(1) ^ np.where(registers & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    return registers


@cache
def _of_pairs() -> AnyArray:
    """The register after two bytes, by the number that they are in little-endian order."""
    pairs = np.arange(1 << 16, dtype=np.uint32)
    after = _apply(_zeros(0), pairs & 255)
    return _apply(_zeros(0), after ^ pairs >> np.uint32(8))
