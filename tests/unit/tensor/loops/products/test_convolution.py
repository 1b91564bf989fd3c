import numpy as np
import pytest
from helpers.tensor_runs import assert_close, run

from shine.compiler.processor import Machine
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module
from shine.tensor.form.types import TensorType

CASES = {
    "as networks begin": ((2, 28, 28, 1), (5, 5, 1, 32), {"low": (2, 2), "high": (2, 2)}),
    "strides": ((1, 9, 11, 3), (3, 3, 3, 5), {"strides": (2, 3)}),
    "uneven padding": ((1, 7, 6, 2), (2, 3, 2, 4), {"low": (0, 1), "high": (1, 2)}),
    "dilation": ((1, 12, 13, 2), (3, 2, 2, 17), {"dilation": (2, 3)}),
    "groups": ((1, 6, 7, 6), (3, 3, 2, 9), {"groups": 3}),
    "depthwise": ((2, 8, 8, 19), (3, 3, 1, 19), {"groups": 19, "low": (1, 1), "high": (1, 1), "strides": (2, 2)}),
    "1 x 1": ((1, 5, 5, 40), (1, 1, 40, 24), {}),
    "long sums": ((1, 5, 5, 64), (3, 3, 64, 40), {}),
    "one dimension": ((3, 30, 4), (7, 4, 6), {"strides": (2,), "low": (3,), "high": (0,), "dilation": (2,)}),
    "nothing left": ((1, 2, 2, 1), (3, 3, 1, 2), {}),
    "no image": ((0, 4, 4, 1), (3, 3, 1, 2), {"low": (1, 1), "high": (1, 1)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_convolution_with_bias(case):
    image, kernel, attributes = CASES[case]
    for dtype in ("f32", "f64"):
        b = FunctionBuilder("main")
        x, k = b.parameter("x", TensorType(dtype, image)), b.parameter("k", TensorType(dtype, kernel))
        bias = b.parameter("b", TensorType(dtype, kernel[-1:]))
        module = Module("m", {"main": b.done(b.add(b.convolve(x, k, **attributes), bias))})
        rng = np.random.default_rng(6)
        given = [rng.standard_normal(v.type.shape).astype(v.type.numpy) for v in (x, k, bias)]
        found, interface = run(module, given)
        assert_close(found, interpret(module, "main", given))
        assert "fused with" in interface.report[0]


def test_filters_that_exceed_the_second_cache_are_packed():
    b = FunctionBuilder("main")
    x, k = b.parameter("x", TensorType("f32", (2, 8, 9, 24))), b.parameter("k", TensorType("f32", (3, 3, 24, 70)))
    sums = b.convolve(x, k, low=(1, 1), high=(1, 1))
    module = Module("m", {"main": b.done(b.max(sums, b.like(sums, 0.0)))})
    rng = np.random.default_rng(6)
    given = [rng.standard_normal(v.type.shape).astype(np.float32) for v in (x, k)]
    found, interface = run(module, given, Machine(64, 32, True, (1 << 12, 1 << 14, 1 << 16)))
    assert_close(found, interpret(module, "main", given))
    assert "packed filters" in interface.report[0]


@pytest.mark.parametrize("window", [(1, 2), (2, 1), (3, 3)])
@pytest.mark.parametrize("groups", [1, 2])
def test_one_filter_for_each_group_of_one_channel(window, groups):
    # With one group, such a convolution is an ordinary one as well.
    rng = np.random.default_rng(11)
    image = rng.standard_normal((2, 5, 4, groups)).astype("float32")
    kernel = rng.standard_normal((*window, 1, groups)).astype("float32")
    b = FunctionBuilder("main")
    x, w = (b.parameter(name, TensorType("f32", given.shape)) for name, given in (("x", image), ("w", kernel)))
    made = b.convolve(x, w, strides=(1, 2), low=(2, 1), high=(0, 2), dilation=(1, 1), groups=groups)
    (found,), _ = run(Module("m", {"main": b.done(made)}), [image, kernel])
    padded = np.pad(image, [(0, 0), (2, 0), (1, 2), (0, 0)])
    views = np.lib.stride_tricks.sliding_window_view(padded, window, axis=(1, 2))[:, :, ::2]
    assert_close(found, np.einsum("bhwgij,ijg->bhwg", views, kernel[:, :, 0]))
