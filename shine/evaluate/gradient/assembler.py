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

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from llvmlite import ir

from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    Variables,
    counted,
    declare,
    element_pointer,
    load,
    number,
    store,
)
from shine.evaluate.gradient.instructions import (
    BROADCAST_BYTES,
    DESTINATION,
    HANDLER,
    NO_PARTIAL,
    OPERAND_BYTES,
    OPERAND_WORDS,
    OPERANDS,
    SLOPE,
    UNCHANGED,
    GradientTables,
    list_bytes,
    slopes_of,
)
from shine.evaluate.gradient.normal_equations import FIXED_COLUMNS
from shine.lang.forms.primitives import CONSTANT

NODE_WORDS = 3 * OPERAND_WORDS + 5
"""Words of each node: the operands for its value, its adjoint and its slope; its function or -1; number of nodes of its
subtree; whether it varies smoothly with a constant; whether a constant is below; whether its adjoint is computed."""

_VALUE, _ADJOINT, _SLOPE = range(0, 3 * OPERAND_WORDS, OPERAND_WORDS)
_FUNCTION, _SIZE, _VARIES, _DEPENDS, _REACHED = range(3 * OPERAND_WORDS, NODE_WORDS)

_BYTE, _CODE = ir.IntType(8), ir.IntType(16)


def emit_gradient_assembler(module: ir.Module, tables: GradientTables, size: int) -> ir.Function:
    """Emit ``void assemble(...)`` with the parameters below.

    Parameters of the emitted function
    ----------------------------------
    codes : pointer to i16
        Those of the tape.
    count, functions : i64
        Number of its nodes; code of the first function.
    columns : pointer to pointers
        Column of each feature.
    derived : pointer to pointers
        Known columns of functions of features, as for `shine.evaluate.machine.assembler`.
    instructions : pointer
        Room for `LISTS` lists, each of one instruction per node and one more, of `size` bytes each.
    nodes, constants, tiles : pointers
        Room per node: `NODE_WORDS` words; `BROADCAST_BYTES` bytes, with copies of a constant; three tiles.
    length : i64
        Bytes of a tile.
    whole : pointer
        Room for a tile of each value and slope; `tiles`, if values are not kept.
    stride, mask : i64
        Bytes from a value to the next one; mask of the offset of a value's tile there.
    normal : pointer
        Columns of the normal equations, `OPERAND_BYTES` each: the residual, 1, the prediction, then the
        derivatives by the first `most` constants of the tape.
    most : i64
    residual : i64
        Address of the residual, as kept as the values.
    """
    names = (
        "codes", "count", "functions", "columns", "derived", "instructions", "nodes", "constants", "tiles",
        "length", "whole", "stride", "mask", "normal", "most", "residual",
    )  # fmt: skip
    words = {"count", "functions", "length", "stride", "mask", "most", "residual"}
    kinds = [I64 if name in words else POINTER for name in names]
    function = declare(module, "shine.evaluate.kernels.jit.assemble", ir.VoidType(), kinds, names)
    function.linkage = "internal"
    build = ir.IRBuilder(function.append_basic_block("entry"))
    _Assembler(build, tables, size, dict(zip(names, function.args, strict=True))).emit()
    return function


class _Assembler:
    """The code of `emit_gradient_assembler`.

    Its variables while the emitted code runs:

    ======================= ==================================================================
    ``still`` ``cursor``      offset of the next value that no constant changes; of the next other instruction
    ``tile``                next free tile
    ``constants``           constants seen on the way up; those left on the way down
    ``child`` ``sibling``   current argument of the loop over a function's arguments; of the loop inside it
    ``varies`` ``depends``  whether any argument varies smoothly with a constant; whether one has a constant below
    ``nodes``               number of nodes of the function's subtree
    ``column``              known column that replaces a function, or 0
    ======================= ==================================================================
    """

    def __init__(self, build: ir.IRBuilder, tables: GradientTables, size: int, arguments: dict[str, ir.Value]) -> None:
        self.build, self.tables, self.size, self.arguments = build, tables, size, arguments
        self.state = Variables(
            build, still=0, cursor=0, tile=0, constants=0, child=0, sibling=0, varies=0, depends=0, nodes=0, column=0
        )

    def emit(self) -> None:
        build, count = self.build, self.arguments["count"]
        self.state["cursor"] = list_bytes(build, count, self.size)
        with counted(build, number(0), count) as node:
            self._forward(node.index)
        for cursor in ("still", "cursor"):
            self._instruction(self.tables.end, cursor)
        self.state["cursor"] = build.shl(list_bytes(build, count, self.size), number(1))
        last = build.sub(count, number(1))
        cotangent = build.ptrtoint(self.tables.ones, I64)
        self._set_operand(last, _ADJOINT, cotangent, 0, 0)
        self._set(last, _REACHED, number(1))
        self._fixed_columns(last)
        # Without constants to fit, nothing reads the adjoints.
        wanted = build.select(build.icmp_unsigned("==", self.arguments["most"], number(0)), number(0), count)
        with counted(build, number(0), wanted) as node:
            self._reverse(build.sub(last, node.index))
        self._instruction(self.tables.end)
        build.ret_void()

    # Notes about nodes

    def _place(self, node: ir.Value, field: int) -> ir.Value:
        word = self.build.add(self.build.mul(node, number(NODE_WORDS)), number(field))
        return element_pointer(self.build, self.arguments["nodes"], word, I64)

    def _get(self, node: ir.Value, field: int) -> ir.Value:
        return load(self.build, self._place(node, field), number(0), I64, I64)

    def _set(self, node: ir.Value, field: int, value: ir.Value) -> None:
        store(self.build, value, self._place(node, field), number(0), I64)

    def _set_operand(
        self, node: ir.Value, field: int, base: ir.Value, offset_mask: ir.Value | int, step_mask: int
    ) -> None:
        for word, value in enumerate((base, number(offset_mask), number(step_mask))):
            self._set(node, field + word, value)

    def _copy_operand(self, node: ir.Value, field: int, target: ir.Value) -> None:
        for word in range(OPERAND_WORDS):
            store(self.build, self._get(node, field + word), target, number(word), I64)

    # Instructions

    def _instruction(self, handler: ir.Value, cursor: str = "cursor") -> ir.Value:
        build = self.build
        instruction = element_pointer(build, self.arguments["instructions"], self.state[cursor], _BYTE)
        store(build, handler, instruction, number(HANDLER), _BYTE, 8)
        self.state[cursor] = build.add(self.state[cursor], number(self.size))
        return instruction

    def _operand(self, instruction: ir.Value, position: ir.Value) -> ir.Value:
        build = self.build
        offset = build.add(build.mul(position, number(OPERAND_BYTES)), number(OPERANDS))
        return element_pointer(build, instruction, offset, _BYTE)

    def _result(self, instruction: ir.Value, node: ir.Value, field: int) -> None:
        """Give an instruction a new tile for its result: a node's value or adjoint."""
        for place, word in enumerate(self._new_tile(node, field)):
            store(self.build, word, instruction, number(DESTINATION + 8 * place), _BYTE, 8)

    def _new_tile(self, node: ir.Value, field: int) -> tuple[ir.Value, ir.Value]:
        """Address of a new tile and the mask of the offset there; it holds a node's value, adjoint or slope."""
        build, given = self.build, self.arguments
        base, stride, mask = ("tiles", "length", number(0)) if field == _ADJOINT else ("whole", "stride", given["mask"])
        offset = build.mul(self.state["tile"], given[stride])
        address = build.ptrtoint(element_pointer(build, given[base], offset, _BYTE), I64)
        self.state["tile"] = build.add(self.state["tile"], number(1))
        self._set_operand(node, field, address, mask, -1)
        return address, mask

    # Values

    def _forward(self, node: ir.Value) -> None:
        build, arguments = self.build, self.arguments
        code = build.zext(load(build, arguments["codes"], node, _CODE, _CODE), I64)
        self._set_operand(node, _ADJOINT, build.ptrtoint(self.tables.zeros, I64), 0, 0)
        for field, value in ((_REACHED, 0), (_VARIES, 0), (_DEPENDS, 0), (_SIZE, 1)):
            self._set(node, field, number(value))
        self._set(node, _FUNCTION, number(-1))
        with build.if_else(build.icmp_unsigned("<", code, arguments["functions"])) as (leaf, function):
            with leaf, build.if_else(build.icmp_unsigned("==", code, number(CONSTANT))) as (constant, feature):
                with constant:
                    self._constant(node)
                with feature:
                    column = load(build, arguments["columns"], build.sub(code, number(1)), POINTER, I64, 8)
                    self._set_operand(node, _VALUE, column, -1, -1)
            with function:
                index = build.sub(code, arguments["functions"])
                column = self._derived(node, index)
                with build.if_else(build.icmp_unsigned("!=", column, number(0))) as (known, unknown):
                    with known:
                        # Like a feature, but its subtree includes the node of the feature before it.
                        self._set_operand(node, _VALUE, column, -1, -1)
                        self._set(node, _SIZE, number(2))
                    with unknown:
                        self._function(node, index)

    def _derived(self, node: ir.Value, function: ir.Value) -> ir.Value:
        """Address of the known column of a function of the previous node, if that is a feature; or 0."""
        build, arguments = self.build, self.arguments
        self.state["column"] = 0
        arity = load(build, self.tables.arity, function, I64, I64)
        there = build.icmp_unsigned("!=", arguments["derived"], ir.Constant(POINTER, None))
        with build.if_then(build.and_(there, build.icmp_unsigned("==", arity, number(1)))):
            before = build.zext(load(build, arguments["codes"], build.sub(node, number(1)), _CODE, _CODE), I64)
            feature, features = build.sub(before, number(1)), build.sub(arguments["functions"], number(1))
            # For a constant, code 0, the unsigned difference wraps around and is too large.
            with build.if_then(build.icmp_unsigned("<", feature, features)):
                place = build.add(build.mul(function, features), feature)
                self.state["column"] = load(build, arguments["derived"], place, POINTER, I64, 8)
        return self.state["column"]

    def _constant(self, node: ir.Value) -> None:
        build = self.build
        block = element_pointer(build, self.arguments["constants"], build.mul(node, number(BROADCAST_BYTES)), _BYTE)
        self._set_operand(node, _VALUE, build.ptrtoint(block, I64), 0, 0)
        for field in (_VARIES, _DEPENDS):
            self._set(node, field, number(1))
        self.state["constants"] = build.add(self.state["constants"], number(1))

    def _function(self, node: ir.Value, function: ir.Value) -> None:
        build = self.build
        self.state["nodes"], self.state["varies"], self.state["depends"] = 1, 0, 0
        with self._arguments(node, function) as (argument, child):
            partial = self._partial(function, argument)
            through = build.select(
                build.icmp_unsigned("==", partial, number(NO_PARTIAL)), number(0), self._get(child, _VARIES)
            )
            self.state["varies"] = build.or_(self.state["varies"], through)
            self.state["depends"] = build.or_(self.state["depends"], self._get(child, _DEPENDS))
            self.state["nodes"] = build.add(self.state["nodes"], self._get(child, _SIZE))
        handlers = ("cursor", self.tables.varying), ("still", self.tables.forward)
        with build.if_else(build.icmp_unsigned("!=", self.state["depends"], number(0))) as branches:
            for (cursor, table), branch in zip(handlers, branches, strict=True):
                with branch:
                    instruction = self._instruction(load(build, table, function, I64, I64), cursor)
                    with self._arguments(node, function) as (argument, child):
                        self._copy_operand(child, _VALUE, self._operand(instruction, argument))
                    self._result(instruction, node, _VALUE)
                    if cursor == "cursor":
                        with self._if_sloped(function):
                            self._new_tile(node, _SLOPE)
                            self._copy_operand(node, _SLOPE, self._operand(instruction, number(SLOPE)))
        self._set(node, _FUNCTION, function)
        for field, name in ((_SIZE, "nodes"), (_VARIES, "varies"), (_DEPENDS, "depends")):
            self._set(node, field, self.state[name])

    @contextmanager
    def _arguments(
        self, node: ir.Value, function: ir.Value, cursor: str = "child"
    ) -> Iterator[tuple[ir.Value, ir.Value]]:
        """A loop over a function's arguments from the last to the first; yields their positions and nodes.

        The last argument is the node before the function. The argument before another ends where its subtree begins.
        """
        build = self.build
        arity = load(build, self.tables.arity, function, I64, I64)
        self.state[cursor] = build.sub(node, number(1))
        with counted(build, number(0), arity) as loop:
            child = self.state[cursor]
            yield build.sub(build.sub(arity, number(1)), loop.index), child
            self.state[cursor] = build.sub(child, self._get(child, _SIZE))

    def _if_sloped(self, function: ir.Value) -> AbstractContextManager[ir.Block]:
        return self.build.if_then(self.build.icmp_unsigned("!=", slopes_of(self.build, function), number(0)))

    def _partial(self, function: ir.Value, argument: ir.Value) -> ir.Value:
        place = self.build.add(self.build.mul(function, number(self.tables.most_arguments)), argument)
        return load(self.build, self.tables.adjoint, place, I64, I64)

    # Adjoints

    def _reverse(self, node: ir.Value) -> None:
        build = self.build
        function = self._get(node, _FUNCTION)
        is_function = build.icmp_signed(">=", function, number(0))
        reached = build.icmp_unsigned("!=", self._get(node, _REACHED), number(0))
        with (
            build.if_then(build.and_(is_function, reached)),
            self._arguments(node, function) as (argument, child),
        ):
            partial = self._partial(function, argument)
            wanted = build.and_(
                build.icmp_unsigned("!=", partial, number(NO_PARTIAL)),
                build.icmp_unsigned("!=", self._get(child, _VARIES), number(0)),
            )
            with build.if_then(wanted):
                self._adjoint(node, function, child, partial)
        is_constant = build.and_(
            build.not_(is_function), build.icmp_unsigned("!=", self._get(node, _VARIES), number(0))
        )
        with build.if_then(is_constant):
            self.state["constants"] = build.sub(self.state["constants"], number(1))
            position = self.state["constants"]
            with build.if_then(build.icmp_unsigned("<", position, self.arguments["most"])):
                self._copy_operand(node, _ADJOINT, self._normal(build.add(position, number(FIXED_COLUMNS))))

    def _adjoint(self, node: ir.Value, function: ir.Value, child: ir.Value, partial: ir.Value) -> None:
        build = self.build
        self._set(child, _REACHED, number(1))
        unchanged = build.icmp_unsigned("==", partial, number(UNCHANGED))
        with build.if_else(unchanged) as (same, product):
            with same:
                self._copy_operand(node, _ADJOINT, self._place(child, _ADJOINT))
            with product:
                instruction = self._instruction(partial)
                self._copy_operand(node, _ADJOINT, self._operand(instruction, number(0)))
                with self._arguments(node, function, "sibling") as (argument, sibling):
                    operand = self._operand(instruction, build.add(argument, number(1)))
                    self._copy_operand(sibling, _VALUE, operand)
                with self._if_sloped(function):
                    self._copy_operand(node, _SLOPE, self._operand(instruction, number(1)))
                arity = load(build, self.tables.arity, function, I64, I64)
                self._copy_operand(node, _VALUE, self._operand(instruction, build.add(arity, number(1))))
                self._result(instruction, child, _ADJOINT)

    # Normal equations

    def _normal(self, column: ir.Value) -> ir.Value:
        return element_pointer(
            self.build, self.arguments["normal"], self.build.mul(column, number(OPERAND_BYTES)), _BYTE
        )

    def _fixed_columns(self, root: ir.Value) -> None:
        build = self.build
        fixed = (
            (self.arguments["residual"], self.arguments["mask"], number(-1)),
            (build.ptrtoint(self.tables.ones, I64), number(0), number(0)),
        )
        for column, words in enumerate(fixed):
            for word, value in enumerate(words):
                store(build, value, self._normal(number(column)), number(word), I64)
        self._copy_operand(root, _VALUE, self._normal(number(2)))
