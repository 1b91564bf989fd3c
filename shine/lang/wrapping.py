"""Lines that fit a terminal: text wrapped where people break formulas, measured in columns of the screen."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

LEAST_WIDTH = 8
"""Columns that a line always gets, however narrow the terminal is."""

_PIECES = re.compile(r"\s+|(?:[^\s*/(,]|\*\*)*[*/(,]?")
"""Parts of a formula that stay together: a line may end after an operator, a comma or an opening parenthesis."""

_INVISIBLE = ("Mn", "Me", "Cf", "Cc")
"""Categories of characters that take no column: combining marks, joiners, controls."""


def columns(text: str) -> int:
    """Columns that a text takes on a terminal: two for wide characters, none for combining marks.

    Examples
    --------
    >>> columns("mass"), columns("質量"), columns("e\N{COMBINING ACUTE ACCENT}")
    (4, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_columns, text))


def padded(text: str, width: int, right: bool = False) -> str:
    """A text with blanks behind it, or before it, up to a width in columns."""
    blanks = " " * max(width - columns(text), 0)
    return blanks + text if right else text + blanks


def wrapped(text: str, width: int | None, indent: str = "") -> list[str]:
    """The lines of a text, none wider than a number of columns.

    Lines end at blanks if they can, else after an operator; a longer part is broken anywhere.

    Parameters
    ----------
    text : str
        Its own line breaks stay.
    width : int, optional
        Most columns of a line; None for no limit.
    indent : str
        Begins each further line.

    Examples
    --------
    >>> wrapped("2*x0 + sin(x1) + 3", 12, "  ")
    ['2*x0 +', '  sin(x1) +', '  3']
    """
    if width is None:
        return text.split("\n")
    return [part for line in text.split("\n") for part in _wrapped_line(line, max(width, LEAST_WIDTH), indent)]


def _wrapped_line(line: str, width: int, indent: str) -> list[str]:
    if columns(line) <= width:
        return [line]
    lines, current = [], ""
    for piece in _pieces(line, max(width - columns(indent), LEAST_WIDTH // 2)):
        if columns(current) + columns(piece.rstrip()) > width:
            if current.strip():
                lines.append(current.rstrip())
            current, piece = indent if lines else "", piece.lstrip()
        current += piece
    return [*lines, current.rstrip()]


def _pieces(line: str, room: int) -> Iterator[str]:
    """Words of a line with the blanks behind them; words that do not fit, in parts."""
    for word in re.findall(r"\s*\S+\s*", line):
        if columns(word.strip()) <= room:
            yield word
        else:
            yield from (part for piece in _PIECES.findall(word) for part in _slices(piece, room))


def _slices(piece: str, room: int) -> Iterator[str]:
    """A part of a word, cut into slices if it is too wide."""
    if columns(piece) <= room:
        yield piece
        return
    start, width = 0, 0
    for place, character in enumerate(piece):
        width += _columns(character)
        if width > room:
            yield piece[start:place]
            start, width = place, _columns(character)
    yield piece[start:]


def _columns(character: str) -> int:
    if unicodedata.category(character) in _INVISIBLE:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
