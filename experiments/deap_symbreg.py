"""What the compiled evaluator saves a DEAP script, and whether it computes the same fitness.

    python experiments/deap_symbreg.py [--rows 20 1000 10000 100000] [--generations 40] [--budget 60] [--exact]
                                       [--example path/to/deap/examples/gp/symbreg.py]

The script is DEAP's introductory problem of symbolic regression, x**4 + x**3 + x**2 + x between -1 and 1, with a
protected division: 300 individuals, tournaments of 3, one-point crossover (0.5), uniform mutation (0.1), trees of at
most 17 levels. With ``--example``, DEAP's own file is used instead, with its primitives, its operators and its own
function of the fitness over more points; its `main` is run as well, with and without the two lines.

Times are of the processor, on one thread: the machine may be shared. For each number of rows:

* evaluation: generations of one run, evaluated once by DEAP and three times by Shine (the best counts: DEAP's first
  time is no slower than its second). Conversion of the trees is part of it. Where DEAP would need longer than the
  budget, both evaluate the same evenly spread part of the generations; nothing is extrapolated.
* whole run: `algorithms.eaSimple` with the same seed on both sides, selection, variation and statistics included, and
  Shine's translation and compilation too (from a warm cache). Where DEAP would need longer than the budget, both runs
  have the same smaller number of generations, given in the table. Trees are smaller in early generations: a longer run
  would gain more.
* same fitness: the largest relative difference among all individuals evaluated by both; more than 1e-12 is a failure.
  An error is the difference of two rounded numbers of size 1. A root mean square error r is therefore known to about
  1e-15, and r*r to 2e-15*r: where r < 2e-3, this exceeds 1e-12 of it and is the measure instead. (DEAP's file
  subtracts the powers of x from a prediction one by one, which rounds differently from a target given as numbers.)
* alike: for how many generations both runs have the same statistics. Equal formulas that are written differently have
  the same fitness up to the last bits, and these decide a tournament between them. The bits are rounding errors on
  either side, so the runs may part at some generation. Both numbers of evaluations are given. With ``--exact``, sums
  are rounded once on both sides, and only sines can differ.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import math
import operator
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
from deap import algorithms, base, creator, gp, tools

import shine.deap

TOLERANCE = 1e-12
SMALLEST_ERROR = 2e-3
SEED = 318
POPULATION = 300


def protected_division(left, right):
    try:
        return left / right
    except ZeroDivisionError:
        return 1


def random_sign():
    return random.randint(-1, 1)


@dataclass(frozen=True)
class Script:
    """A DEAP script, and the data its evaluation function uses."""

    toolbox: base.Toolbox
    pset: gp.PrimitiveSet
    points: list[float]
    targets: list[float]
    exact_sums: bool = False

    def evaluator(self) -> shine.deap.CompiledEvaluator:
        """Its compiled evaluator."""
        return shine.deap.CompiledEvaluator(self.pset, self.points, self.targets, exact_sums=self.exact_sums)


def inputs(rows: int) -> tuple[list[float], list[float]]:
    """Evenly spaced points and their targets."""
    points = np.linspace(-1, 1, rows).tolist()
    return points, [x**4 + x**3 + x**2 + x for x in points]


def own_script(rows: int) -> Script:
    """DEAP's introductory problem, written for this experiment."""
    points, targets = inputs(rows)
    pset = gp.PrimitiveSet("main", 1)
    for function, arity in (
        (operator.add, 2), (operator.sub, 2), (operator.mul, 2), (operator.neg, 1),
        (protected_division, 2), (math.sin, 1), (math.cos, 1),
    ):  # fmt: skip
        pset.addPrimitive(function, arity)
    pset.addEphemeralConstant("sign", random_sign)
    pset.renameArguments(ARG0="x")
    if not hasattr(creator, "SymbregTree"):
        creator.create("SymbregFitness", base.Fitness, weights=(-1.0,))
        creator.create("SymbregTree", gp.PrimitiveTree, fitness=creator.SymbregFitness)

    def mean_square(individual):
        formula = gp.compile(individual, pset)
        errors = ((formula(x) - y) ** 2 for x, y in zip(points, targets, strict=True))
        return (math.fsum(errors) / len(points),)

    toolbox = base.Toolbox()
    toolbox.register("draw", gp.genHalfAndHalf, pset=pset, min_=1, max_=2)
    toolbox.register("individual", tools.initIterate, creator.SymbregTree, toolbox.draw)
    toolbox.register("population", tools.initRepeat, list, toolbox.individual)
    toolbox.register("evaluate", mean_square)
    toolbox.register("select", tools.selTournament, tournsize=3)
    toolbox.register("mate", gp.cxOnePoint)
    toolbox.register("subtree", gp.genFull, min_=0, max_=2)
    toolbox.register("mutate", gp.mutUniform, expr=toolbox.subtree, pset=pset)
    for variation in ("mate", "mutate"):
        toolbox.decorate(variation, gp.staticLimit(key=operator.attrgetter("height"), max_value=17))
    return Script(toolbox, pset, points, targets)


def example_script(module: ModuleType, rows: int) -> Script:
    """DEAP's own example, over more points."""
    points, targets = inputs(rows)
    module.toolbox.register("evaluate", module.evalSymbReg, points=points)
    return Script(module.toolbox, module.pset, points, targets)


def loaded(path: str) -> ModuleType:
    """The example's module; its `main` is not run."""
    specification = importlib.util.spec_from_file_location("deap_example", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    # Shine reads the source of its functions, which it finds through the module.
    sys.modules["deap_example"] = module
    specification.loader.exec_module(module)
    return module


def whole_run(script: Script, generations: int, map_: Callable[..., Any]) -> tuple[list[Any], Any]:
    """Final population and logbook of a run that evaluates with `map_`."""
    toolbox = script.toolbox
    toolbox.register("map", map_)
    random.seed(SEED)
    statistics = tools.MultiStatistics(
        fitness=tools.Statistics(operator.attrgetter("fitness.values")), size=tools.Statistics(len)
    )
    for name, function in (("avg", np.mean), ("std", np.std), ("min", np.min), ("max", np.max)):
        statistics.register(name, function)
    population = toolbox.population(n=POPULATION)
    best = tools.HallOfFame(1)
    return algorithms.eaSimple(
        population, toolbox, 0.5, 0.1, generations, stats=statistics, halloffame=best, verbose=False
    )


def evaluated(script: Script, generations: int) -> list[list[Any]]:
    """Individuals of each generation of a run that were evaluated."""
    evaluator, batches = script.evaluator(), []

    def recording(function, individuals):
        batches.append([gp.PrimitiveTree(individual) for individual in individuals])
        return evaluator.map(function, individuals)

    whole_run(script, generations, recording)
    return batches


def seconds(run: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Least processor time of some runs, and what the last returned."""
    times, result = [], None
    for _ in range(repeats):
        begin = time.process_time()
        result = run()
        times.append(time.process_time() - begin)
    return min(times), result


def difference(a: float, b: float) -> float:
    """Relative difference of fitness, as far as rounding leaves one; values that are not finite count as inf."""
    if not math.isfinite(a) or not math.isfinite(b):
        return 0.0 if math.isfinite(a) == math.isfinite(b) else math.inf
    size = max(abs(a), abs(b))
    return 0.0 if a == b else abs(a - b) / max(size, SMALLEST_ERROR * math.sqrt(size))


@dataclass
class Evaluation:
    """Times of both sides for the same generations, and how much their values differ."""

    slow: float = 0.0
    fast: float = 0.0
    generations: int = 0
    individuals: int = 0
    worst: float = 0.0

    def add(self, script: Script, evaluator: shine.deap.CompiledEvaluator, batch: list[Any]) -> None:
        """Evaluate a generation on both sides."""
        slow, theirs = seconds(lambda: list(map(script.toolbox.evaluate, batch)))
        fast, ours = seconds(lambda: evaluator(batch), 3)
        self.slow, self.fast = self.slow + slow, self.fast + fast
        self.generations, self.individuals = self.generations + 1, self.individuals + len(batch)
        self.worst = max([self.worst, *(difference(a, b) for (a,), (b,) in zip(ours, theirs, strict=True))])


def spread(count: int) -> list[int]:
    """0 .. count - 1, ordered so that each prefix is spread evenly."""
    order, step = [0], 1 << max(count - 1, 1).bit_length()
    while step > 1:
        order += range(step // 2, count, step)
        step //= 2
    return order


def compare_evaluation(script: Script, generations: int, budget: float) -> Evaluation:
    """Both sides on generations of one run, until the budget is spent."""
    batches, evaluator, result = evaluated(script, generations), script.evaluator(), Evaluation()
    for index in spread(len(batches)):
        result.add(script, evaluator, batches[index])
        if result.slow > budget:
            break
    return result


def alike(a: Any, b: Any) -> int:
    """Number of generations, from the first on, in which two runs have the same statistics up to rounding."""
    for generation in range(len(a)):
        for chapter in ("fitness", "size"):
            left, right = (log.chapters[chapter][generation] for log in (a, b))
            if any(difference(float(left[key]), float(right[key])) > TOLERANCE for key in left):
                return generation
    return len(a)


def compare_example(path: str) -> bool:
    """Run the example's own `main` without and with the two lines; return whether it ends the same."""
    module = loaded(path)
    points = module.toolbox.evaluate.keywords["points"]
    with contextlib.redirect_stdout(io.StringIO()):
        slow, (theirs, *_) = seconds(module.main)
        targets = [x**4 + x**3 + x**2 + x for x in points]
        module.toolbox.register("map", shine.deap.CompiledEvaluator(module.pset, points, targets).map)
        fast, (ours, *_) = seconds(module.main)
        again = [module.evalSymbReg(individual, points)[0] for individual in ours]
    worst = max(difference(a.fitness.values[0], b) for a, b in zip(ours, again, strict=True))
    best = [min(each.fitness.values[0] for each in population) for population in (theirs, ours)]
    print(f"The example's own main, {len(points)} points: {slow:.2f} s, with the two lines {fast:.2f} s. Best fitness")
    print(f"{best[0]!r} and {best[1]!r}; the fitness of its final population is DEAP's within {worst:.1e}.\n")
    return worst <= TOLERANCE


def row_of(script: Script, rows: int, generations: int, budget: float) -> tuple[str, bool]:
    """A line of the table, and whether the fitness was the same."""
    evaluation = compare_evaluation(script, generations, budget)
    a_generation = evaluation.slow / evaluation.generations
    fewer = max(1, min(generations, int(budget / a_generation)))
    slow, (_, theirs) = seconds(lambda: whole_run(script, fewer, map))
    fast, (_, ours) = seconds(lambda: whole_run(script, fewer, script.evaluator().map), 2)
    evaluations = [sum(record["nevals"] for record in log) for log in (theirs, ours)]
    cells = [
        f"{rows}",
        f"{evaluation.individuals}",
        f"{1e6 * evaluation.slow / evaluation.individuals:.0f} us",
        f"{1e6 * evaluation.fast / evaluation.individuals:.1f} us",
        f"**{evaluation.slow / evaluation.fast:.0f}**",
        f"{fewer}",
        f"{evaluations[0]} / {evaluations[1]}",
        f"{slow:.2f} s",
        f"{fast:.2f} s",
        f"**{slow / fast:.1f}**",
        f"{evaluation.worst:.1e}",
        f"{alike(theirs, ours)} of {len(theirs)}",
    ]
    return f"| {' | '.join(cells)} |", evaluation.worst <= TOLERANCE


HEADING = """\
| rows | individuals | DEAP, each | Shine, each | evaluation, times faster | generations | evaluations | DEAP | Shine \
| whole run, times faster | largest difference | alike |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a fitness differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[20, 1_000, 10_000, 100_000])
    parser.add_argument("--generations", type=int, default=40)
    parser.add_argument("--budget", type=float, default=60, help="seconds DEAP may evaluate, for each entry")
    parser.add_argument("--example", help="DEAP's own examples/gp/symbreg.py, to be used instead")
    parser.add_argument("--exact", action="store_true", help="let Shine round sums once, as math.fsum does")
    options = parser.parse_args(arguments)
    passed = True
    if options.example:
        passed = compare_example(options.example)
    print(HEADING)
    for rows in options.rows:
        script = example_script(loaded(options.example), rows) if options.example else own_script(rows)
        script = replace(script, exact_sums=options.exact)
        line, same = row_of(script, rows, options.generations, options.budget)
        passed &= same
        print(line, flush=True)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
