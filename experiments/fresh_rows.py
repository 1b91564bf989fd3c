"""Fresh rows of the same kind: how often does the recommended formula have no value there, or a pole?

`python experiments/fresh_rows.py --seeds 3` fits small random tables with noise and half of the rows of every table of
`blackbox.py`, with limits of generations only, so that two commits can be compared seed by seed. The
recommended formula predicts the other half, and 10 000 fresh rows of a random table. A table counts as one with *poles*
if a prediction is further from the target's mean than 100 times the range of the target that was learnt from.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
from blackbox import data_sets

import shine
from shine.search.problem import DEFAULT_PRIMITIVES

Array = NDArray[np.float64]

FRESH = 10_000
KINDS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "uniform": lambda rng, shape: rng.uniform(-1, 1, shape),
    "positive": lambda rng, shape: rng.uniform(1, 5, shape),
    "binary": lambda rng, shape: np.where(np.arange(shape[1]) % 2, rng.normal(size=shape), rng.random(shape) < 0.4),
    "whole": lambda rng, shape: rng.poisson(4, shape).astype(float),
    "levels": lambda rng, shape: np.where(np.arange(shape[0])[:, None] < shape[0] - FRESH,
                                          rng.integers(-2, 3, shape) / 2, rng.uniform(-1, 1, shape)),
}  # fmt: skip
"""Distributions of the columns of a table; of a designed experiment with five levels, fresh rows lie between them."""

TARGETS = {
    "linear": lambda X: X[:, 0] - 0.5 * X[:, 1] + X[:, 2],
    "product": lambda X: X[:, 0] * X[:, 1] + X[:, 2],
    "bent": lambda X: np.exp(-0.5 * X[:, 0] ** 2) + np.abs(X[:, 1]) ** 0.5,
    "faint": lambda X: np.tanh(X[:, 0] + X[:, 1]),
}
NOISE = {"linear": 0.3, "product": 0.3, "bent": 0.3, "faint": 1.5}
"""Standard deviation of the noise, relative to that of the noiseless target."""

PRIMITIVES = {
    "default": DEFAULT_PRIMITIVES,
    "rational": ("add", "sub", "mul", "div"),
    "powers": ("add", "sub", "mul", "div", "pow", "log", "tan", "asin"),
}
ROWS = (20, 60, 200)


class Case(NamedTuple):
    """Training rows and rows to predict."""

    name: str
    X: Array
    y: Array
    fresh_X: Array
    fresh_y: Array
    primitives: tuple[str, ...]
    seed: int


def random_cases(seeds: int) -> Iterator[Case]:
    """Tables of every kind, target, primitive set and number of rows, with noise."""
    for number, kind in enumerate(KINDS):
        for other, target in enumerate(TARGETS):
            for third, (names, primitives) in enumerate(PRIMITIVES.items()):
                for rows in ROWS[:: 1 if third == 0 else 2]:
                    for seed in range(seeds):
                        rng = np.random.default_rng([number, other, third, rows, seed])
                        X = KINDS[kind](rng, (rows + FRESH, 4))
                        truth = TARGETS[target](X)
                        y = truth + rng.normal(0, NOISE[target] * truth[:rows].std(), len(truth))
                        yield Case(f"{kind} {target} {names} {rows}", X[:rows], y[:rows], X[rows:], y[rows:],
                                   primitives, seed)  # fmt: skip


def real_cases(seeds: int, folder: Path | None) -> Iterator[Case]:
    """Half of the rows of each table, and at most 300."""
    for table in data_sets(folder):
        for seed in range(seeds):
            order = np.random.default_rng(seed).permutation(len(table.y))
            train, test = order[: min(len(order) // 2, 300)], order[len(order) // 2 :]
            yield Case(table.name, table.X[train], table.y[train], table.X[test], table.y[test],
                       PRIMITIVES["default"], seed)  # fmt: skip


def main() -> None:
    """Fit all tables and print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--generations", type=int, default=8)
    parser.add_argument("--only", default="", help="names of tables begin with this")
    parser.add_argument("--part", choices=("random", "real", "all"), default="all")
    parser.add_argument("--data", type=Path, help="folder of tables")
    given = parser.parse_args()
    cases = [*(random_cases(given.seeds) if given.part != "real" else ()),
             *(real_cases(given.seeds, given.data) if given.part != "random" else ())]  # fmt: skip
    undefined = poles = failed = count = 0
    scores, began = [], time.monotonic()
    for case in cases:
        if not case.name.startswith(given.only):
            continue
        count += 1
        try:
            result = shine.evolve(
                case.X, case.y, primitives=case.primitives, generations=given.generations, seconds=None,
                population=200, seeding_members=1000, seed=case.seed, threads=1, stop_loss=1e-20,
            )  # fmt: skip
        except Exception as error:
            failed += 1
            print(f"{case.name:34} {case.seed} fails: {type(error).__name__}")
            continue
        values = result.predict(case.fresh_X)
        finite = np.isfinite(values)
        reach = 100 * np.ptp(case.y)
        far = finite & (np.abs(values - case.y.mean()) > reach)
        errors = np.where(finite, values, case.y.mean()) - case.fresh_y
        r2 = 1 - float(errors @ errors) / float(np.sum((case.fresh_y - case.fresh_y.mean()) ** 2))
        undefined, poles = undefined + bool((~finite).any()), poles + bool(far.any())
        scores.append(r2)
        wrong = f"{(~finite).sum()} not finite, {far.sum()} far away" if (~finite).any() or far.any() else ""
        print(f"{case.name:34} {case.seed} R2 {r2:10.3g}  {wrong:32} {result.best.expression[:110]}", flush=True)
    numbers = np.array(scores)
    print(
        f"{count} tables: {failed} failed, {undefined} with predictions that are not finite, {poles} with poles, "
        f"{(numbers < 0).sum()} with R2 < 0, {(numbers < -1).sum()} with R2 < -1; "
        f"median R2 {np.median(numbers):.4f}, mean of max(R2, 0) {np.maximum(numbers, 0).mean():.4f}; "
        f"{time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
