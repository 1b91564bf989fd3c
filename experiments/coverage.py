"""How often intervals hold true constants that are near simple numbers: `python experiments/coverage.py --fits 1000`.

Each fit is a whole search on fresh noisy rows of a law whose constants are near, but not at, whole numbers, halves and
quarters, so that rounding tempts. The search knows only the primitives that the law needs, and ends after a few
generations. A fit counts for coverage if the chosen formula can be the law: with as many constants, and values of them
that give the law's values. These are the true constants of the formula, in its own way to write the law. How often a
fit counts is told apart.

Prints Markdown tables: the share of 95 % profile intervals that hold the truth by constant, by noise and by rows; that
of the intervals of the formula's values at fresh points; and how many printed constants are well inside their
intervals. With n intervals, a share of 0.95 has a standard error of 0.22/sqrt(n).
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shine import SymbolicRegressor
from shine.data.datasets.dataset import Dataset
from shine.evaluate.inference.inference import Basis, Inference
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.search.models.model import Model

LEVEL = 0.95
GENERATIONS = 6
NEW_ROWS = 50
EXACT = 1e-16
INSIDE = 0.05
"""Share of an interval's width that a printed constant should be away from either end."""


@dataclass(frozen=True)
class Law:
    """A law, the number of its constants, the primitives that it needs, and the range of its features."""

    text: str
    constants: int
    primitives: tuple[str, ...]
    low: float = 0.0
    high: float = 4.0


LAWS = {
    "line": Law("10.03 - 0.2465*x0", 2, ("add", "sub", "mul"), 0.0, 20.0),
    "plane": Law("1.02*x0 + 2.97*x1 - 4.04", 3, ("add", "sub", "mul")),
    "parabola": Law("0.51*(x0 - 1.98)**2 + 1.03", 3, ("add", "sub", "mul"), -3.0, 5.0),
    "decay": Law("5.07*exp(-0.253*x0) + 0.97", 3, ("add", "mul", "exp"), 0.0, 15.0),
    "saturation": Law("9.95*x0/(x0 + 2.04)", 2, ("add", "mul", "div"), 0.1, 12.0),
    "wave": Law("2.03*sin(0.985*x0) + 0.76", 3, ("add", "mul", "sin"), 0.0, 12.0),
    "roots": Law("3.96*sqrt(x0) - 0.745*x1", 2, ("sub", "mul", "sqrt"), 0.5, 9.0),
    "products": Law("1.01*x1*(x0 + 0.49)", 2, ("add", "mul"), 0.0, 4.0),
}
"""Constants near simple numbers."""

NOISES = (0.02, 0.1, 0.3)
"""Standard deviation of the noise as a share of that of the law's values."""

ROWS = (40, 80, 200)


@dataclass(frozen=True)
class Outcome:
    """One fit: what was found, and whether each interval holds the truth; empty if the formula cannot be the law."""

    law: str
    noise: float
    rows: int
    seed: int
    formula: str
    form: str
    held: tuple[bool, ...]
    inside: tuple[bool, ...]
    band: float
    outside: int


def fitted(name: str, noise: float, rows: int, seed: int) -> Outcome:
    """Search for a law in fresh rows."""
    law = LAWS[name]
    features = ["x0", "x1"] if "x1" in law.text else ["x0"]
    tree = parse(law.text, features)
    rng = np.random.default_rng([seed, rows, int(1000 * noise), sorted(LAWS).index(name)])
    X = rng.uniform(law.low, law.high, (rows, len(features)))
    values = evaluate(tree, list(X.T))
    y = values + noise * values.std() * rng.normal(size=rows)
    estimator = SymbolicRegressor(
        primitives=law.primitives, generations=GENERATIONS, population_size=500, max_size=15, max_time=None,
        random_state=seed, n_jobs=1, noise="absolute",
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
    model: Model = estimator.best_
    new = rng.uniform(law.low, law.high, (NEW_ROWS, len(features)))
    at = evaluate(tree, list(new.T))
    truth = _true_constants(model, Dataset.from_arrays(new, at, features=features))
    low, high = np.array(list(model.conf_int(LEVEL).values())).reshape(-1, 2).T
    printed, margin = model.form().values, INSIDE * (high - low)
    outside = int(np.sum((printed < low) | (printed > high)))
    if truth is None or len(truth) != law.constants:
        return Outcome(name, noise, rows, seed, model.formula(), model.form().text, (), (), np.nan, outside)
    below, above = model.predict_interval(new, LEVEL, "mean").T
    return Outcome(
        name, noise, rows, seed, model.formula(), model.form().text,
        tuple(((low <= truth) & (truth <= high)).tolist()),
        tuple(((low + margin <= printed) & (printed <= high - margin)).tolist()),
        float(np.mean((below <= at) & (at <= above))), outside,
    )  # fmt: skip


def _true_constants(model: Model, exact: Dataset) -> np.ndarray | None:
    """The constants with which a formula has the law's values in exact rows; None if it has not."""
    inference = Inference(model.form(), Basis(exact, "mse"))
    best = inference.optimum
    return best.constants if best.total <= EXACT * float(exact.target @ exact.target) else None


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=1000, help="fits of all laws, noises and rows together")
    parser.add_argument("--laws", nargs="*", default=list(LAWS), choices=list(LAWS), metavar="LAW")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a table of the fits, one a row")
    options = parser.parse_args()
    cells = [(law, noise, rows) for rows in ROWS for noise in NOISES for law in options.laws]
    outcomes: list[Outcome] = []
    begin = time.process_time()
    for number in range(options.fits):
        outcomes.append(fitted(*cells[number % len(cells)], options.first_seed + number // len(cells)))
        if options.out is not None:
            _write(options.out, outcomes)
    print(
        f"{len(outcomes)} fits, {time.process_time() - begin:.0f} s of the processor; "
        f"{sum(each.outside for each in outcomes)} printed constants outside of their intervals\n"
    )
    _report(outcomes)


def _write(path: Path, outcomes: Sequence[Outcome]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        for each in outcomes:
            writer.writerow(vars(each).values())


def _report(outcomes: Sequence[Outcome]) -> None:
    print("| law | fits | can be it | as written, and by constant | all | value | printed inside |")
    print("|---|---|---|---|---|---|---|")
    for name in dict.fromkeys(each.law for each in outcomes):
        own = [each for each in outcomes if each.law == name]
        found = [each for each in own if each.held]
        told = []
        for form, count in Counter(each.form for each in found).most_common():
            shares = np.mean([each.held for each in found if each.form == form], axis=0)
            told.append(f"{count} `{form}`: {' '.join(f'{share:.3f}' for share in shares)}")
        print(f"| `{LAWS[name].text}` | {len(own)} | {len(found)} | {'; '.join(told)} | {_line(found)} |")
    found = [each for each in outcomes if each.held]
    print(f"| all | {len(outcomes)} | {len(found)} | | {_line(found)} |")
    for word, of in (("noise", lambda each: each.noise), ("rows", lambda each: each.rows)):
        print(f"\n| {word} | fits | can be it | all | value | printed inside |\n|---|---|---|---|---|---|")
        groups: dict[float, list[Outcome]] = defaultdict(list)
        for each in outcomes:
            groups[of(each)].append(each)
        for value, own in sorted(groups.items()):
            found = [each for each in own if each.held]
            print(f"| {value:g} | {len(own)} | {len(found)} | {_line(found)} |")


def _line(found: Iterable[Outcome]) -> str:
    found = list(found)
    if not found:
        return " | | "
    held, inside = ([share for each in found for share in getattr(each, name)] for name in ("held", "inside"))
    return f"{np.mean(held):.3f} | {np.mean([each.band for each in found]):.3f} | {np.mean(inside):.3f}"


if __name__ == "__main__":
    main()
