"""Texts as codes, kept as long as the data frame that they come from: encoding takes much longer than a query."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from shine.frames.columns import Column, codes_of


class Encodings:
    """The encoded columns of one data frame.

    A column is encoded again if its memory is another one. Its former memory is kept until then, so that no other
    column can lie at the same addresses.
    """

    _kept: ClassVar[dict[int, tuple[weakref.ref[Any], Encodings]]] = {}

    def __init__(self) -> None:
        self._columns: dict[str, tuple[Any, Column]] = {}
        self._codes: dict[str, tuple[Any, dict[str, int]]] = {}

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

    def codes(self, name: str, categories: Any) -> dict[str, int] | None:
        """Codes of the categories of pandas, which never change; None if one is no text."""
        known = self._codes.get(name)
        if known is None or known[0] is not categories:
            known = categories, codes_of(list(categories))
            self._codes[name] = known
        return known[1] if len(known[1]) == len(categories) else None


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
