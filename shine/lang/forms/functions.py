"""Functions of the language: straight-line assignments, `if` and `return`, turned into assignments and a result.

Every `if` becomes data (if-conversion, Allen et al. 1983): its test is assigned to a name, the assignments of both
branches are computed, and where the branches meet a conditional expression chooses. A division becomes conditional on
being reached, so that integer mode raises no error on a path that Python would not take.
"""

from __future__ import annotations

import ast
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shine.lang.forms.facts import FACTS
from shine.lang.forms.grammar import ADVICE, ExpressionVerifier, check_name, reject
from shine.lang.forms.names import MOST_CHARACTERS
from shine.lang.forms.tree import BINARY_OPERATORS, Primitive, Tree

_DIVISIONS = tuple(operator for operator, name in BINARY_OPERATORS.items() if FACTS[name].divides)


@dataclass
class Path:
    """A point of the function: the condition under which it is reached, and the current name of each variable."""

    names: dict[str, str | None]
    guard: str | None = None
    reachable: bool = True


_Step = Generator["_Step", Path, Path]


def with_definitions(table: Mapping[str, Primitive], text: str) -> dict[str, Primitive]:
    """A table with the functions that a text defines added to it; each may call those defined before it."""
    known = dict(table)
    for node in ast.parse(text).body:
        assert isinstance(node, ast.FunctionDef)
        definition = verify_function(node, known)
        known[node.name] = Primitive(node.name, len(definition.parameters), definition)
    return known


def verify_function(node: ast.FunctionDef, primitives: Mapping[str, Primitive]) -> Tree:
    """The tree of a function definition.

    An `UnsupportedSyntaxError` if the function is not part of the language; the message names line and column.
    """
    return FunctionVerifier(primitives, parameters_of(node)).verify(check_name(node.name, node), node.body)


def parameters_of(node: ast.FunctionDef) -> list[str]:
    """Names of the parameters of a definition. Errors as of `verify_function`."""
    arguments = node.args
    extra = [*arguments.posonlyargs, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg, *arguments.defaults]
    if any(extra):
        reject("parameters are plain names: no defaults, '*', '**' or '/'", node)
    parameters = [check_name(argument.arg, argument) for argument in arguments.args]
    if len(set(parameters)) < len(parameters):
        reject("a parameter is listed twice", node)
    return parameters


class FunctionVerifier:
    """Verifies the body of a function and turns it into assignments and a result.

    A subclass may verify expressions of another kind.
    """

    def __init__(self, primitives: Mapping[str, Primitive], parameters: Sequence[str]) -> None:
        self.primitives = primitives
        self.parameters = tuple(parameters)
        self.used = set(parameters)
        self.numbers: dict[str, int] = {}
        self.assignments: list[tuple[str, ast.expr]] = []
        self.generated: set[str] = set()
        self.returns: list[tuple[str | None, ast.expr]] = []

    def verify(self, name: str, body: list[ast.stmt]) -> Tree:
        """The tree of a body. Errors as of `verify_function`."""
        end = _run(self._block(body, Path({parameter: parameter for parameter in self.parameters})))
        if end.reachable:
            reject("the function can end without 'return'; every path must return one value", body[-1])
        *conditional, (_, result) = self.returns
        for guard, value in reversed(conditional):
            assert guard is not None
            result = ast.IfExp(_name(guard), value, result)
        return Tree(self.parameters, result, self._needed(result), name, self.primitives)

    def _block(self, body: list[ast.stmt], path: Path) -> _Step:
        for position, statement in enumerate(body):
            if not path.reachable:
                reject("code after 'return' is never reached; remove it", statement)
            match statement:
                case ast.Expr(ast.Constant(str())) if position == 0:
                    pass  # a docstring
                case ast.Return(value=ast.expr() as value):
                    self.returns.append((path.guard, self._expression(value, path)))
                    path.reachable = False
                case ast.Assign(targets=[ast.Name() as target], value=value):
                    self._assignment(target, value, path)
                case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if _fit(targets, values):
                    # All values are computed before any name is assigned: a, b = b, a.
                    computed = [self._conditional(each, path) for each in values]
                    for name, each in zip(targets, computed, strict=True):
                        assert isinstance(name, ast.Name)
                        self._bind(name, each, path)
                case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                    self._assignment(target, value, path)
                case ast.AugAssign(target=ast.Name() as target, op=operator, value=value):
                    current = ast.copy_location(ast.Name(target.id, ast.Load()), target)
                    combined = ast.copy_location(ast.BinOp(current, operator, value), statement)
                    self._assignment(target, combined, path)
                case ast.Delete(targets) if all(isinstance(each, ast.Name) for each in targets):
                    for each in targets:
                        path.names.pop(each.id, None)  # type: ignore[attr-defined]
                case ast.If():
                    path = yield self._if(statement, path)
                case _:
                    kind = type(statement).__name__
                    advice = ADVICE.get(kind, f"{kind} is not part of the language")
                    reject(f"{advice} (functions are made of 'name = expression', 'if' and 'return')", statement)
        return path

    def _if(self, node: ast.If, path: Path) -> _Step:
        test = self._expression(node.test, path)
        taken = self._condition(test if path.guard is None else _and(path.guard, test))
        opposite: ast.expr = ast.UnaryOp(ast.Not(), _name(taken))
        skipped = self._condition(opposite if path.guard is None else _and(path.guard, opposite))
        then = yield self._block(node.body, Path(dict(path.names), taken))
        other = yield self._block(node.orelse, Path(dict(path.names), skipped))
        if not (then.reachable and other.reachable):
            return then if then.reachable else other
        names = {name: self._choice(name, taken, then, other) for name in {**then.names, **other.names}}
        guard = path.guard
        if (then.guard, other.guard) != (taken, skipped):
            assert then.guard is not None and other.guard is not None
            guard = self._condition(ast.BoolOp(ast.Or(), [_name(then.guard), _name(other.guard)]))
        return Path(names, guard)

    def _choice(self, name: str, taken: str, then: Path, other: Path) -> str | None:
        """The name of a variable after both branches; None if one of them does not assign it."""
        first, second = then.names.get(name), other.names.get(name)
        if first is None or second is None or first == second:
            return first if second is not None else None
        return self._assign(name, ast.IfExp(_name(taken), _name(first), _name(second)))

    def _expression(self, node: ast.expr, path: Path) -> ast.expr:
        value: ast.expr = ExpressionVerifier(self.primitives, path.names).visit(node)
        return value

    def _assignment(self, target: ast.Name, node: ast.expr, path: Path) -> None:
        self._bind(target, self._conditional(node, path), path)

    def _conditional(self, node: ast.expr, path: Path) -> ast.expr:
        """A value that is computed only where its path is reached, if it can trap."""
        value = self._expression(node, path)
        if path.guard is not None and can_trap(value):
            return ast.IfExp(_name(path.guard), value, ast.Constant(0))
        return value

    def _bind(self, target: ast.Name, value: ast.expr, path: Path) -> None:
        name = check_name(target.id, target)
        path.names[name] = self._assign(name, value)

    def _condition(self, value: ast.expr) -> str:
        name = self._assign("condition", value)
        self.generated.add(name)
        return name

    def _assign(self, name: str, value: ast.expr) -> str:
        # Keep the last number of each name: a variable may be assigned thousands of times.
        unique, number = name, self.numbers.get(name, 1)
        while unique in self.used:
            ending = f"_{number}"
            unique, number = name[: MOST_CHARACTERS - len(ending)] + ending, number + 1
        self.numbers[name] = number
        self.used.add(unique)
        self.assignments.append((unique, value))
        return unique

    def _needed(self, result: ast.expr) -> tuple[tuple[str, ast.expr], ...]:
        """The assignments without the conditions that nothing uses."""
        needed = _names(result)
        kept = []
        for name, value in reversed(self.assignments):
            if name in needed or name not in self.generated:
                kept.append((name, value))
                needed |= _names(value)
        return tuple(reversed(kept))


def can_trap(expression: ast.expr) -> bool:
    """Whether an expression divides: integer mode raises an error if the divisor is zero."""
    return any(isinstance(node, ast.BinOp) and isinstance(node.op, _DIVISIONS) for node in ast.walk(expression))


def _fit(targets: Sequence[ast.expr], values: Sequence[ast.expr]) -> bool:
    """Whether an assignment of a tuple assigns one value to each of some names."""
    return len(targets) == len(values) and all(isinstance(target, ast.Name) for target in targets)


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _and(guard: str, value: ast.expr) -> ast.expr:
    return ast.BoolOp(ast.And(), [_name(guard), value])


def _names(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def _run(step: _Step) -> Path:
    """Run nested steps on an explicit stack: a chain of `elif` can nest deeper than Python's stack allows."""
    stack: list[Any] = [step]
    result: Any = None
    while stack:
        try:
            stack.append(stack[-1].send(result))
            result = None
        except StopIteration as finished:
            stack.pop()
            result = finished.value
    assert isinstance(result, Path)
    return result
