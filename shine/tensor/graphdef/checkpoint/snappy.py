"""Decompression of Snappy blocks (format: github.com/google/snappy, format_description.txt)."""

from __future__ import annotations

from shine.base.errors import GraphImportError
from shine.tensor.graphdef.checkpoint.numbers import varint

_LITERAL, _NEAR, _FAR = 0, 1, 2
"""Kinds of elements, in the low bits of their first byte: bytes as they are, and copies of bytes before."""

_SHORT_LITERALS = 60
"""Literals of up to so many bytes have their length in the first byte; longer ones in the next one to four."""


def decompressed(content: bytes, most: int) -> bytes:
    """The bytes of a block.

    Parameters
    ----------
    content : bytes
    most : int
        Largest size that is decompressed.

    Raises
    ------
    GraphImportError
        If the content is damaged, or larger.
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
