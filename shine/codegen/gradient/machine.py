"""The gradient machine: the normal equations of fitting the constants of a whole population, in one native call.

Each tape is assembled into a program of its value and its derivatives (`shine.codegen.gradient.assembler`), which runs
tile after tile; the epilogue (`shine.codegen.gradient.normal_equations`) takes the Jacobian of a tile while it is in
the cache. In float64 always.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from shine.codegen.blocks import I64, POINTER, counted, declare, element_pointer, load
from shine.codegen.gradient.assembler import (
    NO_PARTIAL,
    UNCHANGED,
    GradientTables,
    emit_gradient_assembler,
)
from shine.codegen.gradient.constant_fitting import FIT_FIELDS, emit_fit
from shine.codegen.gradient.instructions import (
    BROADCAST_BYTES,
    emit_adjoint,
    emit_end,
    emit_value,
    gradient_instruction_bytes,
)
from shine.codegen.gradient.normal_equations import ERROR_KINDS, normal_function
from shine.codegen.machine.assembler import Variables, number
from shine.codegen.machine.instructions import HANDLER_POINTER
from shine.codegen.machine.machine import CACHE_BYTES, ROW_GROUP, TILE_BYTES, Job, over_parts, table
from shine.codegen.moments import LANES
from shine.lang.derivative import partials
from shine.lang.tree import Primitive, Tree

GRADIENT_JOB = (
    "codes", "values", "sizes", "width", "functions", "rows", "full", "columns", "target", "weights", "tail_columns",
    "tail_target", "tail_weights", "weighted", "lines", "limits", "floor", "out", "stride", "most", "derived",
    "program", "nodes", "constants", "tiles", "normal", "residual", "scratch", "first", "last",
)  # fmt: skip
"""Fields of a job, a word each; those that `shine.codegen.machine.machine.JOB` has mean the same.

`floor` is the address of the smallest residual that weighs in full (see `normal_equations`); the results of an
individual are ``1 + stride * stride`` numbers of `out`; of its constants the first `most` are fitted; `program` to
`scratch` are the memory of a thread.
"""

FIT_JOB = (*GRADIENT_JOB[:-2], *FIT_FIELDS, *GRADIENT_JOB[-2:])
"""Fields of a job of fitting: those of a job of normal equations, of which it writes `values`, `lines` and one number
an individual to `out` and leaves `limits` alone, and more."""

SHORTEST_TILE = ROW_GROUP * 8
"""Bytes of the shortest tile."""

_BYTE, _DOUBLE = ir.IntType(8), ir.DoubleType()


def fit_name(kind: str) -> str:
    """Name of the function that fits constants by one of `ERROR_KINDS`."""
    return f"fit_{kind}"


def emit_gradient_machine(functions: Sequence[Primitive]) -> ir.Module:
    """The gradient machine of some primitives, in one module.

    It defines ``void kind(job)`` for each of `ERROR_KINDS`, where a job is a pointer to the fields of `GRADIENT_JOB`.
    They add to each individual's numbers of the output its sum of errors, then the normal equations: the lower triangle
    of a square matrix with a row for each column of the fit (see `gradient_assembler`). The functions `fit_name` of
    each kind take a job of `FIT_JOB` and fit the constants of each individual (see `constant_fitting`).
    """
    module = ir.Module(name="gradient_machine")
    size = gradient_instruction_bytes(most_arguments(functions))
    assemble = emit_gradient_assembler(module, _tables(module, functions, size), size)
    for kind in ERROR_KINDS:
        _emit_drivers(module, assemble, kind)
    return module


def most_arguments(functions: Sequence[Primitive]) -> int:
    """Arguments that a function of these has at most, and at least 1."""
    return max([1, *(function.arity for function in functions)])


def _tables(module: ir.Module, functions: Sequence[Primitive], size: int) -> GradientTables:
    most = most_arguments(functions)
    forward, adjoint = [], []
    for function in functions:
        forward.append(emit_value(module, function, size))
        found = [
            _adjoint_entry(module, function, argument, partial, size)
            for argument, partial in enumerate(partials(function))
        ]
        adjoint += found + [_entry(NO_PARTIAL)] * (most - len(found))
    return GradientTables(
        arity=table(module, "arity", [number(function.arity) for function in functions]),
        forward=table(module, "forward", forward),
        adjoint=table(module, "adjoint", adjoint),
        most_arguments=most,
        zeros=_broadcast_table(module, "zeros", 0.0),
        ones=_broadcast_table(module, "ones", 1.0),
        end=emit_end(module),
    )


def _adjoint_entry(module: ir.Module, function: Primitive, argument: int, partial: Tree | None, size: int) -> ir.Value:
    if partial is None:
        return _entry(NO_PARTIAL)
    if partial.tokens[1:] in ((("constant", "1"),), (("constant", "1.0"),)):
        return _entry(UNCHANGED)
    return emit_adjoint(module, function, argument, partial, size)


def _entry(code: int) -> ir.Value:
    """A small number in the place of an address."""
    return ir.Constant(I64, code).inttoptr(POINTER)


def _broadcast_table(module: ir.Module, name: str, value: float) -> ir.GlobalVariable:
    kind = ir.ArrayType(_DOUBLE, BROADCAST_BYTES // 8)
    variable = ir.GlobalVariable(module, kind, f"shine.table.{name}")
    variable.type, variable.linkage, variable.global_constant = POINTER, "internal", True
    variable.initializer = ir.Constant(kind, [ir.Constant(_DOUBLE, value)] * kind.count)
    return variable


def _emit_drivers(module: ir.Module, assemble: ir.Function, kind: str) -> None:
    """Emit the functions of one kind of errors: the normal equations of each individual, and the fit of each."""
    evaluate = _emit_evaluate(module, assemble, kind)
    function = declare(module, kind, ir.VoidType(), [POINTER], ["job"])
    build = ir.IRBuilder(function.append_basic_block("entry"))
    job = _fields(build, function.args[0], GRADIENT_JOB)
    with counted(build, job["first"], job["last"]) as loop:
        line = _address(build, job, "lines", loop.index, 16)
        limit = load(build, _address(build, job, "limits", loop.index, 8), number(0), _DOUBLE, _DOUBLE)
        words = build.add(build.mul(job["stride"], job["stride"]), number(1))
        out = build.inttoptr(job["out"], POINTER)
        state = element_pointer(build, out, build.mul(loop.index, words), _DOUBLE)
        build.call(evaluate, [function.args[0], loop.index, line, limit, state, job["most"]])
    build.ret_void()
    function = declare(module, fit_name(kind), ir.VoidType(), [POINTER], ["job"])
    build = ir.IRBuilder(function.append_basic_block("entry"))
    job = _fields(build, function.args[0], FIT_JOB)
    emit_fit(build, job, lambda *arguments: build.call(evaluate, [function.args[0], *arguments]))
    build.ret_void()


def _fields(build: ir.IRBuilder, job: ir.Value, names: Sequence[str]) -> Job:
    return {name: load(build, job, number(position), I64, I64) for position, name in enumerate(names)}


def _emit_evaluate(module: ir.Module, assemble: ir.Function, kind: str) -> ir.Function:
    """Internal function ``evaluate(job, individual, line, limit, state, most)``: assemble, then run all tiles.

    The fields of the job up to the memory of a thread are where `GRADIENT_JOB` has them. `line` points to slope and
    intercept, `state` to the sum of errors and the matrix that are added to, for the first `most` constants.
    """
    labels = ("job", "individual", "line", "limit", "state", "most")
    kinds = [POINTER, I64, POINTER, _DOUBLE, POINTER, I64]
    function = declare(module, f"shine.evaluate.{kind}", ir.VoidType(), kinds, labels)
    function.linkage = "internal"
    function.attributes.add("noinline")
    pointer, individual, line, limit, state, most = function.args
    build = ir.IRBuilder(function.append_basic_block("entry"))
    job = _fields(build, pointer, GRADIENT_JOB[:-2]) | {"most": most}
    wanted = Variables(build, further=1, tiles=0)
    with over_parts(build, job, wanted) as (here, begin, end):
        columns, length = _assemble(build, assemble, here, individual, wanted)
        _run(build, module, kind, here, begin, end, columns, length, line, limit, state, wanted)
    build.ret_void()
    return function


def _address(build: ir.IRBuilder, job: Job, field: str, index: ir.Value, size: int) -> ir.Value:
    return element_pointer(build, build.inttoptr(job[field], POINTER), build.mul(index, number(size)), _BYTE)


def _assemble(
    build: ir.IRBuilder, assemble: ir.Function, job: Job, individual: ir.Value, wanted: Variables
) -> tuple[ir.Value, ir.Value]:
    """Assemble a tape; its columns, and the bytes of its tiles, shorter where there are many."""
    row = build.mul(individual, job["width"])
    codes, values = _address(build, job, "codes", row, 2), _address(build, job, "values", row, 8)
    size = load(build, _address(build, job, "sizes", individual, 8), number(0), I64, I64)
    # A function takes a tile for its value and one for its adjoint, a constant one for its adjoint.
    wanted["tiles"] = 0
    with counted(build, number(0), size) as node:
        code = build.zext(load(build, codes, node.index, ir.IntType(16), ir.IntType(16)), I64)
        is_function = build.zext(build.icmp_unsigned(">=", code, job["functions"]), I64)
        is_constant = build.zext(build.icmp_unsigned("==", code, number(0)), I64)
        tiles = build.add(wanted["tiles"], build.add(is_constant, build.shl(is_function, number(1))))
        wanted["tiles"] = tiles
    length: ir.Value = number(TILE_BYTES)
    for _ in range((TILE_BYTES // SHORTEST_TILE).bit_length() - 1):
        too_much = build.icmp_unsigned(">", build.mul(wanted["tiles"], length), number(CACHE_BYTES))
        length = build.select(too_much, build.lshr(length, number(1)), length)
    memory = ("columns", "derived", "program", "nodes", "constants", "tiles")
    pointers = [build.inttoptr(job[field], POINTER) for field in memory]
    normal = build.inttoptr(job["normal"], POINTER)
    columns = build.call(
        assemble, [codes, values, size, job["functions"], *pointers, length, normal, job["most"], job["residual"]]
    )
    return columns, length


def _run(
    build: ir.IRBuilder,
    module: ir.Module,
    kind: str,
    job: Job,
    begin: ir.Value,
    end: ir.Value,
    columns: ir.Value,
    length: ir.Value,
    line: ir.Value,
    limit: ir.Value,
    state: ir.Value,
    wanted: Variables,
) -> None:
    """Run the program over some rows, tile after tile, until the errors exceed the limit."""
    program = build.inttoptr(job["program"], POINTER)
    handler = load(build, program, number(0), _BYTE, HANDLER_POINTER, 8)
    step = build.udiv(length, number(8))
    with (
        counted(build, begin, end, step) as tile,
        build.if_then(build.icmp_unsigned("!=", wanted["further"], number(0))),
    ):
        left = build.sub(end, tile.index)
        rows = build.select(build.icmp_unsigned("<", left, step), left, step)
        offset = build.mul(build.sub(tile.index, begin), number(8))
        group = number(ROW_GROUP)
        whole = build.mul(build.udiv(build.add(rows, number(ROW_GROUP - 1)), group), group)
        build.call(handler, [program, offset, build.mul(whole, number(8))])
        padded = build.and_(build.add(rows, number(LANES - 1)), number(-LANES))
        # Rows that only fill up the last lanes are to weigh nothing.
        weigh = build.icmp_unsigned("!=", build.or_(job["weighted"], build.sub(padded, rows)), number(0))
        target, weights = (_address(build, job, name, tile.index, 8) for name in ("target", "weights"))
        tiles = [build.inttoptr(job[name], POINTER) for name in ("floor", "residual", "scratch")]
        for weighted in (False, True):
            with build.if_then(weigh if weighted else build.not_(weigh)):
                add = normal_function(module, kind, weighted=weighted)
                normal = build.inttoptr(job["normal"], POINTER)
                build.call(add, [normal, columns, offset, padded, target, weights, line, *tiles, state, job["stride"]])
        total = load(build, state, number(0), _DOUBLE, _DOUBLE)
        # NaN is not below the limit either: nothing can make the sum a number again.
        wanted["further"] = build.zext(build.fcmp_ordered("<=", total, limit), I64)
