"""What the compiled objective saves a genetic algorithm of DEAP with real numbers, and whether the run stays the same.

    python experiments/rastrigin_ga.py [--generations 10000] [--population 300] [--variables 40] [--seed 1]
                                       [--repeats 60]

Rastrigin's function of 40 variables; one-point crossover (0.5), Gaussian mutation (0.2, each gene with probability
0.05), tournaments of 3, `algorithms.eaSimple`. The same seed for three runs, which differ in two lines only, those that
register "evaluate" and "map":

* python: `deap.benchmarks.rastrigin`, one individual after the other;
* interpreted: Shine's interpreter, `CompiledObjective(..., tier="reference")`;
* compiled: `CompiledObjective(...)`.

Two runs have the same trajectory if all fitnesses of all generations and all genes of the last population are equal, to
the bit. Python's own cosine rounds differently, so that its run may part from the others.

Times are of the processor: the machine may be shared. Evaluation is what `toolbox.map(toolbox.evaluate, ...)` takes,
lists of floats in and tuples out, summed up in each run. As runs are minutes apart, the ratio of evaluation is also
measured on one population, alternately, `--repeats` times (medians). There the interpreter evaluates one individual
after the other, too, as DEAP calls it without `map`.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import struct
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from deap import algorithms, base, benchmarks, creator, tools

import shine.deap

creator.create("Least", base.Fitness, weights=(-1.0,))
creator.create("Genes", list, fitness=creator.Least)


@dataclass(frozen=True)
class Run:
    """What a run took, in seconds, and what came out."""

    total: float
    evaluation: float
    trajectory: str
    evaluations: int
    best: float


class Clock:
    """A `map` that adds up the time of another one."""

    def __init__(self, inner: Callable[..., Iterable[Any]]) -> None:
        self.inner, self.seconds = inner, 0.0

    def map(self, function: Callable[..., Any], individuals: Iterable[Any]) -> list[Any]:
        start = time.process_time()
        values = list(self.inner(function, individuals))
        self.seconds += time.process_time() - start
        return values


def toolbox_of(variables: int, evaluate: Callable[..., Any], mapped: Callable[..., Any]) -> base.Toolbox:
    toolbox = base.Toolbox()
    toolbox.register("gene", random.uniform, -5.12, 5.12)
    toolbox.register("individual", tools.initRepeat, creator.Genes, toolbox.gene, variables)
    toolbox.register("population", tools.initRepeat, list, toolbox.individual)
    toolbox.register("mate", tools.cxOnePoint)
    toolbox.register("mutate", tools.mutGaussian, mu=0.0, sigma=0.3, indpb=0.05)
    toolbox.register("select", tools.selTournament, tournsize=3)
    toolbox.register("evaluate", evaluate)  # the first line
    toolbox.register("map", mapped)  # the second
    return toolbox


def run(options: argparse.Namespace, evaluate: Callable[..., Any], mapped: Callable[..., Any]) -> Run:
    clock, digest = Clock(mapped), hashlib.sha256()
    toolbox = toolbox_of(options.variables, evaluate, clock.map)
    trace = tools.Statistics(lambda each: each.fitness.values[0])
    trace.register("bits", lambda values: digest.update(struct.pack(f"{len(values)}d", *values)))
    random.seed(options.seed)
    start = time.process_time()
    population, book = algorithms.eaSimple(
        toolbox.population(n=options.population), toolbox, 0.5, 0.2, options.generations, stats=trace, verbose=False
    )
    total = time.process_time() - start
    for individual in population:
        digest.update(struct.pack(f"{len(individual)}d", *individual))
    best = min(each.fitness.values[0] for each in population)
    return Run(total, clock.seconds, digest.hexdigest()[:16], sum(book.select("nevals")), best)


def on_one_population(options: argparse.Namespace, objective: Any, interpreted: Any) -> dict[str, float]:
    """Seconds to evaluate a population, by the way that it is evaluated: medians of alternate repeats."""
    random.seed(options.seed)
    toolbox = toolbox_of(options.variables, objective, objective.map)
    population = toolbox.population(n=options.population)
    ways: dict[str, tuple[Callable[[], Any], int]] = {
        "compiled": (lambda: toolbox.map(toolbox.evaluate, population), 20),
        "python": (lambda: list(map(benchmarks.rastrigin, population)), 1),
        "interpreted": (lambda: interpreted.map(interpreted, population), 1),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.repeats):
        for name, (function, count) in ways.items():
            start = time.perf_counter()
            for _ in range(count):
                function()
            times[name].append((time.perf_counter() - start) / count)
    start = time.perf_counter()
    alone = [interpreted(each) for each in population[:20]]
    times["interpreted, one by one"] = [(time.perf_counter() - start) / len(alone) * len(population)]
    return {name: median(each) for name, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, value in (("generations", 10_000), ("population", 300), ("variables", 40), ("seed", 1), ("repeats", 60)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    objective = shine.deap.CompiledObjective(benchmarks.rastrigin)
    interpreted = shine.deap.CompiledObjective(benchmarks.rastrigin, tier="reference")
    print(f"{options.population} individuals of {options.variables} variables, one population evaluated:")
    times = on_one_population(options, objective, interpreted)
    for name, seconds in times.items():
        print(f"  {name:24} {1e6 * seconds:10.1f} us  {seconds / times['compiled']:8.1f} times compiled", flush=True)
    print(f"runs of {options.generations} generations:")
    runs = {}
    for name, evaluate, mapped in (
        ("compiled", objective, objective.map),
        ("interpreted", interpreted, interpreted.map),
        ("python", benchmarks.rastrigin, map),
    ):
        runs[name] = each = run(options, evaluate, mapped)
        print(
            f"  {name:12} {each.total:8.1f} s, evaluation {each.evaluation:8.2f} s, {each.evaluations} evaluations, "
            f"best {each.best!r}, trajectory {each.trajectory}",
            flush=True,
        )
    compiled = runs["compiled"]
    for name in ("interpreted", "python"):
        other = runs[name]
        same = "the same trajectory" if other.trajectory == compiled.trajectory else "another trajectory"
        print(
            f"{name} / compiled: evaluation {other.evaluation / compiled.evaluation:.1f}, whole run "
            f"{other.total / compiled.total:.2f}, {same}"
        )


if __name__ == "__main__":
    main()
