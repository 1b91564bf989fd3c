"""The functions of programs, of one row and of many: their arguments, and that both compute the program."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from helpers.markers import mostly_slow
from hypothesis import given, settings
from llvmlite import ir
from unit.lang.program.programs import calls, expression, same

import shine
from shine.base.errors import LoweringError
from shine.compiler.codegen.native import programs
from shine.compiler.codegen.native.programs import emit_program_rows, emit_program_scalar, program_lanes
from shine.compiler.llvm import Engine, optimized_ir
from shine.lang.program.builder import ProgramBuilder
from shine.lang.program.interpret import converted, interpret
from shine.lang.program.program import NUMBER_TYPES, STORAGE_TYPES, Program
from shine.lang.program.trees import tree_program

CANARY = 77
C_TYPES = {
    "float64": ctypes.c_double,
    "float32": ctypes.c_float,
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "bool": ctypes.c_bool,
}


def rows_function(program: Program, level: str = "O1", vector: int = 64):
    """Compiled function of many rows over arrays of one length; whether an integer division failed."""
    module = ir.Module()
    emit_program_rows(module, program, "f", vector)
    kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    function = Engine(str(module), level).function("f", ctypes.c_uint8, *kinds)

    def call(columns: list[np.ndarray], outs: list[np.ndarray], rows: int) -> bool:
        tables = [np.array([each.ctypes.data for each in arrays] or [0], np.uintp) for arrays in (columns, outs)]
        return bool(function(tables[0].ctypes.data, tables[1].ctypes.data, rows))

    return call


def scalar_function(program: Program, level: str = "O1"):
    """Compiled function of one row: the outputs for some numbers; None if an integer division failed."""
    module = ir.Module()
    fails = emit_program_scalar(module, program, "f")
    outputs, several = [C_TYPES[output.dtype] for output in program.outputs], len(program.outputs) > 1
    kinds = [C_TYPES[parameter.dtype] for parameter in program.parameters]
    kinds += [ctypes.c_void_p] * (several * len(outputs) + fails)
    function = Engine(str(module), level).function("f", None if several else outputs[0], *kinds)

    def call(arguments: list[Any]) -> list[Any] | None:
        places, failed = [kind() for kind in outputs], ctypes.c_uint8()
        pointers = [ctypes.addressof(place) for place in places] * several + [ctypes.addressof(failed)] * fails
        result = function(*arguments, *pointers)
        return None if failed.value else [place.value for place in places] if several else [result]

    return call


def conversion(source: str, target: str) -> Program:
    build = ProgramBuilder()
    name = build.convert(build.parameter("x", source), target)
    return build.finish([("out", name, target)])


@pytest.mark.slow
@settings(max_examples=25)
@given(calls(shapes=((5,),), bound=False))
def test_one_row_and_many_compute_the_program(call):
    program, columns = call
    scalar, rows = scalar_function(program, "O0"), rows_function(program, "O2")
    outs = [np.zeros(5, output.dtype) for output in program.outputs]
    failed = rows(columns, outs, 5)
    by_row = [scalar([column[row].item() for column in columns]) for row in range(5)]
    assert failed == (None in by_row)
    for row in range(5):
        at = [column[row] for column in columns]
        if by_row[row] is None:
            with pytest.raises(ZeroDivisionError):
                interpret(program, at)
            continue
        for output, value, expected in zip(program.outputs, by_row[row], interpret(program, at), strict=True):
            assert same(np.array(value, output.dtype), expected)
    if not failed:
        expected = interpret(program, columns)
        assert all(same(out, np.broadcast_to(each, 5)) for out, each in zip(outs, expected, strict=True))


def mixed_program() -> Program:
    """All storage types in and out."""
    build = ProgramBuilder()
    names = [build.parameter(dtype, dtype) for dtype in STORAGE_TYPES]
    total = build.convert(names[0], "float64")
    for name in names[1:]:
        total = build.assign("float64", expression(f"{total} * 3 - {build.convert(name, 'float64')}"))
    outputs = [(dtype, build.convert(total, STORAGE_TYPES[dtype]), dtype) for dtype in STORAGE_TYPES]
    return build.finish(outputs)


def float32_program() -> Program:
    build = ProgramBuilder()
    x = build.parameter("x", "float32")
    t = build.parameter("t", "bool")
    chosen = build.assign("float32", expression(f"{x} if {build.convert(t, 'float32')} else -{x}"))
    return build.finish([("out", chosen, "float32"), ("same", t, "bool")])


@pytest.mark.parametrize("make", [mixed_program, float32_program])
def test_every_number_of_rows_is_computed_and_nothing_written_beyond(make):
    program = make()
    rows_of, rng = rows_function(program), np.random.default_rng(0)
    columns = [rng.integers(-9, 9, 64).astype(each.dtype) for each in program.parameters]
    for rows in range(2 * program_lanes(program) + 2):
        # A bool in memory is a byte, which may have any value.
        outs = [np.full(rows + 32, CANARY, "uint8" if o.dtype == "bool" else o.dtype) for o in program.outputs]
        assert not rows_of(columns, outs, rows)
        expected = interpret(program, [column[:rows] for column in columns])
        for out, each in zip(outs, expected, strict=True):
            assert out[:rows].tolist() == each.astype(out.dtype).tolist(), rows
            assert (out[rows:] == CANARY).all(), rows


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_size_of_a_vector_changes_no_bit(dtype):
    program = tree_program(shine.parse("min(exp(a) - b, a / b) * max(b, 0.5) + tanh(a)"), dtype)
    columns = [np.random.default_rng(seed).normal(size=77).astype(dtype) for seed in (0, 1)]
    columns[0][[3, 40]] = np.nan, np.inf
    found = set()
    for vector in (16, 32, 64, 128, 256):
        out = np.empty(77, dtype)
        rows_function(program, vector=vector)(columns, [out], 77)
        found.add(out.tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_memory_after_the_last_row_does_not_count_as_a_division_by_zero(dtype):
    rows_of = rows_function(tree_program(shine.parse("a // b"), dtype))
    for rows in range(33):
        a, b, out = np.arange(64, dtype=dtype), np.full(64, 2, dtype), np.zeros(64, dtype)
        b[rows:] = 0
        assert not rows_of([a, b], [out], rows), rows
        assert rows_of([a, b], [out], rows + 1), rows


def corner_numbers(dtype: str) -> np.ndarray:
    """Numbers around the ends of every number type, and where conversions round."""
    if dtype == "bool":
        return np.array([False, True])
    powers = [2**k for k in (0, 1, 7, 8, 23, 24, 25, 30, 31, 32, 52, 53, 54, 62, 63, 64)]
    wholes = [sign * power + step for power in powers for step in (-2, -1, 0, 1, 2) for sign in (-1, 1)]
    if dtype.startswith("int"):
        limits = np.iinfo(dtype)
        return np.array([n for n in wholes if limits.min <= n <= limits.max] + [limits.min, limits.max], dtype)
    fractions = [n + part for n in (0, 1, 2**31 - 1, -(2**31), -(2**31) - 1) for part in (-0.9, -0.5, 0.0, 0.5, 0.9)]
    special = [np.inf, -np.inf, np.nan, -0.0, 1e300, -1e300, 5e-324, 3.4028235677973366e38]
    with np.errstate(over="ignore"):
        numbers = np.array([float(n) for n in wholes] + fractions + special).astype(dtype)
        return np.concatenate([numbers, np.nextafter(numbers, np.inf, dtype=dtype)])


@pytest.mark.parametrize("target", NUMBER_TYPES)
@pytest.mark.parametrize("source", mostly_slow(STORAGE_TYPES, fast=["float64", "int32"]))
@pytest.mark.parametrize("level", ["O0", "O2"])
def test_conversions_are_those_of_the_interpretation(source, target, level):
    numbers = corner_numbers(source)
    program = conversion(source, target)
    out = np.zeros(len(numbers), target)
    rows_function(program, level)([numbers], [out], len(numbers))
    expected = converted(numbers.astype(STORAGE_TYPES[source]), target)
    assert same(out, expected)
    scalar = scalar_function(program, level)
    assert same(np.array([scalar([number])[0] for number in numbers.tolist()], target), expected)


@pytest.mark.parametrize("source", STORAGE_TYPES)
def test_everything_but_zero_is_true(source):
    build = ProgramBuilder()
    program = build.finish([("out", build.parameter("x", source), "bool")])
    numbers = corner_numbers(source)
    out = np.zeros(len(numbers), "uint8")
    rows_function(program)([numbers], [out], len(numbers))
    assert out.tolist() == [int(number != 0) for number in numbers.tolist()]
    assert [scalar_function(program)([number])[0] for number in (0, 1)] == [False, True]


@pytest.mark.parametrize("value", [2.0**31, -(2.0**31), -(2.0**31) - 1, 2.0**31 - 1, 1e300, -1e300])
def test_numbers_that_do_not_fit_are_converted_by_defined_instructions(value):
    # Processors give different results, and LLVM may fold to another one: the optimizer must see the number.
    build = ProgramBuilder()
    name = build.convert(build.assign("float64", expression(repr(value))), "int32")
    module = ir.Module()
    emit_program_scalar(module, build.finish([("out", name, "int32")]), "f")
    fits = -(2**31) <= value < 2**31
    assert f"ret i32 {int(value) if fits else -(2**31)}\n" in optimized_ir(str(module), level=2)


def test_long_programs_are_split_into_blocks():
    build = ProgramBuilder()
    name = build.parameter("x", "int32")
    for _ in range(700):
        name = build.assign("int32", expression(f"{name} + 1"))
        name = build.convert(build.convert(name, "int64"), "int32")
    module = ir.Module()
    emit_program_scalar(module, build.finish([("out", name, "int32")]), "f")
    lengths = [len(block.instructions) for block in module.get_global("f").blocks]
    assert sum(lengths) > 2100
    assert max(lengths) < 2 * programs.BLOCK_NODES


def test_an_array_of_the_program_is_a_column():
    build = ProgramBuilder()
    x = build.parameter("x", "float64")
    table = build.parameter("table", "float64", value=np.arange(3.0))
    program = build.finish([("out", build.assign("float64", expression(f"{x} - {table}")), "float64")])
    out = np.zeros(3)
    rows_function(program)([np.full(3, 10.0), np.arange(3.0)], [out], 3)
    assert out.tolist() == [10, 9, 8]
    with pytest.raises(LoweringError, match=r"'table' has shape \(3,\); only a program over numbers"):
        emit_program_scalar(ir.Module(), program, "f")


def test_too_many_columns_are_an_error(monkeypatch):
    monkeypatch.setattr(programs, "MAX_COLUMNS", 2)
    with pytest.raises(LoweringError, match="more than 2 inputs and outputs"):
        emit_program_rows(ir.Module(), tree_program(shine.parse("a + b")), "f")
