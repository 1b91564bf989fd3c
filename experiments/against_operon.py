"""Shine and Operon side by side: the speed of a whole run, and the time to get as far.

`python experiments/against_operon.py` does both with two threads each, in one process, one after the other:

* 1000 individuals, 50 generations, 1000 rows, 5 steps of Levenberg and Marquardt for each offspring, no seeding:
  seconds of each, their ratio, and what either leaves of the variance, for a few problems. Operon's formulas have at
  most 30 nodes, and each of its leaves carries a weight that its length does not count: so Shine's have at most 45,
  which is as expressive, and 30;
* how long Shine takes to reach the loss on the training rows that Operon ends with after `--budget` seconds: for every
  problem both times, their ratio, and the median.

The problems are every fifth of the Feynman equations (see feynman.py for the file).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from feynman import find, read_equations
from quality.engines import Task, run_pyoperon
from quality.formulas import parse_formula
from quality.problems import Problem, Split, generator

import shine

NO_LIMIT = 10**9

LENGTH, SIZES = 30, (45, 30)
"""Most nodes of Operon's formulas, and of Shine's."""


def nmse(expression: str, problem: Problem, split: Split) -> float:
    """Mean squared error of a formula on the training rows, over the variance of the target."""
    prediction = parse_formula(expression, problem.features).predict(split.X)
    return float(np.mean((prediction - split.y) ** 2) / np.var(split.y))


def whole_runs(problems: list[Problem], threads: int) -> None:
    """Seconds of 50 generations of 1000 individuals with 5 steps for the constants."""
    from pyoperon.sklearn import SymbolicRegressor

    print(f"\n1000 individuals, 50 generations, 5 steps, {threads} threads; seconds, and 1 - R2\n")
    print(f"{'problem':10} {f'Operon {LENGTH}':>17}" + "".join(f"{f'Shine {size}':>25}" for size in SIZES))
    ratios: dict[int, list[float]] = {size: [] for size in SIZES}
    for problem in problems:
        split = problem.split(generator(problem.name, 0), None)
        model = SymbolicRegressor(
            allowed_symbols="add,sub,mul,div,sqrt,square,exp,log,sin,cos,constant,variable",
            objectives=["r2", "length"],
            optimizer_iterations=5,
            population_size=1000,
            max_length=LENGTH,
            generations=50,
            max_evaluations=NO_LIMIT,
            n_threads=threads,
            random_state=0,
        )
        begin = time.perf_counter()
        model.fit(split.X, split.y)
        theirs = time.perf_counter() - begin
        best = min(entry["mean_squared_error"] for entry in model.pareto_front_) / np.var(split.y)
        line = f"{problem.name:10} {theirs:7.1f}s {best:8.1e}"
        for size in SIZES:
            begin = time.perf_counter()
            result = shine.evolve(
                split.X,
                split.y,
                features=problem.features,
                population=1000,
                max_size=size,
                generations=50,
                seconds=None,
                stop_loss=0.0,
                seeding=0.0,
                constant_steps=5,
                fitting_rows=len(split.y),
                noise="absolute",  # as Operon's
                threads=threads,
            )
            ours = time.perf_counter() - begin
            ratios[size].append(theirs / ours)
            rest = 1 - result.front[-1].r2
            # An exact formula ends a run before its last generation.
            mark = "" if result.stopped_by == "generations" else "*"
            line += f" {ours:7.1f}s{mark:1} {rest:8.1e} {theirs / ours:5.1f}x"
        print(line, flush=True)
    print("median ratio " + ", ".join(f"{np.median(own):.1f} with {size} nodes" for size, own in ratios.items()))
    print("* exact before the last generation\n")


def times_to_loss(problems: list[Problem], budget: float, threads: int) -> None:
    """Seconds until Shine reaches the loss Operon ends with."""
    print(f"\nTime to the loss that Operon has after {budget:g} s, {threads} threads\n")
    print(f"{'problem':10} {'Shine':>8} {'Operon':>8} {'ratio':>7}   nmse of each")
    ratios = []
    for problem in problems:
        split = problem.split(generator(problem.name, 0), None)
        found = run_pyoperon(Task(split.X, split.y, problem.features, budget, threads, 0))
        goal = nmse(found.accurate, problem, split)
        begin = time.perf_counter()
        result = shine.evolve(
            split.X,
            split.y,
            features=problem.features,
            generations=NO_LIMIT,
            seconds=2 * budget,
            stop_loss=goal,
            threads=threads,
        )
        ours = time.perf_counter() - begin
        reached = 1 - result.front[-1].r2
        # Operon computes in float32: its losses are good to 24 bits.
        ratios.append(ours / found.seconds if reached <= max(goal, 1e-13) else np.inf)
        print(
            f"{problem.name:10} {ours:7.2f}s {found.seconds:7.2f}s {ratios[-1]:7.3f}   {reached:.1e} {goal:.1e}",
            flush=True,
        )
    print(f"median of Shine's time over Operon's: {np.median(ratios):.3f}")


def main() -> None:
    """Print both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of Operon a problem")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=4, help="problems of the first comparison")
    parser.add_argument("--problems", type=int, default=20, help="problems of the second")
    parser.add_argument("--data", type=Path, help="the file of the Feynman equations")
    options = parser.parse_args()
    equations = read_equations(find(options.data))[2::5]
    shine.evolve([[1.0], [2.0]], [1.0, 3.0], generations=0)  # compiled once per computer: not counted
    if options.runs:
        whole_runs(equations[: options.runs], options.threads)
    if options.problems:
        times_to_loss(equations[: options.problems], options.budget, options.threads)


if __name__ == "__main__":
    main()
