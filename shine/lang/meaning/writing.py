"""Values -> a tree that reads like a formula: one expression; only values that are used repeatedly are assigned."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from shine.lang.forms.tree import Tree
from shine.lang.meaning.values import ValueGraph

NESTED = 40
"""Greatest depth of nested expressions. Python's parser reads more than twice this depth."""


def written(graph: ValueGraph, value: int, parameters: Sequence[str], name: str = "formula") -> Tree:
    """The tree of a value.

    Parameters
    ----------
    graph : ValueGraph
    value : int
    parameters : sequence of str
        Parameters of the tree. The value need not depend on all of them.
    name : str

    Returns
    -------
    Tree
        Its text can be parsed, however deep the formula is.
    """
    (tree,) = graph.write([value], parameters, name)
    return _nested(tree)


def _nested(tree: Tree) -> Tree:
    """The tree with the assignments that are used once moved to their use, unless that nests too deeply."""
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
    """Replaces names by values. It may recurse: the depth of all these expressions is limited."""

    def __init__(self) -> None:
        self.values: dict[str, ast.expr] = {}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.pop(node.id, node)


def _depth(node: ast.AST) -> int:
    return 1 + max((_depth(child) for child in ast.iter_child_nodes(node)), default=0)
