"""The tile machine's instruction set, generated from the primitives of a set, and the tables of its handlers.

An instruction applies a primitive to a tile of rows. Its handler is a function of its own that ends by jumping to the
handler of the next instruction (threaded code, Bell 1973), so there is no central dispatch to mispredict. An operand is
a tile on the stack, a column of the data, or a constant: leaves cost nothing.

Each arithmetic instruction also exists fused with a second one, ``(a op b) op c`` and ``c op (a op b)``, which saves a
store and a load of the tile in between. Every operation still rounds on its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from llvmlite import ir

from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    FunctionPointer,
    broadcast,
    declare,
    element_pointer,
    load,
    number,
    store,
)
from shine.compiler.codegen.lowering import FLOAT_LOWERINGS
from shine.compiler.codegen.native.astjit import AstJit
from shine.compiler.codegen.numbers import Numbers
from shine.compiler.codegen.vecmath.functions import FUNCTIONS
from shine.compiler.codegen.vecmath.lanes import InliningBuilder
from shine.compiler.llvm.target import register_bytes
from shine.lang.forms.facts import FACTS
from shine.lang.forms.tree import Primitive, Tree

ARITHMETIC = ("add", "sub", "mul", "div")
"""Primitives that are fused in pairs."""

COMMUTATIVE = frozenset(name for name in ARITHMETIC if FACTS[name].commutative)
"""Arithmetic primitives whose operands may change places; a constant always comes second."""

_BINARY_FORMS = ((False, False), (False, True), (True, False))

OPERAND_FORMS = len(_BINARY_FORMS)
"""Instructions of a binary primitive, by its constant operand: none, the second, the first. Other primitives have one
instruction, which takes no constants."""

FUSED_RADICES = (len(ARITHMETIC), OPERAND_FORMS, len(ARITHMETIC), 2, 2)
"""Shape of the table of fused pairs (see `fused_instructions`)."""

_BYTE = ir.IntType(8)

HANDLER, DESTINATION, DESTINATION_MASK, OPERANDS = 0, 8, 16, 24
"""Byte offsets in an instruction: address of its handler, address of its result, mask of that address; then two words
an operand: an address and its mask, or a constant and an unused word.

The handler adds ``offset & mask`` to an address, with the tile's offset in a column. The mask is all ones for a column
and zero for a tile of the stack.
"""


WORDS_BYTES = 16
"""Bytes of an operand in an instruction."""

VECTOR_BYTES = 128
"""Bytes of an instruction's vector: two AVX-512 registers or four of AVX2, so that several are in flight."""


def operand_offset(position: int) -> int:
    """Byte offset of an operand in an instruction."""
    return OPERANDS + WORDS_BYTES * position


def instruction_bytes(functions: Sequence[Primitive]) -> int:
    """Size of an instruction with room for the operands of any of these functions."""
    # Operands of a fused pair of arithmetic instructions.
    return operand_offset(max([3, *(function.arity for function in functions)]))


def handler_type() -> ir.FunctionType:
    """``void handler(instruction, offset, bytes)``: the tile's place in a column and its length, in bytes."""
    return ir.FunctionType(ir.VoidType(), [POINTER, I64, I64])


HANDLER_POINTER = FunctionPointer(handler_type())
"""Address of an instruction's handler."""


@dataclass(frozen=True)
class Instruction:
    """One entry of the instruction set.

    Parameters
    ----------
    name : str
        Name of its handler.
    constants : tuple of bool
        Whether each operand is a constant.
    apply : callable
        ``apply(jit, *operands)`` emits the operation on one vector.
    vector : int
        Bytes of that vector.
    """

    name: str
    constants: tuple[bool, ...]
    apply: Callable[..., ir.Value]
    vector: int = VECTOR_BYTES


def primitive_instructions(primitive: Primitive) -> Iterator[Instruction]:
    """Instructions of one primitive, in the order of `OPERAND_FORMS`."""
    forms = _BINARY_FORMS if primitive.arity == 2 else ((False,) * primitive.arity,)
    in_chains = primitive.name in FUNCTIONS and FUNCTIONS[primitive.name].in_chains
    vector = max(VECTOR_BYTES, 4 * register_bytes() * in_chains)
    for constants in forms:
        yield Instruction(_name(primitive.name, constants), constants, application(primitive), vector)


def fused_instructions() -> Iterator[tuple[tuple[int, int, int, int, int], Instruction]]:
    """Pairs of arithmetic instructions, each with its place in the assembler's table.

    Yields
    ------
    place : tuple of int, (first, form of the first, second, side, constant)
        `first` and `second` are positions in `ARITHMETIC`; the form is one of `OPERAND_FORMS`; `side` is 0 for
        ``(a op b) op c`` and 1 for ``c op (a op b)``; `constant` is 1 if c is a constant.
    instruction : Instruction
        Its operands are a, b, c.
    """
    for (i, first), (form, ab), (j, second), side, c in product(
        enumerate(ARITHMETIC), enumerate(_BINARY_FORMS), enumerate(ARITHMETIC), (0, 1), (False, True)
    ):
        if (first in COMMUTATIVE and form == 2) or (second in COMMUTATIVE and side == 1):
            continue
        constants = (*ab, c)
        name = _name(f"{first}.{second}.{'left' if side == 0 else 'right'}", constants)
        yield (i, form, j, side, int(c)), Instruction(name, constants, _fused(first, second, side))


def _fused(first: str, second: str, side: int) -> Callable[..., ir.Value]:
    def apply(jit: AstJit, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        inner = FLOAT_LOWERINGS[first](jit.emit, a, b)
        return FLOAT_LOWERINGS[second](jit.emit, *((inner, c) if side == 0 else (c, inner)))

    return apply


def _name(name: str, constants: Sequence[bool]) -> str:
    return f"shine.{name}.{''.join('ct'[not constant] for constant in constants)}"


def application(primitive: Primitive) -> Callable[..., ir.Value]:
    """``apply(jit, *operands)``, which emits the value of a primitive on one vector."""
    definition = primitive.definition
    if definition is None:
        rule = FLOAT_LOWERINGS[primitive.name]
        return lambda jit, *operands: rule(jit.emit, *operands)
    tree: Tree = definition
    return lambda jit, *operands: jit.lower(tree, operands)


def emit_handler(module: ir.Module, instruction: Instruction, dtype: str, size: int) -> ir.Function:
    """Emit the handler of an instruction.

    Parameters
    ----------
    module : ir.Module
    instruction : Instruction
    dtype : {"float64", "float32"}
    size : int
        Bytes of an instruction.
    """
    width = Numbers(dtype)
    numbers = Numbers(dtype, instruction.vector // width.bytes)
    function = declare(module, instruction.name, ir.VoidType(), handler_type().args, ("instruction", "offset", "bytes"))
    function.linkage = "internal"
    current, offset, length = function.args
    entry, body, end = (function.append_basic_block(name) for name in ("entry", "body", "end"))
    build = InliningBuilder(entry)
    result = _address(build, current, DESTINATION, offset)
    operands = [
        _constant(build, current, operand_offset(i), numbers)
        if constant
        else _address(build, current, operand_offset(i), offset)
        for i, constant in enumerate(instruction.constants)
    ]
    build.branch(body)
    build.position_at_end(body)
    at = build.phi(I64, "at")
    at.add_incoming(ir.Constant(I64, 0), entry)
    values = [
        operand if constant else load(build, operand, at, _BYTE, numbers.type, numbers.bytes)
        for operand, constant in zip(operands, instruction.constants, strict=True)
    ]
    jit = AstJit(build, numbers)
    store(build, instruction.apply(jit, *values), result, at, _BYTE, numbers.bytes)
    following = build.add(at, ir.Constant(I64, numbers.width * numbers.bytes))
    at.add_incoming(following, build.block)
    build.cbranch(build.icmp_unsigned("<", following, length), body, end)
    build.position_at_end(end)
    jump(build, current, offset, length, size)
    return function


def emit_end(module: ir.Module) -> ir.Function:
    """Emit the handler that ends a list of instructions."""
    end = declare(module, "shine.end", ir.VoidType(), handler_type().args, ("instruction", "offset", "bytes"))
    end.linkage = "internal"
    ir.IRBuilder(end.append_basic_block("entry")).ret_void()
    return end


def _address(build: ir.IRBuilder, current: ir.Value, field: int, offset: ir.Value) -> ir.Value:
    """Address of an operand's tile."""
    base = load(build, current, ir.Constant(I64, field), _BYTE, POINTER, 8)
    mask = load(build, current, ir.Constant(I64, field + 8), _BYTE, I64, 8)
    return element_pointer(build, base, build.and_(offset, mask), _BYTE)


def _constant(build: ir.IRBuilder, current: ir.Value, field: int, numbers: Numbers) -> ir.Value:
    scalar = load(build, current, ir.Constant(I64, field), _BYTE, numbers.element, numbers.bytes)
    return broadcast(build, scalar, numbers.type)


def jump(build: ir.IRBuilder, current: ir.Value, offset: ir.Value, length: ir.Value, size: int) -> None:
    """Jump to the next instruction's handler; the stack does not grow."""
    following = element_pointer(build, current, ir.Constant(I64, size), _BYTE)
    handler = load(build, following, ir.Constant(I64, HANDLER), _BYTE, FunctionPointer(handler_type()), 8)
    build.call(handler, [following, offset, length], tail="musttail")
    build.ret_void()


@dataclass(frozen=True)
class Tables:
    """Tables for the assembler, as global constants of the module.

    Parameters
    ----------
    arities : ir.Value
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
    n_functions : int
        Number of functions.
    size : int
        Words of an instruction.
    """

    arities: ir.Value
    arithmetic: ir.Value
    handlers: ir.Value
    fused: ir.Value
    commutative: ir.Value
    fill: ir.Value
    copy: ir.Value
    end: ir.Value
    n_functions: int
    size: int


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
        arities=table(module, "arity", [number(f.arity) for f in functions]),
        arithmetic=table(module, "arithmetic", [number(i) for i in arithmetic]),
        handlers=table(module, "handlers", handlers),
        fused=table(module, "fused", fused),
        commutative=table(module, "commutative", [number(int(name in COMMUTATIVE)) for name in ARITHMETIC]),
        fill=handler(Instruction("shine.fill", (True,), identity)),
        copy=handler(Instruction("shine.copy", (False,), identity)),
        end=emit_end(module),
        n_functions=len(functions),
        size=size // 8,
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
