"""Gradients of drawn modules against differences along random directions."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.tensor_modules import STEPS, random_arguments, random_module

from shine.tensor.adjoint.declarations import gradient
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module
from shine.tensor.form.operations import OPERATIONS
from shine.tensor.form.types import FLOATS

SMOOTH = sorted(set(OPERATIONS) - STEPS - {"while", "sort", "top_k", "argmax", "argmin", "tan"})
STEP = 1e-6


def _directional(module: Module, arguments: tuple[np.ndarray, ...], moves: list[np.ndarray], seeds: list) -> float:
    moved = [a + m if a.dtype == np.float64 else a for a, m in zip(arguments, moves, strict=True)]
    found = interpret(module, "main", moved)
    return sum(float((a * s).sum()) for a, s in zip(found, seeds, strict=True) if s is not None)


def check(seed: int) -> bool:
    """Whether a module was compared: not if differences with two steps disagree, beside a kink."""
    module = random_module(seed, operations=SMOOTH, floats=["f64"])
    main = module.function("main")
    wrt = [i for i, t in enumerate(main.parameter_types) if t.dtype in FLOATS and t.elements]
    if not wrt or not any(t.dtype in FLOATS for t in main.result_types):
        return False
    rng = np.random.default_rng(seed)
    arguments = random_arguments(module, "main", seed)
    seeds = [rng.uniform(-1, 1, t.shape) if t.dtype in FLOATS else None for t in main.result_types]
    given = [np.zeros(t.shape, t.numpy) if s is None else s for s, t in zip(seeds, main.result_types, strict=True)]
    complete = gradient(module, "main", wrt=wrt, seedable=True)
    gradients = interpret(complete, "main_grad", [*arguments, *given])
    moves = [rng.uniform(-1, 1, np.shape(a)) for a in arguments]
    expected = [
        (
            _directional(module, arguments, [m * step for m in moves], seeds)
            - _directional(module, arguments, [-m * step for m in moves], seeds)
        )
        / (2 * step)
        for step in (STEP, STEP / 4)
    ]
    scale = 1 + abs(expected[0]) + sum(float(np.abs(g).sum()) for g in gradients)
    if abs(expected[0] - expected[1]) > 1e-6 * scale:
        return False
    found = sum(float((g * moves[i]).sum()) for g, i in zip(gradients, wrt, strict=True))
    assert found == pytest.approx(expected[0], abs=1e-5 * scale), f"module {seed}"
    return True


def test_gradients_of_drawn_modules_agree_with_differences():
    assert sum(check(seed) for seed in range(12)) > 5
