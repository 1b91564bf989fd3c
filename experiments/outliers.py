"""What typing errors in a table do to a search: `python experiments/outliers.py --formulas 8 --first 300`.

Random formulas of 5 to 9 nodes with 3 % noise, 60 and 250 rows, and one error each of those that people make: one
decimal point two places off; -9999 for a missing value in 2 % of the rows; 4 % of the rows in another unit (times
1000); and as controls, no error, noise of Student's t with two degrees of freedom, and relative noise of 40 %. Each
table is searched without its gross outliers, and with them (`outliers="keep"`), for some seconds of the processor.
Printed are the rows left out, and R2 without noise on fresh rows; with `--outside`, controls without such rows are run,
too.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from quality.problems import generator
from quality.random_trees import random_problem

import shine

KINDS = ("decimal", "mark", "unit", "none", "heavy", "relative")


def spoiled(kind, y, rng):
    """The target with noise and errors of a kind."""
    rows, spread = len(y), y.std()
    if kind == "relative":
        return y * np.exp(0.4 * rng.standard_normal(rows))
    y = y + spread * (0.1 * rng.standard_t(2, rows) if kind == "heavy" else 0.03 * rng.standard_normal(rows))
    share = {"decimal": 0.0, "mark": 0.02, "unit": 0.04}.get(kind)
    if share is not None:
        some = rng.choice(rows, max(1, round(share * rows)), replace=False)
        y[some] = -9999.0 if kind == "mark" else y[some] * (100 if kind == "decimal" else 1000)
    return y


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--formulas", type=int, default=8)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--outside", action="store_true", help="also run controls in which nothing is left out")
    arguments = parser.parse_args()
    time.monotonic = time.process_time
    warnings.simplefilter("ignore")
    found = {kind: [] for kind in KINDS}
    for number in range(arguments.first, arguments.first + arguments.formulas):
        problem = random_problem(5 + 2 * (number % 3), number)
        for at, kind in enumerate(KINDS):
            rng = generator(problem.name, at)
            split = problem.split(rng, 60 if (number + at) % 2 else 250)
            y = spoiled(kind, split.y, rng)
            scores = []
            for outliers in ("auto", "keep"):
                options = {"features": problem.features, "seed": number, "threads": 1, "outliers": outliers}
                result = shine.evolve(split.X, y, seconds=arguments.seconds, **options)
                told = next((part for part in result.front.reason.split("; ") if "gross" in part), "")
                if outliers == "auto" and not told and KINDS.index(kind) > 2 and not arguments.outside:
                    break
                off = split.y_test - result.best.predict(split.X_test)
                scores.append(1 - np.mean(off**2) / split.y_test.var())
                print(f"{problem.name:12} {kind:8} {outliers} {scores[-1]:9.4f} {result.best} {told}", flush=True)
            found[kind] += [scores] * (len(scores) == 2)
    for kind, scores in found.items():
        without, given = np.array(scores).reshape(-1, 2).T
        counts = [
            f"{int((each > 0.99).sum())} above 0.99, {int((each < 0.5).sum())} below 0.5" for each in (without, given)
        ]
        print(f"{kind:8} {len(scores):3} tables: without {counts[0]}; with them {counts[1]}")


if __name__ == "__main__":
    main()
