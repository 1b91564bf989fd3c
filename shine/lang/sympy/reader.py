"""Walks SymPy's expressions and keeps the values of their nodes; a rule gives each class of nodes its meaning."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from types import GeneratorType
from typing import Any, NoReturn

from shine.base.errors import GraphImportError, UnsupportedSyntaxError
from shine.lang.forms.grammar import check_name, check_number
from shine.lang.forms.tree import Primitive
from shine.lang.forms.visitor import TreeVisitor
from shine.lang.meaning.values import ValueGraph

Steps = Generator[Any, int, int]
"""A rule in progress: yields SymPy's expressions, receives their values, returns its own value."""


class SymbolReader(TreeVisitor):
    """Turns expressions into values. A subexpression that is used in several places is one value.

    Parameters
    ----------
    names : mapping of sympy.Symbol to str
        Names of symbols in the language. Other symbols keep their own names.
    primitives : mapping of str to Primitive
        Primitives that undefined functions may stand for, by name.
    rules : mapping of str to callable
        Rule of each of SymPy's classes by its name; a subclass has the rule of its base.
    functions : sequence of str
        SymPy's functions with a rule, for messages.
    """

    def __init__(
        self,
        names: Mapping[Any, str],
        primitives: Mapping[str, Primitive],
        rules: Mapping[str, Callable[[SymbolReader, Any], Any]],
        functions: Sequence[str],
    ) -> None:
        self.rules, self.functions = rules, functions
        self.graph = ValueGraph()
        self.names, self.primitives = names, primitives
        self.symbols: dict[str, Any] = {}
        self.values: dict[int, int] = {}

    def visit(self, node: Any) -> int:
        """The value of an expression."""
        value: int = super().visit(node)
        return value

    def generic_visit(self, node: Any) -> Any:
        """The value of a node, computed at its first visit."""
        # By identity: SymPy compares equal expressions node by node, with Python's own stack.
        known = self.values.get(id(node))
        return self._new(node) if known is None else known

    def _new(self, node: Any) -> Steps:
        rule = next((self.rules[kind.__name__] for kind in type(node).__mro__ if kind.__name__ in self.rules), None)
        if rule is None:
            self.reject(node)
        value = rule(self, node)
        if isinstance(value, GeneratorType):
            value = yield from value
        self.values[id(node)] = value
        return value

    def reject(self, node: Any) -> NoReturn:
        """Raise the error for a node that has no counterpart."""
        kind = type(node).__name__
        unevaluated = "; evaluate it with doit() first" if kind in ("Derivative", "Integral", "Sum", "Product") else ""
        functions = ", ".join(self.functions)
        raise GraphImportError(
            f"SymPy's {kind} has no counterpart in the language{unevaluated} (supported are sums, products, powers, "
            f"real numbers, symbols, {functions}, and undefined functions that are called like primitives)"
        )

    def number(self, number: int | float, node: Any) -> int:
        """The value of a number that float64 can hold."""
        try:
            return self.graph.constant(check_number(number))
        except UnsupportedSyntaxError as error:
            raise GraphImportError(f"SymPy's {type(node).__name__}: {error}") from None

    def symbol(self, node: Any) -> int:
        """The value of a symbol."""
        name = check_name(self.names.get(node, node.name))
        if self.symbols.setdefault(name, node) != node:
            raise GraphImportError(
                f"two different symbols are called {name!r}; use one of them, or give them names of their own"
            )
        return self.graph.parameter(name)

    def power(self, base: int, exponent: int) -> int:
        """A whole power, by squaring."""
        name = {2: "square", 3: "cube"}.get(exponent)
        if exponent == 1:
            return base
        if name and not self.graph.is_parameter(base):
            return self.graph.apply(name, base)
        if exponent % 2 or exponent == 2:
            return self.graph.apply("mul", self.power(base, exponent - 1), base)
        return self.power(self.power(base, exponent // 2), 2)

    def truth(self, value: int, node: Any) -> int:
        """A value as 1 or 0, unless it is a condition already."""
        is_number = isinstance(node, sys.modules["sympy"].Expr)
        return self.graph.apply("ne", value, self.graph.constant(0)) if is_number else value
