"""Formulas typeset: tree -> MathML Core, which browsers draw without help."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from shine.lang.tree import Tree
from shine.lang.visitor import TreeVisitor, Visit
from shine.report.markup import Content, Element, element
from shine.report.symbols import is_word, name_element, number_element
from shine.report.wording import MINUS

_CASES, _OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _FRACTION, _APPLIED, _ATOM = range(10)
"""How strongly what was typeset binds; an operand that binds less than its place needs gets parentheses."""

_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "≤", ast.Gt: ">", ast.GtE: "≥", ast.Eq: "=", ast.NotEq: "≠",
}  # fmt: skip

_FUNCTIONS = {
    "log": "ln", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sign": "sgn",
    "log2": ("log", "2"), "log10": ("log", "10"),
}  # fmt: skip
"""What functions are called in print, with their subscript; others keep their names."""

_FENCES = {"abs": ("|", "|"), "floor": ("⌊", "⌋"), "ceil": ("⌈", "⌉")}


@dataclass(frozen=True)
class Typeset:
    """One formula, or one value that a formula assigns.

    Parameters
    ----------
    name : str or None
        What it is assigned to; None for the result.
    terms : tuple of Element
        ``<math>`` elements, to be read one after the other: the terms of a sum are apart, so that lines can break
        between them.
    """

    name: str | None
    terms: tuple[Element, ...]


def typeset(tree: Tree) -> tuple[Typeset, ...]:
    """A formula as MathML: what it assigns, in order, and its result.

    Constants are rounded to six significant digits; the ``data-exact`` of their elements holds them in full.

    Parameters
    ----------
    tree : Tree
        Of any depth.
    """
    lines = [*tree.assignments, (None, tree.result)]
    return tuple(Typeset(name, tuple(math(*term) for term in _terms(value))) for name, value in lines)


def math(*content: Content) -> Element:
    """A ``<math>`` element in the style of a displayed formula."""
    return element("math", *content, displaystyle="true")


def _terms(node: ast.expr) -> Iterator[tuple[Content, ...]]:
    """The contents of the ``<math>`` elements of an expression, one a term."""
    typesetter = _Typesetter()
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)):
        yield (typesetter.visit(node).markup,)
        return
    for position, (negative, term) in enumerate(_summands(node)):
        piece: _Piece = typesetter.visit(term)
        yield tuple(_signed(piece, negative, position == 0))


@dataclass(frozen=True)
class _Piece:
    """A typeset part: how strongly it binds, what it is the opposite of, and how it may touch its neighbours."""

    markup: Content
    strength: int = _ATOM
    opposite: _Piece | None = None
    digits: bool = False
    wordy: bool = False
    name: str | None = None
    nodes: int = 1


def _operator(symbol: str, form: str = "infix") -> Element:
    return element("mo", symbol, form=form)


def _row(*content: Content) -> Element:
    return element("mrow", *content)


def _fenced(content: Content, left: str = "(", right: str = ")") -> Element:
    return _row(element("mo", left, form="prefix", stretchy="true"), content,
                element("mo", right, form="postfix", stretchy="true"))  # fmt: skip


def _superscript(base: Content, exponent: Content) -> Element:
    """A power; over a subscript, where the base has one."""
    if isinstance(base, Element) and base.name == "msub":
        return Element("msubsup", base.attributes, (*base.content, exponent))
    return element("msup", base, exponent)


def _operand(piece: _Piece, least: int) -> Content:
    return _fenced(piece.markup) if piece.strength < least else piece.markup


def _negative(piece: _Piece, **details: int) -> _Piece:
    """The opposite of a part."""
    if piece.opposite is not None:
        return piece.opposite
    markup = _row(_operator(MINUS, "prefix"), _operand(piece, _PRODUCT))
    return _Piece(markup, _SUM, opposite=piece, nodes=piece.nodes + 1)


def _signed(piece: _Piece, negative: bool, first: bool) -> Iterator[Content]:
    """A term with its sign, which is none for the first if it is positive."""
    if piece.opposite is not None:
        piece, negative = piece.opposite, not negative
    if negative or not first:
        yield _operator(MINUS if negative else "+", "prefix" if first else "infix")
    yield _operand(piece, _PRODUCT)


def _summands(node: ast.expr) -> Iterator[tuple[bool, ast.expr]]:
    """The terms of a sum from left to right, each with whether it is subtracted; sums within are part of it."""
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


class _Typesetter(TreeVisitor):
    """Makes a `_Piece` of each node."""

    def visit_Constant(self, node: ast.Constant) -> _Piece:
        value: Any = node.value
        exact = repr(value)
        if exact.startswith("-"):
            positive = number_element(value, exact.removeprefix("-"))
            return _negative(self._number(value, positive))
        return self._number(value, number_element(value, exact))

    def _number(self, value: float, markup: Element) -> _Piece:
        # A mantissa times a power of ten is a product: as the base of a power it needs parentheses.
        return _Piece(markup, _ATOM if markup.name == "mn" else _PRODUCT, digits=True)

    def visit_Name(self, node: ast.Name) -> _Piece:
        return _Piece(name_element(node.id), wordy=is_word(node.id), name=node.id)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Visit:
        piece = yield node.operand
        if isinstance(node.op, ast.USub):
            return _negative(piece)
        markup = _row(element("mo", "¬", form="prefix"), _operand(piece, _NOT))
        return _Piece(markup, _NOT, nodes=piece.nodes + 1)

    def visit_BinOp(self, node: ast.BinOp) -> Visit:
        rule = _BINARY[type(node.op)]
        return (yield from rule(node))

    def visit_Compare(self, node: ast.Compare) -> Visit:
        first = yield node.left
        parts, nodes = [_operand(first, _SUM)], first.nodes + 1
        for operator, operand in zip(node.ops, node.comparators, strict=True):
            piece = yield operand
            parts += [_operator(_COMPARED[type(operator)]), _operand(piece, _SUM)]
            nodes += piece.nodes
        return _Piece(_row(*parts), _COMPARISON, nodes=nodes)

    def visit_BoolOp(self, node: ast.BoolOp) -> Visit:
        word, strength = ("and", _AND) if isinstance(node.op, ast.And) else ("or", _OR)
        parts: list[Content] = []
        nodes = 1
        for position, operand in enumerate(node.values):
            piece = yield operand
            parts += [_word(word)] * bool(position) + [_operand(piece, strength + bool(position))]
            nodes += piece.nodes
        return _Piece(_row(*parts), strength, nodes=nodes)

    def visit_IfExp(self, node: ast.IfExp) -> Visit:
        rows, nodes = [], 0
        rest: ast.expr = node
        while isinstance(rest, ast.IfExp):
            value = yield rest.body
            test = yield rest.test
            rows.append(_case(value.markup, [_word("if"), test.markup]))
            nodes += value.nodes + test.nodes + 1
            rest = rest.orelse
        value = yield rest
        rows.append(_case(value.markup, [_word("otherwise")]))
        brace = element("mo", "{", form="prefix", stretchy="true")
        return _Piece(_row(brace, element("mtable", *rows, class_="cases")), _CASES, nodes=nodes + value.nodes)

    def visit_Call(self, node: ast.Call) -> Visit:
        assert isinstance(node.func, ast.Name)
        arguments = []
        for argument in node.args:
            arguments.append((yield argument))
        nodes = 1 + sum(argument.nodes for argument in arguments)
        name = node.func.id
        markup, strength = _CALLS[name](*arguments) if name in _CALLS else _applied(name, *arguments)
        return _Piece(markup, strength, nodes=nodes)


def _sum(node: ast.BinOp) -> Visit:
    parts: list[Content] = []
    nodes = 0
    for position, (negative, term) in enumerate(_summands(node)):
        piece = yield term
        parts += _signed(piece, negative, position == 0)
        nodes += piece.nodes + 1
    return _Piece(_row(*parts), _SUM, nodes=nodes)


def _product(node: ast.BinOp) -> Visit:
    factors: list[_Piece] = []
    negative = False
    for factor in _factors(node):
        piece = yield factor
        if piece.opposite is not None and not factors:
            piece, negative = piece.opposite, not negative
        factors.append(piece)
    pieces = []
    # A name times itself is a power of it.
    for _, run in groupby(factors, lambda piece: piece.name or id(piece)):
        piece, *again = run
        if again:
            power = _superscript(piece.markup, element("mn", str(1 + len(again))))
            piece = _Piece(power, _APPLIED, wordy=piece.wordy, nodes=piece.nodes + len(again))
        pieces.append(piece)
    parts: list[Content] = []
    for position, piece in enumerate(pieces):
        if position:
            parts += _times(pieces[position - 1], piece)
        parts.append(_operand(piece, _PRODUCT))
    strength = pieces[0].strength if len(pieces) == 1 else _PRODUCT
    made = _Piece(_row(*parts), strength, digits=pieces[0].digits, wordy=pieces[-1].wordy,
                  nodes=sum(piece.nodes + 1 for piece in pieces))  # fmt: skip
    return _negative(made) if negative else made


def _times(left: _Piece, right: _Piece) -> list[Content]:
    """What stands between two factors: a cross before digits, a dot beside words, else nothing to see.

    A word before a parenthesis would be taken for a function without it.
    """
    if right.digits:
        return [element("mo", "×")]
    if left.wordy or (right.wordy and not left.digits):
        return [element("mo", "⋅")]
    return [element("mo", "\N{INVISIBLE TIMES}"), element("mspace", width="0.17em")]


def _quotient(node: ast.BinOp) -> Visit:
    upper = yield node.left
    lower = yield node.right
    negative = upper.opposite is not None
    made = _Piece(
        element("mfrac", (upper.opposite or upper).markup, lower.markup), _FRACTION, nodes=upper.nodes + lower.nodes + 1
    )
    return _negative(made) if negative else made


def _power(node: ast.BinOp) -> Visit:
    base = yield node.left
    exponent = yield node.right
    nodes = base.nodes + exponent.nodes + 1
    if isinstance(node.right, ast.Constant) and node.right.value == 0.5:
        return _Piece(element("msqrt", base.markup), nodes=nodes)
    return _Piece(_superscript(_operand(base, _ATOM), exponent.markup), _APPLIED, nodes=nodes)


def _floor_quotient(node: ast.BinOp) -> Visit:
    upper = yield node.left
    lower = yield node.right
    quotient = element("mfrac", upper.markup, lower.markup)
    return _Piece(_fenced(quotient, "⌊", "⌋"), nodes=upper.nodes + lower.nodes + 1)


def _modulo(node: ast.BinOp) -> Visit:
    left = yield node.left
    right = yield node.right
    parts = [_operand(left, _PRODUCT + 1), _word("mod"), _operand(right, _PRODUCT + 1)]
    return _Piece(_row(*parts), _SUM, nodes=left.nodes + right.nodes + 1)


_BINARY: Mapping[type[ast.operator], Callable[[ast.BinOp], Visit]] = {
    ast.Add: _sum, ast.Sub: _sum, ast.Mult: _product, ast.Div: _quotient, ast.Pow: _power,
    ast.FloorDiv: _floor_quotient, ast.Mod: _modulo,
}  # fmt: skip


def _word(text: str) -> Element:
    return element("mtext", f"\N{NO-BREAK SPACE}{text}\N{NO-BREAK SPACE}")


def _case(value: Content, condition: Content) -> Element:
    return element("mtr", element("mtd", value), element("mtd", condition))


def _applied(name: str, *arguments: _Piece) -> tuple[Content, int]:
    """A function's name and its arguments in parentheses."""
    printed = _FUNCTIONS.get(name, name)
    if isinstance(printed, tuple):
        head = element("msub", element("mi", printed[0]), element("mn", printed[1]))
    else:
        head = element("mi", printed, mathvariant="normal" if len(printed) == 1 else None)
    listed: list[Content] = []
    for position, argument in enumerate(arguments):
        listed += [element("mo", ",", separator="true")] * bool(position) + [argument.markup]
    return _row(head, element("mo", "\N{FUNCTION APPLICATION}"), _fenced(listed)), _APPLIED


def _raised(piece: _Piece, exponent: str) -> Element:
    return _superscript(_operand(piece, _ATOM), element("mn", exponent))


def _exponential(piece: _Piece) -> tuple[Content, int]:
    # A long exponent is hard to read in small type.
    if piece.nodes > 12:
        return _applied("exp", piece)
    return element("msup", element("mi", "e", mathvariant="normal"), piece.markup), _APPLIED


def _exponential_less_one(piece: _Piece) -> tuple[Content, int]:
    return _row(_exponential(piece)[0], _operator(MINUS), element("mn", "1")), _SUM


def _logarithm_of_more(piece: _Piece) -> tuple[Content, int]:
    argument = _row(element("mn", "1"), list(_signed(piece, False, False)))
    return _applied("log", _Piece(argument, _SUM))


def _within(name: str) -> Callable[[_Piece], tuple[Content, int]]:
    return lambda piece: (_fenced(piece.markup, *_FENCES[name]), _ATOM)


_CALLS: Mapping[str, Callable[..., tuple[Content, int]]] = {
    "sqrt": lambda piece: (element("msqrt", piece.markup), _ATOM),
    "cbrt": lambda piece: (element("mroot", piece.markup, element("mn", "3")), _ATOM),
    "square": lambda piece: (_raised(piece, "2"), _APPLIED),
    "cube": lambda piece: (_raised(piece, "3"), _APPLIED),
    "inv": lambda piece: (element("mfrac", element("mn", "1"), piece.markup), _FRACTION),
    "exp": _exponential,
    "expm1": _exponential_less_one,
    "log1p": _logarithm_of_more,
    "hypot": lambda a, b: (element("msqrt", _raised(a, "2"), _operator("+"), _raised(b, "2")), _ATOM),
    "aq": lambda a, b: (
        element("mfrac", a.markup, element("msqrt", element("mn", "1"), _operator("+"), _raised(b, "2"))),
        _FRACTION,
    ),
    **{name: _within(name) for name in _FENCES},
}
"""Functions with a notation of their own; all others are a name with arguments in parentheses."""
