"""Exact laws over linearly dependent columns: `python experiments/dependent_columns.py --laws 200`.

Some columns are sums or differences of others, with a constant now and then, so that an exact formula can be written in
many ways. Is the chosen one ever longer than the law that made the rows?
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

import shine
from shine.lang.parse import parse

UNARY = ("sqrt", "exp", "log", "square", "sin")


def columns_of(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Positive columns, one to three of which depend on the others."""
    base = rng.uniform(0.5, 3.0, (int(rng.integers(2, 5)), rows))
    found = list(base)
    for _ in range(int(rng.integers(1, 4))):
        count = min(len(base), int(rng.integers(2, 4)))
        which = rng.choice(len(base), count, replace=False)
        signs = rng.choice([1.0, 1.0, -1.0], count)
        own = signs @ base[which] + float(rng.choice([0.0, 0.0, 1.0]))
        found.append(own if own.min() > 0 else own - own.min() + 0.5)
    order = rng.permutation(len(found))
    return np.array(found)[order]


def law_of(rng: np.random.Generator, names: list[str]) -> str:
    """A random formula of two to four features."""

    def constant() -> str:
        return str(rng.integers(2, 10)) if rng.random() < 0.5 else f"{rng.uniform(0.1, 5):.2g}"

    def product() -> str:
        first, second = (str(name) for name in rng.choice(names, 2, replace=False))
        kind = rng.integers(6)
        return (
            f"{first}*{second}",
            f"{constant()}*{first}",
            f"{first}/{second}",
            f"{constant()}*{first}*{second}",
            f"{first}*({second} + {constant()})",
            f"{UNARY[int(rng.integers(len(UNARY)))]}({first})",
        )[kind]

    first, second = product(), product()
    return (f"{first} + {second}", f"{first} - {second}", f"({first})*({second})", f"({first})/({second})")[
        int(rng.integers(4))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--laws", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    exact = longer = 0
    for number in range(options.first, options.first + options.laws):
        rng = np.random.default_rng(number)
        X = columns_of(rng, 200).T
        names = [f"x{i}" for i in range(X.shape[1])]
        while True:
            law = law_of(rng, names)
            functions = {name: getattr(np, name) for name in UNARY}
            with np.errstate(all="ignore"):
                y = np.broadcast_to(eval(law, functions, dict(zip(names, X.T, strict=True))), len(X))
            if np.isfinite(y).all() and np.ptp(y) > 0 and np.abs(y).max() < 1e6:
                break
        began = time.process_time()
        model = shine.SymbolicRegressor(max_time=options.seconds, random_state=0, n_jobs=1).fit(X, y)
        best = model.front_.best
        least = replace(best, tree=parse(law, tuple(names))).complexity
        fits = best.r2 > 1 - 1e-12
        exact += fits
        longer += fits and best.complexity > least
        mark = "missed" if not fits else "longer" if best.complexity > least else "found"
        print(
            f"{mark:7} {number:4} {time.process_time() - began:5.1f} s  {best.complexity:3} {least:3}  "
            f"{law}   ->   {best.formula()}",
            flush=True,
        )
    print(f"{exact} of {options.laws} exact, {longer} of them longer than the law")


if __name__ == "__main__":
    main()
