import numpy as np
import pytest
from helpers.tensor_runs import assert_close, run

from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module
from shine.tensor.form.types import TensorType


def check(make, *shapes: tuple[int, ...], dtype: str = "f32") -> None:
    b = FunctionBuilder("main")
    values = [b.parameter(f"x{place}", TensorType(dtype, shape)) for place, shape in enumerate(shapes)]
    module = Module("m", {"main": b.done(make(b, *values))})
    rng = np.random.default_rng(9)
    arguments = [rng.uniform(-9, 9, value.type.shape).astype(value.type.numpy) for value in values]
    assert_close(run(module, arguments)[0], interpret(module, "main", arguments))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "f64", "u8"])
@pytest.mark.parametrize("shape", [(16, 16), (35, 40), (64, 3), (17, 100)])
def test_transposes_in_blocks(shape, dtype):
    check(lambda b, x: b.transpose(x), shape, dtype=dtype)


def test_a_transposed_operand_inside_a_chain():
    check(lambda b, x, y: b.mul(b.add(b.transpose(x), y), b.transpose(x)), (21, 34), (34, 21))


def test_channels_first_become_last():
    check(lambda b, x: b.transpose(x, permutation=(0, 2, 3, 1)), (2, 19, 5, 7))


@pytest.mark.slow
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_reductions_over_any_axes(axes):
    for shape in ((3, 5, 33), (1, 7, 1), (4, 1, 70)):
        check(lambda b, x: b.reduce_sum(b.mul(x, x), axes=axes), shape)
        check(lambda b, x: b.reduce_max(x, axes=axes, keep=True), shape)


def test_strides_and_broadcasts():
    check(lambda b, x: b.neg(b.slice(x, start=(1, 0), stop=(9, 40), step=(2, 3))), (9, 40))
    check(lambda b, x: b.exp(b.broadcast(b.transpose(x), shape=(4, 5, 20))), (20, 5))
