"""Typesetting of binary operators: sums, products, fractions, powers."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby

from shine.formats.page.markup import Content, Element, element
from shine.formats.page.subject import MINUS, decimal_parts, elided
from shine.lang.forms.names import GREEK
from shine.lang.forms.visitor import Visit

CASES, OR, AND, NOT, COMPARISON, SUM, PRODUCT, FRACTION, APPLIED, ATOM = range(10)
"""Binding strength of a part; an operand that binds more weakly than its place needs gets parentheses."""


def summands(node: ast.expr) -> Iterator[tuple[bool, ast.expr]]:
    """The terms of a sum from left to right, each with whether it is subtracted; nested sums are flattened."""
    stack = [(False, node)]
    while stack:
        negative, item = stack.pop()
        if isinstance(item, ast.BinOp) and isinstance(item.op, ast.Add | ast.Sub) and not negative:
            stack += [(isinstance(item.op, ast.Sub), item.right), (False, item.left)]
        else:
            yield negative, item


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    """The factors of a product from left to right."""
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, ast.BinOp) and isinstance(item.op, ast.Mult):
            stack += [item.right, item.left]
        else:
            yield item


def _sum(node: ast.BinOp) -> Visit:
    parts: list[Content] = []
    nodes = 0
    for position, (negative, term) in enumerate(summands(node)):
        piece = yield term
        parts += signed(piece, negative, position == 0)
        nodes += piece.nodes + 1
    return Piece(row(*parts), SUM, nodes=nodes)


def _product(node: ast.BinOp) -> Visit:
    factors: list[Piece] = []
    negative = False
    for factor in _factors(node):
        piece = yield factor
        if piece.opposite is not None and not factors:
            piece, negative = piece.opposite, not negative
        factors.append(piece)
    pieces = []
    # A name times itself becomes a power.
    for _, run in groupby(factors, lambda piece: piece.name or id(piece)):
        piece, *again = run
        if again:
            power = superscript(piece.markup, element("mn", str(1 + len(again))))
            piece = Piece(power, APPLIED, wordy=piece.wordy, nodes=piece.nodes + len(again))
        pieces.append(piece)
    parts: list[Content] = []
    for position, piece in enumerate(pieces):
        if position:
            parts += _times(pieces[position - 1], piece)
        parts.append(enclosed(piece, PRODUCT))
    strength = pieces[0].strength if len(pieces) == 1 else PRODUCT
    made = Piece(row(*parts), strength, digits=pieces[0].digits, wordy=pieces[-1].wordy,
                  nodes=sum(piece.nodes + 1 for piece in pieces))  # fmt: skip
    return negated(made) if negative else made


def _times(left: Piece, right: Piece) -> list[Content]:
    """The sign between two factors: a cross before digits, a dot next to words, else an invisible sign.

    Without the dot, a word before a parenthesis would look like a function.
    """
    if right.digits:
        return [symbol("×")]
    if left.wordy or (right.wordy and not left.digits):
        return [symbol("⋅")]
    return [TIMES, element("mspace", width="0.17em")]


def _quotient(node: ast.BinOp) -> Visit:
    upper = yield node.left
    lower = yield node.right
    negative = upper.opposite is not None
    upper = upper.opposite or upper
    if isinstance(node.right, ast.Constant) and lower.opposite is not None:
        lower, negative = lower.opposite, not negative
    fraction, nodes = element("mfrac", upper.markup, lower.markup), upper.nodes + lower.nodes + 1
    made = Piece(fraction, FRACTION, digits=upper.digits, nodes=nodes)
    return negated(made) if negative else made


def _power(node: ast.BinOp) -> Visit:
    base = yield node.left
    exponent = yield node.right
    nodes = base.nodes + exponent.nodes + 1
    if isinstance(node.right, ast.Constant) and node.right.value == 0.5:
        return Piece(element("msqrt", base.markup), nodes=nodes)
    return Piece(superscript(enclosed(base, ATOM), exponent.markup), APPLIED, digits=base.digits, nodes=nodes)


def _floor_quotient(node: ast.BinOp) -> Visit:
    upper = yield node.left
    lower = yield node.right
    quotient = element("mfrac", upper.markup, lower.markup)
    return Piece(fenced(quotient, "⌊", "⌋"), nodes=upper.nodes + lower.nodes + 1)


def _modulo(node: ast.BinOp) -> Visit:
    left = yield node.left
    right = yield node.right
    parts = [enclosed(left, PRODUCT + 1), spaced("mod"), enclosed(right, PRODUCT + 1)]
    return Piece(row(*parts), SUM, nodes=left.nodes + right.nodes + 1)


BINARY: Mapping[type[ast.operator], Callable[[ast.BinOp], Visit]] = {
    ast.Add: _sum, ast.Sub: _sum, ast.Mult: _product, ast.Div: _quotient, ast.Pow: _power,
    ast.FloorDiv: _floor_quotient, ast.Mod: _modulo,
}  # fmt: skip
"""The rule of each binary operator."""


_GREEK = {name: letter for name, letter in GREEK.items() if name.islower() and name not in ("iota", "pi", "upsilon")}
"""Greek letters by name; not `pi`, which looks like the constant, nor those that look like Latin letters."""

TIMES = element("mo", "\N{INVISIBLE TIMES}")

ROUNDED = 6
"""Significant digits of constants if nothing is known about the data."""


def name_element(name: str) -> Element:
    """A name: letters in italics, words upright, Greek letters, and digits and short endings as subscripts.

    A heading that is no name is text. A long name is shortened; ``data-exact`` holds it in full.
    """
    bare = name.rstrip("'")
    if bare != name and bare.isidentifier():  # a rate
        return element("mrow", name_element(bare), element("mo", "′" * (len(name) - len(bare)), form="postfix"))
    shown = elided(name)
    exact = name if shown != name else None
    if not name.isidentifier():
        return element("mtext", shown.strip() or "?", data_exact=exact)
    base, subscript = _split(shown)
    if not subscript:
        return element("mi", _GREEK.get(base, base), data_exact=exact)
    digits = element("mn" if subscript.isdigit() else "mi", subscript)
    return element("msub", element("mi", _GREEK.get(base, base)), digits, data_exact=exact)


def is_word(name: str) -> bool:
    """Whether a name is typeset as more than one letter."""
    base, _ = _split(name)
    return len(base) > 1 and base not in _GREEK


def number_element(value: float, exact: str, digits: int = ROUNDED) -> Element:
    """The absolute value of a constant, rounded to significant digits; scientific where it is very large or small.

    ``data-exact`` holds the text `exact` if the rounded constant differs from it.
    """
    # The exact text has no more digits than the number needs, which its binary value has.
    mantissa, power = decimal_parts(Decimal(exact) if math.isfinite(value) else value, digits)
    told = None if mantissa == exact.removesuffix(".0") else exact
    if power is None:
        return element("mn", mantissa, data_exact=told)
    exponent = element("mn", str(power).replace("-", MINUS))
    scale = element("msup", element("mn", "10"), exponent)
    mantissa_times = () if mantissa == "1" else (element("mn", mantissa), element("mo", "×"))
    return element("mrow", *mantissa_times, scale, data_exact=told)


def _split(name: str) -> tuple[str, str]:
    """The letter or word of a name, and its subscript, which may be empty."""
    counted = re.fullmatch(r"([^\W\d_]+)_?(\d{1,4})", name)
    if counted and (len(counted[1]) <= 2 or counted[1] in _GREEK or "_" in name):
        return counted[1], counted[2]
    ending = re.fullmatch(r"([^\W\d_]+)_([^\W_]+)", name)
    if ending and (len(ending[1]) == 1 or ending[1] in _GREEK):
        return ending[1], ending[2]
    return name, ""


@dataclass(frozen=True)
class Piece:
    """A typeset part of a formula: how strongly its outermost operator binds, the part without its leading minus,
    whether it begins with digits or ends with a name of several letters, the name that it is, and its nodes."""

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
