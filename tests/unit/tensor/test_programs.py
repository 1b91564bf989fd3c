"""Elementwise modules as programs: the interpreter of modules is the oracle."""

from __future__ import annotations

import numpy as np
import pytest

from shine.base.errors import GraphImportError
from shine.lang.program.interpret import interpret
from shine.lang.program.trees import tree_of
from shine.tensor.form import interpreter
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Module
from shine.tensor.form.types import TensorType
from shine.tensor.programs import program_of


def built(write, *types):
    """A module of one function, which `write` adds to."""
    b = FunctionBuilder("main")
    parameters = [b.parameter(f"x{place}", TensorType(*type)) for place, type in enumerate(types)]
    return Module("m", {"main": b.done(write(b, *parameters))})


def check(module, *arrays):
    """The program has the module's results to the bit."""
    ours, theirs = interpret(program_of(module), list(arrays)), interpreter.interpret(module, "main", list(arrays))
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_array_equal(one, other)


X = np.array([-2.0, -0.0, 0.5, 3.0, np.nan, np.inf, -np.inf, 1e-30])
N = np.array([-3, -1, 0, 1, 2, 5, -(2**31), 2**31 - 1], "int32")


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div", "max", "min", "lt", "eq", "mod", "floordiv"])
def test_operations_of_floats(operation):
    check(built(lambda b, x, y: b.emit(operation, [x, y])[0], ("f64", (8,)), ("f64", (8,))), X, X[::-1].copy())


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "max", "lt", "eq"])
def test_operations_of_integers(operation):
    check(built(lambda b, x, y: b.emit(operation, [x, y])[0], ("i32", (8,)), ("i32", (8,))), N, N[::-1].copy())


def test_truth_is_chosen_combined_and_converted():
    def write(b, x, n):
        both = b.and_(b.lt(x, b.like(x, 1)), b.not_(b.eq(n, b.like(n, 0))))
        return b.select(both, b.cast(both, dtype="f64"), b.select(b.or_(both, b.gt(x, x)), x, b.round(x)))

    check(built(write, ("f64", (8,)), ("i32", (8,))), X, N)


def test_powers_of_the_integer_zero():
    module = built(lambda b, x, n: b.pow(x, n), ("i32", (4,)), ("i32", (4,)))
    check(module, np.array([0, 2, -1, 1], "int32"), np.array([-1, -1, -3, -2], "int32"))


def test_calls_are_written_out():
    b = FunctionBuilder("main", lambda name: ((TensorType("f64", (3,)),), (TensorType("f64", (3,)),)))
    x = b.parameter("x", TensorType("f64", (3,)))
    main = b.done(b.call(b.call(x, function="twice"), function="twice"))
    inner = FunctionBuilder("twice")
    a = inner.parameter("a", TensorType("f64", (3,)))
    module = Module("m", {"main": main, "twice": inner.done(inner.add(a, a))})
    check(module, np.arange(3.0))


def test_equal_constants_become_numbers_and_others_arrays():
    def write(b, x):
        return b.add(b.mul(x, b.constant(np.full(3, 0.1, "f4"))), b.constant(np.arange(3, dtype="f4")))

    program = program_of(built(write, ("f32", (3,))))
    assert [each.value is None for each in program.parameters] == [True, False]
    assert program.statements[0].value.right.value == 0.1


def test_a_constant_that_makes_the_shape_stays_an_array():
    module = built(lambda b, x: b.add(x, b.constant(np.full(3, 2.0))), ("f64", ()))
    check(module, np.float64(1))


def test_axes_of_length_one_in_front_do_not_matter_within():
    module = built(lambda b, x: b.add(b.reshape(x, shape=(1, 3)), b.constant(np.ones((2, 3)))), ("f64", (3,)))
    check(module, np.arange(3.0))


def test_a_module_is_a_formula():
    module = built(lambda b, x, y: b.sqrt(b.add(b.mul(x, x), y)), ("f64", ()), ("f64", ()))
    assert str(tree_of(program_of(module))) == "sqrt(x0*x0 + x1)"


REFUSED = {
    "a sum": (lambda b, x: b.reduce_sum(x, axes=(0,), keep=False), "depends on reduce_sum of <3 x f64>; only element"),
    "another shape": (lambda b, x: b.reshape(x, shape=(3, 1)), "depends on reshape of <3 x f64>; only elementwise"),
    "repetition": (
        lambda b, x: b.broadcast(x, shape=(2, 3)),
        r"has the shape \[2, 3\] by repetition; only elementwise",
    ),
    "small integers": (lambda b, x: b.cast(x, dtype="i8"), "depends on elements i8; formulas have f32, f64, i32, i64"),
}


@pytest.mark.parametrize("write, message", REFUSED.values(), ids=REFUSED)
def test_other_modules_are_refused(write, message):
    with pytest.raises(GraphImportError, match=f"^output 'v.*' {message}"):
        program_of(built(write, ("f64", (3,))))
