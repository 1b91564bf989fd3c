"""The tree of a formula as a drawing."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shine.formats.page.charts.frame import Figure
from shine.formats.page.markup import Content, Element, coordinate, element
from shine.formats.page.subject import MINUS, count, elided, number
from shine.lang.forms.tree import Tree
from shine.lang.forms.visitor import TreeVisitor, Visit

SIBLINGS = 14.0
"""Least distance between the edges of two labels on one level."""


@dataclass
class _Outline:
    """Left and right edges of a subtree on each of its levels, the deepest first, relative to `offset`."""

    lefts: list[float]
    rights: list[float]
    offset: float = 0.0


def tidy(widths: Sequence[float], children: Sequence[Sequence[int]]) -> list[tuple[float, int]]:
    """Horizontal place of each node's middle, and its level; the root has level 0.

    A parent stands above the middle of its outer children, two subtrees stand as close as their outlines allow, and
    equal subtrees look the same. The leftmost edge is at 0.

    Parameters
    ----------
    widths : sequence of float, one for each node
    children : sequence of sequences of int
        Positions of each node's children from left to right, all after the node's own; the first node is the root.

    Notes
    -----
    Merging two outlines visits only the levels they share, and keeps the longer one. So the time is proportional to
    the number of nodes, without recursion.
    """
    relative = [0.0] * len(widths)
    outlines: dict[int, _Outline] = {}
    for node in reversed(range(len(widths))):
        parts = [outlines.pop(child) for child in children[node]]
        half = widths[node] / 2
        if not parts:
            outlines[node] = _Outline([-half], [half])
            continue
        places = [0.0]
        merged = parts[0]
        for part in parts[1:]:
            place = _distance(merged, part)
            part.offset += place
            places.append(place)
            merged = _together(merged, part)
        middle = (places[0] + places[-1]) / 2
        for child, place in zip(children[node], places, strict=True):
            relative[child] = place - middle
        merged.offset -= middle
        merged.lefts.append(-half - merged.offset)
        merged.rights.append(half - merged.offset)
        outlines[node] = merged
    return _absolute(relative, widths, children)


def _distance(left: _Outline, right: _Outline) -> float:
    """Least distance of the right subtree from the first child of the left one."""
    shared = min(len(left.rights), len(right.lefts))
    gaps = (
        (left.rights[-level] + left.offset) - (right.lefts[-level] + right.offset) for level in range(1, shared + 1)
    )
    return max(gaps) + SIBLINGS


def _together(left: _Outline, right: _Outline) -> _Outline:
    """The outline of both: the deeper one, overwritten on the levels of the other."""
    if len(left.lefts) >= len(right.lefts):
        for level in range(1, len(right.rights) + 1):
            left.rights[-level] = right.rights[-level] + right.offset - left.offset
        return left
    for level in range(1, len(left.lefts) + 1):
        right.lefts[-level] = left.lefts[-level] + left.offset - right.offset
    return right


def _absolute(
    relative: list[float], widths: Sequence[float], children: Sequence[Sequence[int]]
) -> list[tuple[float, int]]:
    places = [(0.0, 0)] * len(relative)
    for node, below in enumerate(children):
        x, level = places[node]
        for child in below:
            places[child] = (x + relative[child], level + 1)
    leftmost = min(x - width / 2 for (x, _), width in zip(places, widths, strict=True))
    return [(x - leftmost, level) for x, level in places]


LARGEST = 120
"""Nodes of the largest tree that is drawn; nobody could read a larger one."""

_LEVEL, _HIGH, _LETTER, _EDGE = 52.0, 26.0, 7.6, 6.0

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: MINUS, ast.Mult: "×", ast.Div: "÷", ast.FloorDiv: "⌊÷⌋", ast.Mod: "mod", ast.Pow: "xʸ",
    ast.USub: MINUS, ast.Not: "not", ast.And: "and", ast.Or: "or",
    ast.Lt: "<", ast.LtE: "≤", ast.Gt: ">", ast.GtE: "≥", ast.Eq: "=", ast.NotEq: "≠",
}  # fmt: skip

_FUNCTIONS = {"sqrt": "√", "cbrt": "∛", "square": "x²", "cube": "x³", "inv": "1/x", "abs": "|x|"}


@dataclass
class _Listing(TreeVisitor):
    """Labels, kinds and children of the nodes, each node after its parent."""

    headings: Mapping[str, str]
    labels: list[str] = field(default_factory=list)
    exact: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)

    def _add(self, label: str, kind: str = "function", exact: str = "") -> int:
        self.labels.append(label)
        self.exact.append(exact if exact != label else "")
        self.kinds.append(kind)
        self.children.append([])
        return len(self.labels) - 1

    def _applied(self, label: str, operands: list[ast.expr], exact: str = "") -> Visit:
        node = self._add(label, exact=exact)
        for operand in operands:
            self.children[node].append((yield operand))
        return node

    def visit_Constant(self, node: ast.Constant) -> int:
        value: Any = node.value
        return self._add(number(value), "constant", repr(value))

    def visit_Name(self, node: ast.Name) -> int:
        heading = self.headings.get(node.id, node.id)
        return self._add(elided(heading), "feature", heading)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Visit:
        return (yield from self._applied(_OPERATORS[type(node.op)], [node.operand]))

    def visit_BinOp(self, node: ast.BinOp) -> Visit:
        return (yield from self._applied(_OPERATORS[type(node.op)], [node.left, node.right]))

    def visit_Compare(self, node: ast.Compare) -> Visit:
        label = " ".join(_OPERATORS[type(operator)] for operator in node.ops)
        return (yield from self._applied(label, [node.left, *node.comparators]))

    def visit_BoolOp(self, node: ast.BoolOp) -> Visit:
        return (yield from self._applied(_OPERATORS[type(node.op)], node.values))

    def visit_IfExp(self, node: ast.IfExp) -> Visit:
        return (yield from self._applied("if", [node.test, node.body, node.orelse], "test, value if it holds, else"))

    def visit_Call(self, node: ast.Call) -> Visit:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        return (yield from self._applied(_FUNCTIONS.get(name, elided(name)), node.args, name))

    def all_of(self, tree: Tree) -> None:
        """List the whole formula; with assignments, its root has a branch for each and one for the result."""
        if not tree.assignments:
            self.visit(tree.result)
            return
        root = self._add(tree.name)
        for name, value in [*tree.assignments, ("return", tree.result)]:
            branch = self._add(f"{name} =" if value is not tree.result else name)
            self.children[root].append(branch)
            self.children[branch].append(self.visit(value))


def tree_figure(tree: Tree, headings: Mapping[str, str], identity: str = "tree") -> Figure | None:
    """The tree with functions, features and constants in different colours; None if it is too large."""
    if tree.size > LARGEST:
        return None
    listing = _Listing(headings)
    listing.all_of(tree)
    widths = [max(_HIGH, _LETTER * len(label) + 16) for label in listing.labels]
    places = tidy(widths, listing.children)
    wide = max(x + width / 2 for (x, _), width in zip(places, widths, strict=True)) + 2 * _EDGE
    high = max(level for _, level in places) * _LEVEL + _HIGH + 2 * _EDGE
    middles = [(x + _EDGE, level * _LEVEL + _HIGH / 2 + _EDGE) for x, level in places]
    branches = "".join(
        f"M{coordinate(middles[node][0])},{coordinate(middles[node][1])}"
        f"L{coordinate(middles[child][0])},{coordinate(middles[child][1])}"
        for node, below in enumerate(listing.children)
        for child in below
    )
    nodes: list[Content] = []
    for index, (x, y) in enumerate(middles):
        nodes.append(_node(listing, index, x, y, widths[index]))
    drawing = element(
        "svg",
        element("path", d=branches, class_="branches"),
        nodes,
        viewBox=f"0 0 {coordinate(wide)} {coordinate(high)}",
        # As wide as the page allows; it scrolls before its letters become too small.
        style=f"max-width: {wide:.0f}px; min-width: {min(wide, 0.62 * wide + 60):.0f}px",
        role="img",
        aria_label=f"Tree of the chosen formula, {count(len(nodes), 'node')}.",
        class_="tree",
        id=identity,
        data_root=middles[0][0] / wide,
    )
    return Figure("Tree of the formula", drawing, _legend())


def _node(listing: _Listing, index: int, x: float, y: float, width: float) -> Element:
    # Constants have square corners, so that kinds differ not only by colour.
    round_ = 4.0 if listing.kinds[index] == "constant" else _HIGH / 2
    exact = listing.exact[index]
    return element(
        "g",
        element("rect", x=x - width / 2, y=y - _HIGH / 2, width=width, height=_HIGH, rx=round_),
        element("text", listing.labels[index], x=x, y=y + 4.5, text_anchor="middle"),
        class_=f"node {listing.kinds[index]}",
        data_exact=exact or None,
    )


def _legend() -> Content:
    kinds = [("function", "functions"), ("feature", "features"), ("constant", "constants, rounded")]
    return [[element("span", class_=f"key {kind}"), f"{words} "] for kind, words in kinds]
