"""Whether formulas hold between the values of columns that have few: `python experiments/few_values.py --problems 16`.

Each problem has two or three columns of 4 to 7 even values, some one of any values; the target is a sum or a product of
smooth random functions of them (Gaussian processes with a length of one or two steps) with 10 % noise, in 200 rows. R2
is measured without noise on fresh rows at the same values, and on fresh rows between them, of a search that looks at
what formulas do there (`shine.evaluate.domain.levels`) and of one that does not. Seconds of the processor.
"""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from unittest.mock import patch

import numpy as np

import shine
from shine.evaluate.domain.levels import Levels

ROWS, FRESH, NOISE = 200, 2000, 0.1


def smooth(rng, most):
    """A random smooth function of numbers from 1 to `most`."""
    grid, length = np.linspace(1, most, 200), rng.uniform(1, 2)
    covariance = np.exp(-((grid[:, None] - grid) ** 2) / (2 * length**2)) + 1e-8 * np.eye(200)
    values = np.linalg.cholesky(covariance) @ rng.normal(size=200)
    return lambda x: np.interp(x, grid, values)


def problem(number):
    """Training rows, and fresh rows at the values and between them; each with the target, that of fresh rows exact."""
    rng = np.random.default_rng(1000 + number)
    counts = [int(rng.choice([4, 5, 6, 7])) for _ in range(2 + number % 2)]
    parts = [smooth(rng, count) for count in counts]
    any_value, scale = number % 3 == 0, np.array([rng.choice([0.5, 1, 10, 25]) for _ in counts])

    def target(x):
        first, second, *rest = (part(x[:, at]) for at, part in enumerate(parts))
        return (first + second if number % 2 else (2 + first) * (2 + second)) + sum(rest)

    def rows(n, between):
        x = np.column_stack([rng.uniform(1, c, n) if between else rng.integers(1, c + 1, n) * 1.0 for c in counts])
        if any_value:
            x[:, -1] = rng.uniform(1, counts[-1], n)
        return x * scale, target(x)

    x, y = rows(ROWS, False)
    return (x, y + rng.normal(0, NOISE * y.std(), ROWS)), rows(FRESH, False), rows(FRESH, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=16)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    print("problem  without: at values, between, nodes, s    with: at values, between, nodes, s")
    every = []
    for number in range(arguments.first, arguments.first + arguments.problems):
        (x, y), at, between = problem(number)
        line = []
        for off in (True, False):
            with patch.object(Levels, "of", lambda rows: ()) if off else nullcontext():
                began = time.process_time()
                best = shine.evolve(x, y, seed=number, threads=1, seconds=arguments.seconds).best
            r2 = [1 - np.mean((best.predict(a) - b) ** 2) / b.var() for a, b in (at, between)]
            line += [*r2, best.complexity, time.process_time() - began]
        every.append(line)
        print(
            f"{number:7}  " + "  ".join("{:7.3f} {:9.3f} {:3} {:5.1f}".format(*line[i : i + 4]) for i in (0, 4)),
            flush=True,
        )
    table = np.array(every)
    print(
        "median   "
        + "  ".join("{:7.3f} {:9.3f} {:3.0f} {:5.1f}".format(*np.median(table, 0)[i : i + 4]) for i in (0, 4))
    )
    print("below 0 between the values:", *(int((table[:, i] < 0).sum()) for i in (1, 5)), "of", len(table))


if __name__ == "__main__":
    main()
