"""From Python's functions to primitives: known ones are recognised, others translated from their source."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.forms.functions import verify_function
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.python.expressions import call, constant, described, load, number_of
from shine.lang.python.known import TABLE, Known, known_of
from shine.lang.python.source import definition_in, file_of
from shine.lang.python.statements import definition, translated, translated_text
from shine.lang.values import ValueGraph


class Functions:
    """Primitives made of Python's functions, one for each function and arity.

    Parameters
    ----------
    instead : mapping of str to str
        Primitives of Shine that stand for others which do the same for numbers: ``max`` for Python's, which
        returns the first of two values if one is NaN.
    by_name : mapping of str to Primitive
        Primitives that functions may call by their bare names if these are not bound to anything Shine knows.
    sources : mapping of str to str
        Texts of the definitions of functions that have no file, by name.

    Attributes
    ----------
    table : dict of str to Primitive
        Shine's primitives, and those made so far.
    unused : set of str
        Names in `sources` that no function had so far.
    """

    def __init__(
        self,
        instead: Mapping[str, str] | None = None,
        by_name: Mapping[str, Primitive] | None = None,
        sources: Mapping[str, str] | None = None,
    ) -> None:
        self.table: dict[str, Primitive] = {**TABLE, **(by_name or {})}
        self._instead = instead or {}
        self._by_name = by_name or {}
        self._sources = sources or {}
        self.unused = set(self._sources)
        self._made: dict[tuple[int, int], str] = {}
        self._held: list[object] = []
        self._pending: list[tuple[int, int]] = []

    def primitive(self, source: Any, arity: int, name: str) -> str:
        """Name of the primitive that computes the same as a function with some number of arguments.

        Parameters
        ----------
        source : object
            A function of Python or NumPy, or one with a source; also a partial or vectorized one.
        arity : int
        name : str
            The name of a new primitive, if it is free.

        Raises
        ------
        UnsupportedSyntaxError
            If it cannot be a primitive; the message says why.
        """
        known = known_of(source)
        if known is not None and (found := known.name(arity)) is not None:
            return self._instead.get(found, found)
        key = (id(source), arity)
        if key in self._pending:
            raise UnsupportedSyntaxError(f"{name!r} calls itself, and the language has no recursion")
        if key not in self._made:
            self._pending.append(key)
            try:
                node = self._folded(known, arity) if known is not None else self._definition(source, arity, name)
                self._made[key] = self._added(name, node)
            except UnsupportedSyntaxError as error:
                raise self._in_file(error, source, name) from None
            finally:
                self._pending.pop()
            # The identity of an object may be reused once the object is freed.
            self._held.append(source)
        return self._made[key]

    def _text_of(self, function: FunctionType, name: str) -> str | None:
        """The given text of a function's definition."""
        given = next((each for each in (name, function.__name__) if each in self._sources), None)
        self.unused.discard(given or "")
        return None if given is None else self._sources[given]

    def _in_file(self, error: UnsupportedSyntaxError, source: Any, name: str) -> UnsupportedSyntaxError:
        """The same error with the file of the function whose line it names."""
        function = source.pyfunc if isinstance(source, np.vectorize) else source
        function = function.func if isinstance(function, functools.partial) else function
        if error.line is None or error.file or not isinstance(function, FunctionType) or self._text_of(function, name):
            return error
        return UnsupportedSyntaxError(error.message, error.line, error.column, file_of(function))

    def of_text(self, text: str) -> str:
        """Name of the primitive that a text defines: ``def name(x): ...``.

        An `UnsupportedSyntaxError` if the text is not one definition in the language.
        """
        name = getattr(definition_in(text), "name", "function")
        return self._added(name, translated_text(text, self.primitive, self._by_name))

    def _definition(self, source: Any, arity: int, name: str) -> ast.FunctionDef:
        bound: Sequence[Any] = ()
        named: Mapping[str, Any] = {}
        if isinstance(source, np.vectorize):
            source = source.pyfunc
        if isinstance(source, functools.partial):
            bound, named, source = source.args, source.keywords, source.func
        if isinstance(source, FunctionType):
            text = self._text_of(source, name)
            return translated(source, arity, bound, named, self.primitive, self._by_name, text)
        values = [number for value in bound if (number := number_of(value)) is not None]
        if named or len(values) < len(bound):
            raise UnsupportedSyntaxError("it has arguments bound that are not numbers by position")
        if known_of(source) is None:
            kind = "a method" if inspect.ismethod(source) else f"{described(source)}, which Shine does not know"
            raise UnsupportedSyntaxError(f"it is {kind}; write a function of numbers in Python")
        inner = self.primitive(source, arity + len(values), name)
        own = _parameters(arity)
        return definition(own, [ast.Return(call(inner, [*map(constant, values), *map(load, own)]))])

    def _folded(self, known: Known, arity: int) -> ast.FunctionDef:
        if not known.folded or arity < 2:
            takes = " or ".join(str(TABLE[each].arity) for each in known.names)
            raise UnsupportedSyntaxError(f"it takes {takes} arguments, not {arity}")
        own = _parameters(arity)
        return definition(
            own, [ast.Return(functools.reduce(lambda a, b: call(known.names[0], [a, b]), map(load, own)))]
        )

    def _added(self, name: str, node: ast.FunctionDef) -> str:
        tree = verify_function(node, self.table)
        # Not the whole table, which grows: a pickle of the primitive would hold all of it.
        called = functions_of(tree)
        tree = replace(tree, functions={**STANDARD, **{each: self.table[each] for each in called}})
        wanted = name if name.isidentifier() and not name.startswith("__") else "function"
        if wanted in TABLE and means(tree, TABLE[wanted]):
            return self._instead.get(wanted, wanted)
        unique = free_name(wanted, self.table)
        self.table[unique] = Primitive(unique, len(tree.parameters), replace(tree, name=unique))
        return unique


class _Values(ValueGraph):
    def constant(self, number: int | float) -> int:
        return super().constant(float(number))


def means(tree: Tree, primitive: Primitive) -> bool:
    """Whether a formula computes a primitive by the same operations in the same order."""
    if len(tree.parameters) != primitive.arity:
        return False
    values = _Values()
    arguments = [values.parameter(str(position)) for position in range(primitive.arity)]
    own = values.read(tree, arguments, ())
    if primitive.definition is None:
        return own == values.apply(primitive.name, *arguments)
    return own == values.read(primitive.definition, arguments, ())


def free_name(wanted: str, table: Container[str]) -> str:
    """A name that no primitive of a table has: the wanted one, or with the first free number, ``aq_1``."""
    name, number = wanted, 1
    while name in table:
        name, number = f"{wanted}_{number}", number + 1
    return name


def _parameters(count: int) -> list[str]:
    return [f"argument_{i}" for i in range(count)]
