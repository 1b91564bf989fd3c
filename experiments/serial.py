"""Logs, whose neighbouring rows have errors alike: `python experiments/serial.py searches` (or another part).

`searches` prints, for simulated logs whose law is a product of two of twelve slow columns, the nodes of the chosen
formula (the law has 3, 5 or 7 with its line) and R2 on a fresh log. `coverage` prints how often 95 % intervals of
constants hold the truth, the form known. `alarms` prints how many tables whose errors are independent pass for logs.
`real` prints what tables of a folder are taken for.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import shine
from shine.data.datasets.dataset import Dataset
from shine.data.datasets.serial import Serial
from shine.evaluate.inference.bands import Bands
from shine.evaluate.inference.constants import form_of
from shine.evaluate.inference.inference import Basis, Inference
from shine.lang.parse import parse
from shine.losses import loss_from
from shine.search.problem.serial_noise import with_serial_noise


def log_of(rng: np.random.Generator, rows: int, rho: float, columns: int = 1) -> np.ndarray:
    """Columns of unit variance, each correlated by rho with its row before."""
    found = rng.normal(size=(rows, columns))
    for at in range(1, rows):
        found[at] = rho * found[at - 1] + np.sqrt(1 - rho**2) * found[at]
    return found


def searches(seeds: int, seconds: float) -> None:
    """Formulas for simulated logs."""
    for slow, rho in ((0.95, 0.85), (0.95, 0.7), (0.0, 0.85), (0.95, 0.0)):
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            X, fresh = log_of(rng, 700, slow, 12), log_of(rng, 700, slow, 12)
            y = X[:, 0] * X[:, 1] + 0.5 * log_of(rng, 700, rho)[:, 0]
            start = time.perf_counter()
            found = shine.evolve(X, y, seconds=seconds, seed=seed)
            values, law = found.predict(fresh), fresh[:, 0] * fresh[:, 1]
            r2 = 1 - np.mean((values - law) ** 2) / np.var(law)
            print(
                f"| {slow} | {rho} | {seed} | {found.best.tree.size} | {r2:.3f} | {found.best.formula(3)} | "
                f"{time.perf_counter() - start:.0f} s |",
                flush=True,
            )
            print("   ", found.front.reason)


def tables(seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Tables whose errors are independent: their kind, features and target."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(0.5, 3, 3)
    rows, noise = int(rng.integers(60, 500)), float(rng.choice([0.0, 0.01, 0.1, 0.3]))
    laws = (
        lambda x, y, z: np.sin(a * 2 * x) * y + b * z,
        lambda x, y, z: np.exp(a * x / 2) * y + z**2,
        lambda x, y, z: np.abs(x - b / 2) + y * z,
        lambda x, y, z: a * x / (b + y**2) + np.sin(c * z),
        lambda x, y, z: np.tanh(4 * a * (x - y)) + c * z,
    )
    law = laws[seed % len(laws)]

    def read(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = law(*columns)
        return np.column_stack(columns), values + noise * np.std(values) * rng.normal(size=len(values))

    X = rng.uniform(-2, 2, (rows, 3))
    yield "independent", *read(*X.T)
    yield "sorted by the first feature", *read(*X[np.argsort(X[:, 0])].T)
    yield "sorted by the sum of two", *read(*X[np.argsort(X[:, 0] + X[:, 1])].T)
    rounded = np.round(X * 2) / 2
    yield "sorted by all, rounded", *read(*rounded[np.lexsort(rounded.T)].T)
    x, y, z = np.meshgrid(np.linspace(-2, 2, 5), np.linspace(-2, 2, 6), np.linspace(-2, 2, 10), indexing="ij")
    yield "grid", *read(x.ravel(), y.ravel(), z.ravel())
    yield "slow features", *read(*log_of(rng, rows, 0.95, 3).T)
    X, target = read(*log_of(rng, rows, 0.95, 3).T)
    shuffled = rng.permutation(rows)
    yield "a log that was shuffled", X[shuffled], (target + log_of(rng, rows, 0.9)[:, 0])[shuffled]
    X, target = read(*log_of(rng, rows, 0.95, 3).T)
    for rho in (0.5, 0.8):
        yield f"LOG, correlation {rho}", X, target + 0.5 * np.std(target) * log_of(rng, rows, rho)[:, 0]


def alarms(count: int) -> None:
    """How many tables pass for logs."""
    found: dict[str, list[float]] = {}
    for seed in range(count):
        for kind, X, y in tables(seed):
            serial = with_serial_noise(Dataset.from_arrays(X, y)).serial
            found.setdefault(kind, []).append(0.0 if serial is None else serial.correlation)
    for kind, each in found.items():
        print(f"| {kind} | {sum(value > 0 for value in each)} of {count} | {sorted(each)[-3:]} |")


def real(folder: str) -> None:
    """What tables are taken for."""
    for path in sorted(Path(folder).iterdir()):
        if path.name == "feynman.csv":
            continue
        data = np.loadtxt(path, skiprows=1, delimiter="," if path.suffix == ".csv" else "\t")
        start = time.perf_counter()
        rows = with_serial_noise(Dataset.from_arrays(data[:, :-1], data[:, -1]))
        told = "independent" if rows.serial is None else f"correlation {rows.serial.correlation}"
        print(f"| {path.name} | {len(data)} rows | {told} | {time.perf_counter() - start:.2f} s |")


def coverage(fits: int) -> None:
    """How often intervals hold the truth if rows follow one another, or come in clusters of 5."""
    form = form_of(parse("1.37 + 2.31*x + 0.83*z", ["x", "z"]))
    for slow in (0.95, 0.0):
        for rho in (0.0, 0.5, 0.8, 0.9, "clusters"):
            held = np.zeros((2, 4))
            for seed in range(fits):
                rng = np.random.default_rng(seed)
                clusters = rho == "clusters"
                rows = 200 if clusters else 700
                groups = np.repeat(np.arange(rows // 5), 5)
                X = log_of(rng, rows, slow, 2)
                noise = 0.8 * rng.normal(size=rows // 5)[groups] + 0.6 * rng.normal(size=rows)
                errors = noise if clusters else log_of(rng, rows, float(rho))[:, 0]
                X = X[groups * 5] if clusters and slow else X
                y = 1.37 + X @ (2.31, 0.83) + errors
                plain = Dataset.from_arrays(X, y, features=["x", "z"])
                serial = None if clusters else replace(Serial.of(rows, None), correlation=max(float(rho), 0.01))
                for at, data in enumerate((plain, replace(plain, groups=groups if clusters else None, serial=serial))):
                    found = Inference(form, Basis(data, loss_from("mse")))
                    ends = found.uncertainty.wald(0.95)
                    truth = np.array([1.37, 2.31, 0.83])
                    bands = Bands(form, found.uncertainty).interval([np.full(1, 1.0), np.full(1, -1.0)], 0.95, "mean")
                    value = bands[0][0] <= 1.37 + 2.31 - 0.83 <= bands[1][0]
                    held[at] += [*((ends[:, 0] <= truth) & (truth <= ends[:, 1])), value]
            before, after = (" ".join(f"{share:.3f}" for share in part / fits) for part in held)
            print(f"| {slow} | {rho} | {before} | {after} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["searches", "coverage", "alarms", "real"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--data", default="")
    given = parser.parse_args()
    if given.what == "searches":
        searches(given.seeds, given.seconds)
    elif given.what == "coverage":
        coverage(given.fits)
    elif given.what == "alarms":
        alarms(given.fits)
    else:
        real(given.data)
