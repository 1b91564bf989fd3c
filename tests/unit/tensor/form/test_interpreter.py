"""The reference interpreter against plain Python, operation by operation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers.oracles.tensor_loops import by_loops
from helpers.tensor_functions import evaluated, module_with
from helpers.tensor_modules import random_arguments, random_module

from shine.base.errors import FormError
from shine.tensor.form import interpreter
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module
from shine.tensor.form.operations import CALLS, FROM_THE_LANGUAGE, OPERATIONS
from shine.tensor.form.types import DTYPES, FLOATS, NUMBERS, TensorType

EXACT = frozenset({"add", "sub", "mul", "div", "sqrt"})
"""Operations on floats that are rounded correctly; what only chooses or compares is exact anyway."""

ROUNDED = {"dot", "convolve", "reduce_sum", "reduce_prod", "scatter_add", "pow", "floordiv", "mod"} | {
    name for name in FROM_THE_LANGUAGE if OPERATIONS[name].elements == FLOATS
} - EXACT


def agree(instruction, operands, found):
    for value, expected in zip(found, by_loops(instruction, operands), strict=True):
        assert (value.shape, value.dtype) == (expected.shape, expected.dtype)
        if value.dtype.kind == "f" and instruction.operation in ROUNDED:
            unit = np.finfo(value.dtype).eps
            np.testing.assert_allclose(value, expected, rtol=16 * unit, atol=400 * unit)
        else:
            np.testing.assert_array_equal(value, expected)
            if instruction.operation not in ("reduce_max", "reduce_min"):
                # Either zero is the extremum of 0.0 and -0.0.
                assert value.dtype.kind != "f" or (np.signbit(value) == np.signbit(expected))[value == 0].all()


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(s, marks=pytest.mark.slow) for s in range(8, 40))])
def test_every_instruction_of_drawn_modules(seed, monkeypatch):
    evaluate = interpreter.evaluate

    def checked(instruction, operands, called=None):
        found = evaluate(instruction, operands, called)
        if instruction.operation not in CALLS:
            made = tuple(
                np.asarray(f, r.type.numpy).reshape(r.type.shape)
                for f, r in zip(found, instruction.results, strict=True)
            )
            agree(instruction, operands, made)
        return found

    monkeypatch.setattr(interpreter, "evaluate", checked)
    module = random_module(seed)
    interpret(module, "main", random_arguments(module, "main", seed))


def extremes(dtype):
    """Numbers at the limits of an element type."""
    if dtype == "bool":
        return [False, True]
    if dtype in FLOATS:
        limits = np.finfo(DTYPES[dtype])
        some = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 1e7, float(limits.max), float(limits.tiny), np.inf]
        return [*some, *(-x for x in some), np.nan]
    low, high = (int(limit) for limit in (np.iinfo(DTYPES[dtype]).min, np.iinfo(DTYPES[dtype]).max))
    return sorted({low, low + 1, *range(max(low, -4), 5), 7, high - 1, high})


def applied(name, *arrays, **attributes):
    """Results of one instruction, and the instruction."""
    module = module_with(lambda b, *values: b.emit(name, values, **attributes), *arrays)
    (instruction,) = module.function("f").body
    return instruction, interpret(module, "f", arrays)


SCALAR = sorted(name for name in OPERATIONS if OPERATIONS[name].is_elementwise and name not in ("select", "cast"))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCALAR)
def test_elementwise_operations_at_the_limits_of_each_type(name):
    for dtype in sorted(OPERATIONS[name].elements):
        pairs = list(itertools.product(extremes(dtype), repeat=OPERATIONS[name].operands))
        operands = [np.array(column, DTYPES[dtype]) for column in zip(*pairs, strict=True)]
        if name in ("sin", "cos", "tan"):
            operands = [np.where(abs(operand) > 1e6, np.float32(3), operand) for operand in operands]
            operands = [operand.astype(DTYPES[dtype]) for operand in operands]
        agree(*swapped(applied(name, *operands), operands))


def swapped(pair, operands):
    instruction, results = pair
    return instruction, operands, results


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_casts_at_the_limits_of_each_type(dtype):
    source = [*extremes(dtype)]
    if dtype in FLOATS:
        source += [s * (2.0**p) + d for s in (-1, 1) for p in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, -0.5, 0, 1)]
    array = np.array(source, DTYPES[dtype])
    for target in DTYPES:
        agree(*swapped(applied("cast", array, dtype=target), [array]))


@pytest.mark.parametrize("dtype", sorted(NUMBERS))
@pytest.mark.parametrize("seed", range(3))
def test_order_with_ties_nan_and_limits(dtype, seed):
    rng = np.random.default_rng(seed)
    array = rng.choice(np.array(extremes(dtype), DTYPES[dtype]), (3, 7))
    for axis in (0, 1):
        for descending in (False, True):
            agree(*swapped(applied("sort", array, axis=axis, descending=descending), [array]))
        for name in ("argmax", "argmin"):
            agree(*swapped(applied(name, array, axis=axis), [array]))
        for name in ("reduce_max", "reduce_min"):
            agree(*swapped(applied(name, array, axes=(axis,), keep=False), [array]))
    for k in (0, 3, 7):
        agree(*swapped(applied("top_k", array, k=k), [array]))


def test_sums_and_products_of_integers_wrap():
    for dtype in ("i8", "u8", "i16", "i32", "i64"):
        array = np.array(extremes(dtype), DTYPES[dtype])
        for name in ("reduce_sum", "reduce_prod"):
            agree(*swapped(applied(name, array, axes=(0,), keep=True), [array]))
        agree(*swapped(applied("dot", array, array), [array, array]))


@pytest.mark.parametrize(
    ("name", "shapes", "attributes", "expected"),
    [
        ("reduce_sum", [(0, 2)], {"axes": (0,), "keep": False}, [0, 0]),
        ("reduce_prod", [(2, 0)], {"axes": (1,), "keep": True}, [[1], [1]]),
        ("dot", [(2, 0), (0, 2)], {}, [[0, 0], [0, 0]]),
        ("dot", [(0,), (0,)], {}, 0),
        ("sort", [(2, 0)], {"axis": 1, "descending": True}, [[], []]),
        ("top_k", [(2, 0)], {"k": 0}, [[], []]),
        ("transpose", [(0, 2)], {"permutation": (1, 0)}, [[], []]),
        ("pad", [(0,), ()], {"low": (1,), "high": (2,), "interior": (3,)}, [0, 0, 0]),
        ("argmax", [(0, 2)], {"axis": 1}, []),
        ("reduce_max", [(0, 2)], {"axes": (1,), "keep": False}, []),
        ("concatenate", [(0,), (0,)], {"axis": 0}, []),
        ("slice", [(0,)], {"start": (0,), "stop": (0,), "step": (5,)}, []),
        ("broadcast", [(1,)], {"shape": (2, 0, 1)}, [[], []]),
        ("reshape", [(3, 0)], {"shape": (0, 7)}, []),
    ],
)
def test_nothing_at_all(name, shapes, attributes, expected):
    operands = [np.zeros(shape) for shape in shapes]
    instruction, found = applied(name, *operands, **attributes)
    agree(instruction, operands, found)
    assert found[0].tolist() == expected


def test_indices_out_of_range():
    array, indices = np.array([1.0, 2, 3]), np.array([-5, 0, 2, 9])
    assert evaluated(lambda b, x, i: b.gather(x, i, axis=0), array, indices).tolist() == [1, 1, 3, 3]
    added = evaluated(lambda b, x, i, y: b.scatter_add(x, i, y, axis=0), array, indices, np.full(4, 10.0))
    assert added.tolist() == [11, 2, 13]
    empty = evaluated(lambda b, x, i: b.gather(x, i, axis=0), np.zeros((0, 2)), np.zeros((0,), int))
    assert empty.shape == (0, 2)


def counting():
    """`@count` counts from 0 up to its argument, `@pick` chooses between its argument and the negative of it."""
    scalar = TensorType("i32")
    less, step, plus, minus = (FunctionBuilder(name) for name in ("less", "step", "plus", "minus"))
    a, b = less.parameter("a", scalar), less.parameter("b", scalar)
    c, d = step.parameter("a", scalar), step.parameter("b", scalar)
    functions = [less.done(less.lt(a, b)), step.done(step.add(c, step.like(c, 1)), d)]
    functions += [(p := plus.parameter("a", scalar)) and plus.done(p)]
    functions += [(m := minus.parameter("a", scalar)) and minus.done(minus.neg(m))]
    known = {f.name: (f.parameter_types, f.result_types) for f in functions}
    count, pick = (FunctionBuilder(name, known.__getitem__) for name in ("count", "pick"))
    start, end = count.constant(0, "i32"), count.parameter("end", scalar)
    functions.append(count.done(*count.emit("while", [start, end], condition="less", body="step")))
    which, value = pick.parameter("which", TensorType("bool")), pick.parameter("value", scalar)
    functions.append(pick.done(*pick.emit("cond", [which, value], true="plus", false="minus")))
    return Module("m", {f.name: f for f in functions})


def test_control_flow():
    module = counting()
    assert [r.item() for r in interpret(module, "count", [np.int32(5)])] == [5, 5]
    assert [r.item() for r in interpret(module, "count", [np.int32(-5)])] == [0, -5]
    assert interpret(module, "pick", [np.bool_(True), np.int32(3)])[0].item() == 3
    assert interpret(module, "pick", [np.bool_(False), np.int32(3)])[0].item() == -3


def test_wrong_arguments_are_rejected():
    module = counting()
    with pytest.raises(FormError, match=r"@count takes \(i32\); given are arrays of \[\(\(\), 'int64'\)\]"):
        interpret(module, "count", [np.int64(5)])
    with pytest.raises(FormError, match="there is no function @nothing; there are @less, @step"):
        interpret(module, "nothing", [])
