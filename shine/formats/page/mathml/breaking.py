"""Formulas that may end lines: MathML Core has no breaks within ``<math>``, so a wide formula becomes several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from shine.formats.page.markup import Content, Element, element, render
from shine.formats.page.mathml.operators import symbol
from shine.formats.page.subject import breadth

_TIMES = ("\N{INVISIBLE TIMES}", "×", "⋅")
_WIDTHS = {"\N{INVISIBLE TIMES}": 0.0, "\N{FUNCTION APPLICATION}": 0.2, "(": 0.45, ")": 0.45, "|": 0.4, ",": 0.5}

Token = tuple[bool, Content]
"""A part that stays together, and whether a line may end before it."""


def broken(formula: Content, room: float) -> list[list[Content]]:
    """The contents of the ``<math>`` elements of a formula, between which lines may end.

    What is wider than so many ems is broken at its operators, with fractions, roots and choices in one line.
    """
    found: list[list[Content]] = []
    for may_end, part in _tokens(formula, room):
        if may_end or not found:
            found.append([])
        found[-1].append(part)
    return found


def _tokens(item: Content, room: float, factor: bool = False) -> Iterator[Token]:
    if not isinstance(item, Element):
        ends, several = False, () if isinstance(item, str | None) else item
        for part, after in zip_longest(several, several[1:]):
            for may_end, token in _tokens(part, room, _text(after) in _TIMES):
                yield may_end or ends, token
                ends = _text(token) in (",", ";")
        return
    match item.name, item.content:
        case "mo", _:
            yield _form(item) == "infix" or _text(item) in _TIMES, item
        case "mtext", (str(text),):
            yield text[0] == "\N{NO-BREAK SPACE}", item  # a word between parts, no name
        case _ if _width(item) <= room or any(name == "data-exact" for name, _ in item.attributes):
            yield False, item
        case "mrow", (Element(content=("{",)), Element(content=rows)):
            yield from _choices(rows, room)
        case "mrow", (left, inner, right) if (_form(left), _form(right)) == ("prefix", "postfix"):
            yield from _fenced(_tokens(inner, room), _text(left), _text(right))
        case "mrow", parts:
            yield from _tokens(parts, room)
        case "mfrac", sides:
            upper, lower = (
                [(False, side)] if getattr(side, "name", "") in ("mn", "mi", "msub") else _fenced(_tokens(side, room))
                for side in sides
            )
            quotient = chain(upper, [(True, symbol("/"))], lower)
            yield from _fenced(quotient) if factor else quotient
        case "msqrt", inner:
            yield from _called("sqrt", inner, room)
        case "mroot", (inner, _):
            yield from _called("cbrt", inner, room)
        case "msup", (Element(content=("e",)), inner):
            yield from _called("exp", inner, room)
        case "msup", (base, power) if _width(power) > room / 2:
            yield from chain(_tokens(base, room), [(False, symbol("^"))], _fenced(_tokens(power, room)))
        case "msup", (base, power):
            *front, (may_end, last) = _tokens(base, room)
            yield from [*front, (may_end, element("msup", last, power))]
        case _:
            yield False, item


def _called(name: str, argument: Content, room: float) -> Iterator[Token]:
    function = element("mi", name), element("mo", "\N{FUNCTION APPLICATION}")
    return chain([(False, function)], _fenced(_tokens(argument, room)))


def _fenced(tokens: Iterator[Token], left: str = "(", right: str = ")") -> Iterator[Token]:
    yield False, element("mo", left, form="prefix", stretchy="false")
    yield False, next(tokens)[1]
    yield from tokens
    yield False, element("mo", right, form="postfix", stretchy="false")


def _choices(rows: Sequence[Content], room: float) -> Iterator[Token]:
    """Choices in a line: ``value if condition; value otherwise``."""
    for place, row in enumerate(rows):
        yield from [(False, element("mo", ";", separator="true"))] * bool(place)
        assert isinstance(row, Element)
        for cell in row.content:
            assert isinstance(cell, Element)
            tokens = _tokens(cell.content, room)
            yield from _fenced(tokens) if "<mtable" in render(cell) else tokens


def _form(item: Content) -> str | None:
    """The form of an operator."""
    return dict(item.attributes).get("form") if isinstance(item, Element) else None


def _text(item: Content) -> str:
    """The text of an element that has nothing but text."""
    if isinstance(item, Element) and len(item.content) == 1 and isinstance(item.content[0], str):
        return item.content[0]
    return ""


def _width(item: Content) -> float:
    """Estimated ems of a formula, in wide letters."""
    if isinstance(item, str):
        return 0.6 * breadth(item)
    if not isinstance(item, Element):
        return sum(_width(part) for part in item or ())
    widths = [_width(part) for part in item.content]
    if item.name == "mo":
        return _WIDTHS.get(_text(item), 1.4)
    if item.name in ("mfrac", "mtable"):
        return max(widths) + 0.3
    if item.name in ("msup", "msub", "msubsup"):
        return widths[0] + 0.7 * max(widths[1:])
    return sum(widths) + (0.8 if item.name in ("msqrt", "mroot", "mtd") else 0.17)
