"""Whether waves over even steps have a frequency that rows allow: `python experiments/even_steps.py --tables 30`.

Each table has 15 to 120 rows at even steps of 0.1 to 10, and a wave of 5 to 60 rows a turn with 3 % noise: alone,
squared, times another column, or beside a slope and fading. Counted are chosen formulas that turn more than half a turn
from row to row, and R2 without noise on fresh rows between the others. Seconds of the processor.
"""

from __future__ import annotations

import argparse
import ast
import math
import time
import warnings

import numpy as np

import shine

PRIMITIVES = ["add", "sub", "mul", "div", "sin", "cos", "exp", "square"]


def table(number):
    """Rows and their target, fresh rows and theirs without noise, and the step."""
    rng = np.random.default_rng([77, number])
    count, step = int(rng.choice([15, 30, 60, 120])), float(rng.choice([1, 1, 0.1, 10, 5]))
    times = step * (float(rng.choice([0, 0, 1, 0.5])) + np.arange(count))
    speed, kind, size, phase = rng.uniform(0.1, 1.2) / step, number % 4, rng.uniform(1, 50), rng.uniform(0, 6)
    beside = rng.uniform(0.5, 2, (2, count))
    between = np.sort(rng.uniform(times[0], times[-1], count))

    def target(t, other):
        if kind == 3:
            return size * (np.exp(-t / times[-1]) * np.cos(speed * t) + 0.3 * t / times[-1])
        return size * [np.sin(speed * t + phase), np.cos(speed * t / 2) ** 2, other * np.sin(speed * t)][kind]

    def columns(t, other):
        return np.column_stack([t, other]) if kind == 2 else t[:, None]

    y = target(times, beside[0])
    y = y + 0.03 * y.std() * rng.standard_normal(count)
    return columns(times, beside[0]), y, columns(between, beside[1]), target(between, beside[1]), step


def fastest(model):
    """The largest factor of the first column in a wave."""
    calls = [node for node in ast.walk(ast.parse(model.expression)) if isinstance(node, ast.Call)]
    waves = [node.args[0] for node in calls if node.func.id in ("sin", "cos")]
    factors = [
        abs(float(ast.literal_eval(part.left)))
        for wave in waves
        for part in ast.walk(wave)
        if isinstance(part, ast.BinOp) and isinstance(part.left, ast.Constant) and ast.unparse(part.right) == "x0"
    ]
    return max(factors, default=0.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=30)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    time.monotonic = time.process_time
    warnings.simplefilter("ignore")
    found = []
    for number in range(arguments.first, arguments.first + arguments.tables):
        x, y, fresh, wanted, step = table(number)
        model = shine.evolve(x, y, primitives=PRIMITIVES, seconds=arguments.seconds, seed=number, threads=1).best
        r2 = 1 - np.mean((model.predict(fresh) - wanted) ** 2) / wanted.var()
        found.append((fastest(model) * step > math.pi, r2))
        print(
            f"{number:4}  {len(y):3} rows  {'too fast' if found[-1][0] else '':8}  R2 {r2:7.4f}  {model.expression}",
            flush=True,
        )
    fast, r2 = np.array(found).T
    print(f"of {len(found)}: {int(fast.sum())} too fast, {int((r2 < 0.9).sum())} with R2 below 0.9 between the rows")


if __name__ == "__main__":
    main()
