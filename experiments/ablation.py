"""What each ingredient of the search buys: the same problems and seconds with one ingredient changed at a time.

`python experiments/ablation.py --budget 3 --seeds 2` takes every fifth of the Feynman equations (see feynman.py for the
file), 1000 rows each, and runs every variant with one thread, two at a time. It prints, for each variant, how many runs
end with R2 > 1 - 1e-12 on the rows to learn from, the mean of log10(1 - R2) (not below -12), and the size of the
chosen formula.
"""

from __future__ import annotations

import argparse
import math
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from feynman import find, read_equations
from quality.problems import FormulaProblem, generator, with_noise
from tqdm import tqdm

import shine

VARIANTS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "no seeding": {"seeding": 0.0},
    "no seeding, no fitted constants": {"seeding": 0.0, "constant_steps": 0},
    "no seeding, no linear scaling": {"seeding": 0.0, "linear_scaling": False},
    "no seeding, constants fitted on all rows": {"seeding": 0.0, "fitting_rows": 1000},
    "no seeding, two islands": {"seeding": 0.0, "islands": 2, "population": 500},
}
"""Options of `shine.evolve` by variant. Seeding alone recovers most of these problems, so the other ingredients are
compared without it."""

LEAST = 1e-12


def run(problem: FormulaProblem, seed: int, budget: float, noise: float, options: dict[str, Any]) -> tuple[float, int]:
    """1 - R2 of the most accurate formula on the training rows, and the size of the chosen one."""
    rng = generator(problem.name, seed)
    split = with_noise(problem.split(rng, None), noise, rng)
    result = shine.evolve(
        split.X,
        split.y,
        features=problem.features,
        seconds=budget,
        generations=10**9,
        threads=1,
        seed=seed,
        **options,
    )
    return 1 - result.front[-1].r2, result.best.complexity


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=3.0, help="seconds a run")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--noise", type=float, default=0.0, help="share of the target's standard deviation")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--data", type=Path, help="the file of the Feynman equations")
    options = parser.parse_args()
    problems = [problem for problem in read_equations(find(options.data))[2::5] if problem.expressible]
    tasks = [(problem, seed) for problem in problems for seed in range(options.seeds)]
    print(f"{len(problems)} problems, {options.seeds} seeds, {options.budget:g} s a run, noise {options.noise:g}\n")
    print("| variant | exact | mean log10(1 - R2) | median size |\n|---|---|---|---|")
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for name, changes in VARIANTS.items():
            futures = [
                pool.submit(run, problem, seed, options.budget, options.noise, changes) for problem, seed in tasks
            ]
            found = [future.result() for future in tqdm(futures, desc=name, leave=False)]
            left = np.array([max(value, LEAST) for value, _ in found])
            exact = int((left <= LEAST).sum())
            mean = float(np.mean([math.log10(value) for value in left]))
            size = np.median([size for _, size in found])
            print(f"| {name} | {exact} of {len(found)} | {mean:.2f} | {size:.0f} |", flush=True)


if __name__ == "__main__":
    main()
