import numpy as np
import pytest
from helpers.tensor_passes import after

from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module
from shine.tensor.form.types import TensorType
from shine.tensor.passes.products import join_products


def test_a_sum_of_products_is_one_product():
    text = """%w: <4 x 2 x f32>, %x: <2 x f32>, %u: <4 x 3 x f32>, %y: <3 x f32>
        %a = dot %w: <4 x 2 x f32>, %x: <2 x f32>
        %b = dot %u: <4 x 3 x f32>, %y: <3 x f32>
        %c = add %a: <4 x f32>, %b: <4 x f32>
        %c: <4 x f32>"""
    assert after(join_products, text) == [
        "%v7 = concatenate %w: <4 x 2 x f32>, %u: <4 x 3 x f32> {axis = 1}",
        "%v8 = concatenate %x: <2 x f32>, %y: <3 x f32> {axis = 0}",
        "%v9 = dot %v7: <4 x 5 x f32>, %v8: <5 x f32>",
        "%v9: <4 x f32>",
    ]


def gates(shape, side, count=3):
    """tanh(x W + b), for several constants W."""
    rng = np.random.default_rng(0)
    b = FunctionBuilder("main")
    x = b.parameter("x", TensorType("f32", shape))
    inner = shape[-1] if side == 0 or len(shape) == 1 else shape[-2]
    made = []
    for width in range(2, 2 + count):
        w = b.constant(rng.normal(size=(inner, width) if side == 0 else (width, inner)).astype(np.float32))
        made.append(b.tanh(b.dot(x, w) if side == 0 else b.dot(w, x)))
    return Module("m", {"main": b.done(*made)})


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 4, 5)])
def test_products_that_share_an_operand_are_slices_of_one(shape, side):
    module = gates(shape, side)
    found = join_products(module)
    operations = [i.operation for i in found.function("main").body]
    assert (operations.count("dot"), operations.count("slice")) == (1, 3)
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    for old, new in zip(interpret(module, "main", [x]), interpret(found, "main", [x]), strict=True):
        np.testing.assert_allclose(old, new, rtol=1e-5)
