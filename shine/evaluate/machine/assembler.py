"""The assembler of the tile machine: it turns one tape into a list of instructions, as native code.

A single pass over the postfix tape, with a stack of operands::

    tape                 x          2.0           mul             y            add               end
    operand stack    column x   column x      tile 0        tile 0          tile 0
                                constant 2                  column y
    instructions                              tile 0 = x*2                  tile 0 = x*2 + y   end

A leaf emits nothing: it becomes an operand of the instruction that uses it. An instruction writes to the lowest free
tile, so few tiles are alive at a time. An arithmetic instruction that uses the result of the one just emitted is fused
with it, as here. A function of constants is computed once, by its own instruction, and becomes a constant; a function
of a feature that is known as a column becomes that column. Both save work on every tile.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir

from shine.base.typing import Address, Codes, Floats, Indices
from shine.compiler.codegen.blocks import I64, POINTER, declare, load
from shine.compiler.codegen.moments import TILE_BYTES
from shine.compiler.codegen.numbers import Numbers
from shine.compiler.kernels import emit_kernel
from shine.evaluate.machine.instructions import (
    ARITHMETIC,
    DESTINATION,
    DESTINATION_MASK,
    HANDLER,
    OPERAND_FORMS,
    OPERANDS,
    VECTOR_BYTES,
    Tables,
)
from shine.evaluate.machine.tiles import COLUMN_OPERAND, CONSTANT_OPERAND, OPERAND_BYTES, TILE_OPERAND
from shine.lang.forms.primitives import CONSTANT

Handler = Callable[[Indices, int, int], None]
"""A handler, which runs the instructions that begin with its own over so many bytes at an offset."""

_HANDLER, _DESTINATION, _MASK, _OPERANDS = HANDLER // 8, DESTINATION // 8, DESTINATION_MASK // 8, OPERANDS // 8
_KINDS = len(ARITHMETIC)

_WORDS = OPERAND_BYTES // 8
"""Words of an operand on the stack: its kind, an address or a constant, and a mask."""

_ALIVE, _MOST, _TEMPORARY, _CURSOR, _LAST, _FORM, _HEIGHT = range(7)
"""The state of the assembler: number of live tiles, and the largest such number; the next tile for a constant of the
current instruction, above the live ones; place of the next instruction; the last instruction's arithmetic primitive, or
-1, and its form (`OPERAND_FORMS`); number of operands on the stack."""


def emit_assembler(module: ir.Module, tables: Tables, dtype: str) -> ir.Function:
    """Emit `assemble` for a number type; the function does not take the tables."""
    _emit_constant_bits(module, Numbers(dtype))
    return emit_kernel(module, assemble, known=vars(tables))


def _emit_constant_bits(module: ir.Module, numbers: Numbers) -> None:
    """Emit `constant_bits` for a number type: its numbers fill the first bytes of a word."""
    double = ir.DoubleType()
    function = declare(module, constant_bits.__name__, I64, [POINTER, I64], ("values", "node"))
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    build = ir.IRBuilder(function.append_basic_block("entry"))
    values, node = function.args
    value = load(build, values, node, double, double)
    if numbers.element != double:
        pair = ir.Constant(ir.VectorType(numbers.element, 2), [0.0, 0.0])
        single = build.fptrunc(value, numbers.element)
        value = build.insert_element(pair, single, ir.Constant(ir.IntType(32), 0))
    build.ret(build.bitcast(value, I64))


def constant_bits(values: Floats, node: int) -> int:
    """A constant as handlers of float64 read it; the module has this function for its own number type."""
    return int(values[node:].view(np.int64)[0])


def assemble(
    codes: Codes,
    values: Floats,
    count: int,
    functions: int,
    columns: Indices,
    derived: Address,
    nested: Address,
    instructions: Indices,
    operands: Indices,
    tiles: int,
    result: int,
    arities: Indices,
    arithmetic: Indices,
    handlers: Indices,
    fused: Indices,
    commutative: Indices,
    fill: int,
    copy: int,
    end: int,
    n_functions: int,
    size: int,
) -> int:
    """Turn a tape into instructions; the number of tiles in use.

    Parameters
    ----------
    codes, values, count, functions
        The tape, its number of nodes, and the code of the first function.
    columns
        Address of the column of each feature.
    derived
        Address of the known columns of functions of one feature, an array of shape (functions, features), 0 where a
        column is not known. 0 if none is known.
    nested
        Likewise the known columns of functions of such columns, an array of shape (functions, entries of `derived`).
    instructions, operands
        Room for ``2 * count + 2`` instructions of `size` words, and for ``count + 1`` operands.
    tiles, result
        Addresses of the stack of tiles, and of the value of the whole tape: a buffer of `TILE_BYTES`.
    arities, ..., size
        Those of `Tables`.
    """
    state = np.empty(7, np.int64)
    state[_ALIVE], state[_MOST], state[_CURSOR], state[_HEIGHT], state[_LAST] = 0, 0, 0, 0, -1
    features = functions - 1
    # The feature that the previous node is, or the entry of `derived` that it became; or -1.
    feature, entry = -1, -1
    for node in range(count):
        code = codes[node]
        if code < functions:
            # A processor cannot predict which leaves are constants: select instead of branching.
            column = columns[0 if code == CONSTANT else code - 1]
            operand = operands[state[_HEIGHT] * _WORDS :]
            operand[0] = CONSTANT_OPERAND if code == CONSTANT else COLUMN_OPERAND
            operand[1], operand[2] = constant_bits(values, node) if code == CONSTANT else column, -1
            state[_HEIGHT] += 1
            feature, entry = code - 1, -1
        else:
            function = code - functions
            arity = arities[function]
            first = state[_HEIGHT] - arity
            own = operands[first * _WORDS :]
            column, constants = 0, 0
            if arity == 2:
                constants = (own[0] == CONSTANT_OPERAND) + (own[_WORDS] == CONSTANT_OPERAND)
            else:
                if (arity == 1) & (derived != 0) & (feature >= 0):
                    known: Indices = derived
                    column = known[function * features + feature]
                if (arity == 1) & (nested != 0) & (entry >= 0):
                    known_further: Indices = nested
                    column = known_further[function * features * n_functions + entry]
                constants = _count(own, CONSTANT_OPERAND, arity)
            entry = -1
            state[_TEMPORARY] = state[_ALIVE]
            if column:
                _write_operand(own, COLUMN_OPERAND, column, -1)
                entry = function * features + feature if feature >= 0 else -1
            elif constants == arity:
                handler = handlers[function * OPERAND_FORMS]
                _fold(own, arity, first, handler, instructions, state, tiles, fill, end, size)
            elif arity == 2:
                kind = arithmetic[function]
                commutes = commutative[max(kind, 0)] if kind >= 0 else 0
                own_handlers = handlers[function * OPERAND_FORMS :]
                _add_binary(own, first, kind, commutes, own_handlers, fused, instructions, state, tiles, size)
            else:
                popped = _count(own, TILE_OPERAND, arity)
                handler = handlers[function * OPERAND_FORMS]
                _apply(own, arity, first, popped, handler, instructions, state, tiles, fill, size)
            feature = -1
    # The value of the whole tape goes to the result buffer.
    if operands[0] != TILE_OPERAND:
        _copy_operand(operands, instructions[state[_CURSOR] :], 0)
        _add(instructions, state, size, fill if operands[0] == CONSTANT_OPERAND else copy, result)
    # Tiles may be shorter than the result buffer: each goes to its place in it.
    last_one = instructions[state[_CURSOR] - size :]
    last_one[_DESTINATION], last_one[_MASK] = result, TILE_BYTES - 1
    _add(instructions, state, size, end, 0)
    return state[_MOST]


def _count(operands: Indices, kind: int, arity: int) -> int:
    """Number of operands of one kind."""
    found = 0
    for place in range(arity):
        found += operands[place * _WORDS] == kind
    return found


def _add_binary(
    operands: Indices,
    first: int,
    kind: int,
    commutes: int,
    handlers: Indices,
    fused: Indices,
    instructions: Indices,
    state: Indices,
    tiles: int,
    size: int,
) -> None:
    """Add an instruction of two operands, or make the last one compute this one too, if both are arithmetic."""
    second = operands[_WORDS:]
    is_second = second[0] == TILE_OPERAND
    popped = (operands[0] == TILE_OPERAND) + is_second
    if (kind >= 0) & (state[_LAST] >= 0) & (popped > 0):
        # The last result is the second operand if that is a tile, else the first: leaves emit nothing.
        other = operands if is_second else second
        right = is_second & (commutes == 0)
        place = (state[_LAST] * OPERAND_FORMS + state[_FORM]) * _KINDS + kind
        handler = fused[(place * 2 + right) * 2 + (other[0] == CONSTANT_OPERAND)]
        state[_CURSOR] -= size
        _copy_operand(other, instructions[state[_CURSOR] :], 2)
        state[_LAST] = -1
    else:
        # A commutative instruction gets its constant second.
        swaps = commutes & (operands[0] == CONSTANT_OPERAND)
        left, other = second if swaps else operands, operands if swaps else second
        form = (other[0] == CONSTANT_OPERAND) + 2 * (left[0] == CONSTANT_OPERAND)
        handler = handlers[form]
        _copy_operand(left, instructions[state[_CURSOR] :], 0)
        _copy_operand(other, instructions[state[_CURSOR] :], 1)
        state[_LAST], state[_FORM] = kind, form
    address = _push_result(operands, first, popped, state, tiles)
    _add(instructions, state, size, handler, address)


def _fold(
    operands: Indices,
    arity: int,
    first: int,
    handler: int,
    instructions: Indices,
    state: Indices,
    tiles: int,
    fill: int,
    end: int,
    size: int,
) -> None:
    """Run an instruction whose operands are all constants, on one vector; its result becomes a constant operand."""
    cursor, alive, most = state[_CURSOR], state[_ALIVE], state[_MOST]
    last, form = state[_LAST], state[_FORM]
    _apply(operands, arity, first, 0, handler, instructions, state, tiles, fill, size)
    found: Indices = operands[1]
    _add(instructions, state, size, end, 0)
    run: Handler = instructions[cursor]
    run(instructions[cursor:], 0, VECTOR_BYTES)
    _write_operand(operands, CONSTANT_OPERAND, found[0], -1)
    state[_CURSOR], state[_ALIVE], state[_MOST], state[_LAST], state[_FORM] = cursor, alive, most, last, form


def _apply(
    operands: Indices,
    arity: int,
    first: int,
    popped: int,
    handler: int,
    instructions: Indices,
    state: Indices,
    tiles: int,
    fill: int,
    size: int,
) -> None:
    """Add an instruction of a function of any arity; its constants become tiles above the live ones."""
    for place in range(arity):
        operand = operands[place * _WORDS :]
        if operand[0] == CONSTANT_OPERAND:
            filled = _tile(state[_TEMPORARY], state, tiles)
            state[_TEMPORARY] += 1
            _copy_operand(operand, instructions[state[_CURSOR] :], 0)
            _add(instructions, state, size, fill, filled)
            _write_operand(operand, TILE_OPERAND, filled, 0)
    for place in range(arity):
        _copy_operand(operands[place * _WORDS :], instructions[state[_CURSOR] :], place)
    address = _push_result(operands, first, popped, state, tiles)
    _add(instructions, state, size, handler, address)
    state[_LAST] = -1


def _push_result(operands: Indices, first: int, popped: int, state: Indices, tiles: int) -> int:
    """Put the tile of a result in the place of its operands; its address."""
    alive = state[_ALIVE] - popped
    address = _tile(alive, state, tiles)
    state[_ALIVE], state[_HEIGHT] = alive + 1, first + 1
    _write_operand(operands, TILE_OPERAND, address, 0)
    return address


def _tile(index: int, state: Indices, tiles: int) -> int:
    """Address of a tile of the stack; it counts the tile as used."""
    state[_MOST] = max(state[_MOST], index + 1)
    return tiles + index * TILE_BYTES


def _add(instructions: Indices, state: Indices, size: int, handler: int, destination: int) -> None:
    """Add an instruction whose operands are written."""
    instruction = instructions[state[_CURSOR] :]
    instruction[_HANDLER], instruction[_DESTINATION], instruction[_MASK] = handler, destination, 0
    state[_CURSOR] += size


def _write_operand(operand: Indices, kind: int, base: int, mask: int) -> None:
    """Write an operand of the stack."""
    operand[0], operand[1], operand[2] = kind, base, mask


def _copy_operand(operand: Indices, instruction: Indices, place: int) -> None:
    """Copy an operand of the stack to its place in an instruction."""
    target = instruction[_OPERANDS + 2 * place :]
    target[0], target[1] = operand[1], operand[2]
