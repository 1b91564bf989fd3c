"""The assembler of the gradient machine: it turns one tape into instructions for its value and its derivatives.

A tape is a tree, so each node but the root is an operand of exactly one other. Its adjoint (the derivative of the root
by it) is one product: the adjoint of the node that uses it, times a partial derivative. Nothing needs adding up. The
instructions compute all values and keep them; then the adjoints from the root down (reverse accumulation; Linnainmaa
1976), starting from the cotangent 1, but only of nodes with a constant below them::

    tape          2.0   x   mul   sin          sin(2.0 * x)
    values                  t0    t1           t0 = 2.0 * x; t1 = sin(t0)
    adjoints      t3        t2    1            t2 = 1 * cos(t0); t3 = t2 * x

The adjoints of the constants are the columns of the Jacobian.

There are `LISTS` of instructions: the values that no constant changes, those that vary with one, and the adjoints.
"""

from __future__ import annotations

import numpy as np

from shine.base.typing import Address, Codes, Indices
from shine.evaluate.gradient.instructions import (
    BROADCAST_BYTES,
    DESTINATION,
    HANDLER,
    NO_PARTIAL,
    OPERAND_WORDS,
    OPERANDS,
    SLOPE,
    UNCHANGED,
)
from shine.evaluate.gradient.normal_equations import FIXED_COLUMNS
from shine.lang.forms.primitives import CONSTANT

NODE_WORDS = 3 * OPERAND_WORDS + 5
"""Words of each node: the operands for its value, its adjoint and its slope; its function or -1; number of nodes of its
subtree; whether it varies smoothly with a constant; whether a constant is below; whether its adjoint is computed."""

_VALUE, _ADJOINT, _SLOPE = range(0, 3 * OPERAND_WORDS, OPERAND_WORDS)
_FUNCTION, _SIZE, _VARIES, _DEPENDS, _REACHED = range(3 * OPERAND_WORDS, NODE_WORDS)

_HANDLER, _DESTINATION, _OPERANDS = HANDLER // 8, DESTINATION // 8, OPERANDS // 8

_STILL, _CURSOR, _TILE, _CONSTANTS = range(4)
"""The state of the assembler: places of the next value that no constant changes and of the next other instruction; the
next free tile; constants seen on the way up, and those left on the way down."""


def assemble(
    codes: Codes,
    count: int,
    functions: int,
    columns: Indices,
    derived: Address,
    instructions: Indices,
    nodes: Indices,
    constants: int,
    tiles: int,
    length: int,
    whole: int,
    stride: int,
    mask: int,
    normal: Indices,
    most: int,
    residual: int,
    arities: Indices,
    forward: Indices,
    varying: Indices,
    partials: Indices,
    slopes: Indices,
    most_arguments: int,
    zeros: int,
    ones: int,
    end: int,
    size: int,
) -> None:
    """Turn a tape into instructions.

    Parameters
    ----------
    codes, count, functions
        The tape, its number of nodes, and the code of the first function.
    columns, derived
        Address of the column of each feature; address of those of known columns of functions of features, as for
        `shine.evaluate.machine.assembler`.
    instructions
        Room for `LISTS` lists, each of one instruction of `size` words per node and one more.
    nodes, constants, tiles
        Room per node: `NODE_WORDS` words; `BROADCAST_BYTES` bytes, with copies of a constant; three tiles.
    length
        Bytes of a tile.
    whole
        Room for a tile of each value and slope; `tiles`, if values are not kept.
    stride, mask
        Bytes from a value to the next one; mask of the offset of a value's tile there.
    normal
        Columns of the normal equations, `OPERAND_WORDS` each: the residual, 1, the prediction, then the derivatives by
        the first `most` constants of the tape.
    residual
        Address of the residual, as kept as the values.
    arities, ..., end
        Those of `GradientTables`.
    """
    state = np.empty(4, np.int64)
    state[_STILL], state[_CURSOR], state[_TILE], state[_CONSTANTS] = 0, (count + 1) * size, 0, 0
    for node in range(count):
        own = nodes[node * NODE_WORDS :]
        _write_operand(own[_ADJOINT:], zeros, 0, 0)
        own[_FUNCTION], own[_SIZE], own[_VARIES], own[_DEPENDS], own[_REACHED] = -1, 1, 0, 0, 0
        code = codes[node]
        if code == CONSTANT:
            _write_operand(own[_VALUE:], constants + node * BROADCAST_BYTES, 0, 0)
            own[_VARIES], own[_DEPENDS] = 1, 1
            state[_CONSTANTS] += 1
        elif code < functions:
            _write_operand(own[_VALUE:], columns[code - 1], -1, -1)
        else:
            function = code - functions
            arity = arities[function]
            column = 0
            if derived and arity == 1:
                before = codes[node - 1]
                if before != CONSTANT and before < functions:
                    known: Indices = derived
                    column = known[function * (functions - 1) + before - 1]
            if column:
                # Like a feature, but its subtree includes the node of the feature before it.
                _write_operand(own[_VALUE:], column, -1, -1)
                own[_SIZE] = 2
            else:
                own[_FUNCTION] = function
                _note_subtree(nodes, node, arity, partials[function * most_arguments :])
                handler = varying[function] if own[_DEPENDS] else forward[function]
                slope = own[_DEPENDS] and slopes[function]
                _add_value(nodes, node, arity, handler, slope, instructions, state, size, whole, stride, mask)
    instructions[state[_STILL]], instructions[state[_CURSOR]] = end, end
    state[_CURSOR] = 2 * (count + 1) * size
    root = nodes[(count - 1) * NODE_WORDS :]
    _write_operand(root[_ADJOINT:], ones, 0, 0)
    root[_REACHED] = 1
    _write_operand(normal, residual, mask, -1)
    _write_operand(normal[OPERAND_WORDS:], ones, 0, 0)
    _copy_operand(root[_VALUE:], normal[2 * OPERAND_WORDS :])
    # Without constants to fit, nothing reads the adjoints.
    for back in range(count if most else 0):
        node = count - 1 - back
        own = nodes[node * NODE_WORDS :]
        function = own[_FUNCTION]
        if function >= 0 and own[_REACHED]:
            arity = arities[function]
            own_partials = partials[function * most_arguments :]
            _add_adjoints(nodes, node, arity, own_partials, slopes[function], instructions, state, size, tiles, length)
        if function < 0 and own[_VARIES]:
            state[_CONSTANTS] -= 1
            if state[_CONSTANTS] < most:
                _copy_operand(own[_ADJOINT:], normal[(state[_CONSTANTS] + FIXED_COLUMNS) * OPERAND_WORDS :])
    instructions[state[_CURSOR]] = end


def _note_subtree(nodes: Indices, node: int, arity: int, partials: Indices) -> None:
    """Note the size of a function's subtree, and what its arguments say about constants below.

    Arguments are visited from the last one on, here and below: it is the node before the function, and the argument
    before another ends where its subtree begins.
    """
    nodes_below, varies, depends = 1, 0, 0
    child = node - 1
    for back in range(arity):
        there = nodes[child * NODE_WORDS :]
        varies |= 0 if partials[arity - 1 - back] == NO_PARTIAL else there[_VARIES]
        depends |= there[_DEPENDS]
        nodes_below += there[_SIZE]
        child -= there[_SIZE]
    own = nodes[node * NODE_WORDS :]
    own[_SIZE], own[_VARIES], own[_DEPENDS] = nodes_below, varies, depends


def _add_value(
    nodes: Indices,
    node: int,
    arity: int,
    handler: int,
    slope: int,
    instructions: Indices,
    state: Indices,
    size: int,
    whole: int,
    stride: int,
    mask: int,
) -> None:
    """Add the instruction of a function's value, and of its slope if that is wanted."""
    own = nodes[node * NODE_WORDS :]
    depends = own[_DEPENDS]
    instruction = instructions[state[_CURSOR] if depends else state[_STILL] :]
    state[_CURSOR] += size if depends else 0
    state[_STILL] += 0 if depends else size
    address = whole + state[_TILE] * stride
    state[_TILE] += 1
    instruction[_HANDLER], instruction[_DESTINATION], instruction[_DESTINATION + 1] = handler, address, mask
    child = node - 1
    for back in range(arity):
        there = nodes[child * NODE_WORDS :]
        _copy_operand(there[_VALUE:], instruction[_OPERANDS + (arity - 1 - back) * OPERAND_WORDS :])
        child -= there[_SIZE]
    _write_operand(own[_VALUE:], address, mask, -1)
    if slope:
        _write_operand(own[_SLOPE:], whole + state[_TILE] * stride, mask, -1)
        state[_TILE] += 1
        _copy_operand(own[_SLOPE:], instruction[_OPERANDS + SLOPE * OPERAND_WORDS :])


def _add_adjoints(
    nodes: Indices,
    node: int,
    arity: int,
    partials: Indices,
    slope: int,
    instructions: Indices,
    state: Indices,
    size: int,
    tiles: int,
    length: int,
) -> None:
    """Add the instructions of the adjoints of a function's arguments."""
    own = nodes[node * NODE_WORDS :]
    child = node - 1
    for back in range(arity):
        there = nodes[child * NODE_WORDS :]
        partial = partials[arity - 1 - back]
        if partial != NO_PARTIAL and there[_VARIES]:
            there[_REACHED] = 1
            if partial == UNCHANGED:
                _copy_operand(own[_ADJOINT:], there[_ADJOINT:])
            else:
                instruction = instructions[state[_CURSOR] :]
                state[_CURSOR] += size
                address = tiles + state[_TILE] * length
                state[_TILE] += 1
                instruction[_HANDLER], instruction[_DESTINATION], instruction[_DESTINATION + 1] = partial, address, 0
                operands = instruction[_OPERANDS:]
                _copy_operand(own[_ADJOINT:], operands)
                sibling = node - 1
                for place in range(arity):
                    beside = nodes[sibling * NODE_WORDS :]
                    _copy_operand(beside[_VALUE:], operands[(arity - place) * OPERAND_WORDS :])
                    sibling -= beside[_SIZE]
                if slope:
                    _copy_operand(own[_SLOPE:], operands[OPERAND_WORDS:])
                _copy_operand(own[_VALUE:], operands[(arity + 1) * OPERAND_WORDS :])
                _write_operand(there[_ADJOINT:], address, 0, -1)
        child -= there[_SIZE]


def _write_operand(target: Indices, base: int, offset_mask: int, step_mask: int) -> None:
    """Write an operand: `OPERAND_WORDS` words."""
    target[0], target[1], target[2] = base, offset_mask, step_mask


def _copy_operand(source: Indices, target: Indices) -> None:
    """Copy an operand."""
    target[0], target[1], target[2] = source[0], source[1], source[2]
