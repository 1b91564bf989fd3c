"""Entry points of a program for callers that are not Shine: one row, a matrix of rows, and columns with strides.

All of them call the code of `shine.compiler.codegen.native.programs` for contiguous columns. Other columns are copied
to the stack and back, a tile of rows at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, counted, declare, element_pointer, load, stack, store
from shine.compiler.codegen.native.programs import emit_program_rows, emit_program_scalar, program_lanes
from shine.compiler.codegen.numbers import STORAGE_ELEMENTS
from shine.lang.program.program import Program

COPY_ROWS = 256
"""Most rows that are copied at a time."""

COPY_BYTES = 16 * 1024
"""Room on the stack for the copies, unless a single vector of rows takes more."""

SMALL_COPY_BYTES = 1024
"""The same for targets whose stack frames have to stay below a page of memory."""

_BYTE, _I32 = ir.IntType(8), ir.IntType(32)
_EXTENDED = {"int32": "signext", "bool": "zeroext"}
"""Extension of small integers to a register; targets that need none ignore it."""

_ZERO, _ONE = ir.Constant(I64, 0), ir.Constant(I64, 1)


class _Column(NamedTuple):
    """Elements in memory, and the distance between two of them, in elements."""

    pointer: ir.Value
    stride: ir.Value


def entries_ir(
    program: Program, name: str, word: int = 64, abi: str = "", tile_bytes: int = COPY_BYTES
) -> tuple[str, bool]:
    """A module with only the entry points of a program visible from outside.

    The entry points are, with ``size_t`` and ``ptrdiff_t`` of `word` bits:

    * ``name``: one row. Arguments by value. It returns the result if there is one result and no division can fail.
      Otherwise it takes a pointer for each result, and returns the status if a division can fail.
    * ``name_columns(n_rows, column, stride, ..., out, stride, ...)``: rows of columns.
    * ``name_batch(X, n_rows, row_stride, column_stride, y)``: rows of a matrix, where all parameters have one type and
      there is one result.

    Strides count elements. The status is an ``int``: 1 if an integer division had a zero divisor in any row.

    Parameters
    ----------
    program : Program
        Without constant arrays.
    name : str
    word : {64, 32}
    abi : str
        Calling convention of the module, for targets that have several.
    tile_bytes : int
        `COPY_BYTES` or `SMALL_COPY_BYTES`.

    Returns
    -------
    ir : str
    can_fail : bool
        Whether there is a status.

    Raises
    ------
    LoweringError
        If a primitive or a number has no meaning in its type.
    """
    module = ir.Module(name=name)
    if abi:
        # Flag behaviour 1: linking with code of another ABI is an error.
        flag = module.add_metadata([_I32(1), ir.MetaDataString(module, "target-abi"), ir.MetaDataString(module, abi)])
        module.add_named_metadata("llvm.module.flags", flag)
    entries = _Entries(module, program, name, ir.IntType(word), tile_bytes)
    entries.one_row()
    entries.columns()
    if len({parameter.dtype for parameter in program.parameters}) <= 1 and len(program.outputs) == 1:
        entries.matrix()
    return str(module), entries.can_fail


class _Entries:
    """Emits the entry points into a module, one after the other."""

    def __init__(self, module: ir.Module, program: Program, name: str, word: ir.IntType, tile_bytes: int) -> None:
        self.module, self.program, self.name, self.word = module, program, name, word
        self._tile_bytes = tile_bytes
        self.inputs = [parameter.dtype for parameter in program.parameters]
        self.outputs = [output.dtype for output in program.outputs]
        self.can_fail = emit_program_scalar(module, program, "shine.row")
        emit_program_rows(module, program, "shine.rows")
        self._row, self._rows = (module.get_global(f"shine.{kind}") for kind in ("row", "rows"))
        for function in (self._row, self._rows):
            function.linkage = "internal"
        self._row.attributes.add("alwaysinline")
        self._strided = self._strided_function()

    def one_row(self) -> None:
        """The function of one row."""
        value = len(self.outputs) == 1 and not self.can_fail
        result = STORAGE_ELEMENTS[self.outputs[0]] if value else _I32 if self.can_fail else ir.VoidType()
        pointers = 0 if value else len(self.outputs)
        kinds = [*(STORAGE_ELEMENTS[dtype] for dtype in self.inputs), *[POINTER] * pointers]
        function = declare(self.module, self.name, result, kinds, [f"a{i}" for i in range(len(kinds))])
        for argument, dtype in zip(function.args, self.inputs, strict=False):
            if dtype in _EXTENDED:
                argument.add_attribute(_EXTENDED[dtype])
        extended = _EXTENDED.get(self.outputs[0]) if value else "signext" if self.can_fail else None
        if extended:
            function.return_value.add_attribute(extended)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        arguments, results = function.args[: len(self.inputs)], function.args[len(self.inputs) :]
        failed = [stack(builder, _BYTE, 1)] if self.can_fail else []
        if len(self.outputs) > 1:
            builder.call(self._row, [*arguments, *results, *failed])
        else:
            single = builder.call(self._row, [*arguments, *failed])
            if value:
                builder.ret(single)
                return
            store(builder, single, results[0], _ZERO, STORAGE_ELEMENTS[self.outputs[0]])
        if self.can_fail:
            builder.ret(builder.zext(load(builder, failed[0], _ZERO, _BYTE, _BYTE), _I32))
        else:
            builder.ret_void()

    def columns(self) -> None:
        """The function of columns with a stride each."""
        count = len(self.inputs) + len(self.outputs)
        kinds = [self.word, *[POINTER, self.word] * count]
        labels = ["n_rows", *(f"{part}{i}" for i in range(count) for part in ("column", "stride"))]
        builder, (rows, *places) = self._begin("columns", kinds, labels)
        self._end(builder, rows, [(places[2 * i], places[2 * i + 1]) for i in range(count)])

    def matrix(self) -> None:
        """The function of a matrix with two strides."""
        kinds = [POINTER, self.word, self.word, self.word, POINTER]
        labels = ["X", "n_rows", "row_stride", "column_stride", "y"]
        builder, (matrix, rows, row_stride, column_stride, out) = self._begin("batch", kinds, labels)
        element = STORAGE_ELEMENTS[(self.inputs or self.outputs)[0]]
        places: list[tuple[ir.Value, ir.Value]] = []
        for position in range(len(self.inputs)):
            offset = builder.mul(column_stride, ir.Constant(self.word, position))
            places.append((element_pointer(builder, matrix, self._long(builder, offset), element), row_stride))
        self._end(builder, rows, [*places, (out, ir.Constant(self.word, 1))])

    def _begin(
        self, suffix: str, kinds: Sequence[ir.Type], labels: Sequence[str]
    ) -> tuple[ir.IRBuilder, Sequence[ir.Value]]:
        result = _I32 if self.can_fail else ir.VoidType()
        function = declare(self.module, f"{self.name}_{suffix}", result, kinds, labels)
        if self.can_fail:
            function.return_value.add_attribute("signext")
        return ir.IRBuilder(function.append_basic_block("entry")), function.args

    def _end(self, builder: ir.IRBuilder, rows: ir.Value, places: Sequence[tuple[ir.Value, ir.Value]]) -> None:
        """Call the function of all rows with a table of columns and a table of strides, and return its status."""
        pointers, strides = stack(builder, POINTER, len(places)), stack(builder, I64, len(places))
        for position, (pointer, stride) in enumerate(places):
            index = ir.Constant(I64, position)
            store(builder, pointer, pointers, index, POINTER, self._pointer_bytes)
            store(builder, self._long(builder, stride), strides, index, I64)
        count = rows if self.word == I64 else builder.zext(rows, I64)
        failed = builder.call(self._strided, [pointers, strides, count])
        if self.can_fail:
            builder.ret(builder.zext(failed, _I32))
        else:
            builder.ret_void()

    @property
    def _pointer_bytes(self) -> int:
        return int(self.word.width) // 8

    def _long(self, builder: ir.IRBuilder, number: ir.Value) -> ir.Value:
        return number if self.word == I64 else builder.sext(number, I64)

    def _strided_function(self) -> ir.Function:
        """Internal function of all rows: ``i8 strided(columns, strides, rows)``, inputs first in both tables."""
        function = declare(self.module, "shine.strided", _BYTE, [POINTER, POINTER, I64], ("columns", "strides", "rows"))
        function.linkage = "internal"
        columns, strides, rows = function.args
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        dtypes = [*self.inputs, *self.outputs]
        sizes = [np.dtype(dtype).itemsize for dtype in dtypes]
        tile = self._tile(sum(sizes))
        here = stack(builder, POINTER, len(dtypes))
        buffers = stack(builder, _BYTE, tile * sum(sizes))
        offsets = [tile * sum(sizes[:i]) for i in range(len(sizes))]
        outs = element_pointer(builder, here, ir.Constant(I64, len(self.inputs)), POINTER)
        # If nothing has to be copied, one tile has all rows.
        step = self._step(builder, strides, len(dtypes), rows, tile)
        with counted(builder, _ZERO, rows, step, [ir.Constant(_BYTE, 0)]) as loop:
            left = builder.sub(rows, loop.index)
            count = builder.select(builder.icmp_signed("<", left, step), left, step)
            places = []
            for i, (size, offset) in enumerate(zip(sizes, offsets, strict=True)):
                index = ir.Constant(I64, i)
                stride = load(builder, strides, index, I64, I64)
                column = load(builder, columns, index, POINTER, POINTER, self._pointer_bytes)
                start = element_pointer(builder, column, builder.mul(loop.index, stride), ir.IntType(8 * size))
                buffer = element_pointer(builder, buffers, ir.Constant(I64, offset), _BYTE)
                own, copied = _Column(start, stride), _Column(buffer, _ONE)
                places.append((size, own, copied))
                if i < len(self.inputs):
                    self._copy(builder, size, own, copied, count)
                straight = builder.icmp_signed("==", stride, _ONE)
                store(builder, builder.select(straight, start, buffer), here, index, POINTER, self._pointer_bytes)
            failed = builder.call(self._rows, [here, outs, count])
            for size, own, copied in places[len(self.inputs) :]:
                self._copy(builder, size, copied, own, count)
            loop.results = [builder.or_(loop.values[0], failed)]
        builder.ret(loop.values[0])
        return function

    def _tile(self, row_bytes: int) -> int:
        """Rows that are copied at a time: whole vectors."""
        lanes = program_lanes(self.program)
        return max(lanes, min(COPY_ROWS, self._tile_bytes // row_bytes) // lanes * lanes)

    @staticmethod
    def _step(builder: ir.IRBuilder, strides: ir.Value, count: int, rows: ir.Value, tile: int) -> ir.Value:
        straight = ir.Constant(ir.IntType(1), 1)
        with counted(builder, _ZERO, ir.Constant(I64, count), carried=[straight]) as loop:
            is_one = builder.icmp_signed("==", load(builder, strides, loop.index, I64, I64), _ONE)
            loop.results = [builder.and_(loop.values[0], is_one)]
        return builder.select(loop.values[0], rows, ir.Constant(I64, tile))

    def _copy(self, builder: ir.IRBuilder, size: int, source: _Column, target: _Column, count: ir.Value) -> None:
        """Copy elements of some bytes unless both strides are 1."""
        function = self.module.globals.get(f"shine.copy{size}") or self._copy_function(size)
        builder.call(function, [*target, *source, count])

    def _copy_function(self, size: int) -> ir.Function:
        kind = ir.IntType(8 * size)
        labels = ("target", "target_stride", "source", "source_stride", "count")
        function = declare(self.module, f"shine.copy{size}", ir.VoidType(), [POINTER, I64, POINTER, I64, I64], labels)
        function.linkage = "internal"
        # One loop serves all columns of a size.
        function.attributes.add("noinline")
        target, target_stride, source, source_stride, count = function.args
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        straight = builder.and_(
            builder.icmp_signed("==", target_stride, _ONE), builder.icmp_signed("==", source_stride, _ONE)
        )
        with counted(builder, _ZERO, builder.select(straight, _ZERO, count)) as loop:
            value = load(builder, source, builder.mul(loop.index, source_stride), kind, kind)
            store(builder, value, target, builder.mul(loop.index, target_stride), kind)
        builder.ret_void()
        return function
