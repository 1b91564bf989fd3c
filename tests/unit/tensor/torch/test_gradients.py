"""Gradients of programs beside those of torch's autograd, where derivatives are easily lost or become NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shine.tensor import gradient
from shine.tensor.form.interpreter import interpret
from shine.tensor.torch import from_exported

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

F = torch.nn.functional

EVERYWHERE = torch.tensor([-1e30, -200, -90, -5, -1, -1e-3, -1e-20, -0.0, 0, 1e-30, 1e-3, 0.3, 1, 20, 60, 100, 1e30])
"""Where exponentials overflow or vanish, and where 1 + x is 1."""

ROWS = torch.tensor([[0.0, 0, 0], [1, -2, 0], [3, 3, -3]])


def differ(function: Callable[[Any], Any], point: Any) -> None:
    """Compare the gradient of one result by one argument."""

    class Network(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    module = from_exported(torch.export.export(Network().eval(), (point,)))
    given = point.clone().requires_grad_()
    result = function(given)
    seed = torch.tensor(np.random.default_rng(0).uniform(-1, 1, tuple(result.shape)).astype("f4"))
    (wanted,) = torch.autograd.grad((result * seed).sum(), given)
    complete = gradient(module, "main", [0], seedable=True, name="backward")
    (found,) = interpret(complete, "backward", [point.numpy(), seed.numpy()])
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["expm1", "asinh", "tanh", "sigmoid", "erf", "atan", "relu", "square", "exp2"])
def test_functions_have_the_derivatives_of_torch_everywhere(name):
    differ(getattr(torch, name), EVERYWHERE)


@pytest.mark.parametrize(
    "name",
    ["elu", "celu", "selu", "softplus", "mish", "logsigmoid", "silu", "gelu", "softsign", "hardswish", "tanhshrink"],
)
def test_activations_have_the_derivatives_of_torch_everywhere(name):
    differ(getattr(F, name), EVERYWHERE)


@pytest.mark.parametrize(("a", "b"), [(1, 0), (0, 1), (-1, 0), (1, 1), (-1, -1), (0, -2)])
def test_angles_have_derivatives_on_axes_and_diagonals(a, b):
    differ(lambda x: torch.atan2(x[:, 0], x[:, 1]), torch.tensor([[float(a), float(b)], [1e-3, 5]]))


def test_logarithms_near_1_have_their_derivatives():
    differ(torch.log1p, torch.tensor([-0.5, -1e-20, 0.0, 1e-30, 1e-3, 1e30]))
    differ(torch.atanh, torch.tensor([-0.5, -1e-20, 0.0, 1e-30, 0.9]))
    differ(torch.acosh, torch.tensor([1.5, 1e4, 1e30]))


@pytest.mark.parametrize("order", [1, 2, 3, float("inf")])
def test_norms_have_the_derivative_0_at_0(order):
    differ(lambda x: torch.linalg.vector_norm(x, order, dim=1), ROWS)


def test_what_is_put_elsewhere_gets_its_derivative_back():
    def assigned(x: Any) -> Any:
        y = 2 * x
        y[:, 1:] = x[:, :2] ** 2
        return y[[0, 0, 2], [1, 1, -1]] + x.diagonal() + F.pad(x, (1, 1), mode="reflect").sum(1)

    differ(assigned, ROWS)
