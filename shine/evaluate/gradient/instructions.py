"""The gradient machine's instructions and their tables: each primitive's value, and the adjoints of its arguments.

They work on tiles of rows like those of `shine.evaluate.machine.instructions` and end by jumping to the next one. One
handler serves all kinds of operands (columns, tiles, constants): a constant is one vector of copies that is read again
and again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, declare, element_pointer, load, number, store
from shine.compiler.codegen.native.astjit import AstJit
from shine.compiler.codegen.numbers import Numbers, is_elementary
from shine.compiler.codegen.vecmath.lanes import FusingBuilder, InliningBuilder, Lanes
from shine.compiler.codegen.vecmath.trigonometric import cos_and_slope, sin_and_slope
from shine.evaluate.machine.instructions import application, emit_end, handler_type, jump, table
from shine.lang.derivative import VALUE, partials
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.parse import parse

BROADCAST_BYTES = 128
"""Bytes filled with copies of a constant: the widest vector of any instruction."""

OPERAND_WORDS = 3
"""Words of an operand: an address; the mask of the tile's offset, all ones for a column and zero otherwise; the mask of
the steps within a tile, zero for a constant and all ones otherwise."""

OPERAND_BYTES = 8 * OPERAND_WORDS

SLOPE = 1
"""Operand of a function of one argument: where its slope goes, if it is computed with the value."""

HANDLER, DESTINATION, OPERANDS = 0, 8, 24
"""Byte offsets in an instruction: address of its handler; address of its result, and the mask of the tile's offset
there; then the operands."""

_WITH_SLOPE = {"sin": sin_and_slope, "cos": cos_and_slope}
"""Functions whose value and slope have most of their work in common."""

_SLOPE_GIVEN = parse("a", ("a", VALUE))
"""Their partial derivative: the slope comes in the place of the argument."""

LISTS = 3
"""Lists of instructions: values that no constant changes, values that vary with one, adjoints."""

_BYTE = ir.IntType(8)


def gradient_instruction_bytes(arity: int) -> int:
    """Bytes of an instruction for functions up to an arity; an adjoint also takes the function's adjoint and value."""
    return OPERANDS + OPERAND_BYTES * (arity + 2)


def emit_value(module: ir.Module, primitive: Primitive, size: int) -> ir.Function:
    """Emit the handler of a primitive's value; its operands are the arguments."""
    apply = application(primitive)
    name = f"shine.value.{primitive.name}"
    return _emit(module, name, list(range(primitive.arity)), lambda *given: (apply(*given),), size)


def _has_slope(primitive: Primitive) -> bool:
    return primitive.definition is None and primitive.name in _WITH_SLOPE


def _emit_varying(module: ir.Module, primitive: Primitive, size: int) -> ir.Function:
    """Emit the handler of a primitive's value where that varies with a constant, and of its slope.

    Only there multiplications and additions may be fused: other values may also come from derived columns.
    """
    value = application(primitive)

    def apply(jit: AstJit, *given: ir.Value) -> list[ir.Value]:
        if not _has_slope(primitive):
            return [value(jit, *given)]
        return [found.value for found in _WITH_SLOPE[primitive.name](Lanes(jit.emit.builder, *given))]

    name = f"shine.varying.{primitive.name}"
    return _emit(module, name, list(range(primitive.arity)), apply, size, FusingBuilder)


def emit_adjoint(module: ir.Module, primitive: Primitive, argument: int, partial: Tree, size: int) -> ir.Function:
    """Emit the handler of an argument's adjoint: the function's adjoint times the partial derivative by the argument.

    Parameters
    ----------
    module : ir.Module
    primitive : Primitive
    argument : int
    partial : Tree
        Its parameters are the primitive's arguments, then its value. The handler's operands are the function's adjoint,
        then the values of these parameters.
    size : int
        Bytes of an instruction.
    """
    used = {token[1] for token in partial.tokens[1:] if token[0] == "name"}
    positions = [i for i, name in enumerate(partial.parameters) if name in used]

    def apply(jit: AstJit, adjoint: ir.Value, *values: ir.Value) -> Sequence[ir.Value]:
        given = dict(zip(positions, values, strict=True))
        # Arguments that the partial derivative does not use are not loaded.
        unused = jit.emit.constant(0.0)
        arguments = [given.get(i, unused) for i in range(len(partial.parameters))]
        return (jit.emit.builder.fmul(adjoint, jit.lower(partial, arguments)),)

    name = f"shine.adjoint.{primitive.name}.{argument}"
    return _emit(module, name, [0, *(1 + i for i in positions)], apply, size, FusingBuilder)


def _emit(
    module: ir.Module,
    name: str,
    positions: list[int],
    apply: Callable[..., Sequence[ir.Value]],
    size: int,
    kind: type[ir.IRBuilder] = InliningBuilder,
) -> ir.Function:
    """A handler that applies an operation to the operands at some positions of its instruction; a second result is the
    slope."""
    numbers = Numbers("float64", BROADCAST_BYTES // 8)
    function = declare(module, name, ir.VoidType(), handler_type().args, ("instruction", "offset", "bytes"))
    function.linkage = "internal"
    current, offset, length = function.args
    entry, body, end = (function.append_basic_block(label) for label in ("entry", "body", "end"))
    build = kind(entry)
    results = [tile_operand(build, current, at, offset)[0] for at in (DESTINATION, OPERANDS + OPERAND_BYTES * SLOPE)]
    operands = [tile_operand(build, current, OPERANDS + OPERAND_BYTES * i, offset) for i in positions]
    build.branch(body)
    build.position_at_end(body)
    at = build.phi(I64, "at")
    at.add_incoming(ir.Constant(I64, 0), entry)
    values = [load(build, base, build.and_(at, mask), _BYTE, numbers.type, 8) for base, mask in operands]
    for result, value in zip(results, apply(AstJit(build, numbers), *values), strict=False):
        store(build, value, result, at, _BYTE, 8)
    following = build.add(at, ir.Constant(I64, numbers.width * 8))
    at.add_incoming(following, build.block)
    build.cbranch(build.icmp_unsigned("<", following, length), body, end)
    build.position_at_end(end)
    jump(build, current, offset, length, size)
    return function


def tile_operand(
    build: ir.IRBuilder, holder: ir.Value, field: int | ir.Value, offset: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """Address of an operand's tile, and the mask of the steps within it; `field` is the operand's offset in bytes."""
    start = ir.Constant(I64, field) if isinstance(field, int) else field
    words = element_pointer(build, holder, start, _BYTE)
    base = load(build, words, ir.Constant(I64, 0), I64, POINTER, 8)
    offset_mask, step_mask = (load(build, words, ir.Constant(I64, i), I64, I64) for i in (1, 2))
    return element_pointer(build, base, build.and_(offset, offset_mask), _BYTE), step_mask


def tile_lanes(build: ir.IRBuilder, base: ir.Value, row: ir.Value, step_mask: ir.Value, kind: ir.Type) -> ir.Value:
    """A vector of float64 of an operand's tile, from a row on."""
    step = build.and_(build.mul(row, ir.Constant(I64, 8)), step_mask)
    return load(build, base, step, _BYTE, kind, 8)


NO_PARTIAL, UNCHANGED = 0, 1
"""Entries of the adjoint table instead of an address, if the partial derivative is 0, or 1."""

_DOUBLE = ir.DoubleType()


@dataclass(frozen=True)
class GradientTables:
    """Tables for the assembler, as global constants of the module.

    Parameters
    ----------
    arities : ir.Value
        i64 of each function.
    forward : ir.Value
        Address of each function's handler.
    varying : ir.Value
        Address of each function's handler where a constant is below.
    partials : ir.Value
        An array of shape (functions, `most_arguments`): `NO_PARTIAL`, `UNCHANGED`, or a handler's address.
    slopes : ir.Value
        Whether each function's handler computes its slope, too; the adjoint's handler takes it in the place of the
        argument.
    most_arguments : int
        Largest arity of the functions.
    zeros, ones : ir.Value
        Broadcast constants.
    end : ir.Value
        Address of the handler that ends a list of instructions.
    size : int
        Words of an instruction.
    """

    arities: ir.Value
    forward: ir.Value
    varying: ir.Value
    partials: ir.Value
    slopes: ir.Value
    most_arguments: int
    zeros: ir.Value
    ones: ir.Value
    end: ir.Value
    size: int


def most_arguments(functions: Sequence[Primitive]) -> int:
    """Largest arity of the functions; at least 1."""
    return max([1, *(function.arity for function in functions)])


def emit_gradient_tables(module: ir.Module, functions: Sequence[Primitive], size: int) -> GradientTables:
    """Emit all handlers of some functions, and the tables; an instruction has `size` bytes."""
    most = most_arguments(functions)
    forward, varying, adjoint = [], [], []
    for function in functions:
        forward.append(emit_value(module, function, size))
        is_slow = is_elementary(function)
        varying.append(_emit_varying(module, function, size) if is_slow else forward[-1])
        found = [
            _adjoint_entry(module, function, argument, partial, size)
            for argument, partial in enumerate([_SLOPE_GIVEN] if _has_slope(function) else partials(function))
        ]
        adjoint += found + [_table_entry(NO_PARTIAL)] * (most - len(found))
    return GradientTables(
        arities=table(module, "arity", [number(function.arity) for function in functions]),
        forward=table(module, "forward", forward),
        varying=table(module, "varying", varying),
        partials=table(module, "adjoint", adjoint),
        slopes=table(module, "slopes", [number(int(_has_slope(function))) for function in functions]),
        most_arguments=most,
        zeros=_broadcast_table(module, "zeros", 0.0),
        ones=_broadcast_table(module, "ones", 1.0),
        end=emit_end(module),
        size=size // 8,
    )


def _adjoint_entry(module: ir.Module, function: Primitive, argument: int, partial: Tree | None, size: int) -> ir.Value:
    if partial is None:
        return _table_entry(NO_PARTIAL)
    if partial.tokens[1:] in ((("constant", "1"),), (("constant", "1.0"),)):
        return _table_entry(UNCHANGED)
    return emit_adjoint(module, function, argument, partial, size)


def _table_entry(code: int) -> ir.Value:
    """A small number instead of an address."""
    return ir.Constant(I64, code).inttoptr(POINTER)


def _broadcast_table(module: ir.Module, name: str, value: float) -> ir.GlobalVariable:
    kind = ir.ArrayType(_DOUBLE, BROADCAST_BYTES // 8)
    variable = ir.GlobalVariable(module, kind, f"shine.table.{name}")
    variable.type, variable.linkage, variable.global_constant = POINTER, "internal", True
    variable.initializer = ir.Constant(kind, [ir.Constant(_DOUBLE, value)] * kind.count)
    return variable
