"""Values -> a tree that reads like a formula: one expression, and assignments only for what is used more than once."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from shine.lang.tree import Tree
from shine.lang.values import ValueGraph

NESTED = 40
"""Depth to which expressions are nested; Python's parser reads back more than twice as much."""


def written(graph: ValueGraph, value: int, parameters: Sequence[str], name: str = "formula") -> Tree:
    """The tree of a value.

    Parameters
    ----------
    graph : ValueGraph
    value : int
    parameters : sequence of str
        Those of the tree; the value may not need all of them.
    name : str

    Returns
    -------
    Tree
        Its text can be parsed again, however deep the formula is.
    """
    (tree,) = graph.write([value], parameters, name)
    return _nested(tree)


def _nested(tree: Tree) -> Tree:
    """Assignments that are used once written into where they are used, as far as that does not nest too deeply."""
    expressions = [value for _, value in tree.assignments] + [tree.result]
    uses = Counter(node.id for value in expressions for node in ast.walk(value) if isinstance(node, ast.Name))
    nesting = _Nesting()
    assignments = []
    for name, value in tree.assignments:
        value = nesting.visit(value)
        depth = _depth(value)
        if uses[name] == 1 and depth < NESTED:
            nesting.values[name] = value
        else:
            assignments.append((name, value))
    return replace(tree, result=nesting.visit(tree.result), assignments=tuple(assignments))


class _Nesting(ast.NodeTransformer):
    """Puts values in the place of names. Recursive: what the graph writes, and what is put in, is of bounded depth."""

    def __init__(self) -> None:
        self.values: dict[str, ast.expr] = {}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.pop(node.id, node)


def _depth(node: ast.AST) -> int:
    return 1 + max((_depth(child) for child in ast.iter_child_nodes(node)), default=0)
