"""Builds a program one statement at a time."""

from __future__ import annotations

import ast
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np

from shine.base.errors import UnsupportedSyntaxError
from shine.base.typing import AnyArray
from shine.lang.forms.grammar import NAMED_CONSTANTS, ExpressionVerifier, check_name
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Primitive, Tree, names_in
from shine.lang.program.program import NUMBER_TYPES, STORAGE_TYPES, Output, Parameter, Program, Statement


class ProgramBuilder:
    """Builds a program one statement at a time. Equal values are computed once.

    Parameters
    ----------
    functions : mapping of str to Primitive
        The functions its expressions may call.

    Examples
    --------
    >>> build = ProgramBuilder()
    >>> x = build.parameter("input", "int32")
    >>> y = build.assign("int32", ast.parse(f"{x} - 2", mode="eval").body)
    >>> program = build.finish([("output", y, "int32")])
    """

    def __init__(self, functions: Mapping[str, Primitive] = STANDARD) -> None:
        self._functions = functions
        self._parameters: list[Parameter] = []
        self._statements: dict[str, Statement] = {}
        self._dtypes: dict[str, str] = {}
        # Known names by number type: the verifier gets those of the type of the expression.
        self._names: dict[str, dict[str, str]] = {dtype: {} for dtype in NUMBER_TYPES}
        self._uses: dict[str, tuple[str, ...]] = {}
        self._known: dict[tuple[object, ...], str] = {}
        self._numbers: dict[str, int] = {}
        self._labels: set[str] = set()

    def parameter(
        self,
        label: str,
        dtype: str,
        shape: Sequence[int | None] | None = None,
        value: AnyArray | None = None,
        default: AnyArray | None = None,
    ) -> str:
        """Add a parameter, see `Parameter`.

        Returns
        -------
        str
            Its name: the label if that is a free name of the language.

        Raises
        ------
        ValueError
            If the label is taken, the type is unknown, or an array has another type.
        """
        if dtype not in STORAGE_TYPES:
            raise ValueError(f"unknown dtype {dtype!r}; use one of {', '.join(STORAGE_TYPES)}")
        for array in (value, default):
            if array is not None and array.dtype != np.dtype(dtype):
                raise ValueError(f"{label!r} is {dtype}, but its array is {array.dtype}")
        if label in self._labels:
            raise ValueError(f"there are two parameters with the label {label!r}")
        self._labels.add(label)
        name = self._free_name(_identifier(label))
        self._add_name(name, STORAGE_TYPES[dtype])
        known_shape = None if shape is None else tuple(shape)
        self._parameters.append(Parameter(name, dtype, label, known_shape, value, default))
        return name

    def assign(self, dtype: str, expression: ast.expr) -> str:
        """Add a statement, unless the same value already has a name; return the name of the value.

        Parameters
        ----------
        dtype : str
            One of `NUMBER_TYPES`.
        expression : ast.expr
            An expression of the language, over names of that type. It is copied.

        Raises
        ------
        ValueError
            If the type is unknown, or a name in the expression has another type.
        UnsupportedSyntaxError
            If the expression is not part of the language, or a name in it is unknown.
        """
        self._check_type(dtype)
        verifier = ExpressionVerifier(self._functions, self._names[dtype])
        try:
            value: ast.expr = verifier.visit(expression)
        except UnsupportedSyntaxError:
            for node in ast.walk(expression):
                if isinstance(node, ast.Name) and self._dtypes.get(node.id, dtype) != dtype:
                    raise ValueError(f"{node.id!r} is {self._dtypes[node.id]}; convert it to {dtype} first") from None
            raise
        if isinstance(value, ast.Name):
            return value.id
        return self._state((dtype, Tree((), value).tokens), dtype, value, converts=False)

    def convert(self, name: str, dtype: str) -> str:
        """Convert a value to another number type, as `Statement` defines it, and return the name of the result.

        A value that has the type already keeps its name.

        A `ValueError` if the type or the name is unknown.
        """
        self._check_type(dtype)
        if self.dtype_of(name) == dtype:
            return name
        value = ast.Name(name, ast.Load())
        return self._state((dtype, name), dtype, value, converts=True)

    def dtype_of(self, name: str) -> str:
        """The number type of a name; a `ValueError` if the name is unknown."""
        if name not in self._dtypes:
            raise ValueError(f"{name!r} is neither a parameter nor assigned")
        return self._dtypes[name]

    def finish(self, outputs: Sequence[tuple[str, str, str]], name: str = "graph") -> Program:
        """The program, without statements and constants that no output needs.

        Parameters
        ----------
        outputs : sequence of (label, name, storage type)
            See `Output`.
        name : str
            Name of the program as a function; converted to a name of the language.

        Raises
        ------
        ValueError
            If there is no output, two outputs have the same label, or an output does not have its type.
        """
        results = tuple(Output(*output) for output in outputs)
        if not results:
            raise ValueError("a program has at least one output")
        if len({output.label for output in results}) < len(results):
            raise ValueError("two outputs have the same label")
        for output in results:
            number_type = self.dtype_of(output.name)
            if output.dtype not in (number_type, "bool"):
                raise ValueError(f"output {output.label!r} is {number_type}, or bool; not {output.dtype}")
        needed = self._needed([output.name for output in results])
        return Program(
            tuple(each for each in self._parameters if each.value is None or each.name in needed),
            tuple(self._statements[name] for name in needed if name in self._statements),
            results,
            _identifier(name),
            self._functions,
        )

    def _needed(self, results: Sequence[str]) -> dict[str, None]:
        """All names that the results need, each after the names that it needs itself.

        The order is depth first: names are close to their uses, so few values wait in registers at a time.
        """
        needed: dict[str, None] = {}
        waiting = [(name, False) for name in reversed(results)]
        while waiting:
            name, has_all = waiting.pop()
            if has_all or name not in self._statements:
                needed[name] = None
            elif name not in needed:
                waiting.append((name, True))
                waiting += [(other, False) for other in reversed(self._uses[name])]
        return needed

    def _check_type(self, dtype: str) -> None:
        if dtype not in NUMBER_TYPES:
            raise ValueError(f"unknown number type {dtype!r}; use one of {', '.join(NUMBER_TYPES)}")

    def _state(self, key: tuple[object, ...], dtype: str, value: ast.expr, *, converts: bool) -> str:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._free_name(self._numbered("v"))
            self._add_name(known, dtype)
            self._uses[known] = names_in(value)
            self._statements[known] = Statement(known, dtype, value, converts)
        return known

    def _add_name(self, name: str, dtype: str) -> None:
        self._dtypes[name] = dtype
        self._names[dtype][name] = name

    def _free_name(self, stem: str) -> str:
        """The stem if it is free, otherwise the stem with a number."""
        name = stem
        while name in self._dtypes or name in NAMED_CONSTANTS:
            name = self._numbered(f"{stem}_")
        return name

    def _numbered(self, stem: str) -> str:
        self._numbers[stem] = self._numbers.get(stem, 0) + 1
        return f"{stem}{self._numbers[stem]}"


def number(value: float | int) -> ast.expr:
    """Any number as an expression. The language cannot write infinities and NaN, but can compute them."""
    if isinstance(value, int) or math.isfinite(value):
        return ast.Constant(value)
    infinity = ast.BinOp(ast.Constant(1.0), ast.Div(), ast.Constant(math.copysign(0.0, value)))
    return ast.BinOp(infinity, ast.Sub(), infinity) if math.isnan(value) else infinity


def _identifier(label: str) -> str:
    """A label as a name of the language. Different labels may give the same name."""
    # Python's parser normalizes names in this way.
    name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", label))
    name = re.sub("^__+", "_", name)
    try:
        return check_name(name)
    except UnsupportedSyntaxError:
        return check_name(f"x_{name}")
