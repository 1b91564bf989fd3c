"""Translates a formula with one rule for each primitive; rules make text, or another library's objects.

A rule gets the translated operands and returns the translated value. A primitive without a rule is translated by its
definition, so only the basic primitives need rules.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from shine.base.errors import ExportError
from shine.lang.forms.interpretation import Interpretation
from shine.lang.forms.library import STANDARD
from shine.lang.forms.named_numbers import named_number
from shine.lang.forms.primitives import BASIC
from shine.lang.forms.tree import BINARY_OPERATORS, Primitive, Tree
from shine.lang.forms.visitor import Visit

NODE_KINDS = frozenset({"constant", "name", "assign", "compare"})
"""Kinds of a tree's tokens that do not call a primitive."""

Value = TypeVar("Value")


class Translation(Interpretation, Generic[Value]):
    """Translates trees, each value once; a subclass supplies the rules.

    Attributes
    ----------
    form : str
        Name of the other language, for errors.
    pi : Value or None
        Translation of pi, if numbers are written by name: ``4*pi/3``, ``sqrt(2)``. None for digits.
    names : dict of str to Value
        Translation of each parameter and of each assigned name.
    functions : mapping of str to Primitive
        The functions that the current tree may call.
    """

    form = "another form"
    pi: Value | None = None

    def __init__(self) -> None:
        self.names: dict[str, Value] = {}
        self.functions: Mapping[str, Primitive] = {}
        self._pi_is_a_feature = False

    def rules(self) -> Mapping[str, Callable[..., Value]]:
        """The rule of each primitive that has one."""
        raise NotImplementedError

    def number(self, value: int | float) -> Value:
        """The translation of a number."""
        raise NotImplementedError

    def apply(self, name: str, *operands: Value) -> Value:
        """Translate a primitive that has a rule."""
        return self.rules()[name](*operands)

    def assigned(self, name: str, value: Value) -> Value:
        """The translation of an assigned name; by default its value, repeated at every use."""
        return value

    def translate(self, tree: Tree, arguments: Sequence[Value]) -> Value:
        """Translate a formula, given the translations of its parameters."""
        self._pi_is_a_feature = "pi" in tree.parameters
        # The outermost body is walked by hand: `visit` starts from a node of the syntax tree.
        self.names, self.functions = dict(zip(tree.parameters, arguments, strict=True)), tree.functions
        for name, value in tree.assignments:
            self.names[name] = self.assigned(name, self.visit(value))
        result: Value = self.visit(tree.result)
        return result

    def expanded(self, definition: Tree, operands: Sequence[Value]) -> Visit:
        """Translate a function's body in place of its call."""
        caller = self.names, self.functions
        self.names, self.functions = dict(zip(definition.parameters, operands, strict=True)), definition.functions
        for name, value in definition.assignments:
            self.names[name] = self.assigned(name, (yield value))
        result = yield definition.result
        self.names, self.functions = caller
        return result

    def composite(self, primitive: Primitive, definition: Tree, operands: Sequence[Value]) -> Visit:
        """Translate a call of a function without a rule; by default, write out its body."""
        return (yield from self.expanded(definition, operands))

    def visit_Constant(self, node: ast.Constant) -> Value:
        assert isinstance(node.value, int | float)
        named = None if self.pi is None else named_number(abs(float(node.value)))
        if named is None or self._pi_is_a_feature:
            return self.number(node.value)
        positive = self._written(named.expression)
        return positive if node.value > 0 else self.rules()["neg"](positive)

    def _written(self, node: ast.expr) -> Value:
        """The translation of a named number, which is not computed."""
        match node:
            case ast.Constant(value=int(value)):
                return self.number(value)
            case ast.Constant():
                assert self.pi is not None
                return self.pi
            case ast.Call(func=ast.Name(id=name), args=operands):
                pass
            case ast.BinOp(left=left, op=operator, right=right):
                name, operands = BINARY_OPERATORS[type(operator)], [left, right]
        return self.rules()[name](*(self._written(operand) for operand in operands))

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
    """Whether a composite primitive is the one of Shine's library with that name."""
    known = STANDARD.get(primitive.name)
    return known is not None and (known is primitive or known.definition == primitive.definition)


def composites(tree: Tree, form: str) -> list[Primitive]:
    """The composite primitives that a formula calls, directly or not, callees before callers.

    An `ExportError` if one of them has no definition.
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
    """The composite primitives that a formula calls directly."""
    for kind, _ in tree.tokens[1:]:
        if kind in BASIC or kind in NODE_KINDS:
            continue
        primitive = tree.functions.get(kind)
        if primitive is None or primitive.definition is None:
            raise ExportError(f"primitive {kind!r} cannot be exported to {form}: it has no definition")
        yield primitive
