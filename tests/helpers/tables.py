"""Writes tables of sorted keys in the format of LevelDB, with other blocks and compressions than TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping

from shine.tensor.graphdef.checkpoint_table import MAGIC, crc32c, masked

RESTART = 16
"""Entries after which a key is written whole."""


def varint(value: int) -> bytes:
    """A number in base 128, lowest digit first."""
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])


def block(entries: Mapping[bytes, bytes]) -> bytes:
    """Entries whose keys share their beginnings."""
    content, restarts, last = bytearray(), [], b""
    for place, (key, value) in enumerate(entries.items()):
        if place % RESTART == 0:
            restarts.append(len(content))
            last = b""
        shared = 0
        while shared < min(len(key), len(last)) and key[shared] == last[shared]:
            shared += 1
        content += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    numbers = [*(restarts or [0]), len(restarts or [0])]
    return bytes(content) + b"".join(number.to_bytes(4, "little") for number in numbers)


def literals(content: bytes) -> bytes:
    """A block of Snappy that repeats nothing, except that runs of one byte are copies."""
    made = bytearray(varint(len(content)))
    position = 0
    while position < len(content):
        run = 1
        while run < 64 and content[position : position + run + 1] == content[position : position + 1] * (run + 1):
            run += 1
        made += bytes([0, content[position]])
        if run > 4:
            # A copy from one byte before, of up to 64 bytes, with an offset of two bytes.
            made += bytes([(run - 2) << 2 | 2, 1, 0])
            position += run
        else:
            position += 1
    return bytes(made)


def table(entries: Mapping[bytes, bytes], size: int = 1 << 30, snappy: bool = False) -> bytes:
    """A table with at most so many entries a block."""
    content = bytearray()

    def write(block_content: bytes) -> bytes:
        stored = literals(block_content) if snappy else block_content
        place = varint(len(content)) + varint(len(stored))
        with_kind = stored + bytes([int(snappy)])
        content.extend(with_kind + masked(crc32c(with_kind)).to_bytes(4, "little"))
        return place

    keys = list(entries)
    index = {}
    for start in range(0, len(keys), size):
        part = {key: entries[key] for key in keys[start : start + size]}
        index[list(part)[-1]] = write(block(part))
    footer = write(block({})) + write(block(index))
    return bytes(content) + footer.ljust(40, b"\0") + MAGIC
