"""Formulas that run wild between the rows, planted among sound ones: are they told apart?

`python experiments/between.py --tables 300` draws tables of all kinds: levels, whole numbers, heavy tails, time series,
columns that move together, mixtures, few and many rows. Each has a law, smooth or with an oscillation of at least eight
rows a period, and noise. Sound formulas are the law itself and fits of lines and parabolas. Planted ones are fitted
to the same rows: an oscillation of the best of thousands of frequencies beyond what the rows can show, an exponential
of an exponential, and a quotient whose denominator is next to zero at one level. Refused is what the end of a search
leaves out of a front that holds all of them: for poles and explosions, for what no row tests, for what it owes to a few
rows or levels. The last columns say what share the first of these refuse alone, how many formulas a front may hold, as
no simpler one fits as well, and what share of these is refused. Limits were set on tables 0 to 99.
"""

from __future__ import annotations

import argparse
import collections
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain import Domain
from shine.evaluate.losses.form import loss_of
from shine.lang.forms.primitives import BASIC, PrimitiveSet
from shine.lang.forms.tree import Tree
from shine.search.finishing.few_rows import FewRows, squared_errors
from shine.search.finishing.poles import without_poles
from shine.search.finishing.refinement import measured

Array = NDArray[np.float64]
FREQUENCIES = 4000
MATTERS = 0.1
"""Least amplitude of a planted oscillation, in standard deviations of the target; half the least of a tuned cell."""


class Formula(NamedTuple):
    """A formula of a table: its kind, its text, and whether it is planted."""

    kind: str
    text: str
    planted: bool


def column(rng: np.random.Generator, rows: int) -> tuple[str, Array]:
    """A column of some kind, and the kind."""
    kinds: dict[str, Callable[[], Array]] = {
        "uniform": lambda: rng.uniform(rng.uniform(-5, 0), rng.uniform(1, 5), rows),
        "normal": lambda: rng.normal(rng.uniform(-3, 3), rng.uniform(0.3, 3), rows),
        "heavy": lambda: rng.lognormal(0, rng.uniform(0.3, 1), rows),
        "few levels": lambda: rng.choice(np.sort(rng.uniform(0, 10, rng.integers(4, 9))), rows),
        "doubled levels": lambda: rng.choice(rng.uniform(1, 20) * 2.0 ** np.arange(rng.integers(4, 7)), rows),
        "whole": lambda: rng.integers(0, rng.integers(6, 30), rows).astype(float),
        "thousands": lambda: rng.integers(1000, 9000, rows).astype(float),
        "counts": lambda: rng.poisson(rng.uniform(2, 12), rows).astype(float),
        "time": lambda: np.linspace(0, rng.uniform(1, 20), rows),
        "rounded": lambda: np.round(rng.uniform(0, 10, rows), 1),
        "binary": lambda: rng.integers(0, 2, rows).astype(float),
    }
    kind = str(rng.choice([*kinds]))
    return kind, kinds[kind]()


def table(seed: int) -> tuple[Array, Array, list[Formula]]:
    """Features, target and formulas of a table."""
    rng = np.random.default_rng([seed, 1])
    rows, count = int(rng.integers(40, 800)), int(rng.integers(1, 7))
    columns = [column(rng, rows) for _ in range(count)]
    if count > 1 and rng.random() < 0.2:
        columns[1] = (
            "together",
            columns[0][1] * rng.uniform(0.5, 2) + 0.02 * columns[0][1].std() * rng.normal(size=rows),
        )
    X = np.column_stack([values for _, values in columns])
    law, values = smooth(rng, X)
    resolved = oscillation(rng, X) if rng.random() < 0.4 else None
    if resolved:
        law, values = f"{law} + {resolved[0]}", values + resolved[1]
    spread = float(values.std()) or 1.0
    y = values + spread * rng.choice([0.0, 0.01, 0.1, 0.3]) * rng.normal(size=rows)
    formulas = [Formula("the mean", number(y.mean()), False)]
    formulas += [Formula("the law, oscillating" if resolved else "the law", law, False)]
    formulas += [Formula(kind, text, False) for kind, text in fits(X, y)]
    formulas += [Formula(kind, text, True) for kind, text in planted(rng, X, y)]
    return X, y, formulas


def number(value: float) -> str:
    """A number as a part of a formula."""
    return f"({float(value)!r})"


def smooth(rng: np.random.Generator, X: Array) -> tuple[str, Array]:
    """A law without oscillations."""
    text, values = "0.0", np.zeros(len(X))
    for at in range(X.shape[1]):
        x, name = X[:, at], f"x{at}"
        size = float(np.abs(x).max()) or 1.0
        c, middle = rng.uniform(0.5, 2) * rng.choice([-1, 1]), float(rng.choice(x))
        shapes = [
            (f"{name}/{number(size)}", x / size),
            (f"(({name} - {number(middle)})/{number(size)})**2", ((x - middle) / size) ** 2),
            (f"exp(-abs({name})/{number(size)})", np.exp(-np.abs(x) / size)),
            (f"1/(1 + exp(-8*({name} - {number(middle)})/{number(size)}))", 1 / (1 + np.exp(-8 * (x - middle) / size))),
        ]
        if x.min() > 0:
            shapes += [
                (f"log({name})", np.log(x)),
                (f"{name}**(-0.25)", x**-0.25),
                (f"sqrt({name}/{number(size)})", np.sqrt(x / size)),
            ]
        part, own = shapes[rng.integers(len(shapes))]
        if at and rng.random() < 0.4:
            part, own = f"({part})*x{at - 1}", own * X[:, at - 1]
        weight = c / (float(own.std()) or 1.0)
        text, values = f"{text} + {number(weight)}*{part}", values + weight * own
    return text, values


def oscillation(rng: np.random.Generator, X: Array) -> tuple[str, Array] | None:
    """A sine that eight rows or more a period show, of a feature with enough levels."""
    for at in rng.permutation(X.shape[1]).tolist():
        levels = np.unique(X[:, at])
        if len(levels) < 24:
            continue
        gap = float(np.quantile(np.diff(levels), 0.9))
        most = min(2 * np.pi / (8 * gap), 12 * np.pi / float(np.ptp(levels)))
        frequency = rng.uniform(0.2, 1) * most
        return f"sin({number(frequency)}*x{at})", np.sin(frequency * X[:, at])
    return None


def fits(X: Array, y: Array) -> Iterator[tuple[str, str]]:
    """Least squares by lines and by parabolas."""
    for kind, columns in {"lines": [X], "parabolas": [X, X**2]}.items():
        design = np.column_stack([np.ones(len(X)), *columns])
        scale = np.abs(design).max(axis=0)
        scale[scale == 0] = 1
        found = np.linalg.lstsq(design / scale, y, rcond=None)[0] / scale
        names = [f"x{at}" for at in range(X.shape[1])]
        terms = [*names, *(f"{name}**2" for name in names)][: design.shape[1] - 1]
        yield kind, " + ".join([number(found[0]), *(f"{number(c)}*{t}" for c, t in zip(found[1:], terms, strict=True))])


def planted(rng: np.random.Generator, X: Array, y: Array) -> Iterator[tuple[str, str]]:
    """Formulas that fit well and run wild."""
    at = int(rng.integers(X.shape[1]))
    x, name = X[:, at], f"x{at}"
    levels = np.unique(x)
    if len(levels) < 4:
        return
    gaps = np.diff(levels)
    whole = bool((x == np.rint(x)).all())
    if whole and np.median(gaps) < 3:
        return  # there is nothing between these whole numbers
    around = np.column_stack([np.ones(len(x)), X])
    rest = y - around @ np.linalg.lstsq(around, y, rcond=None)[0]
    slow = 2 * np.pi / (2 * float(np.median(gaps)))
    # On whole numbers, one beyond half a turn is the same as a slower one.
    fastest = min(20 * slow, np.pi) if whole else 20 * slow
    frequencies = rng.uniform(2 * slow, max(fastest, 3 * slow), FREQUENCIES)
    best = min(((_rest(x, w, rest), w) for w in frequencies), key=lambda each: each[0])[1]
    waves = np.column_stack([np.cos(best * x), np.sin(best * x)])
    c, s = np.linalg.lstsq(waves, rest, rcond=None)[0]
    spread = float(y.std()) or 1.0
    c, s = np.array([c, s]) * max(1.0, MATTERS * spread / (float(np.hypot(c, s)) or 1.0))
    line = next(text for kind, text in fits(X, y) if kind == "lines")
    yield "aliased", f"{line} + {number(c)}*cos({number(best)}*{name}) + {number(s)}*sin({number(best)}*{name})"
    yield "aliased alone", f"{number(y.mean())} + {number(c)}*cos({number(best)}*{name})"
    peak = float(rng.choice(0.5 * (levels[1:] + levels[:-1])[gaps >= np.median(gaps)]))
    width = 0.2 * float(gaps[np.searchsorted(levels, peak) - 1])
    height = 1.5 * float(np.ptp(y))
    yield "peak", f"{line} + {number(height)}*exp(-(({name} - {number(peak)})/{number(width)})**2)"
    level = int(np.searchsorted(levels[:-1], x[np.argmax(np.abs(rest) * (x < levels[-1]))]))
    beside = float(levels[level]) + 1e-3 * float(gaps[level])
    near = 1 / (x - beside)
    weight = float(near @ rest / (near @ near))
    weight *= max(1.0, 2 * MATTERS * spread / (float(np.abs(weight * near).max()) or 1.0))
    yield "tuned quotient", f"{line} + {number(weight)}/({name} - {number(beside)})"


def _rest(x: Array, frequency: float, rest: Array) -> float:
    waves = np.column_stack([np.cos(frequency * x), np.sin(frequency * x)])
    gram = waves.T @ waves + 1e-9 * np.eye(2)
    moments = waves.T @ rest
    return -float(moments @ np.linalg.solve(gram, moments))


def judged(trees: list[Tree], rows: Dataset) -> Iterator[tuple[bool, bool, bool]]:
    """Of each formula: does the end of a search refuse it among the others, is that for poles or explosions, and would
    it be on a front?"""
    domain, primitives = Domain(rows), PrimitiveSet(tuple(BASIC[name] for name in ("add", "mul")), rows.features)
    models = measured(trees, rows, loss_of("mse"), {}, primitives, 1)
    kept = without_poles(models, 0.0, domain, partial(squared_errors, rows=rows))
    kept = list(FewRows(domain, primitives, 1).front(kept, models, tuple))
    for tree, model in zip(trees, models, strict=True):
        others = [each for each in kept if each is not model and each.complexity <= model.complexity]
        yield model not in kept, not domain.defines(tree), all(model.loss < each.loss for each in others)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="show formulas that are judged wrongly")
    options = parser.parse_args()
    counts: dict[tuple[bool, str], list[int]] = collections.defaultdict(lambda: [0] * 5)
    for seed in range(options.first, options.first + options.tables):
        X, y, formulas = table(seed)
        names = [f"x{at}" for at in range(X.shape[1])]
        rows = Dataset.from_arrays(X, y, features=names)
        found = judged([shine.parse(formula.text, names) for formula in formulas], rows)
        for formula, (out, at_pole, on_front) in zip(formulas, found, strict=True):
            own = counts[formula.planted, formula.kind]
            own[:] = map(sum, zip(own, (1, out, at_pole, on_front, on_front and out), strict=True))
            if options.verbose and out != formula.planted:
                print(seed, formula.kind, "poles" if at_pole else "", formula.text[-150:])
    print(f"{'formulas':9s}{'kind':22s}{'number':>7s}{'refused':>9s}{'by poles':>9s}{'on fronts':>10s}{'refused':>9s}")
    for (is_planted, kind), (number_of, refused, poles, on_fronts, of_these) in sorted(counts.items()):
        what, shares = "planted" if is_planted else "sound", (refused / number_of, poles / number_of)
        there = f"{on_fronts:10d}{of_these / max(on_fronts, 1):9.1%}"
        print(f"{what:9s}{kind:22s}{number_of:7d}{shares[0]:9.1%}{shares[1]:9.1%}{there}")


if __name__ == "__main__":
    main()
