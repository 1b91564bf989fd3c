"""`shine.jit` of a program: scalars, arrays of any shapes, threads, long programs, and their code."""

from __future__ import annotations

import ast
import copy
import itertools
import pickle
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from unit.lang.program.programs import SHAPES, calls, expression, same

import shine
from shine.base.errors import CompilationError, LoweringError
from shine.evaluate.kernels import kernel as kernels
from shine.evaluate.kernels import rows as graph_rows
from shine.evaluate.kernels.kernel import Kernel
from shine.lang.program.builder import ProgramBuilder
from shine.lang.program.interpret import interpret
from shine.lang.program.program import Program
from shine.lang.program.trees import tree_program


def classic() -> Program:
    build = ProgramBuilder()
    name = build.parameter("input", "int32")
    for text in ("- 2", "+ 5", "+ 100"):
        name = build.assign("int32", expression(f"{name} {text}"))
    return build.finish([("output", name, "int32")])


def several() -> Program:
    """Two outputs over one input each, and one over both inputs."""
    build = ProgramBuilder()
    x, n = build.parameter("scope/x", "float32"), build.parameter("n", "int64", default=np.array(3))
    root = build.assign("float32", expression(f"sqrt({x})"))
    square = build.assign("int64", expression(f"{n} * {n}"))
    both = build.assign("float32", expression(f"{root} + {build.convert(square, 'float32')}"))
    return build.finish([("root", root, "float32"), ("square", square, "int64"), ("positive", both, "bool")])


def test_the_classic_graph_is_one_instruction():
    kernel = shine.jit(classic())
    assert isinstance(kernel, Kernel)
    assert kernel(10) == 113
    assert kernel([1, 2]).tolist() == [104, 105]
    assert "add i32 %input, 103" in kernel.optimized_ir
    assert "leal\t103(%rdi), %eax" in kernel.assembly("x86_64-linux-gnu")
    assert "add\tw0, w0, #103" in kernel.assembly("aarch64-linux-gnu")
    assert "addi 3, 3, 103" in kernel.assembly("powerpc64le-linux-gnu")
    assert kernel.object_code("x86_64-linux-gnu").startswith(b"\x7fELF")


@settings(max_examples=30)
@given(calls())
@pytest.mark.slow
def test_arrays_that_broadcast_compute_the_program(call):
    program, arguments = call
    kernel = Kernel(program, opt_level="O0")
    try:
        expected = interpret(program, arguments)
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            kernel(*arguments)
        return
    results = kernel(*arguments)
    if len(expected) == 1:
        results = (results,)
    for output, result, each in zip(program.outputs, results, expected, strict=True):
        assert np.ndim(result) == each.ndim
        assert same(np.asarray(result, output.dtype), each)


def test_several_outputs_are_a_tuple_each_with_its_type_and_shape():
    root, square, positive = shine.jit(several())(np.full((2, 1), 16.0), np.arange(3))
    assert (root.dtype, root.tolist()) == (np.float32, [[4.0], [4.0]])
    assert (square.dtype, square.tolist()) == (np.int64, [0, 1, 4])
    assert (positive.dtype, positive.shape, positive.all()) == (np.bool_, (2, 3), True)


def test_scalars_give_numbers_of_python():
    results = shine.jit(several())(16.0, 2)
    assert results == (4.0, 4, True)
    assert [type(result) for result in results] == [float, int, bool]


def test_an_output_of_scalars_is_a_number_even_if_others_are_arrays():
    root, square, _ = shine.jit(several())(np.ones(3), 5)
    assert root.shape == (3,)
    assert (type(square), square) == (int, 25)


def test_arguments_come_in_order_by_label_or_by_name_and_may_have_defaults():
    kernel = shine.jit(several())
    assert (kernel.parameters, kernel.labels) == (("scope_x", "n"), ("scope/x", "n"))
    assert kernel.dtypes == ("float32", "int64")
    for result in (kernel(4, 3), kernel(4), kernel(scope_x=4), kernel(**{"scope/x": 4, "n": 3}), kernel(4, n=3)):
        assert result == (2.0, 9, True)


def test_arrays_without_rows_give_results_without_rows():
    root, square, positive = shine.jit(several())(np.empty((0, 2)), 7)
    assert (root.shape, square, positive.shape) == ((0, 2), 49, (0, 2))
    assert shine.jit(tree_program(shine.parse("1 // a"), "int32"))(np.empty(0, int)).shape == (0,)


def test_arrays_of_the_program_broadcast_too():
    build = ProgramBuilder()
    x, table = build.parameter("x", "float64"), build.parameter("table", "float64", value=np.arange(3.0))
    kernel = shine.jit(build.finish([("out", build.assign("float64", expression(f"{x} - {table}")), "float64")]))
    assert kernel.parameters == ("x",)
    assert kernel(10.0).tolist() == [10, 9, 8]
    assert kernel(np.array([[1.0], [2.0]])).tolist() == [[1, 0, -1], [2, 1, 0]]
    assert "define i8" in kernel.ir and len(kernel.object_code()) > 100


def test_strided_foreign_and_unaligned_arrays_are_read_right():
    kernel = shine.jit(tree_program(shine.parse("a - b"), "float32"))
    wide = np.arange(400, dtype="float32").reshape(100, 4)
    assert kernel(wide[::-2, 1], wide[::2, 3]).tolist() == (wide[::-2, 1] - wide[::2, 3]).tolist()
    assert kernel(np.arange(3, dtype=">f4"), [1, 2, 3]).tolist() == [-1, -1, -1]
    unaligned = np.zeros(13, "uint8")[1:].view("float32")
    unaligned[:] = 1, 2, 3
    assert kernel(unaligned, 1).tolist() == [0, 1, 2]
    assert kernel(np.asfortranarray(wide), wide).any() == 0


def test_division_by_zero_in_any_row_is_an_error():
    kernel = shine.jit(tree_program(shine.parse("a // b"), "int32"))
    with pytest.raises(ZeroDivisionError, match="integer division by zero in <Program formula"):
        kernel(1, 0)
    with pytest.raises(ZeroDivisionError):
        kernel(np.ones(100, int), np.arange(99, -1, -1))
    assert kernel(-(2**31), -1) == -(2**31)


@pytest.mark.parametrize(
    ("arguments", "named", "error", "message"),
    [
        ((), {}, TypeError, "takes .scope/x: float32, n: int64.: missing 'scope/x'"),
        ((1, 2, 3), {}, TypeError, "too many"),
        ((1,), {"scope/x": 2}, TypeError, "unexpected 'scope/x'"),
        ((1,), {"scope_x": 2}, TypeError, "unexpected 'scope_x'"),
        ((1,), {"m": 2}, TypeError, "unexpected 'm'"),
        ((1, 2.5), {}, TypeError, "'n' does not fit int64: it has fractions"),
        (("x",), {}, TypeError, "'scope/x' has dtype <U1; numbers are needed"),
        ((np.ones(3), np.ones(4)), {}, ValueError, r"'scope/x', \(3,\), and 'n', \(4,\), do not fit each other"),
    ],
)
def test_bad_arguments_are_named(arguments, named, error, message):
    with pytest.raises(error, match=message):
        shine.jit(several())(*arguments, **named)


def test_only_shapes_of_one_output_have_to_fit():
    build = ProgramBuilder()
    x, y = build.parameter("x", "float64"), build.parameter("y", "float64")
    outputs = [(name, build.assign("float64", expression(f"{name} + 1")), "float64") for name in (x, y)]
    first, second = shine.jit(build.finish(outputs))(np.ones(3), np.ones(4))
    assert (first.shape, second.shape) == ((3,), (4,))


@pytest.mark.parametrize("shapes", [SHAPES, ((300,), (4, 300), (4, 1), ()), ((50, 1, 7), (1, 3, 1), (7,))])
@pytest.mark.parametrize("rows", [16, 301])
def test_blocks_and_threads_change_nothing(monkeypatch, shapes, rows):
    names = [f"x{i}" for i in range(len(shapes))]
    kernel = Kernel(tree_program(shine.parse(" - 3 * ".join(names)), "float32"), threads=3)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, shape).astype("float32") for shape in shapes]
    monkeypatch.setattr(graph_rows, "BLOCK_ROWS", (1, rows))
    monkeypatch.setattr(graph_rows, "SHARED_NODES", 0)
    assert same(kernel(*arrays), interpret(kernel.program, arrays)[0])


def test_a_division_by_zero_in_one_thread_raises(monkeypatch):
    monkeypatch.setattr(graph_rows, "BLOCK_ROWS", (1, 64))
    monkeypatch.setattr(graph_rows, "SHARED_NODES", 0)
    kernel = Kernel(tree_program(shine.parse("1 // a"), "int64"), threads=3)
    numbers = np.ones(10_000, int)
    assert kernel(numbers).all()
    numbers[7_777] = 0
    with pytest.raises(ZeroDivisionError):
        kernel(numbers)


def long_program(statements: int) -> Program:
    """A chain whose values are used again hundreds of statements later, in two number types."""
    build = ProgramBuilder()
    names = [build.parameter("x", "int32")]
    for position in range(statements):
        early = names[max(len(names) - 300, 0)]
        dtype = "int64" if position % 500 < 100 else "int32"
        pair = ast.BinOp(
            ast.Name(build.convert(names[-1], dtype), ast.Load()),
            ast.Add() if position % 3 else ast.Mult(),
            ast.Name(build.convert(early, dtype), ast.Load()),
        )
        names.append(build.assign(dtype, pair))
    last = build.dtype_of(names[-1])
    middle = names[statements // 2]
    return build.finish(
        [
            ("last", names[-1], last),
            ("middle", middle, build.dtype_of(middle)),
            ("odd", last_bit(build, names[-1]), "bool"),
        ]
    )


def last_bit(build: ProgramBuilder, name: str) -> str:
    dtype = build.dtype_of(name)
    return build.assign(dtype, expression(f"{name} % 2"))


@pytest.mark.slow
@pytest.mark.parametrize(("large", "level"), [(1_000, 0), (1_000_000, 1)])
def test_a_long_program_is_compiled_in_stages_and_a_longer_one_without_optimization(monkeypatch, large, level):
    monkeypatch.setattr(kernels, "_GRAPH", replace(kernels._GRAPH, most_optimized=large))
    monkeypatch.setattr(graph_rows, "OPTIMIZED_NODES", 400)
    monkeypatch.setattr(graph_rows, "PLAIN_NODES", 500)
    monkeypatch.setattr(graph_rows, "BLOCK_ROWS", (1, 20))
    program = long_program(800)
    kernel = Kernel(program, opt_level="O1")
    assert kernel.opt_level == level
    assert kernel.loop_ir.count("define i8") > 3
    numbers = np.arange(-40, 41)
    expected = interpret(program, [numbers])
    assert all(same(result, each) for result, each in zip(kernel(numbers), expected, strict=True))
    assert kernel(7) == tuple(each.item() for each in interpret(program, [7]))


def test_more_inputs_than_a_call_of_a_scalar_function_takes(monkeypatch):
    monkeypatch.setattr(kernels, "ONE_ROW_PARAMETERS", 2)
    kernel = Kernel(tree_program(shine.parse("a + b + c"), "int32"))
    assert (type(kernel(1, 2, 3)), kernel(1, 2, 3)) == (int, 6)


def test_an_object_with_a_program_is_compiled():
    assert shine.jit(SimpleNamespace(program=classic()))(10) == 113


def test_a_graph_has_its_own_arguments_and_types():
    with pytest.raises(TypeError, match="arguments and types of its own"):
        shine.jit(classic(), params=("a",))
    with pytest.raises(TypeError, match="arguments and types of its own"):
        shine.jit(classic(), dtype="int32")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Kernel(classic(), threads=0), ValueError, "threads must be a whole number from 1 on"),
        (lambda: Kernel(classic(), "int32"), TypeError, "types of its own; dtype 'int32' is for formulas"),
        (lambda: Kernel(classic()).fitness([[1.0]], [1.0]), TypeError, "only a kernel of one formula has a fitness"),
        (lambda: shine.grad(shine.jit(classic())), TypeError, "a formula is a string"),
        (lambda: Kernel(classic(), opt_level="O9"), ValueError, "O9"),
        (lambda: Kernel(tree_program(shine.parse("sin(a)"), "int32")), LoweringError, "no meaning for int32"),
        (lambda: Kernel(classic()).assembly("nonsense"), CompilationError, "no target 'nonsense'"),
    ],
)
def test_bad_options_are_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_kernel_names_its_program():
    assert repr(shine.jit(classic())) == "<Kernel of <Program graph(input: int32) -> (output: int32), 3 statements>>"


def test_a_block_taken_by_a_thread_is_computed_even_if_the_others_are_done(monkeypatch):
    taken, done = threading.Event(), threading.Event()

    class Numbers:
        """Numbers of blocks; one thread gets its first after the other has found no more left."""

        def __init__(self):
            self.numbers, self.caller = itertools.count(), threading.current_thread()

        def __iter__(self):
            return self

        def __next__(self):
            if threading.current_thread() is self.caller:
                taken.wait(30)
                return next(self.numbers)
            number = next(self.numbers)
            taken.set()
            done.wait(30)
            return number

    class Telling(graph_rows.Workers):
        def run(self, work, abandon):
            super().run(work, lambda: (abandon(), done.set()))

    monkeypatch.setattr(graph_rows, "count", Numbers)
    monkeypatch.setattr(graph_rows, "Workers", Telling)
    full = np.full  # no result may be right by chance
    monkeypatch.setattr(graph_rows.np, "empty", lambda shape, dtype=float: full(shape, 7, dtype))
    monkeypatch.setattr(graph_rows, "SHARED_NODES", 1)
    values = np.arange(1 << 19, dtype=np.float64)
    result = Kernel(tree_program(shine.parse("a - 0.5"), "float64"), threads=2)(values)
    assert taken.is_set() and done.is_set()
    assert np.array_equal(result, values - 0.5)


def test_a_kernel_that_was_called_can_be_pickled_and_copied():
    kernel = shine.jit(several())
    expected = kernel(np.full((2, 1), 16.0), np.arange(3))
    for other in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel)):
        results = other(np.full((2, 1), 16.0), np.arange(3))
        assert [result.tolist() for result in results] == [each.tolist() for each in expected]
