"""Walking a formula to say it in another language: one rule a primitive, whatever a rule makes.

A rule gets the translated operands and returns the translated value. What has no rule of its own is translated by
its definition, so that only the basic primitives need one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from shine.errors import ExportError
from shine.lang.interpretation import Interpretation
from shine.lang.library import STANDARD
from shine.lang.primitives import BASIC
from shine.lang.tree import Primitive, Tree
from shine.lang.visitor import Visit

NODE_KINDS = frozenset({"constant", "name", "assign", "compare"})
"""Kinds of the tokens of a tree that are no calls of primitives."""

Value = TypeVar("Value")


class Translation(Interpretation, Generic[Value]):
    """Translates trees, each value once; subclasses say how.

    Attributes
    ----------
    form : str
        What the formula is exported to, for errors.
    names : dict of str to Value
        What each parameter and each assigned name is in the other language.
    functions : mapping of str to Primitive
        The functions that the tree in hand may call.
    """

    form = "another form"

    def __init__(self) -> None:
        self.names: dict[str, Value] = {}
        self.functions: Mapping[str, Primitive] = {}

    def rules(self) -> Mapping[str, Callable[..., Value]]:
        """The rule of each primitive that has one."""
        raise NotImplementedError

    def number(self, value: int | float) -> Value:
        """A number in the other language."""
        raise NotImplementedError

    def apply(self, name: str, *operands: Value) -> Value:
        """The value of a primitive that has a rule."""
        return self.rules()[name](*operands)

    def assigned(self, name: str, value: Value) -> Value:
        """What an assigned name stands for; by default the value itself, wherever the name is used."""
        return value

    def translate(self, tree: Tree, arguments: Sequence[Value]) -> Value:
        """The value of a formula whose parameters are the arguments."""
        # The outermost body is walked by hand: `visit` starts from a node of the syntax tree.
        self.names, self.functions = dict(zip(tree.parameters, arguments, strict=True)), tree.functions
        for name, value in tree.assignments:
            self.names[name] = self.assigned(name, self.visit(value))
        result: Value = self.visit(tree.result)
        return result

    def expanded(self, definition: Tree, operands: Sequence[Value]) -> Visit:
        """Translate the body of a function in the place of its call."""
        caller = self.names, self.functions
        self.names, self.functions = dict(zip(definition.parameters, operands, strict=True)), definition.functions
        for name, value in definition.assignments:
            self.names[name] = self.assigned(name, (yield value))
        result = yield definition.result
        self.names, self.functions = caller
        return result

    def composite(self, primitive: Primitive, definition: Tree, operands: Sequence[Value]) -> Visit:
        """Translate the call of a function without a rule."""
        return (yield from self.expanded(definition, operands))

    def visit_Constant(self, node: ast.Constant) -> Value:
        assert isinstance(node.value, int | float)
        return self.number(node.value)

    def visit_Name(self, node: ast.Name) -> Value:
        return self.names[node.id]

    def visit_Call(self, node: ast.Call) -> Visit:
        assert isinstance(node.func, ast.Name)
        name, operands = node.func.id, []
        for argument in node.args:
            operands.append((yield argument))
        primitive = self.functions.get(name)
        if name in BASIC or (name in self.rules() and primitive is not None and is_standard(primitive)):
            return self._apply(name, *operands)
        if primitive is None or primitive.definition is None:
            raise ExportError(f"primitive {name!r} cannot be exported to {self.form}: it has no definition")
        return (yield from self.composite(primitive, primitive.definition, operands))

    def _apply(self, name: str, *operands: Value) -> Value:
        if name not in self.rules():
            raise ExportError(f"primitive {name!r} cannot be exported to {self.form}")
        return self.apply(name, *operands)


def is_standard(primitive: Primitive) -> bool:
    """Whether a composite primitive is the one that Shine's library has under its name."""
    known = STANDARD.get(primitive.name)
    return known is not None and (known is primitive or known.definition == primitive.definition)


def composites(tree: Tree, form: str) -> list[Primitive]:
    """The functions with a definition that a formula calls, directly or not, each after those it calls itself.

    Raises
    ------
    ExportError
        If one that is called has no definition.
    """
    done: dict[int, Primitive] = {}
    stack: list[tuple[Primitive | None, Iterator[Primitive]]] = [(None, _called(tree, form))]
    begun: set[int] = set()
    while stack:
        caller, waiting = stack[-1]
        primitive = next((p for p in waiting if id(p) not in begun), None)
        if primitive is None:
            stack.pop()
            if caller is not None:
                done[id(caller)] = caller
        elif primitive.definition is not None:
            begun.add(id(primitive))
            stack.append((primitive, _called(primitive.definition, form)))
    return list(done.values())


def _called(tree: Tree, form: str) -> Iterator[Primitive]:
    """The functions that a formula itself calls, without the basic ones."""
    for kind, _ in tree.tokens[1:]:
        if kind in BASIC or kind in NODE_KINDS:
            continue
        primitive = tree.functions.get(kind)
        if primitive is None or primitive.definition is None:
            raise ExportError(f"primitive {kind!r} cannot be exported to {form}: it has no definition")
        yield primitive
