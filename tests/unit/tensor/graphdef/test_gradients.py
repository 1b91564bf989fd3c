"""Gradients of functions that graphs name, beside the textbook's, where derivatives are easily lost or become NaN."""

from __future__ import annotations

import numpy as np
import pytest

from shine.tensor import gradient
from shine.tensor.form.interpreter import interpret
from shine.tensor.graphdef import load_module

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

W = np.longdouble
POINTS = np.array([-1e30, -100, -90, -5, -1, -1e-3, -1e-20, -0.0, 0, 1e-30, 1e-3, 0.3, 1, 20, 60, 100, 1e30], "f4")
DERIVATIVES = {
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)) / (1 + np.exp(x)),
    "Softplus": lambda x: 1 / (1 + np.exp(-x)),
    "Elu": lambda x: np.where(x < 0, np.exp(x), 1),
    "Selu": lambda x: np.where(x < 0, W(1.7580993408473766) * np.exp(x), W(1.0507009873554805)),
    "Softsign": lambda x: 1 / (1 + abs(x)) ** 2,
    "Asinh": lambda x: 1 / np.hypot(1, x),
    "Tanh": lambda x: 1 / np.cosh(x) ** 2,
    "Expm1": np.exp,
    "Erf": lambda x: 2 / np.sqrt(W(np.pi)) * np.exp(-x * x),
    "Atan": lambda x: 1 / (1 + x * x),
}


@pytest.mark.parametrize("op", DERIVATIVES)
def test_functions_have_their_derivatives_everywhere(op):
    value = f"shape {{ dim {{ size: {len(POINTS)} }} }}"
    text = f"""
    node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
           attr {{ key: "shape" value {{ {value} }} }} }}
    node {{ name: "y" op: "{op}" input: "x" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}
    """
    module = gradient(load_module(text.encode()), "main", seedable=True, name="backward")
    (found,) = interpret(module, "backward", [POINTS, np.ones_like(POINTS)])
    with np.errstate(all="ignore"):
        wanted = DERIVATIVES[op](POINTS.astype(W)).astype("f4")
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
