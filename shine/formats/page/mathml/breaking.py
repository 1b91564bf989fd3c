"""Formulas that may end lines: MathML Core has no breaks within ``<math>``, so a wide formula becomes several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from shine.formats.page.markup import Content, Element, element
from shine.formats.page.mathml.operators import symbol
from shine.lang.wrapping import columns

_TIMES = ("\N{INVISIBLE TIMES}", "×", "⋅")
_WIDTHS = {"\N{INVISIBLE TIMES}": 0.0, "\N{FUNCTION APPLICATION}": 0.2, "(": 0.45, ")": 0.45, "|": 0.4, ",": 0.5}

Token = tuple[bool, Content]
"""A part that stays together, and whether a line may end before it."""


def broken(formula: Content, room: float) -> list[list[Content]]:
    """The contents of the ``<math>`` elements of a formula, between which lines may end.

    Parameters
    ----------
    formula : Content
    room : float
        Most ems of one; what is wider is broken at its operators, fractions and roots are written in one line.
    """
    found: list[list[Content]] = []
    for may_end, part in _tokens(formula, room):
        if may_end or not found:
            found.append([])
        found[-1].append(part)
    return found


def _tokens(item: Content, room: float, factor: bool = False) -> Iterator[Token]:
    if not isinstance(item, Element):
        parts = [item] if isinstance(item, str) or item is None else list(item)
        ends = False
        for part, after in zip(parts, [*parts[1:], None], strict=True):
            for may_end, token in _tokens(part, room, _text(after) in _TIMES):
                yield may_end or ends, token
                ends = _text(token) in (",", ";")
        return
    match item.name, item.content:
        case "mo", _:
            yield dict(item.attributes).get("form") == "infix" or _text(item) in _TIMES, item
        case "mtext", (str(text),):
            yield text[0] == "\N{NO-BREAK SPACE}", item  # a word between parts, no name
        case _ if _width(item) <= room or any(name == "data-exact" for name, _ in item.attributes):
            yield False, item
        case "mrow", (Element(content=("{",)), Element(name="mtable", content=rows)):
            yield from _cases(rows, room)
        case "mrow", (Element(name="mo") as left, inner, Element(name="mo") as right) if _is_fence(left, right):
            yield from _within(_text(left), inner, _text(right), room)
        case "mrow", parts:
            yield from _tokens(parts, room)
        case "mfrac", (upper, lower):
            quotient = chain(_fenced(upper, room), [(True, symbol("/"))], _fenced(lower, room))
            yield from _around("(", quotient, ")") if factor else quotient
        case "msqrt" | "mroot", (inner, *_):
            yield False, element("mi", "sqrt" if item.name == "msqrt" else "cbrt")
            yield False, element("mo", "\N{FUNCTION APPLICATION}")
            yield from _within("(", item.content if item.name == "msqrt" else inner, ")", room)
        case "msup", (base, power) if _width(power) * 0.7 <= room / 2:
            *front, (may_end, last) = _tokens(base, room)
            yield from front
            yield may_end, element("msup", last, power)
        case "msup", (base, power):
            exponential = _text(base) == "e"
            yield from [(False, element("mi", "exp"))] if exponential else _tokens(base, room)
            yield False, element("mo", "\N{FUNCTION APPLICATION}") if exponential else symbol("^")
            yield from _within("(", power, ")", room)
        case _:
            yield False, item


def _fenced(item: Content, room: float) -> Iterator[Token]:
    """A part in parentheses, unless it is a number or a name."""
    simple = isinstance(item, Element) and item.name in ("mn", "mi", "msub")
    return iter([(False, item)]) if simple else _within("(", item, ")", room)


def _within(left: str, item: Content, right: str, room: float) -> Iterator[Token]:
    return _around(left, _tokens(item, room), right)


def _around(left: str, tokens: Iterator[Token], right: str) -> Iterator[Token]:
    yield False, element("mo", left, form="prefix", stretchy="false")
    yield False, next(tokens)[1]
    yield from tokens
    yield False, element("mo", right, form="postfix", stretchy="false")


def _cases(rows: Sequence[Content], room: float) -> Iterator[Token]:
    """Choices in a line: ``value if condition; value otherwise``."""
    for place, row in enumerate(rows):
        assert isinstance(row, Element)
        if place:
            yield False, element("mo", ";", separator="true")
        for cell in row.content:
            assert isinstance(cell, Element)
            (inner,) = cell.content
            nested = isinstance(inner, Element) and inner.name == "mrow" and _text(inner.content[0]) == "{"
            yield from _within("(", inner, ")", room) if nested else _tokens(inner, room)


def _is_fence(left: Element, right: Element) -> bool:
    forms = [dict(each.attributes).get("form") for each in (left, right)]
    return forms == ["prefix", "postfix"]


def _text(item: Content) -> str:
    """The text of an element that has nothing but text."""
    if isinstance(item, Element) and len(item.content) == 1 and isinstance(item.content[0], str):
        return item.content[0]
    return ""


def _width(item: Content) -> float:
    """Estimated ems of a formula, in wide letters."""
    if isinstance(item, str):
        return 0.62 * columns(item)
    if not isinstance(item, Element):
        return sum(_width(part) for part in item or ())
    widths = [_width(part) for part in item.content]
    match item.name:
        case "mo":
            return _WIDTHS.get(_text(item), 1.4)
        case "mfrac":
            return max(widths) + 0.3
        case "msup" | "msub":
            return widths[0] + 0.7 * widths[1]
        case "msubsup":
            return widths[0] + 0.7 * max(widths[1:])
        case "msqrt" | "mroot":
            return sum(widths) + 0.8
        case "mtable":
            cells = [[_width(cell) + 0.8 for cell in row.content] for row in item.content if isinstance(row, Element)]
            return sum(max(column) for column in zip(*cells, strict=True))
        case "mspace":
            return 0.17
        case _:
            return sum(widths)
