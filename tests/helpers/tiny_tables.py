"""Tables of 3 to 20 rows, of any scale, as somebody types them in: drawn from a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Generator = np.random.Generator

LARGEST_POWER = 35
"""Scales go from 1e-35 to 1e35."""


@dataclass(frozen=True)
class TinyCase:
    """A table to fit."""

    number: int
    X: Array
    y: Array
    notes: str


COLUMNS: dict[str, Callable[[Generator, int], Array]] = {
    "even": lambda rng, n: np.arange(n) + float(rng.integers(0, 3)),
    "uniform": lambda rng, n: rng.uniform(-1, 1, n),
    "positive": lambda rng, n: rng.uniform(0.5, 5, n),
    "narrow": lambda rng, n: 1000 + rng.uniform(-1e-3, 1e-3, n),
    "decades": lambda rng, n: 10 ** rng.uniform(-4, 4, n),
    "ties": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "binary": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "constant": lambda rng, n: np.full(n, rng.uniform(-2, 2)),
    "zero": lambda rng, n: np.zeros(n),
    "outlier": lambda rng, n: rng.standard_normal(n) * np.where(np.arange(n) == 0, 10 ** rng.uniform(1, 6), 1),
}

TARGETS: dict[str, Callable[[Generator, Array], Array]] = {
    "linear": lambda rng, X: X @ rng.uniform(-2, 2, X.shape[1]) + rng.uniform(-2, 2),
    "proportional": lambda rng, X: 1.7 * X[:, 0],
    "product": lambda rng, X: np.prod(X, axis=1),
    "power": lambda rng, X: (np.abs(X[:, 0]) + 1e-3) ** rng.uniform(-2, 2),
    "exponential": lambda rng, X: np.exp(np.clip(rng.uniform(-5, 5) * X[:, -1], -200, 200)),
    "saturation": lambda rng, X: np.abs(X[:, 0]) / (0.5 + np.abs(X[:, 0])),
    "wave": lambda rng, X: np.sin(3 * X[:, 0]) + 0.2,
    "noise": lambda rng, X: rng.standard_normal(len(X)),
    "constant": lambda rng, X: np.full(len(X), rng.uniform(-3, 3)),
    "zero": lambda rng, X: np.zeros(len(X)),
    "ties": lambda rng, X: rng.integers(0, 3, len(X)).astype(float),
    "almost constant": lambda rng, X: 1 + 1e-12 * rng.standard_normal(len(X)),
}


def tiny_case(number: int) -> TinyCase:
    """The table of a number."""
    rng = np.random.default_rng([15, number])
    rows, count = int(rng.integers(3, 21)), int(rng.integers(1, 6))
    kinds = [str(kind) for kind in rng.choice(list(COLUMNS), count)]
    X = np.column_stack([COLUMNS[kind](rng, rows) for kind in kinds])
    if count > 1 and rng.random() < 0.1:
        kinds[-1], X[:, -1] = "copy", X[:, 0]
    repeated = rng.random() < 0.2
    if repeated:
        X = X[rng.integers(0, max(rows // 2, 1), rows)]
    target = str(rng.choice(list(TARGETS)))
    sizes = np.abs(X).max(axis=0)
    y = TARGETS[target](rng, X / np.where(sizes > 0, sizes, 1))
    y = y / (np.abs(y).max() or 1.0)
    noise = float(rng.choice([0, 0.01, 0.2]))
    if target not in ("constant", "zero", "ties", "almost constant"):
        y = y + noise * np.std(y) * rng.standard_normal(rows)
    if rng.random() < 0.15:
        y[rng.integers(rows)] *= 10 ** rng.uniform(1, 6)
    scales = [_scale(rng) for _ in range(count + 1)]
    notes = f"{rows} rows, {', '.join(kinds)}{', repeated rows' * repeated}, {target} of {scales[-1]:.0e}"
    return TinyCase(number, X * scales[:-1], y * scales[-1], notes)


def _scale(rng: Generator) -> float:
    """A power of ten, or often 1."""
    return 1.0 if rng.random() < 0.35 else float(10 ** rng.uniform(-LARGEST_POWER, LARGEST_POWER))
