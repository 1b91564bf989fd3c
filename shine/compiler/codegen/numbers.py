"""The number types formulas are lowered to, scalar or at a vector width."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np
from llvmlite import ir

from shine.lang.forms.facts import basic_where
from shine.lang.forms.names import value_text
from shine.lang.forms.tree import Primitive
from shine.lang.interpret import constant

ELEMENTS: dict[str, ir.Type] = {
    "float64": ir.DoubleType(),
    "float32": ir.FloatType(),
    "int64": ir.IntType(64),
    "int32": ir.IntType(32),
}
"""LLVM type of each number type."""

STORAGE_ELEMENTS: dict[str, ir.Type] = {**ELEMENTS, "bool": ir.IntType(8)}
"""LLVM type of each storage type of programs: a bool is a byte."""


@dataclass(frozen=True)
class Numbers:
    """A number type at a width.

    Parameters
    ----------
    dtype : {"float64", "float32", "int64", "int32"}
    width : int
        Lanes of a vector; 1 is a scalar, not a vector of one.
    """

    dtype: str
    width: int = 1

    def __post_init__(self) -> None:
        if self.dtype not in ELEMENTS:
            raise ValueError(f"unknown dtype {value_text(self.dtype)}; use one of {', '.join(ELEMENTS)}")

    @property
    def element(self) -> ir.Type:
        """Type of one lane."""
        return ELEMENTS[self.dtype]

    @property
    def type(self) -> ir.Type:
        """Type of a value."""
        return self.lanes(self.element)

    @property
    def is_integer(self) -> bool:
        """Whether `/` truncates and division by zero is an error."""
        return self.dtype.startswith("int")

    @property
    def bytes(self) -> int:
        """Bytes of one lane."""
        return np.dtype(self.dtype).itemsize

    def lanes(self, element: ir.Type) -> ir.Type:
        """Another element type at this width."""
        return element if self.width == 1 else ir.VectorType(element, self.width)

    def constant(self, value: int | float) -> ir.Constant:
        """A number in every lane; a `LoweringError` if an integer type cannot hold it."""
        number = constant(value, np.dtype(self.dtype))
        if self.dtype == "float32":
            # llvmlite prints a float32 constant from the double it is given, which must be one exactly.
            with np.errstate(over="ignore"):
                number = float(np.float32(number))
        return splat(self.type, number)


def splat(kind: ir.Type, value: int | float) -> ir.Constant:
    """A constant of a scalar or vector type with the same value in every lane."""
    if isinstance(kind, ir.VectorType):
        return ir.Constant(kind, [ir.Constant(kind.element, value)] * kind.count)
    return ir.Constant(kind, value)


def lanes_number(value: ir.Value) -> int | float | None:
    """The number that a constant has in every lane; None if it is NaN, or the value is no such constant."""
    if not isinstance(value, ir.Constant):
        return None
    lanes = value.constant if isinstance(value.type, ir.VectorType) else [value]
    numbers = {lane.constant for lane in lanes} if isinstance(lanes, list | tuple) else set()
    number = numbers.pop() if len(numbers) == 1 else None
    return number if isinstance(number, int | float) and number == number else None


ELEMENTARY = basic_where(lambda facts: facts.elementary)
"""Basic primitives that call a function of `shine.compiler.codegen.vecmath.functions`; the others take a few
instructions."""


def is_elementary(primitive: Primitive) -> bool:
    """Whether a primitive has an elementary function in it: many instructions in place of a few."""
    definition = primitive.definition
    if definition is None:
        return primitive.name in ELEMENTARY
    names = {name for name, _ in definition.tokens[1:]}
    own = names & definition.functions.keys()
    return bool((names - own) & set(ELEMENTARY)) or any(is_elementary(definition.functions[name]) for name in own)


@dataclass(frozen=True)
class Functions:
    """Functions that compare equal if and only if they have the same names and the same meaning."""

    meaning: tuple[str, ...]
    functions: tuple[Primitive, ...] = field(compare=False)

    @classmethod
    def of(cls, functions: tuple[Primitive, ...]) -> Self:
        """Functions with their meaning."""
        return cls(tuple(described(function) for function in functions), functions)


def described(function: Primitive) -> str:
    """Text that is equal for primitives of the same name and meaning."""
    return f"{function.name} {function.arity} {_meaning(function)}"


def _meaning(primitive: Primitive) -> str:
    """Text of a composite primitive and of all primitives it calls; empty for a basic one."""
    if primitive.definition is None:
        return ""
    tree = primitive.definition
    calls = sorted({token[0] for token in tree.tokens[1:] if token[0] in tree.functions})
    parts = [
        primitive.source,
        *(f"{name}: {_meaning(tree.functions[name])}" for name in calls if name != primitive.name),
    ]
    return "\n".join(parts)


@cache
def source_digest(*rooms: str) -> str:
    """Digest of the source of the compiler, and of further rooms that emit code: code that was cached before their last
    change is not found."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[2]
    for room in ("compiler", *rooms):
        for path in sorted((root / room).rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()
