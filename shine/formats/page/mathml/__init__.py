"""Formulas typeset as MathML Core, which browsers display without help.

latex2mathml on our LaTeX makes each letter of a word an element of its own, and cannot carry the exact value of a
rounded constant. SymPy's printer would need an extra, and rewrites the formula.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from shine.formats.page.markup import Content, Element, depth, element
from shine.formats.page.mathml.breaking import broken
from shine.formats.page.mathml.operators import (
    AND,
    APPLIED,
    ATOM,
    BINARY,
    CASES,
    COMPARISON,
    FRACTION,
    NOT,
    OR,
    PRODUCT,
    ROUNDED,
    SUM,
    TIMES,
    Piece,
    enclosed,
    fenced,
    is_word,
    name_element,
    negated,
    number_element,
    row,
    signed,
    spaced,
    superscript,
    symbol,
)
from shine.formats.page.subject import MINUS
from shine.lang.forms.named_numbers import named_number
from shine.lang.forms.tree import Tree
from shine.lang.forms.visitor import TreeVisitor, Visit

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
    # A long exponent is hard to read in small type, and so is one with an exponent of its own.
    if piece.nodes > 12 or (isinstance(piece.markup, Element) and piece.markup.content[0] is E):
        return applied("exp", piece)
    return element("msup", E, piece.markup), APPLIED


def _logarithm_of_more(piece: Piece) -> tuple[Content, int]:
    argument = row(element("mn", "1"), list(signed(piece, False, False)))
    return applied("log", Piece(argument, SUM))


CALLS: Mapping[str, Callable[..., tuple[Content, int]]] = {
    "sqrt": lambda piece: (element("msqrt", piece.markup), ATOM),
    "cbrt": lambda piece: (element("mroot", piece.markup, element("mn", "3")), ATOM),
    "square": lambda piece: (_raised(piece, "2"), APPLIED),
    "cube": lambda piece: (_raised(piece, "3"), APPLIED),
    "inv": lambda piece: (element("mfrac", element("mn", "1"), piece.markup), FRACTION),
    "exp": _exponential,
    "expm1": lambda piece: (row(_exponential(piece)[0], symbol(MINUS), element("mn", "1")), SUM),
    "log1p": _logarithm_of_more,
    "hypot": lambda a, b: (element("msqrt", _raised(a, "2"), symbol("+"), _raised(b, "2")), ATOM),
    "aq": lambda a, b: (
        element("mfrac", a.markup, element("msqrt", element("mn", "1"), symbol("+"), _raised(b, "2"))),
        FRACTION,
    ),
    **{name: lambda piece, fences=fences: (fenced(piece.markup, *fences), ATOM) for name, fences in _FENCES.items()},
}
"""Markup and strength of functions with a notation of their own; all others are `applied`."""


_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "≤", ast.Gt: ">", ast.GtE: "≥", ast.Eq: "=", ast.NotEq: "≠",
}  # fmt: skip


PI = Piece(element("mi", "π"), name="π")
E = element("mi", "e", mathvariant="normal")


class Typesetter(TreeVisitor):
    """Makes a `Piece` of each node (see `typeset`); `named` numbers are written by name, such as pi."""

    def __init__(self, named: bool, headings: Mapping[str, str], digits: int) -> None:
        self.named, self.headings, self.digits = named, headings, digits

    def visit_Constant(self, node: ast.Constant) -> Visit:
        value: Any = node.value
        named = named_number(abs(float(value))) if self.named else None
        if named is not None:
            piece = PI if named.text == "pi" else (yield named.expression)
            return negated(piece) if value < 0 else piece
        exact = repr(value)
        if exact.startswith("-"):
            positive = number_element(value, exact.removeprefix("-"), self.digits)
            return negated(self._number(value, positive))
        return self._number(value, number_element(value, exact, self.digits))

    def _number(self, value: float, markup: Element) -> Piece:
        # A mantissa times a power of ten is a product, which needs parentheses as the base of a power.
        return Piece(markup, ATOM if markup.name == "mn" else PRODUCT, digits=True)

    def visit_Name(self, node: ast.Name) -> Piece:
        shown = self.headings.get(node.id, node.id)
        return Piece(name_element(shown), wordy=is_word(shown), name=node.id)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Visit:
        piece = yield node.operand
        if isinstance(node.op, ast.USub):
            return negated(piece)
        markup = row(element("mo", "¬", form="prefix"), enclosed(piece, NOT))
        return Piece(markup, NOT, nodes=piece.nodes + 1)

    def visit_BinOp(self, node: ast.BinOp) -> Visit:
        rule = BINARY[type(node.op)]
        return (yield from rule(node))

    def visit_Compare(self, node: ast.Compare) -> Visit:
        first = yield node.left
        parts, nodes = [enclosed(first, SUM)], first.nodes + 1
        for operator, operand in zip(node.ops, node.comparators, strict=True):
            piece = yield operand
            parts += [symbol(_COMPARED[type(operator)]), enclosed(piece, SUM)]
            nodes += piece.nodes
        return Piece(row(*parts), COMPARISON, nodes=nodes)

    def visit_BoolOp(self, node: ast.BoolOp) -> Visit:
        word, strength = ("and", AND) if isinstance(node.op, ast.And) else ("or", OR)
        parts: list[Content] = []
        nodes = 1
        for position, operand in enumerate(node.values):
            piece = yield operand
            parts += [spaced(word)] * bool(position) + [enclosed(piece, strength + bool(position))]
            nodes += piece.nodes
        return Piece(row(*parts), strength, nodes=nodes)

    def visit_IfExp(self, node: ast.IfExp) -> Visit:
        rows, nodes = [], 0
        rest: ast.expr = node
        while isinstance(rest, ast.IfExp):
            value = yield rest.body
            test = yield rest.test
            rows.append(_case(value.markup, [spaced("if"), test.markup]))
            nodes += value.nodes + test.nodes + 1
            rest = rest.orelse
        value = yield rest
        rows.append(_case(value.markup, element("mtext", "\N{NO-BREAK SPACE}otherwise")))
        brace = element("mo", "{", form="prefix", stretchy="true")
        return Piece(row(brace, element("mtable", *rows, class_="cases")), CASES, nodes=nodes + value.nodes)

    def visit_Call(self, node: ast.Call) -> Visit:
        assert isinstance(node.func, ast.Name)
        arguments = []
        for argument in node.args:
            arguments.append((yield argument))
        nodes = 1 + sum(argument.nodes for argument in arguments)
        name = node.func.id
        markup, strength = CALLS[name](*arguments) if name in CALLS else applied(name, *arguments)
        return Piece(markup, strength, digits=name in ("square", "cube") and arguments[0].digits, nodes=nodes)


def _case(value: Content, condition: Content) -> Element:
    return element("mtr", element("mtd", value), element("mtd", condition))


LARGEST, NESTED = 300, 200
"""Most nodes, and most levels of elements, of a typeset formula: browsers limit the depth to some hundreds, and nobody
could read more."""

NARROW, WIDE = 14.0, 36.0
"""Ems of what does not break in formulas for small and large screens; signs and parentheses beside it are wide, too."""


def typeset(
    tree: Tree, headings: Mapping[str, str] = MappingProxyType({}), digits: int = ROUNDED, room: float = WIDE
) -> list[tuple[str | None, list[Element]]]:
    """A formula as MathML: its assignments in order, each after its name, then its result, after None; empty if it is
    too large.

    What is wider than so many ems has several ``<math>`` elements, between which lines can break. Headings of columns
    take the place of their names. Constants are rounded; ``data-exact`` of their elements holds all digits.
    """
    # Besides a feature of that name, pi would be ambiguous.
    typesetter = Typesetter("pi" not in tree.parameters, headings, digits)
    if tree.size > LARGEST:
        return []
    lines = [(name, typesetter.visit(value).markup) for name, value in [*tree.assignments, (None, tree.result)]]
    if max(depth(markup) for _, markup in lines) > NESTED:
        return []
    return [(name, [math(*part) for part in broken(markup, room)]) for name, markup in lines]


def formula_lines(
    tree: Tree, headings: Mapping[str, str], digits: int, left: Content = None, room: float = WIDE
) -> list[Element]:
    """The lines of a formula, which may break within (see `typeset`); `left` stands before its result."""
    found = []
    for name, own in typeset(tree, headings, digits, room):
        head = left if name is None else math(name_element(name), symbol("="))
        terms = [term for term in (head, *own) if isinstance(term, Element)]
        # A line that ends between factors shows the sign between them, like the hyphen of a word.
        ends = ["\N{SOFT HYPHEN}" if TIMES in term.content else element("wbr") for term in terms]
        found.append(element("div", list(zip(ends, terms, strict=True)), style='hyphenate-character: " ⋅"'))
    return found


def math(*content: Content) -> Element:
    """A ``<math>`` element in the style of a displayed formula."""
    return element("math", *content, displaystyle="true")
