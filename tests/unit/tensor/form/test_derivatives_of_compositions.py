"""Derivatives of compositions against PyTorch's: also where branches meet, and where a branch would overflow."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.tensor_functions import module_with

from shine.tensor import gradient
from shine.tensor.compositions import networks as c
from shine.tensor.compositions.activations import activation
from shine.tensor.compositions.normalization import layer_norm
from shine.tensor.compositions.pooling import Windows, max_pool
from shine.tensor.form.interpreter import interpret

torch = pytest.importorskip("torch")
F = torch.nn.functional

pytestmark = pytest.mark.slow

SPECIAL = [0, -0.0, 1, -1, 3, -3, 6, -6, 0.5, -0.5, 50, -50, 88, -90, 800, -800, 1e-12, -1e-12, 1e-20]

ACTIVATIONS = {
    "sigmoid": ((), torch.sigmoid),
    "softplus": ((), lambda x: torch.logaddexp(x, torch.zeros_like(x))),
    "log_sigmoid": ((), F.logsigmoid),
    "elu": ((0.5,), lambda x: F.elu(x, 0.5)),
    "celu": ((2.0,), lambda x: F.celu(x, 2.0)),
    "selu": ((), F.selu),
    "relu": ((), F.relu),
    "relu6": ((), F.relu6),
    "leaky_relu": ((0.1,), lambda x: F.leaky_relu(x, 0.1)),
    "threshold": ((0.5, 9.0), lambda x: F.threshold(x, 0.5, 9.0)),
    "softsign": ((), F.softsign),
    "silu": ((), F.silu),
    "mish": ((), F.mish),
    "hard_sigmoid": ((1 / 6, 0.5), F.hardsigmoid),
    "hard_swish": ((), F.hardswish),
    "clip": ((-1.0, 1.0), lambda x: torch.clip(x, -1, 1)),
    "hard_shrink": ((0.5,), F.hardshrink),
    "soft_shrink": ((0.5,), F.softshrink),
    "erf": ((), torch.erf),
    "gelu": ((), F.gelu),
    "gelu_tanh": ((), lambda x: F.gelu(x, approximate="tanh")),
}


def both(write, expected, *arrays):
    """Derivatives of the sum of a weighted result, and PyTorch's."""
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    result = expected(*tensors)
    weights = np.random.default_rng(8).normal(size=result.shape).astype(arrays[0].dtype)
    (result * torch.tensor(weights)).sum().backward()
    module = module_with(lambda b, *v: b.reduce_sum(b.mul(write(b, *v), b.constant(weights))), *arrays)
    return interpret(gradient(module, "f"), "f_grad", arrays), [tensor.grad.numpy() for tensor in tensors]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name, dtype):
    others, expected = ACTIVATIONS[name]
    x = np.array([*SPECIAL, *np.linspace(-8, 8, 100)], dtype)
    (found,), (wanted,) = both(lambda b, x: activation(b, name, x, *others), expected, x)
    # PyTorch's 1 / 6 is of single precision in places.
    bound = 1e-5 if dtype == np.float32 else 1e-7 if name == "hard_sigmoid" else 1e-13
    np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)


X = np.random.default_rng(9).normal(size=(2, 4, 5, 6))
TIES = np.round(X)
MASK = np.tril(np.random.default_rng(1).random((5, 4)) < 0.7)
MASK[:, 0] = True


@pytest.mark.parametrize(
    ("write", "expected", "arrays"),
    [
        (lambda b, x: c.softmax(b, x, 1), lambda x: torch.softmax(x, 1), (X,)),
        (c.log_softmax, lambda x: torch.log_softmax(x, -1), (X,)),
        (lambda b, x: c.logsumexp(b, x, (1,)), lambda x: torch.logsumexp(x, 1), (X,)),
        (lambda b, x: c.cumsum(b, x, 2), lambda x: torch.cumsum(x, 2), (X,)),
        (layer_norm, lambda x: F.layer_norm(x, (6,)), (X,)),
        (
            lambda b, x: max_pool(b, x, Windows((2, 3), (3, 3), (2, 2), (1, 1), (1, 1), ceil=True)),
            lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
            (TIES,),
        ),
        (
            lambda b, q, k, v: c.attention(b, q, k, v, b.constant(MASK)),
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, torch.tensor(MASK)),
            (X[:, :, :, :3], X[:, :, 1:, 3:], X[:, :, :4]),
        ),
    ],
    ids=["softmax", "log_softmax", "logsumexp", "cumsum", "layer_norm", "max_pool", "attention"],
)
def test_others(write, expected, arrays):
    for found, wanted in zip(*both(write, expected, *map(np.ascontiguousarray, arrays)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)
