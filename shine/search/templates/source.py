"""The source of a template, read: what is called, what is a column, what a parameter, and the outputs."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from shine.lang.forms.functions import parameters_of, verify_function
from shine.lang.forms.grammar import NAMED_CONSTANTS, check_name, reject
from shine.lang.forms.names import listed, normalized, shown
from shine.lang.forms.primitives import near_primitive
from shine.lang.forms.synonyms import LACKING, OTHER_NAMES
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.parse import natural_order, syntax_tree
from shine.lang.python.known import bare_names
from shine.lang.python.source import as_function, definition_of
from shine.search.templates.template import Parameter, Template, Unknown
from shine.search.templates.unrolling import BY_GROUP, Unroller

DERIVATIVE = "D"
"""Name of the operator of derivatives: ``D(f, 0)(x)``."""

_Calls = dict[str, tuple[str, tuple[int, ...]]]


@dataclass(frozen=True)
class _Definition:
    """A template as a function definition.

    Parameters
    ----------
    node : ast.FunctionDef
    columns : tuple of str or None
        Its arguments; None for an expression, which does not say which names are columns.
    """

    node: ast.FunctionDef
    columns: tuple[str, ...] | None


def _definition(source: str | FunctionType) -> _Definition:
    match syntax_tree(source) if isinstance(source, str) else bare_names(definition_of(source)):
        case (
            ast.Module(body=[ast.FunctionDef() as given])
            | ast.Expression(body=ast.Lambda() as given)
            | ((ast.FunctionDef() | ast.Lambda()) as given)
        ):
            function = as_function(given)
            function.decorator_list = []
            return _Definition(function, tuple(parameters_of(function)))
        case ast.Expression(body=value):
            result = ast.copy_location(ast.Return(value), value)
            arguments = ast.arguments([], [], None, [], [], None, [])
            return _Definition(ast.FunctionDef("law", arguments, [result], []), None)
    reject("a template is one expression or one function definition")


class _Body(Unroller):
    """Writes out loops, and gives derivatives of unknown functions a name.

    Attributes
    ----------
    calls : dict
        See `Template.calls`.
    found : dict of str to list of list of ast.expr
        Arguments of the calls of each unknown function.
    """

    def __init__(
        self, unknowns: Mapping[str, Unknown] | None, groups: str | None, known: Mapping[str, Primitive]
    ) -> None:
        super().__init__(groups)
        self.unknowns, self.known = unknowns, known
        self.calls: _Calls = {}
        self.found: dict[str, list[list[ast.expr]]] = {}

    def visit_Call(self, node: ast.Call) -> ast.expr:
        by: list[ast.expr] = []
        function = node.func
        while isinstance(function, ast.Call) and _is_derivative(function.func):
            if len(function.args) != 2 or function.keywords:
                reject("a derivative is D(f, 0)(a, b): a function and the number of its argument, from 0", function)
            by.insert(0, function.args[1])
            function = function.args[0]
        if not isinstance(function, ast.Name):
            reject("only functions can be called, by their names, and derivatives of unknown functions", node)
        name = str(normalized(function.id))
        if self.unknowns is None or name not in self.unknowns:
            function.id = name = OTHER_NAMES.get(name, name) if name not in self.known else name
        if _is_derivative(function) and (self.unknowns is None or name not in self.unknowns):
            reject("a derivative needs arguments: D(f, 0)(a, b)", node)
        if not by and (name in self.known or name in ("sum", "prod")) and name not in (self.unknowns or {}):
            return super().visit_Call(node)
        self._check(name, function, node)
        node.args = [self.visit(argument) for argument in node.args]
        self.found.setdefault(name, []).append(node.args)
        places = tuple(self._place(name, each) for each in by)
        called = name if not places else f"D{'_'.join(map(str, places))}_{name}"
        self.calls[called] = name, places
        node.func = ast.copy_location(ast.Name(called, ast.Load()), function)
        return node

    def _check(self, name: str, function: ast.Name, node: ast.Call) -> None:
        if name in self.known:
            reject(f"{name} is a known function: write its derivative out, or rename the unknown function", function)
        if name in LACKING and name not in (self.unknowns or {}):
            instead = LACKING[name] or "its definition in functions"
            reject(f"Shine has no {name}: write {instead}; or list it in unknown, if a search shall find it", function)
        if self.unknowns is not None and name not in self.unknowns:
            near = near_primitive(name, [*self.unknowns, *self.known])
            hint = f"did you mean {near!r}? " if near else ""
            known = listed(self.unknowns) if self.unknowns else "none"
            reject(f"{shown(name)} is neither a known function nor listed as unknown; {hint}listed: {known}", function)
        if node.keywords:
            reject(f"{name} takes no keyword arguments", node)
        if not node.args:
            reject(f"{name} has no arguments; a number without arguments is a parameter: write {name}", node)
        own = None if self.unknowns is None else self.unknowns[name].arguments
        count = len(own) if own else len(self.found[name][0]) if name in self.found else len(node.args)
        if len(node.args) != count:
            reject(f"{name} takes {count} argument{'s' * (count != 1)}, not {len(node.args)}", node)

    def _place(self, name: str, node: ast.expr) -> int:
        """The number of an argument, given by number or by name."""
        count = len(self.found[name][0])
        own = () if self.unknowns is None else self.unknowns[name].arguments
        match self.visit(node):
            case ast.Constant(value=int() as number) if not isinstance(number, bool) and 0 <= number < count:
                return number
            case ast.Constant(value=str() as text) if text in own:
                return own.index(text)
        allowed = f"0 to {count - 1}" if count > 1 else "0"
        names = f", or its name, of {', '.join(own)}" if own else ""
        reject(f"D({name}, {ast.unparse(node)}): the second argument is a number, {allowed}{names}", node)


def _is_derivative(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == DERIVATIVE


class SourceReader:
    """Reads one template; `template` is the result.

    Parameters
    ----------
    source : str or function
    unknowns : mapping of str to Unknown, optional
        What the user says of unknown functions; None if nothing.
    parameters : mapping of str to Parameter
    groups : str, optional
    functions : mapping of str to Primitive
        The known functions.

    Raises
    ------
    UnsupportedSyntaxError, ValueError
        If it is no template.
    """

    def __init__(
        self,
        source: str | FunctionType,
        unknowns: Mapping[str, Unknown] | None,
        parameters: Mapping[str, Parameter],
        groups: str | None,
        functions: Mapping[str, Primitive],
    ) -> None:
        if groups is not None:
            groups = check_name(groups)
        for name in unknowns or {}:
            if name in functions:
                raise ValueError(f"unknown: {name!r} is a known function; give the unknown one another name")
        definition = _definition(source)
        self.body = body = _Body(unknowns, groups, functions)
        text = ast.unparse(definition.node if definition.columns is not None else definition.node.body[0].value)  # type: ignore[attr-defined]
        node = definition.node
        node.body = [made for each in node.body for made in _listed(body.visit(each))]
        unused = [name for name in unknowns or {} if name not in body.found]
        if unused:
            raise ValueError(f"unknown: the template does not call {unused[0]!r}; remove it, or write it")
        names = self._names(node)
        called = {*body.found, *body.calls}
        if wrong := [name for name in names if name in called]:
            reject(f"{wrong[0]!r} is an unknown function: call it, {wrong[0]}(...), or rename the parameter")
        if wrong := [name for name in names if name in functions and name not in NAMED_CONSTANTS]:
            reject(f"{wrong[0]!r} is the name of a function, and cannot be a parameter or a column; rename it")
        found = tuple(
            Unknown(name, _argument_names(calls)) if unknowns is None else _completed(unknowns[name], calls)
            for name, calls in body.found.items()
        )
        columns = self._columns(definition.columns, names, parameters)
        own = self._parameters(names, columns, parameters)
        self.template = Template(
            found,
            own,
            # Whether such a name is a column, the data tell (see `resolved`).
            _outputs(node, [*columns, *(each.name for each in own), *(NAMED_CONSTANTS.keys() & names)], body),
            body.calls,
            columns,
            frozenset() if definition.columns is not None else self._open(own, parameters),
            body.groups,
            source=text,
        )

    def _names(self, node: ast.FunctionDef) -> list[str]:
        """Names of columns and parameters, in the order of their first use."""
        inside = [each for statement in node.body for each in ast.walk(statement)]
        called = {id(each.func) for each in inside if isinstance(each, ast.Call)}
        leaves = [each for each in inside if isinstance(each, ast.Name) and id(each) not in called]
        stored = {each.id for each in leaves if isinstance(each.ctx, ast.Store)}
        leaves.sort(
            key=lambda each: (getattr(each, "lineno", 0), getattr(each, "col_offset", 0), natural_order(each.id))
        )
        found = dict.fromkeys(check_name(each.id, each) for each in leaves if each.id not in stored)
        for each in leaves:
            if each.id in self.body.by_group and not hasattr(each, BY_GROUP) and each.id not in stored:
                reject(f"{each.id!r} is a parameter by group: write {each.id}[{self.body.groups}]", each)
        for name in stored & set(self.body.by_group):
            reject(f"{name!r} is a parameter by group; assign to another name", self.body.by_group[name])
        return list(found)

    def _columns(
        self, arguments: tuple[str, ...] | None, names: Sequence[str], given: Mapping[str, Parameter]
    ) -> tuple[str, ...]:
        """Names that must be columns."""
        groups = self.body.groups
        if arguments is not None:
            found = dict.fromkeys(arguments)
        else:
            # A function of a parameter alone would be a number: its plain arguments are columns.
            plain = {
                argument.id
                for calls in self.body.found.values()
                for arguments_ in calls
                for argument in arguments_
                if isinstance(argument, ast.Name)
            }
            found = {
                name: None for name in names if name in plain and name not in given and name not in self.body.by_group
            }
        wrong = [name for name in found if name in given or name in self.body.by_group]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is an argument of the template, a column, and cannot be a parameter")
        if groups is not None:
            found[groups] = None
        return tuple(found)

    def _parameters(
        self, names: Sequence[str], columns: Collection[str], given: Mapping[str, Parameter]
    ) -> tuple[Parameter, ...]:
        own = [name for name in names if name not in columns and (name not in NAMED_CONSTANTS or name in given)]
        unused = [name for name in given if name not in own]
        if unused:
            known = listed(own) if own else "none"
            raise ValueError(f"parameters: the template has no parameter {unused[0]!r}; its parameters are {known}")
        found = []
        for name in own:
            parameter = given.get(name, Parameter(name))
            if name in self.body.by_group:
                if parameter.value is not None:
                    reject(f"{name!r} has a fixed value: it is no parameter by group", self.body.by_group[name])
                parameter = Parameter(name, True, parameter.bounds, parameter.integer, parameter.value, parameter.start)
            found.append(parameter)
        return tuple(found)

    def _open(self, own: Sequence[Parameter], given: Mapping[str, Parameter]) -> frozenset[str]:
        return frozenset(each.name for each in own if each.name not in given and not each.by_group)


def _listed(made: Any) -> list[ast.stmt]:
    return made if isinstance(made, list) else [made]


def _argument_names(calls: Sequence[Sequence[ast.expr]]) -> tuple[str, ...]:
    """Names of an unknown function's arguments: those in its calls if all have the same; else x, or x0, x1, ..."""
    names = {tuple(each.id if isinstance(each, ast.Name) else "" for each in call) for call in calls}
    found = names.pop()
    if names or not all(found) or len(set(found)) < len(found):
        count = len(found)
        return ("x",) if count == 1 else tuple(f"x{i}" for i in range(count))
    return found


def _completed(unknown: Unknown, calls: Sequence[Sequence[ast.expr]]) -> Unknown:
    """An unknown function with names of its arguments, if the user gave none."""
    if unknown.arguments:
        return unknown
    return Unknown(
        unknown.name,
        _argument_names(calls),
        unknown.primitives,
        unknown.max_size,
        unknown.max_depth,
        unknown.constraints,
    )


def _outputs(node: ast.FunctionDef, names: Sequence[str], body: _Body) -> tuple[Tree, ...]:
    """The tree of each output."""
    table = {**body.known, **{name: Primitive(name, len(body.found[f][0])) for name, (f, _) in body.calls.items()}}
    returns = [each for statement in node.body for each in ast.walk(statement) if isinstance(each, ast.Return)]
    given = [each.value for each in returns]
    counts = {len(value.elts) if isinstance(value, ast.Tuple) else 0 for value in given}
    if len(counts) > 1:
        reject("every 'return' of a template has the same number of outputs", returns[0])
    count = counts.pop() if counts else 0
    if count == 1:
        reject("a template of one output returns the expression itself, without a comma", returns[0])
    node.args = ast.arguments([], [ast.arg(name) for name in dict.fromkeys(names)], None, [], [], None, [])
    found = []
    for output in range(max(count, 1)):
        for each, value in zip(returns, given, strict=True):
            each.value = value.elts[output] if isinstance(value, ast.Tuple) else value
        found.append(verify_function(node, table))
    return tuple(found)
