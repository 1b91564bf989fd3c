import numpy as np
import pytest
from helpers.tensor_modules import random_arguments, random_module
from helpers.tensor_runs import assert_close, run

from shine.compiler.processor import Machine
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module
from shine.tensor.form.types import TensorType

MACHINES = (None, Machine(16, 16, False), Machine(32, 16, True), Machine(64, 32, True, (1 << 10, 1 << 12, 1 << 14)))
"""This one, others, and one with caches so small that every product is packed."""


def agrees(seed: int) -> None:
    module = random_module(seed)
    arguments = random_arguments(module, "main", seed)
    found, _ = run(module, arguments, MACHINES[seed % len(MACHINES)])
    assert_close(found, interpret(module, "main", arguments))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_drawn_module_gives_what_the_interpreter_gives(seed):
    agrees(seed)


def module_of(make, *types: TensorType) -> Module:
    b = FunctionBuilder("main")
    made = make(b, *(b.parameter(f"x{place}", type) for place, type in enumerate(types)))
    return Module("m", {"main": b.done(*(made if isinstance(made, tuple) else (made,)))})


def softmax(b, x):
    shifted = b.exp(b.sub(x, b.reduce_max(x, axes=(x.type.rank - 1,), keep=True)))
    return b.div(shifted, b.reduce_sum(shifted, axes=(x.type.rank - 1,), keep=True))


def test_softmax_is_three_nests_in_common_loops():
    module = module_of(softmax, TensorType("f32", (5, 19)))
    x = np.linspace(-3, 3, 95, dtype=np.float32).reshape(5, 19)
    found, interface = run(module, [x])
    assert_close(found, interpret(module, "main", [x]))
    assert len(interface.report) == 1
    assert interface.report[0].startswith("in 1 common loops: ")
    assert interface.report[0].count("loops 5 x 19") == 3


def test_bias_and_relu_after_a_product_are_its_epilogue():
    def layer(b, x, w, bias):
        sums = b.add(b.dot(x, w), bias)
        return b.max(sums, b.like(sums, 0.0))

    types = [TensorType("f32", shape) for shape in ((1, 7), (7, 20), (20,))]
    rng = np.random.default_rng(1)
    arguments = [rng.standard_normal(type.shape).astype(np.float32) for type in types]
    module = module_of(layer, *types)
    found, interface = run(module, arguments)
    assert_close(found, interpret(module, "main", arguments))
    assert interface.arena_bytes == 0
    assert len(interface.report) == 1
    assert "fused with" in interface.report[0]


def test_elementwise_code_has_the_same_bits_at_any_width():
    def chain(b, x, y):
        return b.exp(b.sin(x)), b.pow(b.abs(x), y), b.add(b.mul(x, y), x), b.mod(x, y)

    module = module_of(chain, *[TensorType("f32", (37,))] * 2)
    rng = np.random.default_rng(2)
    arguments = [rng.standard_normal(37).astype(np.float32) for _ in range(2)]
    (one, _), (other, _) = (run(module, arguments, Machine(width, 16, True)) for width in (4, 64))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a.view(np.int32), b.view(np.int32))


def test_results_that_are_arguments_constants_or_equal_are_copies():
    def several(b, x):
        y = b.neg(x)
        data = b.constant(np.arange(3, dtype=np.float32))
        return x, y, y, data, b.reshape(x, shape=(3, 1)), b.reshape(y, shape=(1, 3))

    module = module_of(several, TensorType("f32", (3,)))
    x = np.array([1, 2, 3], np.float32)
    found, _ = run(module, [x])
    assert_close(found, interpret(module, "main", [x]))


@pytest.mark.slow
def test_a_chain_of_thousands_of_operations_compiles():
    def chain(b, x):
        for _ in range(3000):
            x = b.add(x, b.like(x, 1.0))
        return x

    module = module_of(chain, TensorType("f64", (3,)))
    found, _ = run(module, [np.zeros(3)], level="O0")
    np.testing.assert_array_equal(found[0], np.full(3, 3000.0))


@pytest.mark.slow
def test_a_tensor_that_is_written_in_pieces_keeps_its_memory():
    def pieces(b, x):
        sides = [b.dot(x, x) for _ in range(3)]
        joined = b.concatenate(b.neg(sides[0]), b.tanh(b.dot(sides[1], x)), sides[2], axis=1)
        padded = b.pad(b.dot(sides[0], x), b.like(x, 7.0), low=(1, 1), high=(0, 5), interior=(0, 0))
        return b.dot(joined, b.transpose(joined)), b.reduce_sum(padded, axes=(0,))

    module = module_of(pieces, TensorType("f64", (9, 9)))
    x = np.random.default_rng(3).standard_normal((9, 9))
    found, _ = run(module, [x])
    assert_close(found, interpret(module, "main", [x]))
