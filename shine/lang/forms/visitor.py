"""Walks trees without recursion: a tree may be deeper than Python's stack."""

from __future__ import annotations

import ast
from collections.abc import Generator
from types import GeneratorType
from typing import Any

Visit = Generator[ast.AST, Any, Any]
"""A visit in progress: yields child nodes, receives their results, returns the result of the node."""


class TreeVisitor(ast.NodeVisitor):
    """An `ast.NodeVisitor` whose methods may be generators: ``left = yield node.left`` visits a child.

    `visit` runs them on an explicit stack, so that only memory limits the depth of a tree. A method that visits no
    child is an ordinary method. A node type without a method is an error.
    """

    def visit(self, node: ast.AST) -> Any:
        stack: list[Visit] = []
        while True:
            result = getattr(self, f"visit_{type(node).__name__}", self.generic_visit)(node)
            if isinstance(result, GeneratorType):
                stack.append(result)
                result = None
            while stack:
                try:
                    node = stack[-1].send(result)
                except StopIteration as finished:
                    stack.pop()
                    result = finished.value
                else:
                    break
            else:
                return result

    def generic_visit(self, node: ast.AST) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no rule for {type(node).__name__}")
