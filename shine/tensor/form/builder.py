"""Writes a function instruction by instruction: names are made, attributes completed, types inferred and checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import FormError
from shine.lang.forms.tree import Primitive
from shine.tensor.form.module import Attribute, Function, Instruction, Value
from shine.tensor.form.operations import OPERATIONS, no_functions, result_types
from shine.tensor.form.shapes import SignatureOf
from shine.tensor.form.types import TensorType, type_of

DEFAULTS: dict[str, Callable[[TensorType], Attribute]] = {
    "keep": lambda operand: False,
    "axes": lambda operand: tuple(range(operand.rank)),
    "step": lambda operand: (1,) * operand.rank,
    "interior": lambda operand: (0,) * operand.rank,
    "strides": lambda operand: (1,) * (operand.rank - 2),
    "dilation": lambda operand: (1,) * (operand.rank - 2),
    "groups": lambda operand: 1,
    "descending": lambda operand: False,
    "permutation": lambda operand: tuple(reversed(range(operand.rank))),
}
"""Attributes that `FunctionBuilder` completes, by the first operand's type. `low` and `high` have defaults too, but of
another length for `pad` and `convolve`."""


def _plain(value: Any) -> Attribute:
    """An attribute with Python's own integers, and a tuple for a list."""
    if isinstance(value, list | tuple):
        return tuple(int(item) if isinstance(item, np.integer) else item for item in value)
    return value.item() if isinstance(value, np.integer | np.bool_) else value


class FunctionBuilder:
    """A function in the making.

    Parameters
    ----------
    name : str
    signature_of : callable, optional
        Types of the functions that it may call.

    Examples
    --------
    >>> b = FunctionBuilder("double")
    >>> x = b.parameter("x", TensorType("f32", (3,)))
    >>> print(b.done(b.add(x, x)).result_types[0])
    <3 x f32>
    """

    def __init__(self, name: str, signature_of: SignatureOf = no_functions) -> None:
        self.name, self.signature_of = name, signature_of
        self._parameters: list[Value] = []
        self._body: list[Instruction] = []
        self._names: set[str] = set()
        self.composites: dict[str, tuple[Primitive, tuple[Value, ...]]] = {}
        """The origin of a value, by its name: a function of the language that was applied to others."""

    def parameter(self, name: str, type: TensorType) -> Value:
        """Add a parameter.

        Raises
        ------
        FormError
            If the name is used.
        """
        if name in self._names:
            raise FormError(f"@{self.name} has two values %{name}")
        self._names.add(name)
        self._parameters.append(Value(name, type))
        return self._parameters[-1]

    def emit(self, operation: str, operands: Sequence[Value], **attributes: Attribute) -> tuple[Value, ...]:
        """Add an instruction; attributes with a usual value may be left out.

        Returns
        -------
        tuple of Value
            Its results.

        Raises
        ------
        FormError
            If the operation does not take these operands or attributes.
        """
        complete = {name: _plain(value) for name, value in attributes.items()}
        for name in OPERATIONS[operation].attributes if operation in OPERATIONS else ():
            if name not in complete and operands and name in DEFAULTS:
                complete[name] = DEFAULTS[name](operands[0].type)
            elif name not in complete and operands and name in ("low", "high"):
                complete[name] = (0,) * (operands[0].type.rank - (2 if operation == "convolve" else 0))
        types = result_types(operation, tuple(v.type for v in operands), complete, self.signature_of)
        results = tuple(Value(self._new_name(), type) for type in types)
        self._body.append(Instruction(results, operation, tuple(operands), complete))
        return results

    def constant(self, value: ArrayLike, dtype: str | None = None) -> Value:
        """Add a constant; numbers of Python need an element type.

        Raises
        ------
        FormError
            If there is no such element type, or an integer type cannot represent a number.
        """
        given = np.asarray(value)
        wanted = type_of(given).numpy if dtype is None else TensorType(dtype).numpy
        array, fits = given, given.dtype.kind != "c"
        try:
            if fits:
                with np.errstate(invalid="ignore", over="ignore"):
                    array = given.astype(wanted, order="C")
                fits = wanted.kind == "f" or np.array_equal(array, given)
        except (ValueError, TypeError, OverflowError):
            fits = False
        if not fits:
            raise FormError(f"{given.ravel()[:4].tolist()} cannot be a constant of elements {dtype}")
        array.flags.writeable = False
        return self.emit("constant", (), value=array)[0]

    def like(self, other: Value, number: float) -> Value:
        """A scalar with the elements of a value, for elementwise operations with it."""
        return self.constant(number, other.type.dtype)

    def __getattr__(self, operation: str) -> Callable[..., Value]:
        """`b.add(x, y)`: the result of an operation, or a tuple of several; `b.and_(x, y)` for Python's keywords.

        Type checkers are told of one result; `emit` has the type of several.
        """
        known = operation.rstrip("_")
        if known not in OPERATIONS:
            raise AttributeError(f"there is no operation {operation!r}")

        def emit(*operands: Value, **attributes: Attribute) -> Any:
            results = self.emit(known, operands, **attributes)
            return results[0] if len(results) == 1 else results

        return emit

    def done(self, *results: Value) -> Function:
        """The function, with its results."""
        return Function(self.name, tuple(self._parameters), tuple(self._body), results)

    def _new_name(self) -> str:
        number = len(self._names)
        while f"v{number}" in self._names:
            number += 1
        self._names.add(f"v{number}")
        return f"v{number}"
