"""Formulas typeset as MathML Core, which browsers display without help.

The markup is written by hand. latex2mathml on our LaTeX makes each letter of a word an element of its own, has no
invisible times or function application for screen readers, and cannot carry the exact value of a rounded constant.
SymPy's printer would need an extra, rewrites the formula, and writes cases as a call of "piecewise".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from shine.formats.page.markup import Content, Element, element
from shine.formats.page.mathml.operators import ROUNDED, summands
from shine.formats.page.mathml.pieces import Piece, signed
from shine.formats.page.mathml.typesetter import Typesetter
from shine.lang.forms.tree import Tree


@dataclass(frozen=True)
class Typeset:
    """One formula, or one value that a formula assigns.

    Parameters
    ----------
    name : str or None
        Name that it is assigned to; None for the result.
    terms : tuple of Element
        ``<math>`` elements in reading order: one for each term of a sum, so that lines can break between them.
    """

    name: str | None
    terms: tuple[Element, ...]


def typeset(
    tree: Tree, headings: Mapping[str, str] = MappingProxyType({}), digits: int = ROUNDED
) -> tuple[Typeset, ...]:
    """A formula as MathML: its assignments in order, then its result.

    Constants are rounded; ``data-exact`` of their elements holds all digits.

    Parameters
    ----------
    tree : Tree
        A tree of any depth.
    headings : mapping of str to str
        Original headings of the columns, by feature, which take the place of the names.
    digits : int
        Significant digits of constants.
    """
    lines = [*tree.assignments, (None, tree.result)]
    # Besides a feature of that name, pi would be ambiguous.
    typesetter = Typesetter("pi" not in tree.parameters, headings, digits)
    return tuple(Typeset(name, tuple(math(*term) for term in _terms(value, typesetter))) for name, value in lines)


def math(*content: Content) -> Element:
    """A ``<math>`` element in the style of a displayed formula."""
    return element("math", *content, displaystyle="true")


def _terms(node: ast.expr, typesetter: Typesetter) -> Iterator[tuple[Content, ...]]:
    """The content of each ``<math>`` element of an expression, one for each term."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)):
        yield (typesetter.visit(node).markup,)
        return
    for position, (negative, term) in enumerate(summands(node)):
        piece: Piece = typesetter.visit(term)
        yield tuple(signed(piece, negative, position == 0))
