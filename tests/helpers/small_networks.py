"""Small networks for tests: tensor programs with weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Module
from shine.tensor.form.types import TensorType
from shine.tensor.form.verifier import verify

Law = Callable[..., Any]


def network(weights: list[np.ndarray], rows: int, dtype: str = "f64") -> Module:
    """Linear layers with tanh between them: matrices of shape (inputs + 1, outputs), whose last row is added."""
    b = FunctionBuilder("main")
    x = b.parameter("x", TensorType(dtype, (rows, len(weights[0]) - 1)))
    for place, matrix in enumerate(weights):
        kind = TensorType(dtype).numpy
        x = b.dot(x, b.constant(matrix[:-1].astype(kind)))
        x = b.add(x, b.broadcast(b.constant(matrix[-1].astype(kind)), shape=x.type.shape))
        x = b.tanh(x) if place + 1 < len(weights) else x
    return verify(Module("network", {"main": b.done(x)}))


def fitted(law: Law, low: float, high: float, seed: int = 0) -> list[np.ndarray]:
    """Weights of a network for two features with a layer of 60: random ones, and the best ones behind it (Huang et al.
    2006)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(low, high, (1500, 2))
    inner = rng.normal(size=(3, 60)) * 0.9
    layer = np.tanh(X @ inner[:-1] + inner[-1])
    targets = np.stack(np.atleast_2d(law(*X.T)), axis=1)
    outer = np.linalg.lstsq(np.column_stack([layer, np.ones(len(X))]), targets, rcond=1e-7)[0]
    return [inner, outer]
