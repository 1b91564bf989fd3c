"""What a Python function of vectors brings along: bound arguments, outer values and functions.

What is known before the individual is replaced by what it means: names of slices and of lists, loops over known
numbers, and calls of functions of vectors, whose locals become their values.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import math
from collections import Counter
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.arrays.fixed import Fixed, bounds_of, element
from shine.lang.arrays.loops import Loops
from shine.lang.forms.grammar import reject
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import Numbering, shown
from shine.lang.forms.tape import MAX_NODES
from shine.lang.forms.tree import Primitive
from shine.lang.python.expressions import MISSING, Scope, constant, described, load, number_of
from shine.lang.python.functions import Functions
from shine.lang.python.known import OWN_MEANINGS, known_of
from shine.lang.python.source import as_function, definition_of, in_file_of

_REDUCTIONS: Mapping[int, str] = {
    **{id(each): each.__name__ for each in (functools.reduce, math.prod, np.prod, np.sum)},
    **{id(each): each.__name__ for each in (sum, min, max, len, range, zip, enumerate, reversed)},
}
"""Functions of vectors by identity; their words in the language."""

_SIGNS: Mapping[str, type[ast.operator]] = {"sum": ast.Add, "add": ast.Add, "prod": ast.Mult, "mul": ast.Mult}


def bound_arguments(source: Any) -> tuple[Any, dict[str, Any]]:
    """The function of a partial, a method or an object, and the values of parameters that are bound or have defaults.

    The first parameter that is not bound is the individual, also if it has a default.
    """
    arguments: tuple[Any, ...] = ()
    named: dict[str, Any] = {}
    while not inspect.isfunction(source):
        if inspect.ismethod(source):
            arguments, source = (source.__self__, *arguments), source.__func__
        elif isinstance(source, functools.partial):
            arguments, named, source = (*source.args, *arguments), {**source.keywords, **named}, source.func
        elif inspect.isfunction(inspect.getattr_static(type(source), "__call__", None)):
            source = source.__call__
        else:
            return source, {}
    signature = inspect.signature(source, follow_wrapped=False).parameters
    unknown = next((name for name in named if name not in signature), None)
    if unknown is not None or len(arguments) > len(signature):
        raise UnsupportedSyntaxError(f"{source.__name__} takes ({', '.join(signature)}), and other arguments are bound")
    given = dict(zip(signature, arguments, strict=False)) | named
    free = [name for name in signature if name not in given]
    defaults = {name: signature[name].default for name in free[1:]}
    return source, given | {name: value for name, value in defaults.items() if value is not inspect.Parameter.empty}


def with_values(
    node: ast.FunctionDef, function: FunctionType, given: Mapping[str, Any], vectors: dict[str, Any] | None
) -> tuple[ast.FunctionDef, dict[str, Primitive]]:
    """A definition without outer names, and the functions that it calls besides those of the language.

    Parameters
    ----------
    node : ast.FunctionDef
        Changed in place.
    function : function
    given : mapping of str to object
        Values of parameters: see `bound_arguments`.
    vectors : dict of str to array-like, optional
        Gets the outer lists of numbers; the definition has a parameter for each. Without it they are refused.
    """
    own = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    node.args = ast.arguments([], [each for each in own if each.arg not in given], None, [], [], None, [])
    stored = _stored(node)
    numbers = {name: number for name, value in given.items() if (number := number_of(value)) is not None}
    whole = {name: ast.Constant(value) for name, value in given.items() if type(value) is int and name not in stored}
    local = {each.arg for each in node.args.args} | set(stored) | set(numbers)
    outer = _Outer(Scope(function, local, given=given), stored, vectors, {**whole})
    node.body = outer.block(node.body)
    prelude: list[ast.stmt] = [
        ast.Assign([ast.Name(name, ast.Store())], constant(numbers[name])) for name in numbers if name not in whole
    ]
    start = int(isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant))  # a docstring
    node.body[start:start] = prelude
    for each in ast.walk(node):
        if isinstance(each, ast.expr | ast.stmt) and not hasattr(each, "lineno"):
            ast.copy_location(each, node)
    read = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    node.args.args += [ast.arg(name) for name in outer.names.values() if name in read]
    for name in {*outer.names.values()} - read:
        del outer.vectors[name]
    return ast.fix_missing_locations(node), outer.functions


def _stored(node: ast.AST) -> Counter[str]:
    """How often each local name is assigned."""
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load))
    return Counter(each.id for each in names)


class _Outer(Fixed):
    def __init__(self, scope: Scope, stored: Counter[str], vectors: Any, env: dict[str, ast.expr]) -> None:
        super().__init__()
        self._scope, self._stored, self.vectors, self._env = scope, stored, vectors, env
        self._free, self._made = Numbering(scope.local), Functions()
        self._calls: list[Any] = []
        self._tables: list[Any] = []
        self._loops, self._nodes, self._is_certain = 0, 0, True
        self._pending: list[ast.stmt] = []
        self.names: dict[object, str] = {}
        """Of the parameters for lists."""
        self.functions: dict[str, Primitive] = {}

    # Statements

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements that are left."""
        made: list[ast.stmt] = []
        for statement in body:
            found: Any = self.visit(statement)
            made += [*self._computed(), *(found if isinstance(found, list) else [] if found is None else [found])]
        return made

    def _computed(self) -> list[ast.stmt]:
        """The statements that compute parts of the next one."""
        if self._calls:
            return []
        pending, self._pending = self._pending, []
        return pending

    def _named(self, name: str, value: Any) -> Any:
        """A value, or a new name for it, which keeps it and is computed once."""
        if isinstance(value, ast.List | ast.Tuple):
            return ast.List([self._named(name, each) for each in value.elts], ast.Load())
        if self._loops or self._stands(value):
            return value
        name = self._free.take(name)
        self._pending.append(ast.Assign([ast.Name(name, ast.Store())], value))
        return load(name)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | None:
        node.value = self._listed(node.value)
        match node.targets, node.value:
            case [ast.Name(id=name)], value if self._calls or (self._stored[name] == 1 and self._stands(value)):
                self._env[name] = self._named(name, value)
                return None
            case [ast.Tuple(targets)], ast.Name() as value if self._stands(value) and not self._calls:
                node.value = ast.Tuple([element(value, place) for place in range(len(targets))], ast.Load())
            case [ast.Tuple() as target], ast.List() | ast.Tuple() as value:
                node.value = ast.Tuple(value.elts, ast.Load())
                if self._calls:
                    self._bind(target, self._named("part", value))
                    return None
        return node

    def _stands(self, value: ast.expr) -> bool:
        """Whether a name is replaced by its value."""
        match value:
            case ast.Name(id=name):
                return not self._stored[name]
            case ast.Constant(value=number):
                return type(number) is int
            case ast.Subscript(slice=ast.Slice() as part):
                return ... not in bounds_of(part)
        return isinstance(value, ast.List | ast.Tuple | ast.Lambda)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt | None:
        node.value = self.visit(node.value)
        if not (self._calls and isinstance(node.target, ast.Name) and node.target.id in self._env):
            return node
        name = node.target.id
        self._env[name] = self._named(name, ast.BinOp(self._env[name], node.op, node.value))
        return None

    def visit_Delete(self, node: ast.Delete) -> ast.stmt | None:
        return None if self._calls else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._env[node.name] = node  # type: ignore[assignment]

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        match node.value:
            case ast.Call(ast.Attribute(ast.Name(name), "append" | "extend" as how), [item], []):
                items = [self.visit(item)] if how == "append" else self._items(item)
                known = self._env.get(name)
                if items is None or not isinstance(known, ast.List) or not self._is_certain:
                    reject("a list grows by a known number of items, and under no condition", node)
                self._env[name] = ast.List([*known.elts, *(self._named(name, each) for each in items)], ast.Load())
                return None
        return None if self._calls and isinstance(node.value, ast.Constant) else node

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        items = self._items(node.iter)
        if items is None or node.orelse:
            reject("a loop that is no sum runs over known numbers, such as range(3)", node)
        made = self._computed()
        for item in items:
            self._bind(node.target, item)
            made += self.block(copy.deepcopy(node.body))
        return made

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        node.test = self.visit(node.test)
        made = self._computed()
        if isinstance(node.test, ast.Constant):
            return made + self.block(node.body if node.test.value else node.orelse)
        env, is_certain, self._is_certain = self._env, self._is_certain, False
        for part in (node.body, node.orelse):
            self._env = dict(env)
            part[:] = self.block(part)
        self._env, self._is_certain = env, is_certain
        return [*made, node]

    def visit_Return(self, node: ast.Return) -> Any:
        if node.value is not None:
            node.value = self._listed(node.value)
            node.value = ast.Tuple(node.value.elts, ast.Load()) if isinstance(node.value, ast.List) else node.value
        return node

    def _listed(self, node: ast.expr) -> Any:
        """A value; a list, if it is one of a known number of items."""
        match node:
            case ast.Call(ast.Name("list" | "tuple"), [given], []) | (ast.ListComp() as given):
                items = self._items(given)
            case _:
                items = None
        return self.visit(node) if items is None else ast.List(items, ast.Load())

    # Expressions

    def visit_Name(self, node: ast.Name | ast.Attribute) -> ast.AST:
        if isinstance(node, ast.Name) and node.id in self._env:
            self._nodes += sum(1 for _ in ast.walk(self._env[node.id]))
            if self._nodes > MAX_NODES:
                reject("the functions that are called here are too long; call fewer inside each other", node)
            return copy.deepcopy(self._env[node.id])
        value, text = self._scope.find(node), ast.unparse(node)
        number, known = number_of(value), known_of(value)
        name = None if known is None else known.name(2)
        if number is not None:
            made = ast.Constant(int(value)) if isinstance(value, int | np.integer) else constant(number)
            return ast.fix_missing_locations(ast.copy_location(made, node))
        if _is_vector(value):
            return self._vector(id(value), value, node)
        if _is_matrix(value):
            self._tables.append(value)  # a table that was made for this call keeps its identity
            return ast.List([self._vector((id(value), row), each, node) for row, each in enumerate(value)], ast.Load())
        if name not in ("mul", "add") and callable(value):
            reject(f"{shown(text)} is a function, which array formulas only call; write its expression instead", node)
        if name not in ("mul", "add") and value is not MISSING:
            reject(
                f"{shown(text)} is {described(value)}, no number, list or table of numbers; write lists of its "
                "numbers, or make it a parameter, and give an objective its value in constants={...}",
                node,
            )
        return node if name is None else ast.copy_location(load(name), node)

    visit_Attribute = visit_Name

    def _vector(self, key: object, value: Any, node: ast.AST) -> ast.expr:
        text = ast.unparse(node)
        if self.vectors is None:
            reject(f"{shown(text)} is a list; make it a parameter", node)
        if key not in self.names:
            self.names[key] = self._free.take(text.rpartition(".")[2])
            self.vectors[self.names[key]], self.lengths[self.names[key]] = value, len(value)
        return ast.copy_location(load(self.names[key]), node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp | ast.ListComp) -> ast.AST:
        names = [each for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)]
        lists = [name for name, value in self._env.items() if isinstance(value, ast.List)]
        has_rows = any(getattr(each, "id", "") in lists or _is_matrix(self._scope.find(each)) for each in names)
        if has_rows and (items := self._items(node)) is not None:
            return ast.List(items, ast.Load())
        env, self._env, self._loops = self._env, dict(self._env), self._loops + 1
        for part in node.generators:
            part.iter = self.visit(part.iter)
            for each in ast.walk(part.target):
                if isinstance(each, ast.Name):
                    # The locals of a function that is called are not those of its caller.
                    name, each.id = each.id, self._free.take(each.id) if self._calls else each.id
                    self._env[name] = load(each.id)
            part.ifs = [self.visit(each) for each in part.ifs]
        node.elt = self.visit(node.elt)
        self._env, self._loops = env, self._loops - 1
        return node

    visit_ListComp = visit_GeneratorExp

    def _items(self, node: ast.expr) -> list[ast.expr] | None:
        """The items of what is iterated over, if their number is known."""
        node = copy.deepcopy(node)
        if not isinstance(node, ast.GeneratorExp | ast.ListComp):
            return self.known(self.visit(node))
        if len(node.generators) > 1 or node.generators[0].ifs:
            return None
        items = self._items(node.generators[0].iter)
        if items is None:
            return None
        env, made = self._env, []
        for item in items:
            self._env = dict(env)
            self._bind(node.generators[0].target, item)
            made.append(self.visit(copy.deepcopy(node.elt)))
        self._env = env
        return made

    def _bind(self, target: ast.expr, item: ast.expr) -> None:
        match target, item:
            case ast.Name(id=name), _:
                self._env[name] = item
            case ast.Tuple(targets), ast.Tuple(items) | ast.List(items) if len(targets) == len(items):
                for each, part in zip(targets, items, strict=True):
                    self._bind(each, part)
            case _:
                reject("this 'for' needs a name for each part of an item", target)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.args = [self.visit(each) for each in node.args]
        local = self._env.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if isinstance(local, ast.Lambda | ast.FunctionDef):
            return self._inlined(node, local)
        function = self._scope.find(node.func)
        # Texts such as math.prod have become words of the language before.
        word = _REDUCTIONS.get(id(function), ast.unparse(node.func) if function is MISSING else "")
        if word in _REDUCTIONS.values():
            node.func = ast.copy_location(load(word), node.func)
            return ast.copy_location(self._reduced(node, word), node)
        if function is MISSING:
            return node
        try:
            node.func = ast.copy_location(load(self._called(node, function)), node.func)
        except UnsupportedSyntaxError:
            if not inspect.isfunction(bound_arguments(function)[0]):
                raise
            return self._inlined(node, function)
        return node

    def _reduced(self, node: ast.Call, name: str) -> ast.expr:
        """A reduction of items that are known one by one, or the length of a part of a vector."""
        match node.args:
            case [ast.Lambda(ast.arguments(args=[a, b]), ast.BinOp(ast.Name(first), fold, ast.Name(second))), *_] if (
                name == "reduce" and {a.arg, b.arg} == {first, second} and type(fold) in _SIGNS.values()
            ):
                node.args[0] = load("add" if isinstance(fold, ast.Add) else "mul")
        arguments = list(node.args)
        if name == "reduce" and arguments and isinstance(arguments[0], ast.Name):
            name, arguments = arguments[0].id, arguments[1:]
        items = self.known(arguments[0]) if arguments and isinstance(arguments[0], ast.List | ast.Name) else None
        if name == "len" and items is not None:
            return ast.Constant(len(items))
        match name, arguments:
            case "len", [ast.ListComp(_, parts)]:
                return ast.Call(load("sum"), [ast.GeneratorExp(ast.Constant(1), parts)], [])
            case "len", [ast.Subscript(slice=ast.Slice()) as part]:
                each = ast.comprehension(ast.Name(self._free.take("i"), ast.Store()), part, [], 0)
                return ast.Call(load("sum"), [ast.GeneratorExp(ast.Constant(1), [each])], [])
        if items is None or not isinstance(arguments[0], ast.List):
            return node
        begins = [ast.Constant(int(name == "prod"))] if name in ("sum", "prod") and len(arguments) == 1 else []
        terms = [*begins, *arguments[1:], *items]
        if not terms or name not in ("min", "max", *_SIGNS):
            return node
        if name in _SIGNS:
            return functools.reduce(lambda a, b: ast.BinOp(a, _SIGNS[name](), b), terms)
        return ast.Call(load(name), terms, []) if len(terms) > 1 else terms[0]

    def _called(self, node: ast.Call, function: Any) -> str:
        text, known = ast.unparse(node.func), known_of(function)
        name = None if known is None else known.name(2 if known.folded else len(node.args))
        name = None if name is None else OWN_MEANINGS.get(name, name)
        if known is None and isinstance(function, FunctionType | functools.partial) and not node.keywords:
            name = self._made.primitive(function, len(node.args), text.rpartition(".")[2])
        if name is not None and name not in STANDARD and name in self._made.table:
            self.functions[name] = self._made.table[name]
        if name not in STANDARD and name not in self.functions:
            reject(f"{shown(text)} is a function that array formulas cannot call; write its expression instead", node)
        return str(name)

    def _inlined(self, node: ast.Call, function: Any) -> ast.AST:
        """The value of a call of a function of vectors."""
        text, scope, env, is_certain = shown(ast.unparse(node.func)), self._scope, self._env, self._is_certain
        if function in self._calls:
            reject(f"{text} calls itself; write a loop, sum(v*v for v in x)", node)
        own, given = bound_arguments(function)
        with in_file_of(own, f"{text} cannot be called: "):
            is_local = isinstance(function, ast.Lambda | ast.FunctionDef)
            definition = Loops().visit(as_function(copy.deepcopy(function if is_local else definition_of(own))))
            arguments = definition.args
            names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
            free = [name for name in names if name not in given or inspect.isfunction(function)]
            values = {str(each.arg): self.visit(each.value) for each in node.keywords}
            values |= dict(zip(free, node.args, strict=False))
            if len(node.args) > len(free) or set(names) - {*values, *given} or set(values) - set(names):
                raise UnsupportedSyntaxError(f"it takes ({', '.join(names)})")
            values = {name: self._named(name, value) for name, value in values.items()}
            self._is_certain = True
            self._calls.append(function)
            self._env = {**env, **values} if is_local else values
            if not is_local:
                self._scope = Scope(own, {*values, *_stored(definition)}, given=given)
            value = self._result(definition.body)
        self._scope, self._env, self._is_certain = scope, env, is_certain
        self._calls.pop()
        for each in ast.walk(value):
            ast.copy_location(each, node)
        return value

    def _result(self, body: list[ast.stmt]) -> Any:
        """What a function of vectors returns, without its locals."""
        for place, statement in enumerate(body):
            if isinstance(statement, ast.Return) and statement.value is not None:
                return self.visit_Return(statement).value
            if isinstance(statement, ast.If):
                test, env = self.visit(statement.test), self._env
                if isinstance(test, ast.Constant):
                    return self._result([*(statement.body if test.value else statement.orelse), *body[place + 1 :]])
                values = []
                for branch in (statement.body, statement.orelse):
                    self._env = dict(env)
                    values.append(self._result(copy.deepcopy([*branch, *body[place + 1 :]])))
                return ast.IfExp(test, *values)
            if self.block([statement]):
                reject(
                    "functions of vectors are made of 'name = expression', loops that sum, 'if' and 'return'", statement
                )
        raise UnsupportedSyntaxError("it can end without 'return'")


def _is_vector(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "biuf"
    return isinstance(value, list | tuple) and bool(value) and all(number_of(each) is not None for each in value)


def _is_matrix(value: object) -> bool:
    return (isinstance(value, np.ndarray) and value.ndim == 2) or (
        isinstance(value, list | tuple) and bool(value) and all(map(_is_vector, value))
    )
