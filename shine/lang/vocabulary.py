"""The functions of a search as users give them: names, operators, functions of Python and NumPy, and their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from inspect import Parameter, signature
from types import FunctionType

import numpy as np

from shine.base.errors import UnsupportedSyntaxError, placed
from shine.lang.forms.grammar import check_name
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import is_list, normalized, value_text
from shine.lang.forms.synonyms import OPERATORS, OTHER_NAMES
from shine.lang.forms.tree import Primitive
from shine.lang.parse import parse
from shine.lang.presentation import definition
from shine.lang.python.functions import Functions, free_name, means
from shine.lang.python.known import OWN_MEANINGS, TABLE, known_of, known_text

PrimitiveSource = str | Callable[..., object] | Primitive
"""Forms of a primitive: a name or a function; see `primitive_table`."""

KINDS = frozenset({"assign", "compare", "constant", "name"})
"""Kinds of nodes that are no functions: a primitive with such a name would be taken for one."""


def primitive_table(primitives: Iterable[PrimitiveSource]) -> tuple[dict[str, Primitive], list[str]]:
    """Primitives that are given by name, as functions, or as `Primitive` objects.

    Parameters
    ----------
    primitives : sequence of str, function or Primitive
        Each a name of Shine's; an operator such as ``"+"``; a function of `operator`, `math`, NumPy or Python itself,
        or its dotted name, for the primitive that computes the same on numbers; a function of the user's, as a Python
        function or as text, ``def f(x): return x*x`` or ``f(x) = x^2``; or a primitive, such as
        `shine.primitive_from_llvm` makes.

    Returns
    -------
    table : dict of str to Primitive
        Shine's primitives and the given functions.
    names : list of str
        Names of the given primitives, in their order; one that is given in two ways, as ``"^"`` and ``"**"``, once.

    Raises
    ------
    UnsupportedSyntaxError
        If a function is not in the language.
    TypeError
        If `primitives` is one text, or holds something else.
    ValueError
        If a `Primitive` object has the name of one of Shine's primitives and another meaning.

    Notes
    -----
    A function with the name of one of Shine's primitives is that primitive if it computes the same by the same
    operations; otherwise its name gets a number, ``sigmoid_1``. So does that of a kind of node, ``constant_1``.
    """
    check_primitives(primitives)
    reader = _Reader(dict(STANDARD))
    names: list[str] = []
    seen: dict[str, tuple[object, Primitive | None]] = {}
    for source in primitives:
        name = reader.name(source)
        word, meaning = seen.setdefault(name, (source, reader.table.get(name)))
        # The same word twice, or two functions of one name, are a mistake, which the primitive set reports.
        if name not in names or _is_same(word, source) or meaning is not reader.table.get(name):
            names.append(name)
    return reader.table, names


def primitive_named(word: str) -> str:
    """The primitive that an operator, or the dotted name of a function of Python or NumPy, means; else the word."""
    word = word.strip()
    known = known_text(word)
    return _own(known.names[0]) if known is not None else OPERATORS.get(word) or OTHER_NAMES.get(word, normalized(word))


def _own(name: str) -> str:
    return OWN_MEANINGS.get(name, name)


def check_primitives(primitives: object) -> None:
    """Raise a `TypeError` if primitives are not given as a sequence."""
    if isinstance(primitives, str):
        raise TypeError(f"primitives is the text {value_text(primitives)}; give a list, such as ['add', 'mul', 'sin']")
    if not is_list(primitives):
        word = value_text(primitives)
        raise TypeError(f"primitives must be a list of names and functions, such as ['add', 'mul', 'sin'], is {word}")


def _is_same(first: object, second: object) -> bool:
    if isinstance(first, str) and isinstance(second, str):
        return normalized(first.strip()) == normalized(second.strip())
    return first is second or (isinstance(first, Primitive) and first == second)


class _Reader:
    """Reads the given primitives one after the other; a function may call those before it.

    Parameters
    ----------
    table : dict of str to Primitive
        Gets the primitives that are read.
    """

    def __init__(self, table: dict[str, Primitive]) -> None:
        self.table = table
        self._functions = Functions(OWN_MEANINGS, table)

    def name(self, source: object) -> str:
        """Name of a given primitive."""
        if isinstance(source, str):
            text = definition(source)
            return self._of_text(text) if _is_definition(text) else self._of_word(text.strip())
        if isinstance(source, Primitive):
            return self._add(source)
        if not callable(source):
            raise TypeError(
                f"primitives has {value_text(source)}; a primitive is a name, such as 'add', or a function, or "
                "the text of its definition, such as 'def name(x): return x*x'"
            )
        known = known_of(source)
        return self._known(_own(known.names[0])) if known is not None else self._of_function(source)

    def _of_word(self, word: str) -> str:
        if re.match(r"lambda\b", word):
            raise UnsupportedSyntaxError(
                f"{value_text(word)} is not a definition; write one such as 'def name(x): return x*x'"
            )
        return self._known(primitive_named(word))

    def _known(self, name: str) -> str:
        if name in TABLE:
            self.table.setdefault(name, TABLE[name])
        return name

    def _of_function(self, source: Callable[..., object]) -> str:
        self._functions.table.update(self.table)
        name = free_name(_own_name(source), KINDS)
        with placed(f"primitive {name!r} cannot be used", UnsupportedSyntaxError):
            made = self._functions.primitive(source, _arity(source), name)
        self.table[made] = self._functions.table[made]
        return made

    def _of_text(self, text: str) -> str:
        try:
            tree = parse(text, primitives=self.table)
        except UnsupportedSyntaxError as problem:
            return self._translated(text, problem)
        shine = TABLE.get(tree.name)
        if shine is not None and means(tree, shine):
            return self._known(shine.name)
        name = free_name(tree.name, STANDARD.keys() | KINDS)
        return self._add(Primitive(name, len(tree.parameters), replace(tree, name=name)))

    def _translated(self, text: str, problem: UnsupportedSyntaxError) -> str:
        """A text with parts that only users' functions may have, such as `try`."""
        self._functions.table.update(self.table)
        try:
            made = self._functions.of_text(text)
        except UnsupportedSyntaxError as error:
            raise (error if re.search(r"^\s*(try|with)\b", text, re.MULTILINE) else problem) from None
        self.table[made] = self._functions.table[made]
        return made

    def _add(self, primitive: Primitive) -> str:
        check_name(primitive.name)
        if primitive.name in KINDS:
            raise ValueError(f"{primitive.name!r} is a kind of node of every formula; give your function another name")
        if primitive.name in STANDARD and primitive != STANDARD[primitive.name]:
            raise ValueError(f"{primitive.name!r} is one of Shine's primitives; give your function another name")
        self.table[primitive.name] = primitive
        return primitive.name


def _is_definition(text: str) -> bool:
    return re.match(r"\s*def\b", text) is not None


def _own_name(function: Callable[..., object]) -> str:
    """Name of a user's function; of a lambda, the name that it is assigned to in its module."""
    inner = function.func if isinstance(function, partial) else function
    inner = inner.pyfunc if isinstance(inner, np.vectorize) else inner
    name = getattr(inner, "__name__", "function")
    if inner is function and name.isidentifier():
        return str(name)
    scope = inner.__globals__ if isinstance(inner, FunctionType) else {}
    return next((name for name, value in list(scope.items()) if value is function), "function")


def _arity(function: Callable[..., object]) -> int:
    """Number of arguments of a function that have no value."""
    function = function.pyfunc if isinstance(function, np.vectorize) else function
    try:
        parameters = signature(function, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):
        return 1
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in kinds and each.default is Parameter.empty for each in parameters)


def portable(primitives: Iterable[PrimitiveSource]) -> list[PrimitiveSource]:
    """The same primitives, functions of a notebook or a script as `Primitive` objects.

    Such functions are pickled by name or by their code, and another process finds neither the name nor the source.

    An `UnsupportedSyntaxError`, `TypeError` or `ValueError` if a primitive cannot be read.
    """
    reader = _Reader(dict(STANDARD))
    named = [(source, reader.name(source)) for source in primitives]
    return [reader.table[name] if is_of_session(source) else source for source, name in named]


def is_of_session(function: object) -> bool:
    """Whether no other process can import a function: it is of a notebook, a script or another function's body."""
    if not isinstance(function, FunctionType):
        return isinstance(function, partial | np.vectorize)
    return function.__module__ == "__main__" or "<" in function.__qualname__
