"""Is a long run ever worse than a short one, and what does a formula of extreme scale do to a search?

`python experiments/long_runs.py --seconds 900 --seeds 2 --data FOLDER` searches tables without a limit of stagnation,
on one thread, and prints each minute's test R2 of the most accurate formula, the front, the losses that were refuted,
and the memory; then the chosen formula. `--guess --seconds 10` gives each search a guess of a scale of 1e-160, and
prints the test R2 beside that of a search without it. Three quarters of the rows are learned from, drawn by the seed.
`--runs 6 --seconds 120` compares one run of 120 seconds of the processor with the best of six runs of 20 by six seeds,
on tables and on random formulas with 1 % noise (`--laws 18:0 20:1`, nodes and number): of each, the shortest
description of the rows in nats (the best run is the one with the shortest), its loss and test R2, and the least loss.
With `--workers 1`, one more run has so many processes beside its own, with lives of their own, for as many seconds of
the clock.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import psutil
from blackbox import DataProblem, read_table
from quality.problems import Split, generator, with_noise
from quality.random_trees import random_problem

import shine
from shine.base.parallel import opened
from shine.data.datasets.dataset import Dataset
from shine.faces.keywords import settings_from
from shine.lang.interpret import evaluate
from shine.search.evolution.observers import Observers, Progress
from shine.search.models.certainty import lengths_of
from shine.search.problem.reference_losses import description_length
from shine.search.run import search

TABLES = ("AirfoilSelfNoise", "Concrete", "Chemical-I")


def r2(values: np.ndarray, rows: Split) -> float:
    """Share of the variance of the held-out target that predictions explain."""
    errors = rows.y_test - values
    return float(1 - errors @ errors / np.sum((rows.y_test - rows.y_test.mean()) ** 2))


def values_of(tree: shine.Tree, rows: Split) -> np.ndarray:
    """Predictions for the held-out rows."""
    with np.errstate(all="ignore"):
        return evaluate(tree, list(np.ascontiguousarray(rows.X_test.T)), np.float64)


def by_the_minute(rows: Split) -> Callable[[Progress], None]:
    """A callback that prints a line a minute."""
    began, minute, process = time.monotonic(), 0, psutil.Process()

    def told(progress: Progress) -> None:
        nonlocal minute
        if time.monotonic() - began < 60 * (minute + 1) or not len(progress.front):
            return
        minute = int((time.monotonic() - began) // 60)
        best = len(progress.front) - 1
        line = float(progress.scores.slopes[best]), float(progress.scores.intercepts[best])
        found = r2(line[1] + line[0] * values_of(progress.front.tree(best), rows), rows)
        memory = process.memory_info().rss >> 20
        print(
            f"  minute {minute}: generation {progress.generation}, loss {progress.best_loss:.6g}, test R2 {found:.4f}, "
            f"front of {len(progress.front)}, {progress.refuted} refuted, {memory} MB",
            flush=True,
        )

    return told


def searched(problem: DataProblem, rows: Split, seed: int, seconds: float, **options: object) -> tuple[str, float]:
    """The chosen formula, and its test R2."""
    limits = {"seed": seed, "seconds": seconds, "stagnation": None, "threads": 1}
    result = shine.evolve(rows.X, rows.y, features=problem.features, **limits, **options)
    return result.best.expression, r2(values_of(result.best.tree, rows), rows)


def best_of(rows: Split, features: Sequence[str], seeds: Sequence[int], seconds: float, workers: int = 0) -> str:
    """Of searches by these seeds, of so many seconds of the processor each, what the shortest description is.

    With workers, of seconds of the clock.
    """
    dataset = Dataset.from_arrays(rows.X, rows.y, features=tuple(features))
    found, least, generations = list[tuple[float, float, int, float]](), np.inf, 0
    for seed in seeds:
        settings = settings_from(seed=seed, seconds=seconds, stagnation=None, threads=1)
        with opened(workers=workers or None) as pool:
            clock = time.monotonic if workers else time.process_time
            result = search(dataset, settings, Observers(clock=clock, pool=pool))
        length = float(lengths_of([result.best], description_length(dataset, "mse"))[0])
        found.append((length, result.best.loss, result.best.complexity, r2(values_of(result.best.tree, rows), rows)))
        least, generations = min(least, *(model.loss for model in result.front)), generations + result.generations
    length, loss, size, test = min(found)
    return (
        f"{length:.1f} nats, loss {loss:.5g} with {size} nodes, test R2 {test:.4f}; least loss {least:.5g}; "
        f"{generations} generations"
    )


def problems(options: argparse.Namespace) -> Iterator[tuple[str, Sequence[str], Split]]:
    """Tables and laws, with their rows."""
    for path in sorted(options.data.iterdir()):
        table = read_table(path) if path.name.endswith((".csv", ".tsv.gz")) else None
        if table is not None and table.name in options.tables:
            yield table.name, table.features, table.split(np.random.default_rng(options.first))
    for text in options.laws:
        law = random_problem(*map(int, text.split(":")))
        rng = generator(law.name, options.first)
        yield f"{law.name}, {law.text}", law.features, with_noise(law.split(rng), 0.01, rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of tables")
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--guess", action="store_true")
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--laws", nargs="*", default=[])
    parser.add_argument("--workers", type=int, default=0, help="processes beside one run's own")
    parser.add_argument("--first", type=int, default=0, help="first seed of --runs")
    options = parser.parse_args()
    for name, features, rows in problems(options) if options.runs else ():
        seeds = range(options.first, options.first + options.runs)
        print(f"{name}, seed {options.first}", flush=True)
        print(f"  one run: {best_of(rows, features, seeds[:1], options.seconds)}", flush=True)
        if options.workers:
            shared = best_of(rows, features, seeds[:1], options.seconds, options.workers)
            print(f"  one run, {options.workers} workers: {shared}", flush=True)
        each = best_of(rows, features, seeds, options.seconds / options.runs)
        print(f"  best of {options.runs}: {each}", flush=True)
    if options.runs:
        return
    for path in sorted(options.data.iterdir()):
        problem = read_table(path) if path.name.endswith((".csv", ".tsv.gz")) else None
        if problem is None or (problem.name not in options.tables and not options.guess):
            continue
        for seed in range(options.seeds):
            rows = problem.split(np.random.default_rng(seed))
            print(f"{problem.name}, seed {seed}", flush=True)
            if options.guess:
                first, second = problem.features[0], problem.features[min(1, len(problem.features) - 1)]
                guess = f"{second}/-5.1e160*({second}*{first} + {first}/(1.93 + 10.9*{second}))"
                for given in ([], [guess]):
                    formula, found = searched(problem, rows, seed, options.seconds, guesses=given)
                    print(f"  {'with' if given else 'without'} the guess: test R2 {found:.4f}, {formula}", flush=True)
                continue
            formula, found = searched(problem, rows, seed, options.seconds, report=by_the_minute(rows))
            print(f"  chosen: test R2 {found:.4f}, {formula}", flush=True)


if __name__ == "__main__":
    main()
