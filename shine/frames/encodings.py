"""Texts as codes, kept as long as the data frame that they come from: encoding takes much longer than a query."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from shine.frames.columns import Column


class Encodings:
    """The encoded columns of one data frame.

    A column is encoded again if its memory is another one. Its former memory is kept until then, so that no other
    column can lie at the same addresses.
    """

    _kept: ClassVar[dict[int, tuple[weakref.ref[Any], Encodings]]] = {}

    def __init__(self) -> None:
        self._columns: dict[str, tuple[Any, Column]] = {}

    @classmethod
    def of(cls, frame: object) -> Encodings:
        """Those of a data frame; new ones if it has none."""
        key = id(frame)
        kept = cls._kept.get(key)
        if kept is not None and kept[0]() is frame:
            return kept[1]
        made = cls()
        cls._kept[key] = weakref.ref(frame, lambda dead: cls._forget(key, dead)), made
        return made

    @classmethod
    def _forget(cls, key: int, dead: weakref.ref[Any]) -> None:
        if key in cls._kept and cls._kept[key][0] is dead:
            del cls._kept[key]

    def column(self, name: str, source: Any, encode: Callable[[], Column]) -> Column:
        """The encoded column for an array of Arrow."""
        known = self._columns.get(name)
        if known is not None and _layout(known[0]) == _layout(source):
            return known[1]
        made = encode()
        self._columns[name] = source, made
        return made


def _layout(array: Any) -> list[tuple[int, int, str, list[int]]]:
    """Where an array lies in memory."""
    return [
        (
            len(chunk),
            chunk.offset,
            str(chunk.type),
            [buffer.address for buffer in chunk.buffers() if buffer is not None],
        )
        for chunk in getattr(array, "chunks", [array])
    ]
