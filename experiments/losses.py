"""What a loss of one's own costs: `python experiments/losses.py --repeats 15`.

Scores a population of random individuals under several losses, written as users write them, and under `mse`, in turn,
and prints the ratios of the times of the processor: of the median repetition, and without linear scaling and with it.
With linear scaling, a loss of one's own is measured as a search does it: lines are fitted to some 250 rows, then
measured on all of them (`shine.evaluate.tiers.fitted_lines`). The target follows a law of the features, so that lines
are worth fitting.

Only individuals count that have a finite loss under all losses: others end early.
"""

from __future__ import annotations

import argparse
import ast
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median

import numpy as np

from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import LOSSES, Loss, RowLoss
from shine.evaluate.protocols import PopulationEvaluator
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.fitted_lines import FittedLines
from shine.lang.forms.functions import with_definitions
from shine.lang.forms.library import STANDARD
from shine.lang.population import Population

ARITHMETIC = ("add", "sub", "mul", "div")
SETS = {"+ - * /": ARITHMETIC, "+ - * / exp log sin cos": (*ARITHMETIC, "exp", "log", "sin", "cos")}

FITTING_ROWS = 250
"""Rows that lines are fitted to, the default of the search."""

TEXTS = (
    "def quantile(p, y):\n    return 0.9*(y - p) if y > p else 0.1*(p - y)",
    "def huber(p, y):\n    r = abs(p - y)\n    return r*r if r < 1.5 else 3*r - 2.25",
    "def known_errors(p, y, sigma):\n    r = (p - y)/sigma\n    return r*r",
    "def relative(p, y):\n    return abs(p - y)/(abs(y) + 1e-9)",
    "def hinge(p, y):\n    return max(0, 1 - y*p)",
    "def student_t(p, y):\n    return 5*log(1 + (p - y)*(p - y)/4)",
    "def log_cosh(p, y):\n    a = abs(p - y)\n    return a + log(1 + exp(-2*a)) - 0.6931471805599453",
    "def poisson(p, y):\n    return exp(p) - y*p",
)
"""Losses of rows. The last three have a logarithm or an exponential."""


def own_loss(text: str) -> Loss:
    """The mean of a function of rows; errors of at least 0, except those of counts."""
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    function = with_definitions(STANDARD, text)[node.name]
    columns = tuple(argument.arg for argument in node.args.args[2:])
    return Loss(node.name, RowLoss(node.name, function, columns, least=None if node.name == "poisson" else 0.0))


def evaluators(dataset: Dataset, dtype: str, scaled: bool) -> dict[str, PopulationEvaluator]:
    """An evaluator for `mse`, `mae` and each of the losses."""
    found: dict[str, PopulationEvaluator] = {"mse": evaluator_of(dataset, "mse", scaled, dtype, "machine")}
    for loss in (LOSSES["mae"], *map(own_loss, TEXTS)):
        found[loss.name] = (
            FittedLines(dataset, FITTING_ROWS, loss, dtype)
            if scaled
            else evaluator_of(dataset, loss, False, dtype, "machine")
        )
    return found


def seconds(run: Callable[[], object]) -> float:
    """Time of the processor."""
    begin = time.thread_time()
    run()
    return time.thread_time() - begin


def case(primitives: tuple[str, ...], rows: int, dtype: str, count: int) -> tuple[Dataset, Population]:
    """Rows of counts, whose mean is a law of the features so that lines are worth fitting, and individuals of 1 to 50
    nodes that have a finite loss under all losses."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0.5, 3, (rows, 2))
    dataset = Dataset.from_arrays(
        X, rng.poisson(X[:, 0] * X[:, 1]) + 1.0, loss_columns={"sigma": rng.uniform(0.5, 2, rows)}
    )
    population = Population.random(2 * count, list(primitives), 2, 50, rng)
    finite = [
        np.isfinite(evaluator.score(population).losses)
        for scaled in (False, True)
        for evaluator in evaluators(dataset, dtype, scaled).values()
    ]
    return dataset, population.take(np.flatnonzero(np.logical_and.reduce(finite))[:count])


def ratios(dataset: Dataset, population: Population, dtype: str, scaled: bool, repeats: int) -> dict[str, float]:
    """Milliseconds of mse, and for each other loss the median ratio of its time to that of mse."""
    measured = evaluators(dataset, dtype, scaled)
    times: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(repeats):
        for name, evaluator in measured.items():
            times[name].append(seconds(partial(evaluator.score, population)))
    base = times.pop("mse")
    found = {name: median(a / b for a, b in zip(own, base, strict=True)) for name, own in times.items()}
    return {"ms of mse": 1e3 * median(base), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--population", type=int, default=1000)
    parser.add_argument("--rows", default="1000,10000")
    options = parser.parse_args()
    header = False
    for label, primitives in SETS.items():
        for dtype, rows in product(("float64", "float32"), map(int, options.rows.split(","))):
            dataset, population = case(primitives, rows, dtype, options.population)
            for scaled in (False, True):
                found = ratios(dataset, population, dtype, scaled, options.repeats)
                if not header:
                    print("| population | dtype | rows | scaled |", *(f"{name} |" for name in found))
                    print("|---" * (4 + len(found)) + "|")
                    header = True
                first = f"| {label} | {dtype} | {rows} | {'yes' if scaled else 'no'} |"
                print(first, *(f"{value:.2f} |" for value in found.values()), flush=True)


if __name__ == "__main__":
    main()
