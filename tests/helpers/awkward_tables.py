"""Awkward tables: columns of many kinds and scales, targets, weights, and an estimator, all drawn from a number."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer

Array = NDArray[np.float64]


@dataclass
class Case:
    """A table to fit, and fresh rows of the same kind."""

    number: int
    X: Array
    y: Array
    fresh: Array
    weights: Array | None
    estimator: Any
    notes: list[str] = field(default_factory=list)


KINDS = (
    "uniform", "positive", "normal", "lognormal", "integer", "count", "binary", "constant", "one-hot", "duplicate",
    "collinear", "date", "nanoseconds", "nearly constant", "mostly zero", "heavy tails", "grid",
)  # fmt: skip


def column(kind: str, n: int, before: list[Array], rng: np.random.Generator) -> list[Array]:
    """A column of a kind, or the columns of a one-hot code."""
    if kind in ("duplicate", "collinear") and not before:
        kind = "normal"
    match kind:
        case "uniform":
            return [rng.uniform(-3, 3, n)]
        case "positive":
            return [rng.uniform(1, 5, n)]
        case "normal":
            return [rng.standard_normal(n)]
        case "lognormal":
            return [rng.lognormal(0, 1, n)]
        case "integer":
            return [rng.integers(-5, 6, n).astype(float)]
        case "count":
            return [rng.poisson(3, n).astype(float)]
        case "binary":
            return [rng.integers(0, 2, n).astype(float)]
        case "constant":
            return [np.full(n, float(rng.integers(-2, 3)))]
        case "one-hot":
            levels = int(rng.integers(2, 6))
            return list(np.eye(levels)[rng.integers(0, levels, n)].T)
        case "duplicate":
            return [before[int(rng.integers(len(before)))].copy()]
        case "collinear":
            return [sum((float(rng.standard_normal()) * c for c in before[-3:]), np.zeros(n))]
        case "date":
            return [np.floor(rng.uniform(15_000, 20_000, n))]
        case "nanoseconds":
            return [np.floor(rng.uniform(1.6e18, 1.7e18, n))]
        case "nearly constant":
            return [1000 + 1e-9 * rng.standard_normal(n)]
        case "mostly zero":
            return [np.where(rng.random(n) < 0.9, 0.0, rng.standard_normal(n))]
        case "heavy tails":
            return [rng.standard_cauchy(n)]
        case _:
            return [rng.choice(np.linspace(0, 1, 5), n)]


def target(X: Array, rng: np.random.Generator) -> Array:
    """A target of some columns, or of none."""
    n, d = X.shape
    a, b, c = (X[:, int(rng.integers(d))] for _ in range(3))
    noise = rng.standard_normal(n)
    with np.errstate(all="ignore"):
        spread = [float(np.nan_to_num(np.std(column))) or 1.0 for column in (a, b, c)]
        u, v, w = (column / s for column, s in zip((a, b, c), spread, strict=True))
        choices = (
            lambda: u * v + 0.1 * noise,
            lambda: np.sin(u) + noise,
            lambda: 2.5 * u + 40 * v - w + 0.3 * noise,
            lambda: u / (1 + np.abs(v)),
            lambda: np.exp(np.clip(u, -30, 30)),
            lambda: np.sqrt(np.abs(u)) + v,
            lambda: noise,
            lambda: np.full(n, 3.0),
            lambda: (u + 0.5 * noise > np.median(u)).astype(float),
            lambda: np.rint(3 * u),
            lambda: np.exp(5 * noise),
            lambda: np.where(rng.random(n) < 0.95, 0.0, noise),
            lambda: 1e9 + 1e-3 * noise,
            lambda: u**3 - 2 * v + 1,
        )
        y = np.asarray(choices[int(rng.integers(len(choices)))](), float)
    return np.nan_to_num(y, posinf=1e300, neginf=-1e300)


def weights_of(n: int, rng: np.random.Generator) -> Array | None:
    """Sample weights, mostly none."""
    draw = int(rng.integers(10))
    if draw == 0:
        return rng.uniform(0.1, 2, n)
    if draw == 1:
        return rng.integers(0, 3, n).astype(float)
    if draw == 2:
        return np.asarray(10.0 ** rng.uniform(-300, 300, n))
    if draw == 3:
        return np.full(n, float(10.0 ** rng.uniform(-300, 300)))
    return None


def case(number: int, largest: int = 10_000) -> Case:
    """The case of a number."""
    rng = np.random.default_rng(number)
    rows = max(1, int(min(largest, np.exp(rng.uniform(0, np.log(largest + 1))))))
    wide = int(np.exp(rng.uniform(0, np.log(500)))) if rng.random() < 0.25 else int(rng.integers(1, 8))
    wide = min(wide, max(1, 2_000_000 // rows))
    total = 2 * rows
    own = rng.choice(KINDS, size=int(rng.integers(1, 4)))
    columns: list[Array] = []
    while len(columns) < wide:
        columns += column(str(rng.choice(own if rng.random() < 0.7 else KINDS)), total, columns, rng)
    X = np.column_stack(columns[:wide])
    y = target(X, rng)
    notes = [f"{rows} x {wide}", "/".join(own)]
    scaled = int(rng.integers(6))
    if scaled == 0:
        X = X * 10.0 ** rng.uniform(-290, 290)
        notes.append(f"X to {np.abs(X).max():.1e}")
    elif scaled == 1:
        X = X * 10.0 ** rng.uniform(-250, 250, wide)
        notes.append("columns of any scale")
    elif scaled == 2:
        X = X * 10.0 ** rng.uniform(-15, 15, wide)
    if rng.integers(4) == 0:
        y = y * 10.0 ** rng.uniform(-290, 290)
        notes.append(f"y to {np.abs(y).max():.1e}")
    X, y = (np.clip(np.nan_to_num(a), -1.7e308, 1.7e308) for a in (X, y))
    weights = weights_of(rows, rng)
    if weights is not None:
        notes.append(f"weights {weights.min():.0e}..{weights.max():.0e}")
    common: dict[str, Any] = {
        "max_time": 0.4, "generations": 2, "population_size": 50, "random_state": number, "n_jobs": 1,
    }  # fmt: skip
    draw = rng.random()
    estimator: Any
    if draw < 0.15:
        estimator = SymbolicClassifier(**common)
        y = np.digitize(y, np.quantile(y, [0.5] if rng.random() < 0.7 else [0.3, 0.7]))
    elif draw < 0.25:
        estimator = SymbolicTransformer(n_components=2, **common)
    else:
        loss = str(rng.choice(["mse", "mse", "mse", "mae", "rmse", "nmse", "r2"]))
        dtype = "float32" if rng.random() < 0.1 else "float64"
        scaling = bool(rng.random() < 0.85)
        estimator = SymbolicRegressor(loss=loss, dtype=dtype, linear_scaling=scaling, **common)
        notes.append(f"{loss} {dtype} {'scaled' if scaling else 'plain'}")
    notes.append(type(estimator).__name__)
    return Case(number, X[:rows], y[:rows], X[rows:], weights, estimator, notes)
