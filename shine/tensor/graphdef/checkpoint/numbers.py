"""Numbers of variable length, as checkpoints hold them."""

from __future__ import annotations

from shine.base.errors import GraphImportError

_LONGEST = 10
"""Bytes of the longest number, which has 64 bits."""


def varint(content: bytes, position: int) -> tuple[int, int]:
    """A number in base 128, lowest digit first, and the position after it.

    Raises
    ------
    GraphImportError
        If it is cut off or too long.
    """
    value = 0
    for digit, byte in enumerate(content[position : position + _LONGEST]):
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
