"""How functions are typeset: in a notation of their own, or as a name with arguments in parentheses."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shine.formats.page.markup import Content, Element, element
from shine.formats.page.mathml.pieces import (
    APPLIED,
    ATOM,
    FRACTION,
    SUM,
    Piece,
    enclosed,
    fenced,
    row,
    signed,
    superscript,
    symbol,
)
from shine.formats.page.wording import MINUS

_FUNCTIONS = {
    "log": "ln", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sign": "sgn",
    "log2": ("log", "2"), "log10": ("log", "10"),
}  # fmt: skip
"""Names of functions in print, with their subscripts; other functions keep their names."""

_FENCES = {"abs": ("|", "|"), "floor": ("⌊", "⌋"), "ceil": ("⌈", "⌉")}


def applied(name: str, *arguments: Piece) -> tuple[Content, int]:
    """A function's name and its arguments in parentheses."""
    printed = _FUNCTIONS.get(name, name)
    if isinstance(printed, tuple):
        head = element("msub", element("mi", printed[0]), element("mn", printed[1]))
    else:
        head = element("mi", printed, mathvariant="normal" if len(printed) == 1 else None)
    listed: list[Content] = []
    for position, argument in enumerate(arguments):
        listed += [element("mo", ",", separator="true")] * bool(position) + [argument.markup]
    return row(head, element("mo", "\N{FUNCTION APPLICATION}"), fenced(listed)), APPLIED


def _raised(piece: Piece, exponent: str) -> Element:
    return superscript(enclosed(piece, ATOM), element("mn", exponent))


def _exponential(piece: Piece) -> tuple[Content, int]:
    # A long exponent is hard to read in small type.
    if piece.nodes > 12:
        return applied("exp", piece)
    return element("msup", element("mi", "e", mathvariant="normal"), piece.markup), APPLIED


def _exponential_less_one(piece: Piece) -> tuple[Content, int]:
    return row(_exponential(piece)[0], symbol(MINUS), element("mn", "1")), SUM


def _logarithm_of_more(piece: Piece) -> tuple[Content, int]:
    argument = row(element("mn", "1"), list(signed(piece, False, False)))
    return applied("log", Piece(argument, SUM))


def _within(name: str) -> Callable[[Piece], tuple[Content, int]]:
    return lambda piece: (fenced(piece.markup, *_FENCES[name]), ATOM)


CALLS: Mapping[str, Callable[..., tuple[Content, int]]] = {
    "sqrt": lambda piece: (element("msqrt", piece.markup), ATOM),
    "cbrt": lambda piece: (element("mroot", piece.markup, element("mn", "3")), ATOM),
    "square": lambda piece: (_raised(piece, "2"), APPLIED),
    "cube": lambda piece: (_raised(piece, "3"), APPLIED),
    "inv": lambda piece: (element("mfrac", element("mn", "1"), piece.markup), FRACTION),
    "exp": _exponential,
    "expm1": _exponential_less_one,
    "log1p": _logarithm_of_more,
    "hypot": lambda a, b: (element("msqrt", _raised(a, "2"), symbol("+"), _raised(b, "2")), ATOM),
    "aq": lambda a, b: (
        element("mfrac", a.markup, element("msqrt", element("mn", "1"), symbol("+"), _raised(b, "2"))),
        FRACTION,
    ),
    **{name: _within(name) for name in _FENCES},
}
"""Markup and strength of functions with a notation of their own; all others are `applied`."""
