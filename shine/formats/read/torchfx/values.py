"""Torch's values in a program under construction, with torch's promotion of number types."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any, NoReturn

import numpy as np

from shine.base.errors import GraphImportError
from shine.base.typing import AnyArray
from shine.lang.program.builder import ProgramBuilder, number
from shine.lang.program.program import STORAGE_TYPES

Number = bool | int | float


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor or a number.

    Parameters
    ----------
    dtype : str
        A storage type of `shine.lang.program.program`.
    name : str, optional
        Its name in the program. Truth values are 1 or 0 of any number type.
    constant : number, optional
        Its value, if it is a number or a constant tensor without dimensions; then it has no name.
    scalar : bool
        Whether it has no dimensions, and so less influence on the type of a result.
    python : bool
        Whether it is a Python number, with the least influence on the type of a result.
    """

    dtype: str
    name: str | None = None
    constant: Number | None = None
    scalar: bool = False
    python: bool = False


class Values:
    """Makes the values of a program.

    Parameters
    ----------
    torch : module
    """

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.builder = ProgramBuilder()
        self.names = {getattr(torch, name): name for name in STORAGE_TYPES}

    def storage_type(self, dtype: Any) -> str:
        """Storage type of a torch dtype or of its name.

        Raises
        ------
        GraphImportError
            If Shine has no such type.
        """
        kind = getattr(self.torch, dtype, dtype) if isinstance(dtype, str) else dtype
        if kind not in self.names:
            raise GraphImportError(f"numbers of type {dtype} are not supported; {', '.join(self.names.values())} are")
        return self.names[kind]

    def tensor(self, label: str, tensor: Any) -> Value:
        """A constant tensor: a number if it has no dimensions, else an array of the program."""
        dtype = self.storage_type(tensor.dtype)
        array: AnyArray = tensor.detach().cpu().resolve_neg().numpy()
        if array.ndim == 0:
            return Value(dtype, constant=array.item(), scalar=True)
        return Value(dtype, self.builder.parameter(label, dtype, array.shape, value=array.copy()))

    def of(self, given: Any) -> Value:
        """The value of an operation's argument."""
        if isinstance(given, Value):
            return given
        if isinstance(given, bool | int | float):
            default = self.names.get(self.torch.get_default_dtype(), "float32")
            dtype = "bool" if isinstance(given, bool) else "int64" if isinstance(given, int) else default
            return Value(dtype, constant=given, scalar=True, python=True)
        refuse(f"argument {str(given)[:60]!r} is neither a tensor nor a number")

    def result_type(self, *operands: Any) -> str:
        """The type in which torch computes: a value without dimensions can only raise the kind of number.

        The rules are those of ``torch.result_type``, for any number of operands.
        """
        values = [self.of(operand) for operand in operands]
        arrays = [value for value in values if not value.scalar]
        scalars = [value for value in values if value.scalar and not value.python]
        numbers = [value for value in values if value.python]
        kinds = [self._common(group) for group in (arrays, scalars, numbers)]
        return self.names[self._combined(kinds[0], self._combined(kinds[1], kinds[2]))]

    def floating(self, dtype: str) -> str:
        """The type of a function of real numbers: whole numbers become floats."""
        return dtype if dtype.startswith("float") else self.names[self.torch.get_default_dtype()]

    def _common(self, values: Sequence[Value]) -> Any:
        kinds = [getattr(self.torch, value.dtype) for value in values]
        return reduce(self.torch.promote_types, kinds) if kinds else None

    def _combined(self, higher: Any, lower: Any) -> Any:
        if higher is None or lower is None:
            return lower if higher is None else higher
        if higher.is_floating_point:
            return higher
        if higher is self.torch.bool or lower.is_floating_point:
            return self.torch.promote_types(higher, lower)
        return higher

    def compute(self, dtype: str, template: str, **operands: Any) -> Value:
        """Compute an expression of the language in one number type.

        Parameters
        ----------
        dtype : str
            Storage type of the result and of the operands. An expression of type bool must have the value 0 or 1.
        template : str
            An expression in the names of the operands.
        **operands : Value or number
        """
        values = {name: self.of(operand) for name, operand in operands.items()}
        return self._state(dtype, STORAGE_TYPES[dtype], template, values)

    def test(self, dtype: str, template: str, **operands: Any) -> Value:
        """The truth value of an expression; its operands have one type."""
        values = {name: self.of(operand) for name, operand in operands.items()}
        return self._state("bool", STORAGE_TYPES[dtype], template, values)

    def chosen(self, dtype: str, condition: Any, yes: Any, no: Any) -> Value:
        """`yes` where the condition holds, else `no`."""
        values = {"condition": self.truth(self.of(condition)), "yes": self.of(yes), "no": self.of(no)}
        return self._state(dtype, STORAGE_TYPES[dtype], "yes if condition else no", values)

    def truth(self, value: Value) -> Value:
        """A value as a truth value: whether it is not zero."""
        if value.dtype == "bool":
            return value
        if value.constant is not None:
            return Value("bool", constant=bool(value.constant), scalar=value.scalar, python=value.python)
        return self.test(value.dtype, "x != 0", x=value)

    def converted(self, value: Value, dtype: str) -> Value:
        """A value in another storage type."""
        if dtype == "bool":
            return self.truth(value)
        if value.constant is not None:
            constant = self._constant(value, dtype)
            return Value(dtype, constant=constant, scalar=value.scalar)
        assert value.name is not None
        name = self.builder.convert(value.name, STORAGE_TYPES[dtype])
        return Value(dtype, name, scalar=value.scalar)

    def named(self, value: Value) -> str:
        """The name of a value; a number gets a statement here, and so a name."""
        if value.name is not None:
            return value.name
        kind = STORAGE_TYPES[value.dtype]
        return self.builder.assign(kind, self._expression(value, kind))

    def _state(self, dtype: str, kind: str, template: str, values: dict[str, Value]) -> Value:
        expressions = {name: self._expression(value, kind) for name, value in values.items()}
        name = self.builder.assign(kind, substituted(template, expressions))
        return Value(dtype, name, scalar=all(value.scalar for value in values.values()))

    def _expression(self, value: Value, kind: str) -> ast.expr:
        """A value in a number type."""
        if value.constant is not None:
            return number(self._constant(value, kind))
        assert value.name is not None
        return ast.Name(self.builder.convert(value.name, kind), ast.Load())

    def _constant(self, value: Value, dtype: str) -> int | float:
        constant = value.constant
        assert constant is not None
        if dtype.startswith("float"):
            # Torch rounds a number to the tensor's own type, then to the result's.
            own = float(constant) if value.python else np.dtype(value.dtype).type(constant).item()
            return float(own)
        with np.errstate(invalid="ignore"):
            return int(np.asarray(constant).astype(STORAGE_TYPES[dtype]))


def refuse(message: str) -> NoReturn:
    """Raise an error; the reader adds the node."""
    raise GraphImportError(message)


@cache
def _parsed(template: str) -> ast.expr:
    return ast.parse(template, mode="eval").body


def substituted(template: str, expressions: Mapping[str, ast.expr]) -> ast.expr:
    """An expression with names replaced by expressions, except names of functions."""
    result: ast.expr = _put(_parsed(template), expressions)
    return result


def _put(node: Any, expressions: Mapping[str, ast.expr]) -> Any:
    if isinstance(node, list):
        return [_put(part, expressions) for part in node]
    if isinstance(node, ast.Name):
        return expressions.get(node.id, node)
    if not isinstance(node, ast.expr) or isinstance(node, ast.Constant):
        return node
    kept = ("func",) if isinstance(node, ast.Call) else ()
    fields = {name: part if name in kept else _put(part, expressions) for name, part in ast.iter_fields(node)}
    return type(node)(**fields)
