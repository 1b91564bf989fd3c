"""Formulas for Python's array libraries (torch, JAX): as a function of arrays, and as the text of a module.

Both use the operations of `array_operations` and those of the library alone (`shine.formats.write.torch.operations`,
`shine.formats.write.jax.operations`): the function calls them; the text contains copies of the ones it needs, so that
it stands alone.
"""

from __future__ import annotations

import inspect
import keyword
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from shine.base.errors import needing
from shine.formats.write import array_operations
from shine.formats.write.language import Form, Language, call, identifiers
from shine.formats.write.printer import Printer
from shine.formats.write.python import CONDITIONS, NONZERO, SIGN
from shine.formats.write.sources import Headings, abridged, notes
from shine.formats.write.straightline import Body, StraightLine, straight_line
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import unique
from shine.lang.forms.tree import Primitive, Tree


@dataclass(frozen=True)
class Library:
    """A Python array library.

    Parameters
    ----------
    name : str
        In messages.
    package : str
        Its package, which is that of its operations here and Shine's extra for it, too.
    alias, array : str
        Names in exported text of the library and of its type of arrays.
    imports : str
        The text's import statements.
    """

    name: str
    package: str
    alias: str
    array: str
    imports: str

    def operations(self) -> ModuleType:
        """The module of the library's operations, which imports the library."""
        with needing(f"the export to {self.name}", self.package, self.package):
            return import_module(f"shine.formats.write.{self.package}.operations")

    def function(self, tree: Tree) -> Callable[..., Any]:
        """A formula as a function of one matrix or of columns, computed step by step with the library's operations."""
        operations = self.operations()
        code = _code(tree, self.name, operations)
        count = len(tree.parameters)
        constant = _is_constant(code.main)

        def formula(*arguments: Any) -> Any:
            columns = array_operations.columns_of(arguments, count)
            value = code.run(operations.OPERATIONS, operations.numbers([*columns, *arguments][0]), columns)
            return array_operations.filled(operations.xp, value, columns, arguments) if constant else value

        formula.__name__ = formula.__qualname__ = tree.name
        formula.__doc__ = abridged(str(tree))
        return formula

    def source(self, tree: Tree, name: str, headings: Headings) -> str:
        """A formula as the text of a Python module that needs only the library.

        Parameters
        ----------
        tree : Tree
        name : str
            Name of the function; changed if it is not a Python identifier.
        headings : mapping of str to str
            Original headings of the columns, by feature.
        """
        operations = self.operations()
        code = _code(tree, self.name, operations)
        own = {**_functions(array_operations), **_functions(operations)}
        taken = [self.alias, "number", "arguments", *self.imports.split(), *own, *keyword.kwlist]
        name = unique("".join(c if f"x{c}".isidentifier() else "_" for c in name) or "f", taken)
        name = name if name.isidentifier() else f"f{name}"
        taken.append(name)
        composites = identifiers(unique, code.functions, taken)
        taken += composites.values()

        def composite(primitive: Primitive) -> Form:
            function = composites[code.name(primitive)]
            return call(function, primitive.arity) if primitive.arity else Form(f"{function}(number)")

        printer = _printer(self.name, operations, self.alias, own)
        texts = [
            _function(body, printer, composites[function], composite, taken)
            for function, body in code.functions.items()
        ]
        noted = notes({feature: feature for feature in tree.parameters}, headings)
        comments = "".join(f"# {feature} is {heading}.\n" for feature, heading in noted.items())
        texts.append(comments + _main(code.main, printer, name, composite, taken))
        needed = _needed("\n".join(texts), own)
        helpers = [self._written(function) for helper, function in own.items() if helper in needed]
        comment = f'"""{abridged(str(tree))}\n\nWritten by Shine.\n"""\n\n'
        comment += f"from __future__ import annotations\n\n{self.imports}\n"
        return "\n\n".join([comment, *(text.rstrip("\n") + "\n" for text in (*helpers, *texts))])

    def _written(self, function: Any) -> str:
        """The text of an operation, with the library in the place of `xp`."""
        text = re.sub(r"\bxp(: Library)?, ", "", inspect.getsource(function))
        text = re.sub(r"\bxp\b", self.alias, text)
        return re.sub(r"\bArray\b", self.array, text)


def _code(tree: Tree, form: str, operations: ModuleType) -> StraightLine:
    return straight_line(tree, form, [name for name in operations.OPERATIONS if name in STANDARD])


def _functions(module: ModuleType) -> dict[str, Any]:
    """The functions that a module defines, in the order of its text."""
    functions = [f for _, f in inspect.getmembers(module, inspect.isfunction) if f.__module__ == module.__name__]
    return {f.__name__: f for f in sorted(functions, key=lambda f: int(f.__code__.co_firstlineno))}


def _is_constant(body: Body) -> bool:
    return not any(isinstance(step.leaf, str) for step in body.steps)


def _printer(form: str, operations: ModuleType, library: str, own: Mapping[str, Any]) -> Printer:
    forms: dict[str, Form] = {}
    for name, operation in operations.OPERATIONS.items():
        function = (operation.func if isinstance(operation, partial) else operation).__name__
        forms[name] = call(function if function in own else f"{library}.{function}", STANDARD[name].arity)
    forms["neg"] = Form("-{0}", SIGN, (SIGN,))
    forms["where"] = Form(f"{library}.where({{0}}, {{1}}, {{2}})", conditions=(0,))
    return Printer(
        Language(
            form, forms, CONDITIONS, NONZERO, number=_number, times=" * ", over=" / ", folds=False, rearranges=False
        )
    )


def _number(value: float) -> str:
    return f"number({value!r})" if math.isfinite(value) else f"number(float('{value}'))"


def _needed(text: str, own: Mapping[str, Any]) -> set[str]:
    """The functions of the operations' module that a text calls, directly or not."""
    needed = set(re.findall(r"(?<![\w.])\w+(?=\()", text)) & set(own)
    waiting = list(needed)
    while waiting:
        called = {name for name in own[waiting.pop()].__code__.co_names if name in own} - needed
        needed |= called
        waiting += called
    return needed


def _statements(
    body: Body,
    printer: Printer,
    names: Mapping[str, str],
    composite: Callable[[Primitive], Form],
    taken: list[str],
) -> tuple[list[str], str]:
    assignments, result = printer.statements(body, names, composite, taken)
    return [f"    {variable} = {value}\n" for variable, value in assignments], result


def _function(body: Body, printer: Printer, name: str, composite: Callable[[Primitive], Form], taken: list[str]) -> str:
    names = identifiers(unique, body.tree.parameters, taken)
    lines, result = _statements(body, printer, names, composite, taken)
    signature = ", ".join(names.values()) or "number"
    number = f"    number = numbers({next(iter(names.values()))})\n" if names else ""
    uses_numbers = any("number(" in text for text in (*lines, result))
    return f"def {name}({signature}):\n{number if uses_numbers else ''}{''.join(lines)}    return {result}\n"


def _main(body: Body, printer: Printer, name: str, composite: Callable[[Primitive], Form], taken: list[str]) -> str:
    names = identifiers(unique, body.tree.parameters, [*taken, "columns"])
    lines, result = _statements(body, printer, names, composite, [*taken, "columns"])
    count = len(names)
    unpacked = f"    {', '.join(names.values())}{',' if count == 1 else ''} = columns\n" if names else ""
    called = ", ".join(body.tree.parameters) or "none"
    uses_numbers = any("number" in text for text in (*lines, result))
    number = "    number = numbers([*columns, *arguments][0])\n" if uses_numbers else ""
    if _is_constant(body):
        result = f"filled({result}, columns, arguments)"
    return (
        f"def {name}(*arguments):\n"
        f'    """The formula, for a matrix of rows or for the columns one by one; the features are: {called}."""\n'
        f"    columns = columns_of(arguments, {count})\n{unpacked}{number}{''.join(lines)}    return {result}\n"
    )
