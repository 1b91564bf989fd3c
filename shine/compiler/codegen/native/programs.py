"""Code of programs: a function of one row and a function of many rows, over values of several number types.

Each number type has an AstJit of its own; all of them write to one builder, with conversions between them. A vector of
rows has the same number of lanes in every type: the number that the widest type has in a register.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import numpy as np
from llvmlite import ir

from shine.base.errors import LoweringError
from shine.compiler.codegen.blocks import I64, POINTER, any_lane, counted, declare, element_pointer, load, stack, store
from shine.compiler.codegen.native.astjit import BLOCK_NODES, AstJit
from shine.compiler.codegen.native.loops import VECTOR_BYTES
from shine.compiler.codegen.numbers import STORAGE_ELEMENTS, Numbers, is_elementary, splat
from shine.lang.forms.functions import can_trap
from shine.lang.forms.tree import BINARY_OPERATORS, Tree, names_in
from shine.lang.program.program import NUMBER_TYPES, STORAGE_TYPES, Program

_BYTE = ir.IntType(8)
_ZERO, _ONE = ir.Constant(I64, 0), ir.Constant(I64, 1)


class Remainder:
    """A vector of rows for each column, on the stack; `table` points to the vectors."""

    def __init__(self, builder: ir.IRBuilder, dtypes: Sequence[str], name: str, vector_bytes: int) -> None:
        self.builder, self._vector_bytes = builder, vector_bytes
        self.table = stack(builder, POINTER, max(len(dtypes), 1))
        self._slots = stack(builder, _BYTE, vector_bytes * max(len(dtypes), 1))
        # One loop copies all columns of a size, so that thousands of columns need little code.
        self._positions: dict[int, tuple[ir.Value, ir.Value]] = {}
        for size in sorted({np.dtype(dtype).itemsize for dtype in dtypes}):
            positions = [i for i, dtype in enumerate(dtypes) if np.dtype(dtype).itemsize == size]
            kind = ir.ArrayType(I64, len(positions))
            listing = ir.GlobalVariable(builder.module, kind, f"{name}.{size}")
            listing.type = POINTER
            listing.linkage, listing.global_constant = "internal", True
            listing.initializer = ir.Constant(kind, positions)
            self._positions[size] = listing, ir.Constant(I64, len(positions))

    def point(self) -> None:
        """Let the table point to the vectors."""
        build = self.builder
        for _, position in self._columns():
            store(build, self._slot(position), self.table, position, POINTER)

    def fill(self, columns: ir.Value, first: ir.Value, rest: ir.Value, width: int) -> None:
        """Copy the last `rest` rows, from row `first` on, to the vectors; the free lanes repeat the last row."""
        build = self.builder
        last = build.sub(rest, _ONE)
        for element, position in self._columns():
            source = load(build, columns, position, POINTER, POINTER)
            with counted(build, _ZERO, ir.Constant(I64, width)) as lane:
                beyond = build.icmp_signed(">", lane.index, last)
                row = build.add(first, build.select(beyond, last, lane.index))
                store(build, load(build, source, row, element, element), self._slot(position), lane.index, element)

    def empty(self, columns: ir.Value, first: ir.Value, rest: ir.Value) -> None:
        """Copy `rest` rows of the vectors to the columns, from row `first` on."""
        build = self.builder
        for element, position in self._columns():
            target = load(build, columns, position, POINTER, POINTER)
            with counted(build, _ZERO, rest) as lane:
                value = load(build, self._slot(position), lane.index, element, element)
                store(build, value, target, build.add(first, lane.index), element)

    def _columns(self) -> Iterator[tuple[ir.Type, ir.Value]]:
        """Loops over all columns, one for each size; yields the type of an element and a column's position."""
        for size, (listing, count) in self._positions.items():
            with counted(self.builder, _ZERO, count) as column:
                yield ir.IntType(8 * size), load(self.builder, listing, column.index, I64, I64)

    def _slot(self, position: ir.Value) -> ir.Value:
        offset = self.builder.mul(position, ir.Constant(I64, self._vector_bytes))
        return element_pointer(self.builder, self._slots, offset, _BYTE)


MAX_COLUMNS = 10_000
"""Most parameters and outputs of a function of many rows: rows after the last full vector are copied to its stack."""

_BOOL = ir.IntType(1)
_PROGRAMS_ZERO, _PROGRAMS_ONE = ir.Constant(I64, 0), ir.Constant(I64, 1)


def vector_bytes(program: Program, register: int) -> int:
    """Bytes of a vector with which a program is fast on a processor whose vector registers have `register` bytes.

    One register would leave the processor waiting for results: the chains of operations in a program are long. Programs
    with elementary functions, whose chains are longest, get four, others two: they would only spill more.
    """
    used = {_function(node) for statement in program.statements for node in ast.walk(statement.value)}
    known = [program.functions[name] for name in used if name in program.functions]
    return (4 if any(is_elementary(function) for function in known) else 2) * register


def _function(node: ast.AST) -> str:
    """Name of the primitive that a node of an expression applies; empty if there is none, or it takes no time."""
    if isinstance(node, ast.BinOp):
        return BINARY_OPERATORS[type(node.op)]
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def program_lanes(program: Program, bytes_each: int = VECTOR_BYTES) -> int:
    """Rows of a vector: its lanes in the widest number type."""
    used = {STORAGE_TYPES[parameter.dtype] for parameter in program.parameters}
    used |= {statement.dtype for statement in program.statements}
    return bytes_each // max((np.dtype(dtype).itemsize for dtype in used), default=8)


def emit_program_scalar(module: ir.Module, program: Program, name: str) -> bool:
    """Emit the function of one row.

    It takes one number for each parameter, a bool as a byte, and returns the output. If there are several outputs, it
    takes a pointer to each after the parameters, and returns nothing.

    Returns
    -------
    bool
        Whether an integer division may fail. Then a last argument points to a byte that becomes 1 if one did.

    Raises
    ------
    LoweringError
        If the program has constant arrays, which have more than one row, or a primitive or a number has no meaning in
        its type.
    """
    for parameter in program.parameters:
        if parameter.value is not None:
            raise LoweringError(
                f"constant array {parameter.label!r} has shape {parameter.value.shape}; only a program over numbers "
                "has a function of one row"
            )
    fails, several = _can_fail(program), len(program.outputs) > 1
    kinds = [STORAGE_ELEMENTS[parameter.dtype] for parameter in program.parameters]
    kinds += [POINTER] * (len(program.outputs) * several + fails)
    labels = [parameter.name for parameter in program.parameters]
    labels += [f"out{position}" for position in range(len(program.outputs) * several)] + ["failed"] * fails
    result = ir.VoidType() if several else STORAGE_ELEMENTS[program.outputs[0].dtype]
    function = declare(module, name, result, kinds, labels)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    code = _Code(builder, program, 1)
    for parameter, argument in zip(program.parameters, function.args, strict=False):
        code.read(parameter.name, parameter.dtype, argument)
    failed = code.emit()
    if fails:
        builder.store(ir.Constant(_BYTE, 0) if failed is None else builder.zext(failed, _BYTE), function.args[-1])
    values = [code.written(output.name, output.dtype) for output in program.outputs]
    if several:
        for value, pointer in zip(values, function.args[len(program.parameters) :], strict=False):
            builder.store(value, pointer)
        builder.ret_void()
    else:
        builder.ret(values[0])
    return fails


def emit_program_rows(module: ir.Module, program: Program, name: str, vector_bytes: int = VECTOR_BYTES) -> None:
    """Emit the function of many rows, ``i8 name(columns, outs, rows)``; 1 if an integer division failed.

    `columns` points to a pointer for each parameter, constant arrays included, and `outs` to a pointer for each output;
    each points to `rows` contiguous numbers of the storage type, a bool being a byte. No output may overlap a column.
    The loop takes a vector of rows at a time, `vector_bytes` of the widest number type; its size changes no bit.

    A `LoweringError` if a primitive or a number has no meaning in its type, or there are too many parameters and
    outputs.
    """
    if len(program.parameters) + len(program.outputs) > MAX_COLUMNS:
        raise LoweringError(f"the program has more than {MAX_COLUMNS} inputs and outputs; split it")
    width = program_lanes(program, vector_bytes)
    body = _rows_body(module, program, f"{name}.rows", width)
    function = declare(module, name, _BYTE, [POINTER, POINTER, I64], ("columns", "outs", "rows"))
    columns, outs, rows = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    vectors = builder.udiv(rows, ir.Constant(I64, width))
    done = builder.mul(vectors, ir.Constant(I64, width))
    rest = builder.sub(rows, done)
    some = builder.zext(builder.icmp_unsigned("!=", rest, _PROGRAMS_ZERO), I64)
    # One body serves all rows, so that a row gets the same bits at any position.
    inputs = Remainder(builder, [parameter.dtype for parameter in program.parameters], f"{name}.inputs", vector_bytes)
    results = Remainder(builder, [output.dtype for output in program.outputs], f"{name}.outputs", vector_bytes)
    whole = builder.call(body, [columns, outs, vectors])
    with counted(builder, _PROGRAMS_ZERO, some, carried=[whole]) as loop:
        inputs.point()
        results.point()
        inputs.fill(columns, done, rest, width)
        part = builder.call(body, [inputs.table, results.table, _PROGRAMS_ONE])
        results.empty(outs, done, rest)
        loop.results = [builder.or_(loop.values[0], part)]
    builder.ret(builder.zext(loop.values[0], _BYTE))


def _rows_body(module: ir.Module, program: Program, name: str, width: int) -> ir.Function:
    """Internal function of full vectors of `width` rows: ``i1 name(columns, outs, vectors)``."""
    function = declare(module, name, _BOOL, [POINTER, POINTER, I64], ("columns", "outs", "vectors"))
    function.linkage = "internal"
    columns, outs, vectors = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    used = {name for statement in program.statements for name in names_in(statement.value)}
    used |= {output.name for output in program.outputs}
    # Nothing is written through these: LLVM may load the addresses before the loop, if there are enough registers.
    columns.add_attribute("noalias")
    outs.add_attribute("noalias")
    with counted(builder, _PROGRAMS_ZERO, vectors, carried=[ir.Constant(_BOOL, 0)]) as loop:
        row = builder.mul(loop.index, ir.Constant(I64, width))
        code = _Code(builder, program, width)
        for position, parameter in enumerate(program.parameters):
            if parameter.name in used:
                _limit_block(builder, position)
                source = load(builder, columns, ir.Constant(I64, position), POINTER, POINTER)
                element = STORAGE_ELEMENTS[parameter.dtype]
                value = load(builder, source, row, element, ir.VectorType(element, width))
                code.read(parameter.name, parameter.dtype, value)
        failed = code.emit()
        for position, output in enumerate(program.outputs):
            _limit_block(builder, position)
            target = load(builder, outs, ir.Constant(I64, position), POINTER, POINTER)
            store(builder, code.written(output.name, output.dtype), target, row, STORAGE_ELEMENTS[output.dtype])
        before = loop.values[0]
        loop.results = [before if failed is None else builder.or_(before, any_lane(builder, failed))]
    builder.ret(loop.values[0])
    return function


def _limit_block(builder: ir.IRBuilder, count: int) -> None:
    """Begin a new basic block at every multiple of `BLOCK_NODES`, as AstJit does."""
    if count and count % BLOCK_NODES == 0:
        block = builder.append_basic_block("next")
        builder.branch(block)
        builder.position_at_end(block)


class _Code:
    """The statements of a program at a builder's position, over numbers or vectors of some lanes."""

    def __init__(self, builder: ir.IRBuilder, program: Program, width: int) -> None:
        self.builder, self.program = builder, program
        self.numbers = {dtype: Numbers(dtype, width) for dtype in NUMBER_TYPES}
        self._values: dict[str, ir.Value] = {}
        self._dtypes: dict[str, str] = {}

    def read(self, name: str, dtype: str, value: ir.Value) -> None:
        """Set the value of a parameter, given in its storage type."""
        self._dtypes[name] = STORAGE_TYPES[dtype]
        if dtype == "bool":
            holds = self.builder.icmp_unsigned("!=", value, splat(value.type, 0))
            value = self.builder.zext(holds, self.numbers["int32"].type)
        self._values[name] = value

    def emit(self) -> ir.Value | None:
        """Emit all statements; the mask of the lanes that divided by zero, None if no instruction can."""
        jits = {dtype: AstJit(self.builder, numbers) for dtype, numbers in self.numbers.items()}
        converted = 0
        for statement in self.program.statements:
            names = names_in(statement.value)
            self._dtypes[statement.name] = statement.dtype
            if statement.converts:
                converted += 1
                _limit_block(self.builder, converted)
                source, target = self.numbers[self._dtypes[names[0]]], self.numbers[statement.dtype]
                value = convert(self.builder, self._values[names[0]], source, target)
            else:
                tree = Tree(names, statement.value, functions=self.program.functions)
                value = jits[statement.dtype].lower(tree, [self._values[name] for name in names])
            self._values[statement.name] = value
        failed: ir.Value | None = None
        for jit in jits.values():
            if jit.failed is not None:
                failed = jit.failed if failed is None else self.builder.or_(failed, jit.failed)
        return failed

    def written(self, name: str, dtype: str) -> ir.Value:
        """The value of a name in the storage type of an output."""
        value = self._values[name]
        if dtype != "bool":
            return value
        numbers = self.numbers[self._dtypes[name]]
        if numbers.is_integer:
            holds = self.builder.icmp_signed("!=", value, numbers.constant(0))
        else:
            holds = self.builder.fcmp_unordered("!=", value, numbers.constant(0))
        return self.builder.zext(holds, numbers.lanes(_BYTE))


def convert(builder: ir.IRBuilder, value: ir.Value, source: Numbers, target: Numbers) -> ir.Value:
    """A value in another number type, as `shine.lang.program.program.Statement` defines it."""
    if source.dtype == target.dtype:
        return value
    if target.is_integer and not source.is_integer:
        # The instruction is undefined for numbers that do not fit. Both bounds are powers of two, which every float
        # type holds; NaN is not within them.
        smallest = -(2 ** (8 * target.bytes - 1))
        fits = builder.and_(
            builder.fcmp_ordered(">=", value, source.constant(smallest)),
            builder.fcmp_ordered("<", value, source.constant(-smallest)),
        )
        within = builder.select(fits, value, source.constant(0))
        return builder.select(fits, builder.fptosi(within, target.type), target.constant(smallest))
    if source.is_integer and not target.is_integer:
        return builder.sitofp(value, target.type)
    narrows = target.bytes < source.bytes
    if target.is_integer:
        return (builder.trunc if narrows else builder.sext)(value, target.type)
    return (builder.fptrunc if narrows else builder.fpext)(value, target.type)


def _can_fail(program: Program) -> bool:
    """Whether a statement may divide integers by zero: a divisor is not a constant, or is the constant 0."""
    builder = ir.IRBuilder(ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), ()), "trial").append_basic_block())
    jits = {dtype: AstJit(builder, Numbers(dtype)) for dtype in NUMBER_TYPES}
    numbers: dict[str, ir.Value] = {}
    for statement in program.statements:
        jit = jits[statement.dtype]
        if isinstance(statement.value, ast.Constant):
            assert isinstance(statement.value.value, int | float)
            numbers[statement.name] = jit.emit.constant(statement.value.value)
        elif jit.emit.numbers.is_integer and (can_trap(statement.value) or _calls(statement.value)):
            names = names_in(statement.value)
            anything = builder.load(ir.Constant(POINTER, None), typ=jit.emit.numbers.type)
            tree = Tree(names, statement.value, functions=program.functions)
            jit.lower(tree, [numbers.get(name, anything) for name in names])
            if jit.failed is not None:
                return True
    return False


def _calls(expression: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(expression))
