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

from collections.abc import Callable, Mapping

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
from shine.compiler.codegen.moments import TILE_BYTES
from shine.compiler.codegen.numbers import Numbers
from shine.evaluate.machine.instructions import (
    DESTINATION,
    DESTINATION_MASK,
    FUSED_RADICES,
    HANDLER,
    HANDLER_POINTER,
    OPERAND_FORMS,
    OPERANDS,
    VECTOR_BYTES,
    WORDS_BYTES,
    Tables,
    operand_offset,
)
from shine.evaluate.machine.tiles import COLUMN_OPERAND, CONSTANT_OPERAND, TILE_OPERAND, OperandStack
from shine.lang.forms.primitives import CONSTANT

_BYTE, _CODE, _DOUBLE = ir.IntType(8), ir.IntType(16), ir.DoubleType()


def emit_assembler(module: ir.Module, tables: Tables, dtype: str) -> ir.Function:
    """Emit ``i64 assemble(...)`` with the parameters below; it returns the number of tiles in use.

    Parameters of the emitted function
    ----------------------------------
    codes, values : pointers to i16 and float64
        The tape.
    count : i64
        Number of its nodes.
    functions : i64
        Code of the first function.
    columns : pointer to pointers
        Column of each feature.
    derived : pointer to pointers
        Known columns of functions of one feature, an array of shape (functions, features); null where a column is not
        known. A null pointer if none is known.
    nested : pointer to pointers
        Likewise the known columns of functions of such columns, an array of shape (functions, entries of `derived`).
    instructions, operands : pointers
        Room for ``2 * count + 2`` instructions and ``count + 1`` operands.
    tiles : pointer
        Room for the stack of tiles.
    result : pointer
        Address of the value of the whole tape: a buffer of `TILE_BYTES`.
    """
    labels = (
        "codes", "values", "count", "functions", "columns", "derived", "nested", "instructions", "operands", "tiles",
        "result",
    )  # fmt: skip
    kinds = [I64 if label in ("count", "functions") else POINTER for label in labels]
    function = declare(module, "shine.assemble", I64, kinds, labels)
    function.linkage = "internal"
    build = ir.IRBuilder(function.append_basic_block("entry"))
    arguments = dict(zip(labels, function.args, strict=True))
    assembler = _Assembler(build, tables, Numbers(dtype), arguments)
    with counted(build, number(0), arguments["count"]) as node:
        code = build.zext(load(build, arguments["codes"], node.index, _CODE, _CODE), I64)
        assembler.node(code, lambda: load(build, arguments["values"], node.index, _DOUBLE, _DOUBLE))
    assembler.finish()
    build.ret(assembler.state["most"])
    return function


class _Assembler:
    """The code of `emit_assembler`.

    Its variables while the emitted code runs:

    ==================== ===================================================================================
    ``alive`` ``most``   number of live tiles; the largest such number
    ``temporary``        next tile for a constant of the current instruction, above the live ones
    ``cursor``             offset of the next instruction, in bytes
    ``last`` ``form``    the last instruction's arithmetic primitive, or -1, and its form (`OPERAND_FORMS`)
    ``feature``          feature of the previous node, or -1
    ``entry``            entry of `derived` that the previous node became, or -1
    ``made`` ``column``  the same for the current node; the known column that replaces it, or 0
    ==================== ===================================================================================
    """

    def __init__(
        self, build: ir.IRBuilder, tables: Tables, numbers: Numbers, arguments: Mapping[str, ir.Value]
    ) -> None:
        self.build, self.tables, self.numbers, self.arguments = build, tables, numbers, arguments
        self.operands = OperandStack(build, arguments["operands"])
        self.state = Variables(
            build,
            alive=0,
            most=0,
            temporary=0,
            cursor=0,
            last=-1,
            form=0,
            feature=-1,
            entry=-1,
            made=-1,
            column=0,
        )

    # Tiles

    def _tile(self, index: ir.Value) -> ir.Value:
        """Address of a tile of the stack; counts the tile as used."""
        build = self.build
        used = build.add(index, number(1))
        most = self.state["most"]
        self.state["most"] = build.select(build.icmp_unsigned(">", used, most), used, most)
        address = element_pointer(build, self.arguments["tiles"], build.mul(index, number(TILE_BYTES)), _BYTE)
        return build.ptrtoint(address, I64)

    # Instructions

    def _instruction(self) -> ir.Value:
        return element_pointer(self.build, self.arguments["instructions"], self.state["cursor"], _BYTE)

    def _write(self, instruction: ir.Value, field: int, value: ir.Value) -> None:
        store(self.build, value, instruction, number(field), _BYTE, 8)

    def _write_operand(self, instruction: ir.Value, position: int, operand: ir.Value) -> None:
        for word in (0, 1):
            field = operand_offset(position) + 8 * word
            self._write(instruction, field, self.operands.word(operand, word))

    def _emit(self, handler: ir.Value, destination: ir.Value) -> ir.Value:
        """Append an instruction and return its address, for the operands to be written."""
        instruction = self._instruction()
        self._write(instruction, HANDLER, handler)
        self._write(instruction, DESTINATION, destination)
        self._write(instruction, DESTINATION_MASK, number(0))
        self.state["cursor"] = self.build.add(self.state["cursor"], number(self.tables.instruction_bytes))
        return instruction

    def _fill(self, operand: ir.Value) -> None:
        """Turn a constant operand into a tile above the live ones."""
        temporary = self.state["temporary"]
        address = self._tile(temporary)
        self.state["temporary"] = self.build.add(temporary, number(1))
        instruction = self._emit(self.tables.fill, address)
        self._write_operand(instruction, 0, operand)
        self.operands.replace(operand, TILE_OPERAND, address, 0)

    # The pass

    def node(self, code: ir.Value, value: Callable[[], ir.Value]) -> None:
        """Take one node of the tape."""
        build, functions = self.build, self.arguments["functions"]
        with build.if_else(build.icmp_unsigned("<", code, functions)) as (leaf, function):
            with leaf:
                # A processor cannot predict which leaves are constants: select instead of branching.
                constant = build.icmp_unsigned("==", code, number(CONSTANT))
                feature = build.select(constant, number(0), build.sub(code, number(1)))
                column = load(build, self.arguments["columns"], feature, POINTER, I64, 8)
                kind = build.select(constant, number(CONSTANT_OPERAND), number(COLUMN_OPERAND))
                self.operands.push(kind, build.select(constant, self._bits(value()), column), -1)
                self.state["feature"] = build.sub(code, number(1))
                self.state["entry"] = -1
            with function:
                entry = self._function(build.sub(code, functions), build.sub(functions, number(1)))
                self.state["feature"], self.state["entry"] = -1, entry

    def _bits(self, value: ir.Value) -> ir.Value:
        """A constant as the handlers read it, in the first bytes of a word."""
        build = self.build
        if self.numbers.dtype == "float64":
            return build.bitcast(value, I64)
        pair = ir.Constant(ir.VectorType(self.numbers.element, 2), [0.0, 0.0])
        single = build.fptrunc(value, self.numbers.element)
        return build.bitcast(build.insert_element(pair, single, ir.Constant(ir.IntType(32), 0)), I64)

    def _function(self, index: ir.Value, features: ir.Value) -> ir.Value:
        """Take a function; return the entry of `derived` that it becomes, or -1."""
        build = self.build
        self.state["made"] = -1
        arity = load(build, self.tables.arity, index, I64, I64)
        first = build.sub(self.operands.height, arity)
        self.state["temporary"] = self.state["alive"]
        with build.if_else(build.icmp_unsigned("==", arity, number(2))) as (binary, other):
            with binary:
                constants = build.and_(*(self.operands.is_constant(build.add(first, number(i))) for i in (0, 1)))
                with build.if_else(build.icmp_unsigned("!=", constants, number(0)), likely=False) as (known, varies):
                    with known:
                        self._fold(index, first, arity)
                    with varies:
                        self._binary(index, first)
            with other:
                column = self._derived(index, features, arity)
                with build.if_else(build.icmp_unsigned("!=", column, number(0))) as (known, unknown):
                    with known:
                        self.operands.replace(first, COLUMN_OPERAND, column, -1)
                        feature = self.state["feature"]
                        place = build.add(build.mul(index, features), feature)
                        of_feature = build.icmp_signed(">=", feature, number(0))
                        self.state["made"] = build.select(of_feature, place, number(-1))
                    with unknown:
                        self._other(index, first, arity)
        return self.state["made"]

    def _other(self, index: ir.Value, first: ir.Value, arity: ir.Value) -> None:
        build = self.build
        constants = self.operands.count(CONSTANT_OPERAND, first, arity)
        with build.if_else(build.icmp_unsigned("==", constants, arity), likely=False) as (known, varies):
            with known:
                self._fold(index, first, arity)
            with varies:
                self._general(index, first, arity, self.operands.count(TILE_OPERAND, first, arity))

    def _derived(self, index: ir.Value, features: ir.Value, arity: ir.Value) -> ir.Value:
        """Address of the known column of a function of the previous node, a feature or an entry of `derived`; or 0."""
        build = self.build
        of_one = build.icmp_unsigned("==", arity, number(1))
        row = build.mul(index, features)
        self.state["column"] = 0
        for table, before, start in (
            (self.arguments["derived"], self.state["feature"], row),
            (self.arguments["nested"], self.state["entry"], build.mul(row, number(self.tables.functions))),
        ):
            there = build.icmp_unsigned("!=", table, ir.Constant(POINTER, None))
            applies = build.and_(build.and_(of_one, there), build.icmp_signed(">=", before, number(0)))
            with build.if_then(applies):
                self.state["column"] = load(build, table, build.add(start, before), POINTER, I64, 8)
        return self.state["column"]

    def _fold(self, index: ir.Value, first: ir.Value, arity: ir.Value) -> None:
        """Run an instruction whose operands are all constants, on one vector; its result becomes a constant operand."""
        build = self.build
        kept = {name: self.state[name] for name in ("cursor", "alive", "most", "last", "form")}
        start = self._instruction()
        self._general(index, first, arity, number(0))
        result = self.operands.word(first, 0)
        self._emit(self.tables.end, number(0))
        handler = load(build, start, number(HANDLER), _BYTE, HANDLER_POINTER, 8)
        build.call(handler, [start, number(0), number(VECTOR_BYTES)])
        value = load(build, build.inttoptr(result, POINTER), number(0), _BYTE, I64, 8)
        self.operands.replace(first, CONSTANT_OPERAND, value, -1)
        for name, before in kept.items():
            self.state[name] = before

    def _result_tile(self, first: ir.Value, popped: ir.Value) -> ir.Value:
        """Pop the operands, push the tile of the result, and return its address."""
        alive = self.build.sub(self.state["alive"], popped)
        address = self._tile(alive)
        self.state["alive"] = self.build.add(alive, number(1))
        self.operands.cut(first)
        self.operands.push(TILE_OPERAND, address, 0)
        return address

    def _general(self, index: ir.Value, first: ir.Value, arity: ir.Value, popped: ir.Value) -> None:
        """Emit a function of any arity; its constants become tiles."""
        build = self.build
        with counted(build, number(0), arity) as loop:
            operand = build.add(first, loop.index)
            with build.if_then(build.icmp_unsigned("==", self.operands.kind(operand), number(CONSTANT_OPERAND))):
                self._fill(operand)
        handler = load(build, self.tables.handlers, build.mul(index, number(OPERAND_FORMS)), I64, I64)
        instruction = self._instruction()
        with counted(build, number(0), arity) as loop:
            operand = build.add(first, loop.index)
            field = build.add(build.mul(loop.index, number(WORDS_BYTES)), number(OPERANDS))
            for word in (0, 1):
                value = self.operands.word(operand, word)
                store(build, value, instruction, build.add(field, number(8 * word)), _BYTE, 8)
        self._emit(handler, self._result_tile(first, popped))
        self.state["last"] = -1

    def _binary(self, index: ir.Value, first: ir.Value) -> None:
        build = self.build
        second = build.add(first, number(1))
        kinds = [self.operands.kind(operand) for operand in (first, second)]
        popped = build.add(*(build.zext(build.icmp_unsigned("==", kind, number(TILE_OPERAND)), I64) for kind in kinds))
        arithmetic = load(build, self.tables.arithmetic, index, I64, I64)
        can_fuse = build.and_(
            build.icmp_signed(">=", arithmetic, number(0)),
            build.and_(
                build.icmp_signed(">=", self.state["last"], number(0)), build.icmp_unsigned(">", popped, number(0))
            ),
        )
        with build.if_else(can_fuse) as (fused, alone):
            with fused:
                self._fuse(arithmetic, first, second, popped)
            with alone:
                self._unfused(index, arithmetic, first, second, popped)

    def _commutes(self, arithmetic: ir.Value) -> ir.Value:
        known = self.build.select(self.build.icmp_signed("<", arithmetic, number(0)), number(0), arithmetic)
        table = load(self.build, self.tables.commutative, known, I64, I64)
        flag = self.build.icmp_unsigned("!=", table, number(0))
        return self.build.and_(flag, self.build.icmp_signed(">=", arithmetic, number(0)))

    def _unfused(
        self, index: ir.Value, arithmetic: ir.Value, first: ir.Value, second: ir.Value, popped: ir.Value
    ) -> None:
        """Emit a binary instruction that is not fused; a commutative one gets its constant second."""
        build = self.build
        swap = build.and_(
            self._commutes(arithmetic), build.icmp_unsigned("==", self.operands.is_constant(first), number(1))
        )
        left, right = build.select(swap, second, first), build.select(swap, first, second)
        form = build.add(self.operands.is_constant(right), build.mul(self.operands.is_constant(left), number(2)))
        place = build.add(build.mul(index, number(OPERAND_FORMS)), form)
        instruction = self._instruction()
        self._write_operand(instruction, 0, left)
        self._write_operand(instruction, 1, right)
        self._emit(load(build, self.tables.handlers, place, I64, I64), self._result_tile(first, popped))
        self.state["last"] = arithmetic
        self.state["form"] = form

    def _fuse(self, arithmetic: ir.Value, first: ir.Value, second: ir.Value, popped: ir.Value) -> None:
        """Make the last instruction compute this one too.

        The last instruction's result is the second operand if that is a tile, else the first: leaves emit nothing.
        """
        build = self.build
        is_second = build.icmp_unsigned("==", self.operands.kind(second), number(TILE_OPERAND))
        other = build.select(is_second, first, second)
        right = build.and_(is_second, build.not_(self._commutes(arithmetic)))
        digits = (self.state["form"], arithmetic, build.zext(right, I64), self.operands.is_constant(other))
        place: ir.Value = self.state["last"]
        for radix, digit in zip(FUSED_RADICES[1:], digits, strict=True):
            place = build.add(build.mul(place, number(radix)), digit)
        self.state["cursor"] = build.sub(self.state["cursor"], number(self.tables.instruction_bytes))
        instruction = self._instruction()
        self._write_operand(instruction, 2, other)
        self._emit(load(build, self.tables.fused, place, I64, I64), self._result_tile(first, popped))
        self.state["last"] = -1

    def finish(self) -> None:
        """Send the value of the whole tape to the result buffer, and end the list."""
        build = self.build
        root = number(0)
        result = build.ptrtoint(self.arguments["result"], I64)
        kind = self.operands.kind(root)
        with build.if_then(build.icmp_unsigned("!=", kind, number(TILE_OPERAND))):
            is_constant = build.icmp_unsigned("==", kind, number(CONSTANT_OPERAND))
            handler = build.select(is_constant, self.tables.fill, self.tables.copy)
            self._write_operand(self._emit(handler, result), 0, root)
        last = element_pointer(build, self._instruction(), number(-self.tables.instruction_bytes), _BYTE)
        self._write(last, DESTINATION, result)
        # Tiles may be shorter than the result buffer: each goes to its place in it.
        self._write(last, DESTINATION_MASK, number(TILE_BYTES - 1))
        self._emit(self.tables.end, number(0))
