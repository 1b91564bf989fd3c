"""Many rows without vectors: a loop that calls the function of one row.

WebAssembly without SIMD would split vectors again, and a GPU runs threads instead of lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, counted, declare, element_pointer, load, store
from shine.compiler.codegen.native.programs import emit_program_rows, emit_program_scalar
from shine.compiler.codegen.numbers import STORAGE_ELEMENTS
from shine.lang.program.program import Program

_I32, _BYTE = ir.IntType(32), ir.IntType(8)


def emit_wasm(module: ir.Module, program: Program, name: str, *, batch: bool = True, vectors: bool = False) -> bool:
    """Emit the exports of a WebAssembly module, for a memory of 32 bits.

    The function of one row is that of `emit_program_scalar`. The function of many rows, ``i32 name_batch(columns, outs,
    i32 rows)``, takes the arguments of the function of `emit_program_rows` and returns 1 if an integer division failed.

    Parameters
    ----------
    module : ir.Module
    program : Program
    name : str
    batch : bool
        Whether to emit the function of many rows.
    vectors : bool
        Whether that function works on vectors, which need SIMD128.

    Returns
    -------
    bool
        Whether the function of one row has a last argument that points to a byte, 1 if an integer division failed.
    """
    fails = emit_program_scalar(module, program, name)
    if batch and vectors:
        emit_program_rows(module, program, f"{name}.all")
        module.globals[f"{name}.all"].linkage = "internal"
    if not batch:
        return fails
    function = declare(module, f"{name}_batch", _I32, [POINTER, POINTER, _I32], ("columns", "outs", "rows"))
    columns, outs, rows = function.args
    build = ir.IRBuilder(function.append_basic_block("entry"))
    # JavaScript passes signed numbers; there are fewer rows than bytes, so zero extension is right.
    count = build.zext(rows, I64)
    if vectors:
        build.ret(build.zext(build.call(module.globals[f"{name}.all"], [columns, outs, count]), _I32))
        return fails
    sources = [_pointer_at(build, columns, i) for i in range(len(program.parameters))]
    targets = [_pointer_at(build, outs, i) for i in range(len(program.outputs))]
    status = build.alloca(_BYTE)
    status.type = POINTER
    with counted(build, I64(0), count, carried=[_BYTE(0)]) as loop:
        failed = _one_row(
            build, program, module.globals[name], (sources, targets), loop.index, status if fails else None
        )
        loop.results = [loop.values[0] if failed is None else build.or_(loop.values[0], failed)]
    build.ret(build.zext(loop.values[0], _I32))
    return fails


def emit_kernel(module: ir.Module, program: Program, name: str) -> bool:
    """Emit a function of one row for an NVIDIA GPU, and ``name_kernel(columns..., outs..., i64 rows)`` that runs it.

    Each thread takes every n-th row, where n is the number of threads of the grid. Pointers are to contiguous numbers
    of the storage type. If an integer division may fail, a last pointer follows, to an i32 that becomes 1 if one did.

    Returns
    -------
    bool
        Whether this last pointer exists; the function of one row then has one, too.
    """
    fails = emit_program_scalar(module, program, name)
    kinds = [POINTER] * (len(program.parameters) + len(program.outputs)) + [I64] + [POINTER] * fails
    labels = [each.name for each in program.parameters] + [f"out{i}" for i in range(len(program.outputs))]
    kernel = declare(module, f"{name}_kernel", ir.VoidType(), kinds, [*labels, "rows", *["status"] * fails])
    kernel.calling_convention = "ptx_kernel"
    inputs = len(program.parameters)
    sources, targets = kernel.args[:inputs], kernel.args[inputs : inputs + len(program.outputs)]
    rows = kernel.args[len(labels)]
    build = ir.IRBuilder(kernel.append_basic_block("entry"))
    first, step = place_in_grid(build)
    room = None
    if fails:
        room = build.alloca(_BYTE)
        room.type = POINTER
    with counted(build, first, rows, step) as loop:
        failed = _one_row(build, program, module.globals[name], (sources, targets), loop.index, room)
        if failed is not None:
            with build.if_then(build.icmp_unsigned("!=", failed, _BYTE(0)), likely=False):
                build.store(_I32(1), kernel.args[-1], align=4)
    build.ret_void()
    return fails


def _one_row(
    build: ir.IRBuilder,
    program: Program,
    function: ir.Function,
    columns: tuple[Sequence[ir.Value], Sequence[ir.Value]],
    row: ir.Value,
    status: ir.Value | None,
) -> ir.Value | None:
    """Call the function of one row for a row of some columns, and write its results to others; return its status."""
    sources, targets = columns
    kinds = [STORAGE_ELEMENTS[parameter.dtype] for parameter in program.parameters]
    arguments = [load(build, source, row, kind, kind) for source, kind in zip(sources, kinds, strict=True)]
    kinds = [STORAGE_ELEMENTS[output.dtype] for output in program.outputs]
    last = [] if status is None else [status]
    if len(targets) > 1:
        places = [element_pointer(build, target, row, kind) for target, kind in zip(targets, kinds, strict=True)]
        build.call(function, [*arguments, *places, *last])
    else:
        store(build, build.call(function, [*arguments, *last]), targets[0], row, kinds[0])
    return None if status is None else build.load(status, typ=_BYTE, align=1)


def _pointer_at(build: ir.IRBuilder, table: ir.Value, position: int) -> ir.Value:
    return load(build, table, ir.Constant(I64, position), POINTER, POINTER, 4)


def place_in_grid(build: ir.IRBuilder) -> tuple[ir.Value, ir.Value]:
    """Number of this thread of a GPU, and of all threads of the grid, as i64."""
    kind, name = ir.FunctionType(_I32, []), "llvm.nvvm.read.ptx.sreg.{}.x"
    thread, block, threads, blocks = (
        build.zext(build.call(ir.Function(build.module, kind, name.format(register)), []), I64)
        for register in ("tid", "ctaid", "ntid", "nctaid")
    )
    return build.add(build.mul(block, threads), thread), build.mul(blocks, threads)
