"""The table of primitive operations: which operands and attributes each takes, and the types of its results.

Elementwise operations have the names and meanings of the language's primitives; softmax, pooling and the like are
compositions (`compositions`), so that no pass or derivative needs a rule for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from shine.base.errors import FormError
from shine.lang.forms.facts import FACTS
from shine.lang.forms.names import choices
from shine.tensor.form import shapes
from shine.tensor.form.shapes import Attributes, Rule, SignatureOf, Types
from shine.tensor.form.types import ANY, FLOATS, NUMBERS, TRUTH

Kind = Literal["truth", "integer", "integers", "dtype", "function", "array"]
"""Kinds of attributes."""


@dataclass(frozen=True)
class Operation:
    """A primitive operation.

    Parameters
    ----------
    operands : int or None
        Their number; None for one or more, or for none if it calls functions.
    elements : frozenset of str
        Element types that its operands may have, those of indices and conditions apart.
    infer : callable
        Types of the results.
    attributes : mapping of str to str
        The kind of each; all must be given.
    is_elementwise : bool
        Whether each element of the result depends on the elements at its place only.
    """

    operands: int | None
    elements: frozenset[str]
    infer: Rule
    attributes: Mapping[str, Kind] = field(default_factory=dict)
    is_elementwise: bool = False


_FAMILIES: dict[str, tuple[frozenset[str], Rule]] = {
    "arithmetic": (NUMBERS, shapes.elementwise),
    "remainder": (NUMBERS, shapes.elementwise),
    "extremum": (NUMBERS, shapes.elementwise),
    "step": (NUMBERS, shapes.elementwise),
    "function": (FLOATS, shapes.elementwise),
    "comparison": (ANY, shapes.comparison),
}
"""Elements and rule of the language's primitives, by family; its `logic` treats numbers as truth and has none here."""

FROM_THE_LANGUAGE = {
    name: Operation(
        facts.arity,
        FLOATS if facts.floats_only else _FAMILIES[facts.family][0],
        _FAMILIES[facts.family][1],
        is_elementwise=True,
    )
    for name, facts in FACTS.items()
    if facts.family in _FAMILIES
}
"""Operations that mean what the language's primitives of the same name mean. Integers wrap, and `div` truncates; what
divides an integer by 0 gives 0."""

_REDUCTION: dict[str, Kind] = {"axes": "integers", "keep": "truth"}
_AXIS: dict[str, Kind] = {"axis": "integer"}

OPERATIONS: dict[str, Operation] = {
    **FROM_THE_LANGUAGE,
    # To the nearest whole number, halves to the even one.
    "round": Operation(1, FLOATS, shapes.elementwise, is_elementwise=True),
    "and": Operation(2, TRUTH, shapes.elementwise, is_elementwise=True),
    "or": Operation(2, TRUTH, shapes.elementwise, is_elementwise=True),
    "not": Operation(1, TRUTH, shapes.elementwise, is_elementwise=True),
    "select": Operation(3, ANY, shapes.select, is_elementwise=True),
    # Floats become integers by truncation, those beyond the range the nearest one, NaN 0; integers wrap; truth is
    # "not 0".
    "cast": Operation(1, ANY, shapes.cast, {"dtype": "dtype"}, is_elementwise=True),
    "constant": Operation(0, ANY, shapes.constant, {"value": "array"}),
    "broadcast": Operation(1, ANY, shapes.broadcast_to, {"shape": "integers"}),
    "reshape": Operation(1, ANY, shapes.reshape, {"shape": "integers"}),
    "transpose": Operation(1, ANY, shapes.transpose, {"permutation": "integers"}),
    "slice": Operation(1, ANY, shapes.slice_, {"start": "integers", "stop": "integers", "step": "integers"}),
    "pad": Operation(2, ANY, shapes.pad, {"low": "integers", "high": "integers", "interior": "integers"}),
    "concatenate": Operation(None, ANY, shapes.concatenate, _AXIS),
    # Indices beyond the axis mean its first or last slice.
    "gather": Operation(2, ANY, shapes.gather, _AXIS),
    # Slices whose indices are beyond the axis are left out.
    "scatter_add": Operation(3, NUMBERS, shapes.scatter_add, _AXIS),
    "reduce_sum": Operation(1, NUMBERS, shapes.reduction, _REDUCTION),
    "reduce_prod": Operation(1, NUMBERS, shapes.reduction, _REDUCTION),
    # NaN if there is a NaN; either zero of 0.0 and -0.0.
    "reduce_max": Operation(1, NUMBERS, shapes.extremum, _REDUCTION),
    "reduce_min": Operation(1, NUMBERS, shapes.extremum, _REDUCTION),
    # The first of equals; the first NaN if there is one.
    "argmax": Operation(1, NUMBERS, shapes.arg_reduction, _AXIS),
    "argmin": Operation(1, NUMBERS, shapes.arg_reduction, _AXIS),
    # Equal values stay in order. NaN counts as the largest.
    "sort": Operation(1, NUMBERS, shapes.sort, {"axis": "integer", "descending": "truth"}),
    "top_k": Operation(1, NUMBERS, shapes.top_k, {"k": "integer"}),
    "dot": Operation(2, NUMBERS, shapes.dot),
    "convolve": Operation(
        2,
        FLOATS,
        shapes.convolve,
        {"strides": "integers", "low": "integers", "high": "integers", "dilation": "integers", "groups": "integer"},
    ),
    "call": Operation(None, ANY, shapes.call, {"function": "function"}),
    "cond": Operation(None, ANY, shapes.cond, {"true": "function", "false": "function"}),
    "while": Operation(None, ANY, shapes.while_, {"condition": "function", "body": "function"}),
}
"""All operations."""

CALLS = frozenset(name for name, operation in OPERATIONS.items() if "function" in operation.attributes.values())
"""Operations that call functions of the module."""

ELEMENTWISE = frozenset(name for name, operation in OPERATIONS.items() if operation.is_elementwise)
"""Operations that work element by element."""

_NOT_CHECKED = {"gather": (1,), "scatter_add": (1,), "select": (0,), "cond": (0,)}
"""Operands with elements of their own: indices and conditions, which the rules check."""


_KINDS: dict[Kind, tuple[str, type]] = {
    "truth": ("true or false", bool),
    "integer": ("an integer", int),
    "integers": ("a tuple of integers", tuple),
    "dtype": ("an element type", str),
    "function": ("a function", str),
    "array": ("an array", np.ndarray),
}
"""Name of each kind, and its type in Python."""


def no_functions(name: str) -> tuple[Types, Types]:
    """Signatures for instructions outside a module, which cannot call."""
    raise FormError(f"there is no function @{name}")


def result_types(name: str, types: Types, attributes: Attributes, signature_of: SignatureOf = no_functions) -> Types:
    """Types of the results of an operation.

    Parameters
    ----------
    name : str
    types : tuple of TensorType
        Those of the operands.
    attributes : mapping of str
    signature_of : callable
        Types of the parameters and results of the functions that it may call.

    Raises
    ------
    FormError
        If there is no such operation, or it does not take these operands or attributes.
    """
    operation = OPERATIONS.get(name)
    if operation is None:
        raise FormError(f"there is no operation {name!r}; {choices(name, OPERATIONS)}")
    if operation.operands is not None and len(types) != operation.operands:
        raise FormError(f"{name} takes {operation.operands} operands, and is given {len(types)}")
    if operation.operands is None and not types and name not in CALLS:
        raise FormError(f"{name} takes one operand or more")
    check_attributes(name, attributes)
    for place, given in enumerate(types):
        if given.dtype not in operation.elements and place not in _NOT_CHECKED.get(name, ()):
            allowed = ", ".join(sorted(operation.elements))
            raise FormError(f"{name} takes elements {allowed}, and operand {place} is {given}")
    return operation.infer(types, attributes, signature_of)


def check_attributes(name: str, attributes: Attributes) -> None:
    """Raise FormError unless an operation has the attributes that it takes, each of its kind."""
    kinds = OPERATIONS[name].attributes
    missing, unknown = sorted(kinds.keys() - attributes.keys()), sorted(attributes.keys() - kinds.keys())
    if missing or unknown:
        problem = f"needs {', '.join(missing)}" if missing else f"has no {', '.join(unknown)}"
        raise FormError(f"{name} {problem}; its attributes are {', '.join(kinds) or 'none'}")
    for key, kind in kinds.items():
        if not _is_of_kind(attributes[key], kind):
            given = attributes[key]
            shown = f"an array {given.dtype}" if isinstance(given, np.ndarray) else f"{given!r:.60}"
            raise FormError(f"{name}: {key} = {shown} must be {_KINDS[kind][0]}")


def _is_of_kind(value: object, kind: Kind) -> bool:
    types = _KINDS[kind][1]
    if kind == "integers":
        return isinstance(value, tuple) and all(type(v) is int for v in value)
    return type(value) is types
