"""Typeset parts of a formula, and how they are put together: signs, parentheses, powers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shine.formats.page.markup import Content, Element, element
from shine.formats.page.subject import MINUS

CASES, OR, AND, NOT, COMPARISON, SUM, PRODUCT, FRACTION, APPLIED, ATOM = range(10)
"""How strongly a part binds; an operand that binds more weakly than its place needs gets parentheses."""


@dataclass(frozen=True)
class Piece:
    """A typeset part of a formula.

    Parameters
    ----------
    markup : Content
    strength : int
        How strongly its outermost operator binds.
    opposite : Piece, optional
        The part without its leading minus.
    digits : bool
        Whether it begins with a digit.
    wordy : bool
        Whether it ends with a name of several letters.
    name : str, optional
        The name, if it is one.
    nodes : int
        Nodes of the formula in it.
    """

    markup: Content
    strength: int = ATOM
    opposite: Piece | None = None
    digits: bool = False
    wordy: bool = False
    name: str | None = None
    nodes: int = 1


def symbol(text: str, form: str = "infix") -> Element:
    """An operator; MathML needs to know its form."""
    return element("mo", text, form=form)


def row(*content: Content) -> Element:
    """Content in a row."""
    return element("mrow", *content)


def fenced(content: Content, left: str = "(", right: str = ")") -> Element:
    """Content between parentheses, or other fences, that grow with it."""
    return row(element("mo", left, form="prefix", stretchy="true"), content,
                element("mo", right, form="postfix", stretchy="true"))  # fmt: skip


def superscript(base: Content, exponent: Content) -> Element:
    """A power; the exponent stands above the subscript if the base has one."""
    if isinstance(base, Element) and base.name == "msub":
        return Element("msubsup", base.attributes, (*base.content, exponent))
    return element("msup", base, exponent)


def enclosed(piece: Piece, least: int) -> Content:
    """A part, in parentheses if it binds more weakly than `least`."""
    return fenced(piece.markup) if piece.strength < least else piece.markup


def negated(piece: Piece) -> Piece:
    """The opposite of a part."""
    if piece.opposite is not None:
        return piece.opposite
    markup = row(symbol(MINUS, "prefix"), enclosed(piece, PRODUCT))
    return Piece(markup, SUM, opposite=piece, nodes=piece.nodes + 1)


def signed(piece: Piece, negative: bool, first: bool) -> Iterator[Content]:
    """A term with its sign; a positive first term has none."""
    if piece.opposite is not None:
        piece, negative = piece.opposite, not negative
    if negative or not first:
        yield symbol(MINUS if negative else "+", "prefix" if first else "infix")
    yield enclosed(piece, PRODUCT)


def spaced(text: str) -> Element:
    """A word between spaces."""
    return element("mtext", f"\N{NO-BREAK SPACE}{text}\N{NO-BREAK SPACE}")
