"""The handlers of the tile machine, and the assembler's tables of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, number
from shine.evaluate.machine.instructions import (
    ARITHMETIC,
    COMMUTATIVE,
    FUSED_RADICES,
    OPERAND_FORMS,
    Instruction,
    emit_end,
    emit_handler,
    fused_instructions,
    instruction_bytes,
    primitive_instructions,
)
from shine.lang.forms.tree import Primitive


@dataclass(frozen=True)
class Tables:
    """Tables for the assembler, as global constants of the module.

    Parameters
    ----------
    arity : ir.Value
        i64 of each function.
    arithmetic : ir.Value
        i64 of each function: its place in `ARITHMETIC`, or -1.
    handlers : ir.Value
        `OPERAND_FORMS` addresses of each function; null where it has fewer.
    fused : ir.Value
        Addresses of the handlers of pairs, an array of shape `FUSED_RADICES`.
    commutative : ir.Value
        i64 of each arithmetic primitive: whether its operands may change places.
    fill, copy, end : ir.Value
        Addresses of the handlers that apply no primitive: fill a tile with a constant, copy a column, end.
    functions : int
        Number of functions.
    instruction_bytes : int
        Size of an instruction.
    """

    arity: ir.Value
    arithmetic: ir.Value
    handlers: ir.Value
    fused: ir.Value
    commutative: ir.Value
    fill: ir.Value
    copy: ir.Value
    end: ir.Value
    functions: int
    instruction_bytes: int


def emit_tables(module: ir.Module, functions: Sequence[Primitive], dtype: str) -> Tables:
    """Emit all handlers of some functions, and the tables."""
    size = instruction_bytes(functions)

    def handler(instruction: Instruction) -> ir.Function:
        return emit_handler(module, instruction, dtype, size)

    def identity(jit: object, value: ir.Value) -> ir.Value:
        return value

    null = ir.Constant(POINTER, None)
    handlers: list[ir.Value] = []
    for function in functions:
        own = [handler(instruction) for instruction in primitive_instructions(function)]
        handlers += own + [null] * (OPERAND_FORMS - len(own))
    arithmetic = [ARITHMETIC.index(f.name) if f.name in ARITHMETIC else -1 for f in functions]
    fused: list[ir.Value] = [null] * math.prod(FUSED_RADICES)
    for place, instruction in fused_instructions():
        first, _, second, *_ = place
        if first in arithmetic and second in arithmetic:
            fused[_flat(place)] = handler(instruction)
    return Tables(
        arity=table(module, "arity", [number(f.arity) for f in functions]),
        arithmetic=table(module, "arithmetic", [number(i) for i in arithmetic]),
        handlers=table(module, "handlers", handlers),
        fused=table(module, "fused", fused),
        commutative=table(module, "commutative", [number(int(name in COMMUTATIVE)) for name in ARITHMETIC]),
        fill=handler(Instruction("shine.fill", (True,), identity)),
        copy=handler(Instruction("shine.copy", (False,), identity)),
        end=emit_end(module),
        functions=len(functions),
        instruction_bytes=size,
    )


def _flat(place: tuple[int, ...]) -> int:
    """Position in the table of fused pairs."""
    position = 0
    for radix, digit in zip(FUSED_RADICES, place, strict=True):
        position = position * radix + digit
    return position


def table(module: ir.Module, name: str, entries: Sequence[ir.Value]) -> ir.GlobalVariable:
    """A constant array of words."""
    element = I64 if all(entry.type == I64 for entry in entries) else POINTER
    kind = ir.ArrayType(element, len(entries))
    variable = ir.GlobalVariable(module, kind, f"shine.table.{name}")
    variable.type, variable.linkage, variable.global_constant = POINTER, "internal", True
    variable.initializer = ir.Constant(kind, list(entries))
    return variable
