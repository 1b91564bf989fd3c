"""The entry points, called in this process: strides, shapes, statuses."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.formats.native.cases import columns_of, equal, mixed

import shine
from shine.compiler.codegen.native.entries import COPY_ROWS, entries_ir
from shine.compiler.codegen.numbers import ELEMENTS
from shine.compiler.llvm import Engine, object_code
from shine.lang.program.interpret import interpret
from shine.lang.program.program import Program
from shine.lang.program.trees import tree_program

PLACE = (ctypes.c_void_p, ctypes.c_ssize_t)


def formula(text: str, dtype: str, names: tuple[str, ...] = ("a", "b")) -> Program:
    return tree_program(shine.parse(text, names), dtype)


@cache
def engine_of(text: str, dtype: str) -> tuple[Engine, bool]:
    ir, can_fail = entries_ir(formula(text, dtype), "f")
    return Engine(ir), can_fail


def columns_call(engine: Engine, can_fail: bool, ins: list[np.ndarray], outs: list[np.ndarray]) -> int:
    """Call of the columns' function on one-dimensional views, whatever their strides are."""
    places = [PLACE] * (len(ins) + len(outs))
    kinds = [ctypes.c_size_t, *(kind for place in places for kind in place)]
    function = engine.function("f_columns", ctypes.c_int if can_fail else None, *kinds)
    arguments = [part for view in (*ins, *outs) for part in (view.ctypes.data, view.strides[0] // view.itemsize)]
    return function(len(outs[0]), *arguments) or 0


strides = st.sampled_from([1, 2, 3, -1, -2])
counts = st.sampled_from([0, 1, 2, 7, 8, 9, 31, COPY_ROWS - 1, COPY_ROWS, COPY_ROWS + 1, 2 * COPY_ROWS + 13])


def laid_out(values: np.ndarray, stride: int) -> np.ndarray:
    """A view of the same values with a stride, in memory of its own."""
    room = np.full(max(len(values), 1) * abs(stride), 77, values.dtype)
    view = room[::stride][: len(values)] if stride > 0 else room[::-1][::-stride][: len(values)]
    view[:] = values
    return view


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ELEMENTS)
@given(rows=counts, first=strides, second=strides, out=strides)
def test_columns_may_lie_anywhere(dtype: str, rows: int, first: int, second: int, out: int) -> None:
    engine, can_fail = engine_of("(a + 3) * b - a", dtype)
    program = formula("(a + 3) * b - a", dtype)
    columns = columns_of(program, rows)
    ins = [laid_out(columns[0], first), laid_out(columns[1], second)]
    result = laid_out(np.zeros(rows, dtype), out)
    beside = result.base[1::2].copy() if abs(out) == 2 else None
    assert columns_call(engine, can_fail, ins, [result]) == 0
    assert equal(np.ascontiguousarray(result), interpret(program, columns)[0])
    if beside is not None:
        assert np.array_equal(result.base[1::2], beside) or out < 0


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("rows", [0, 1, 5, COPY_ROWS + 3])
def test_a_matrix_may_have_either_order(order: str, rows: int) -> None:
    engine, _ = engine_of("a - 2*b", "float32")
    matrix = np.arange(2.0 * rows, dtype=np.float32).reshape(2, rows).T.copy(order=order)
    out = np.empty(rows, np.float32)
    kinds = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_ssize_t, ctypes.c_ssize_t, ctypes.c_void_p]
    function = engine.function("f_batch", None, *kinds)
    function(matrix.ctypes.data, rows, *(stride // 4 for stride in matrix.strides), out.ctypes.data)
    assert np.array_equal(out, matrix[:, 0] - 2 * matrix[:, 1])


@pytest.mark.parametrize("text", ["a // b", "a % b", "a / b", "a ** b"])
@pytest.mark.parametrize("zero", [None, 0, 299, 511])
def test_the_status_says_that_some_row_divided_by_zero(text: str, zero: int | None) -> None:
    engine, can_fail = engine_of(text, "int64")
    assert can_fail
    a, b = np.zeros(512, np.int64), np.full(512, 7)
    if zero is not None:
        b[zero] = -1 if text == "a ** b" else 0
    out = np.empty(512, np.int64)
    assert columns_call(engine, can_fail, [a, b], [out]) == (zero is not None)
    one = engine.function("f", ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    single = ctypes.c_int64(-9)
    assert one(0, int(b[zero or 0]), ctypes.addressof(single)) == (zero is not None)
    assert zero is not None or single.value == 0


def test_results_of_several_types_go_to_columns_of_their_own() -> None:
    program = mixed()
    ir, can_fail = entries_ir(program, "f")
    engine = Engine(ir)
    rng = np.random.default_rng(1)
    columns = [rng.integers(-9, 10, 300).astype(parameter.dtype) for parameter in program.parameters]
    outs = [np.empty(600, output.dtype)[::2] for output in program.outputs]
    assert columns_call(engine, can_fail, columns, outs) == 0
    for found, expected in zip(outs, interpret(program, columns), strict=True):
        assert equal(np.ascontiguousarray(found), expected)


@pytest.mark.slow
def test_many_columns_take_little_stack() -> None:
    names = tuple(f"x{position}" for position in range(400))
    program = tree_program(shine.parse(" + ".join(names), names))
    engine = Engine(entries_ir(program, "f")[0], "O0")
    matrix, out = np.random.default_rng(0).normal(size=(100, 400)), np.empty(100)
    columns_call(engine, False, list(matrix.T), [out])
    expected = matrix[:, 0]
    for position in range(1, 400):
        expected = expected + matrix[:, position]
    assert np.array_equal(out, expected)


def test_sizes_are_those_of_the_target() -> None:
    ir, _ = entries_ir(formula("a + b", "float64"), "f", word=32)
    assert '@"f_batch"(ptr %"X", i32 %"n_rows", i32 %"row_stride", i32 %"column_stride", ptr %"y")' in ir
    assert object_code(ir, "armv7-unknown-linux-gnueabihf")
