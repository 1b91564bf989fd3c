"""Gradients beside those of JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shine.tensor.adjoint.declarations import gradient, with_gradients
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module
from shine.tensor.form.reading import module_of
from shine.tensor.form.types import TensorType

pytestmark = pytest.mark.slow

LAYER = """
module @dlvm
func @foo: (<1 x 784 x f32>, <784 x 10 x f32>, <1 x 10 x f32>) -> <1 x 10 x f32> {
'entry(%x: <1 x 784 x f32>, %w: <784 x 10 x f32>, %b: <1 x 10 x f32>):
    %v1 = dot %x: <1 x 784 x f32>, %w: <784 x 10 x f32>
    %v2 = add %v1: <1 x 10 x f32>, %b: <1 x 10 x f32>
    return %v2: <1 x 10 x f32>
}
[gradient @foo wrt 1, 2 keeping 0 seedable]
func @foo_grad: (<1 x 784 x f32>, <784 x 10 x f32>, <1 x 10 x f32>, <1 x 10 x f32>)
    -> (<784 x 10 x f32>, <1 x 10 x f32>, <1 x 10 x f32>)
"""


@pytest.fixture
def jax() -> Any:
    found = pytest.importorskip("jax")
    before = found.config.jax_enable_x64
    found.config.update("jax_enable_x64", True)
    yield found
    found.config.update("jax_enable_x64", before)


def test_dlvm_s_example_has_the_gradients_of_jax(jax):
    module = with_gradients(module_of(LAYER))
    rng = np.random.default_rng(0)
    x, w, b, seed = (rng.normal(size=t.shape).astype("f4") for t in module.function("foo_grad").parameter_types)
    value, back = jax.vjp(lambda w, b: x @ w + b, w, b)
    for found, expected in zip(interpret(module, "foo_grad", [x, w, b, seed]), (*back(seed), value), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_second_derivatives_are_those_of_jax(jax):
    b = FunctionBuilder("f")
    x = b.parameter("x", TensorType("f64", (6,)))
    w = b.constant(np.random.default_rng(1).normal(size=(6, 4)))
    h = b.tanh(b.dot(x, w))
    out = b.add(b.log(b.reduce_sum(b.exp(h))), b.reduce_prod(h))
    module = gradient(Module("m", {"f": b.done(out)}), "f")
    module = gradient(module, "f_grad", wrt=[0], name="second")
    weights = module.function("f").body[0].attributes["value"]

    def expected(x: Any) -> Any:
        h = jax.numpy.tanh(x @ weights)
        return jax.numpy.log(jax.numpy.exp(h).sum()) + h.prod()

    point = np.random.default_rng(2).normal(size=6)
    hessian = [interpret(module, "second", [point, row])[0] for row in np.eye(6)]
    np.testing.assert_allclose(hessian, jax.hessian(expected)(point), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 1)])
def test_convolutions_have_the_gradients_of_jax(jax, groups, strides, dilation):
    b = FunctionBuilder("f")
    image, kernel = (
        b.parameter("x", TensorType("f64", (2, 9, 8, 4))),
        b.parameter("k", TensorType("f64", (3, 2, 4 // groups, 6))),
    )
    options = {"strides": strides, "dilation": dilation, "groups": groups, "low": (1, 0), "high": (2, 1)}
    module = Module("m", {"f": b.done(b.convolve(image, kernel, **options))})
    rng = np.random.default_rng(0)
    x, k = (rng.normal(size=t.shape) for t in module.function("f").parameter_types)

    def convolution(x: Any, k: Any) -> Any:
        return jax.lax.conv_general_dilated(
            x,
            k,
            strides,
            [(1, 2), (0, 1)],
            rhs_dilation=dilation,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )

    value, back = jax.vjp(convolution, x, k)
    seed = rng.normal(size=value.shape)
    found = interpret(gradient(module, "f", keeping=[0]), "f_grad", [x, k, seed])
    for ours, theirs in zip(found, (*back(seed), value), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
