"""The tree of a formula as a drawing."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shine.formats.page.charts.frame import Figure
from shine.formats.page.markup import Content, Element, coordinate, element
from shine.formats.page.subject import MINUS, breadth, count, elided, number
from shine.lang.forms.tree import Tree
from shine.lang.forms.visitor import TreeVisitor, Visit

SIBLINGS = 14.0
"""Least distance between the edges of two labels on one level."""


def tidy(widths: Sequence[float], children: Sequence[Sequence[int]]) -> list[tuple[float, int]]:
    """Horizontal place of each node's middle, and its level; the root has level 0.

    A parent stands above the middle of its outer children, two subtrees stand as close as their outlines allow, and
    equal subtrees look the same. The leftmost edge is at 0. The first node is the root, and children come after their
    parents.
    """
    relative = [0.0] * len(widths)
    outlines: dict[int, list[tuple[float, float]]] = {}  # left and right edges of the levels of a subtree
    for node in reversed(range(len(widths))):
        together: list[tuple[float, float]] = []
        for child in children[node]:
            own = outlines.pop(child)
            gaps = [right - left for (_, right), (left, _) in zip(together, own, strict=False)]
            relative[child] = max(gaps) + SIBLINGS if gaps else 0.0
            moved = [(left + relative[child], right + relative[child]) for left, right in own]
            shared = [(left, right) for (left, _), (_, right) in zip(together, moved, strict=False)]
            together = [*shared, *together[len(shared) :], *moved[len(shared) :]]
        middle = sum(relative[child] for child in children[node][-1:]) / 2
        for child in children[node]:
            relative[child] -= middle
        edges = [(left - middle, right - middle) for left, right in together]
        outlines[node] = [(-widths[node] / 2, widths[node] / 2), *edges]
    found = [(0.0, 0)] * len(relative)
    for node, below in enumerate(children):
        x, level = found[node]
        for child in below:
            found[child] = (x + relative[child], level + 1)
    leftmost = min(x - width / 2 for (x, _), width in zip(found, widths, strict=True))
    return [(x - leftmost, level) for x, level in found]


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

    def visit_BinOp(self, node: ast.UnaryOp | ast.BinOp | ast.BoolOp) -> Visit:
        operands = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        return (yield from self._applied(_OPERATORS[type(node.op)], operands))

    visit_UnaryOp = visit_BoolOp = visit_BinOp

    def visit_Compare(self, node: ast.Compare) -> Visit:
        label = " ".join(_OPERATORS[type(operator)] for operator in node.ops)
        return (yield from self._applied(label, [node.left, *node.comparators]))

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
    widths = [max(_HIGH, _LETTER * breadth(label) + 16) for label in listing.labels]
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
    nodes: list[Content] = [_node(listing, index, x, y, widths[index]) for index, (x, y) in enumerate(middles)]
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
    kinds = [("function", "functions"), ("feature", "features"), ("constant", "constants, rounded")]
    parts = [(element("span", class_=f"key {kind}"), words) for kind, words in kinds if kind in listing.kinds]
    legend: Content = [(element("span", part, class_="kind"), " ") for part in parts]
    return Figure("Tree of the formula", drawing, legend)


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
