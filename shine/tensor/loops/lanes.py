"""Lanes of tensors' elements: their types in registers and in memory, loads and stores with idle lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir

from shine.compiler.codegen.blocks import alignment, broadcast
from shine.compiler.codegen.numbers import splat
from shine.tensor.form.types import DTYPES

BIT, BYTE, I32 = ir.IntType(1), ir.IntType(8), ir.IntType(32)

ELEMENTS: dict[str, ir.Type] = {
    "f32": ir.FloatType(),
    "f64": ir.DoubleType(),
    "i8": BYTE,
    "u8": BYTE,
    "i16": ir.IntType(16),
    "i32": I32,
    "i64": ir.IntType(64),
    "bool": BIT,
}
"""Types in registers."""

STORED: dict[str, ir.Type] = ELEMENTS | {"bool": BYTE}
"""Types in memory."""


def typed(element: ir.Type, width: int) -> ir.Type:
    """A vector, or a scalar at width 1."""
    return element if width == 1 else ir.VectorType(element, width)


def constant(dtype: str, value: object, width: int = 1) -> ir.Constant:
    """A number in all lanes."""
    number = np.asarray(value).astype(DTYPES[dtype]).item()
    return splat(typed(ELEMENTS[dtype], width), number)


def widened(builder: ir.IRBuilder, value: ir.Value, width: int) -> ir.Value:
    """A scalar in all lanes; vectors stay."""
    if width == 1 or isinstance(value.type, ir.VectorType):
        return value
    if isinstance(value, ir.Constant):
        return splat(ir.VectorType(value.type, width), value.constant)
    return broadcast(builder, value, ir.VectorType(value.type, width))


def mask(width: int, count: int) -> ir.Constant:
    """The first `count` lanes."""
    return ir.Constant(ir.VectorType(BIT, width), [lane < count for lane in range(width)])


def load(builder: ir.IRBuilder, pointer: ir.Value, dtype: str, width: int = 1, count: int | None = None) -> ir.Value:
    """Elements at an address; lanes from `count` on are 0 and not read."""
    stored = STORED[dtype]
    if width == 1 or count is None or count == width:
        value = builder.load(pointer, typ=typed(stored, width), align=alignment(stored))
    else:
        kind = ir.VectorType(stored, width)
        function = _masked(builder.module, "load", kind, kind, [pointer.type, I32, ir.VectorType(BIT, width), kind])
        align = ir.Constant(I32, alignment(stored))
        value = builder.call(function, [pointer, align, mask(width, count), splat(kind, 0)])
    if dtype == "bool":
        value = builder.icmp_unsigned("!=", value, splat(value.type, 0))
    return value


def gathered(builder: ir.IRBuilder, pointers: Sequence[ir.Value], dtype: str, width: int) -> ir.Value:
    """A vector of elements at one address each; the other lanes are 0."""
    return assembled(builder, [load(builder, pointer, dtype) for pointer in pointers], dtype, width)


def assembled(builder: ir.IRBuilder, elements: Sequence[ir.Value], dtype: str, width: int) -> ir.Value:
    """A vector of elements; the other lanes are 0."""
    if width == 1:
        return elements[0]
    found: ir.Value = constant(dtype, 0, width)
    for lane, element in enumerate(elements):
        found = builder.insert_element(found, element, ir.Constant(I32, lane))
    return found


def store(builder: ir.IRBuilder, value: ir.Value, pointer: ir.Value, dtype: str, count: int | None = None) -> None:
    """Write the first `count` lanes, or all."""
    stored = STORED[dtype]
    width = value.type.count if isinstance(value.type, ir.VectorType) else 1
    if dtype == "bool":
        value = builder.zext(value, typed(BYTE, width))
    if width == 1 or count is None or count == width:
        builder.store(value, pointer, align=alignment(stored))
        return
    kinds = [value.type, pointer.type, I32, ir.VectorType(BIT, width)]
    function = _masked(builder.module, "store", ir.VoidType(), value.type, kinds)
    builder.call(function, [value, pointer, ir.Constant(I32, alignment(stored)), mask(width, count)])


def _masked(
    module: ir.Module, name: str, result: ir.Type, kind: ir.VectorType, arguments: Sequence[ir.Type]
) -> ir.Function:
    lane = kind.element
    suffix = {ir.FloatType: "f32", ir.DoubleType: "f64"}.get(type(lane)) or f"i{lane.width}"
    full = f"llvm.masked.{name}.v{kind.count}{suffix}.p0"
    if full in module.globals:
        return module.globals[full]
    return ir.Function(module, ir.FunctionType(result, list(arguments)), full)


def horizontal(builder: ir.IRBuilder, vector: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """All lanes combined, halves first."""
    if not isinstance(vector.type, ir.VectorType):
        return vector
    width = vector.type.count
    while width > 2:
        width //= 2
        low, high = (
            builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(I32, width), list(range(f, f + width))))
            for f in (0, width)
        )
        vector = combine(low, high)
    return combine(*(builder.extract_element(vector, ir.Constant(I32, lane)) for lane in range(2)))


def transposed(builder: ir.IRBuilder, rows: Sequence[ir.Value]) -> list[ir.Value]:
    """The columns of a square block of vectors, whose lanes are a power of two: rounds of a perfect shuffle."""
    width, found = len(rows), list(rows)
    half = width // 2
    orders = [
        ir.Constant(ir.VectorType(I32, width), [lane for i in range(half) for lane in (first + i, width + first + i)])
        for first in (0, half)
    ]
    for _ in range(width.bit_length() - 1):
        pairs = zip(found[:half], found[half:], strict=True)
        found = [builder.shuffle_vector(a, b, order) for a, b in pairs for order in orders]
    return found
