"""Do losses find laws that squared errors miss? `python experiments/losses_recovery.py --generations 15`.

Four kinds of data, 20 laws each, and the loss that is made for them: outliers (Huber), counts (Poisson), skewed noise
whose quantile follows the law (quantile), and noise with heavy tails (Student's t). Each search runs with this loss and
with squared errors, as Shine weights them by default and plain (`noise="absolute"`). Prints a Markdown table.

A law is recovered if the recommended formula has its form: with constants fitted to the law itself, without noise, the
formula is the law to within 1e-6 of its standard deviation, and has at most twice its nodes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.search.finishing.polishing import converged, population_of

PRIMITIVES = ("add", "sub", "mul", "div", "sqrt", "exp", "log", "sin")
EXACT = 1e-6
"""Distance from the law, as a share of its standard deviation, that counts as none."""

MOST_NODES = 2
"""Nodes of a recovered formula, as a multiple of those of the law."""

Array = np.ndarray

# Features are between 0.5 and 3.
SMOOTH = (
    "2*a*b", "a*b + c", "3*a/b", "a*a + 2*b", "sqrt(a)*b + 1", "5*exp(-a) + b", "2*log(a) + 3*b", "3*sin(a) + b",
    "a*b*c", "a/(b + c)", "4/(1 + a*b)", "a*a - b*b", "exp(0.7*a) + b", "2*a*sin(b)", "6*a/(b + 2)", "sqrt(a*a + b*b)",
    "a*exp(-b) + c", "2*a + 3*b*c", "a*a*b", "log(a*b) + 2*c",
)  # fmt: skip
RATES = (
    "2*a*b", "a*b*c", "exp(2*a - 1)", "9*a/b", "2*a*a", "6*exp(a - b)", "30*exp(-2*a)", "2*a*a*b", "exp(a)*b",
    "a*a*b*b", "40*exp(-a*b)", "3*a*b/c", "exp(1.5*a)/b", "5*a*a/c", "8*a*exp(-b)", "exp(a + b - 2)", "9/(a*b)",
    "a*a*exp(b)/4", "4*sqrt(a)*b*b", "a*a*a",
)  # fmt: skip
SPREADS = (
    "0.5*b*b", "c", "0.8*a", "0.6*a*a", "b", "0.7*a", "a*b", "1.5*b", "0.5*a*a", "0.4*b*c", "a", "b*b", "1.2*b", "a*a",
    "0.6*b", "a*b", "2*b", "a*c", "1.5*a", "0.8*c*c",
)  # fmt: skip
"""Scales of the skewed noise: the mean of the target is the law less a part of it."""


@dataclass(frozen=True)
class Kind:
    """Data of one kind: the loss for them, laws, how a target follows from a law's values, and the number of rows."""

    loss: str
    laws: tuple[str, ...]
    target: Callable[[np.random.Generator, Array, int, dict[str, Array]], Array]
    rows: int = 300


def outliers(rng: np.random.Generator, law: Array, number: int, columns: dict[str, Array]) -> Array:
    """Normal noise of 3 % of the spread, and one row in eight 2 to 20 spreads too high."""
    spread = law.std()
    gross = rng.uniform(2, 20, len(law)) * spread * (rng.random(len(law)) < 0.125)
    return law + 0.03 * spread * rng.standard_normal(len(law)) + gross


def counts(rng: np.random.Generator, law: Array, number: int, columns: dict[str, Array]) -> Array:
    """Poisson counts."""
    return rng.poisson(law).astype(float)


def skew(rng: np.random.Generator, law: Array, number: int, columns: dict[str, Array]) -> Array:
    """Yields that fall short of what is possible, by a share of the spread that follows another formula; one in ten
    lies above it."""
    scale = values(SPREADS[number], columns)
    short = rng.exponential(1.0, len(law)) + np.log(0.9)
    return law - 0.4 * law.std() * scale / scale.mean() * short


def heavy_tails(rng: np.random.Generator, law: Array, number: int, columns: dict[str, Array]) -> Array:
    """Noise of Student's t with 1.2 degrees of freedom, of the scale 0.05."""
    return law + 0.05 * rng.standard_t(1.2, len(law))


KINDS = {
    "outliers": Kind("huber(0.1)", SMOOTH, outliers),
    "counts": Kind("poisson", RATES, counts, 600),
    "skew": Kind("quantile(0.9)", SMOOTH, skew),
    "heavy tails": Kind("student_t(1.2, 0.05)", SMOOTH, heavy_tails),
}


def values(text: str, columns: dict[str, Array]) -> Array:
    """Values of a formula."""
    tree = parse(text, tuple(columns))
    return np.broadcast_to(evaluate(tree, list(columns.values())), len(columns["a"])) + 0.0


def is_recovered(found: shine.Model, law: Array, text: str, columns: dict[str, Array]) -> bool:
    """Whether a formula has the form of the law (see the text of this module)."""
    if found.tree.size > MOST_NODES * parse(text).size:
        return False
    rows = Dataset.from_arrays(np.column_stack(list(columns.values())), law, features=list(columns))
    primitives = PrimitiveSet(select(STANDARD, PRIMITIVES), tuple(columns))
    fitted = converged(population_of([found.tree], primitives), MachineLinearizer(rows, "mse"), 1e-14)
    own = np.broadcast_to(evaluate(fitted.tree(0), list(rows.columns)), law.shape)
    return bool(np.sqrt(np.mean((own - law) ** 2)) <= EXACT * law.std())


def run(task: tuple[str, int, str, str, int]) -> bool:
    """One search: whether it recovers the law."""
    name, number, loss, noise, generations = task
    kind, rng = KINDS[name], np.random.default_rng([17, number])
    text = kind.laws[number]
    columns = {feature: rng.uniform(0.5, 3.0, kind.rows) for feature in ("a", "b", "c")}
    law = values(text, columns)
    target = kind.target(rng, law, number, columns)
    result = shine.evolve(
        np.column_stack(list(columns.values())),
        target,
        features=list(columns),
        primitives=list(PRIMITIVES),
        loss=loss,
        noise=noise,
        generations=generations,
        seconds=None,
        threads=1,
    )
    return is_recovered(result.best, law, text, columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--generations", type=int, default=15, help="of each search")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--laws", type=int, default=20, help="laws of each kind")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    options = parser.parse_args()
    print("| data | loss | recovered | by mse | by plain mse |\n|---|---|---|---|---|")
    with ProcessPoolExecutor(options.processes) as pool:
        for name in options.kinds:
            ways = ((KINDS[name].loss, "auto"), ("mse", "auto"), ("mse", "absolute"))
            tasks = [(name, at, *way, options.generations) for way in ways for at in range(options.laws)]
            found = np.array(list(pool.map(run, tasks))).reshape(len(ways), -1)
            counted = " | ".join(f"{int(own.sum())} of {options.laws}" for own in found)
            print(f"| {name} | `{KINDS[name].loss}` | {counted} |", flush=True)
            for (loss, noise), own in zip(ways, found, strict=True):
                missed = [KINDS[name].laws[at] for at in np.flatnonzero(~own)]
                print(f"<!-- {name}, {loss}, noise {noise}, missed: {missed} -->", flush=True)


if __name__ == "__main__":
    main()
