"""An upper bound of the memory of a parsed message, computed from its bytes before parsing.

Two bytes of a file can become a hundred in memory (an empty message in a list), so the size of a file is not enough.
"""

from __future__ import annotations

from functools import cache
from typing import Any

MAX_MEMORY = 280 << 20
"""Most memory that parsing may take, in bytes."""

_PER_BYTE = 80
"""Most memory for a byte of a file, measured over messages with every kind of field."""

_MESSAGE, _STRING, _NUMBER, _PACKED = 140, 48, 32, 16
"""Memory of a message, a string and a number, each in a growing list, and of a byte of packed numbers; measured and
rounded up."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_GROUP = (3, 4)
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}


def parsed_size(content: bytes, descriptor: Any) -> int:
    """An upper bound of the memory of a message.

    Parameters
    ----------
    content : bytes
    descriptor : google.protobuf.descriptor.Descriptor
        Descriptor of the message.

    Returns
    -------
    int
        In bytes; counting stops above `MAX_MEMORY`, and at the first byte that is not part of a message, where
        protobuf stops, too.
    """
    if len(content) * _PER_BYTE <= MAX_MEMORY:
        return len(content) * _PER_BYTE
    total = 0
    position, end, fields = 0, len(content), _fields(descriptor)
    outer: list[tuple[int, Any]] = []
    while total <= MAX_MEMORY:
        while position == end and outer:
            end, fields = outer.pop()
        if position == end:
            break
        tag, position = _varint(content, position, end)
        wire = tag & 7
        if wire in _FIXED_SIZES:
            position += _FIXED_SIZES[wire]
            total += _NUMBER
        elif wire == _VARINT:
            _, position = _varint(content, position, end)
            total += _NUMBER
        elif wire == _LENGTH:
            length, position = _varint(content, position, end)
            kind = fields.get(tag >> 3)
            if position < 0 or position + length > end:
                break
            if isinstance(kind, int):
                total += _STRING + kind * length
                position += length
            elif kind is None:
                total += _STRING + length
                position += length
            else:
                total += _MESSAGE
                outer.append((end, fields))
                end, fields = position + length, _fields(kind)
        elif wire not in _GROUP:
            break
        if tag < 8 or position < 0 or position > end:
            break
    return total


def _varint(content: bytes, position: int, end: int) -> tuple[int, int]:
    """A number in base 128 and its end; the end is -1 if the number is cut off."""
    value = shift = 0
    while 0 <= position < end and shift < 70:
        byte = content[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
    return 0, -1


@cache
def _fields(descriptor: Any) -> dict[int, Any]:
    """For each field: the descriptor of its message, or the memory of one of its bytes."""
    return {
        field.number: field.message_type
        if field.message_type is not None
        else 1
        if field.type in (field.TYPE_STRING, field.TYPE_BYTES)
        else _PACKED
        for field in descriptor.fields
    }
