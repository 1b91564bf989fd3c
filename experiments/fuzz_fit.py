"""Fits of awkward tables: does every one end in a formula, or in an error that a user understands?

    python experiments/fuzz_fit.py --cases 2000 --first 0 --workers 2

A case is a table drawn from its number: rows, columns of several kinds and scales, a target, weights, a loss and an
estimator. Its first rows are fitted, and fresh rows of the same kind predicted. A case fails if the fit raises anything
but a `DataError` or scikit-learn's own `ValueError` for unfit data, if a warning is raised, if something is written to
the terminal, or if a prediction is not finite. Errors are counted by their text, failures are listed with their
numbers, so that ``--first N --cases 1 --verbose`` repeats one.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import logging
import multiprocessing
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer
from shine.errors import DataError

Array = NDArray[np.float64]

EXPECTED = (
    r"Found array with \d+ sample\(s\)",
    r"needs samples of at least 2 classes",
    r"Sample weights must contain at least one",
)
"""Errors of scikit-learn's kind that are right for a table: too few rows, one class, no weight."""


@dataclass
class Case:
    """A table to fit, and fresh rows of the same kind."""

    number: int
    X: Array
    y: Array
    fresh: Array
    weights: Array | None
    estimator: Any
    notes: list[str] = field(default_factory=list)


KINDS = (
    "uniform", "positive", "normal", "lognormal", "integer", "count", "binary", "constant", "one-hot", "duplicate",
    "collinear", "date", "nanoseconds", "nearly constant", "mostly zero", "heavy tails", "grid",
)  # fmt: skip


def column(kind: str, n: int, before: list[Array], rng: np.random.Generator) -> list[Array]:
    """A column of a kind, or the columns of a one-hot code."""
    if kind in ("duplicate", "collinear") and not before:
        kind = "normal"
    match kind:
        case "uniform":
            return [rng.uniform(-3, 3, n)]
        case "positive":
            return [rng.uniform(1, 5, n)]
        case "normal":
            return [rng.standard_normal(n)]
        case "lognormal":
            return [rng.lognormal(0, 1, n)]
        case "integer":
            return [rng.integers(-5, 6, n).astype(float)]
        case "count":
            return [rng.poisson(3, n).astype(float)]
        case "binary":
            return [rng.integers(0, 2, n).astype(float)]
        case "constant":
            return [np.full(n, float(rng.integers(-2, 3)))]
        case "one-hot":
            levels = int(rng.integers(2, 6))
            return list(np.eye(levels)[rng.integers(0, levels, n)].T)
        case "duplicate":
            return [before[int(rng.integers(len(before)))].copy()]
        case "collinear":
            return [sum((float(rng.standard_normal()) * c for c in before[-3:]), np.zeros(n))]
        case "date":
            return [np.floor(rng.uniform(15_000, 20_000, n))]
        case "nanoseconds":
            return [np.floor(rng.uniform(1.6e18, 1.7e18, n))]
        case "nearly constant":
            return [1000 + 1e-9 * rng.standard_normal(n)]
        case "mostly zero":
            return [np.where(rng.random(n) < 0.9, 0.0, rng.standard_normal(n))]
        case "heavy tails":
            return [rng.standard_cauchy(n)]
        case _:
            return [rng.choice(np.linspace(0, 1, 5), n)]


def target(X: Array, rng: np.random.Generator) -> Array:
    """A target of some columns, or of none."""
    n, d = X.shape
    a, b, c = (X[:, int(rng.integers(d))] for _ in range(3))
    noise = rng.standard_normal(n)
    with np.errstate(all="ignore"):
        spread = [float(np.nan_to_num(np.std(column))) or 1.0 for column in (a, b, c)]
        u, v, w = (column / s for column, s in zip((a, b, c), spread, strict=True))
        choices = (
            lambda: u * v + 0.1 * noise,
            lambda: np.sin(u) + noise,
            lambda: 2.5 * u + 40 * v - w + 0.3 * noise,
            lambda: u / (1 + np.abs(v)),
            lambda: np.exp(np.clip(u, -30, 30)),
            lambda: np.sqrt(np.abs(u)) + v,
            lambda: noise,
            lambda: np.full(n, 3.0),
            lambda: (u + 0.5 * noise > np.median(u)).astype(float),
            lambda: np.rint(3 * u),
            lambda: np.exp(5 * noise),
            lambda: np.where(rng.random(n) < 0.95, 0.0, noise),
            lambda: 1e9 + 1e-3 * noise,
            lambda: u**3 - 2 * v + 1,
        )
        y = np.asarray(choices[int(rng.integers(len(choices)))](), float)
    return np.nan_to_num(y, posinf=1e300, neginf=-1e300)


def weights_of(n: int, rng: np.random.Generator) -> Array | None:
    """Sample weights, mostly none."""
    draw = int(rng.integers(10))
    if draw == 0:
        return rng.uniform(0.1, 2, n)
    if draw == 1:
        return rng.integers(0, 3, n).astype(float)
    if draw == 2:
        return np.asarray(10.0 ** rng.uniform(-300, 300, n))
    if draw == 3:
        return np.full(n, float(10.0 ** rng.uniform(-300, 300)))
    return None


def case(number: int, largest: int = 10_000) -> Case:
    """The case of a number."""
    rng = np.random.default_rng(number)
    rows = max(1, int(min(largest, np.exp(rng.uniform(0, np.log(largest + 1))))))
    wide = int(np.exp(rng.uniform(0, np.log(500)))) if rng.random() < 0.25 else int(rng.integers(1, 8))
    wide = min(wide, max(1, 2_000_000 // rows))
    total = 2 * rows
    own = rng.choice(KINDS, size=int(rng.integers(1, 4)))
    columns: list[Array] = []
    while len(columns) < wide:
        columns += column(str(rng.choice(own if rng.random() < 0.7 else KINDS)), total, columns, rng)
    X = np.column_stack(columns[:wide])
    y = target(X, rng)
    notes = [f"{rows} x {wide}", "/".join(own)]
    scaled = int(rng.integers(6))
    if scaled == 0:
        X = X * 10.0 ** rng.uniform(-290, 290)
        notes.append(f"X to {np.abs(X).max():.1e}")
    elif scaled == 1:
        X = X * 10.0 ** rng.uniform(-250, 250, wide)
        notes.append("columns of any scale")
    elif scaled == 2:
        X = X * 10.0 ** rng.uniform(-15, 15, wide)
    if rng.integers(4) == 0:
        y = y * 10.0 ** rng.uniform(-290, 290)
        notes.append(f"y to {np.abs(y).max():.1e}")
    X, y = (np.clip(np.nan_to_num(a), -1.7e308, 1.7e308) for a in (X, y))
    weights = weights_of(rows, rng)
    if weights is not None:
        notes.append(f"weights {weights.min():.0e}..{weights.max():.0e}")
    common: dict[str, Any] = {
        "max_time": 0.4, "generations": 2, "population_size": 50, "random_state": number, "n_jobs": 1,
    }  # fmt: skip
    draw = rng.random()
    estimator: Any
    if draw < 0.15:
        estimator = SymbolicClassifier(**common)
        y = np.digitize(y, np.quantile(y, [0.5] if rng.random() < 0.7 else [0.3, 0.7]))
    elif draw < 0.25:
        estimator = SymbolicTransformer(n_components=2, **common)
    else:
        loss = str(rng.choice(["mse", "mse", "mse", "mae", "rmse", "nmse", "r2"]))
        dtype = "float32" if rng.random() < 0.1 else "float64"
        scaling = bool(rng.random() < 0.85)
        estimator = SymbolicRegressor(loss=loss, dtype=dtype, linear_scaling=scaling, **common)
        notes.append(f"{loss} {dtype} {'scaled' if scaling else 'plain'}")
    notes.append(type(estimator).__name__)
    return Case(number, X[:rows], y[:rows], X[rows:], weights, estimator, notes)


class Skipped(logging.Handler):
    """Notes the searches of the seeding that failed and were skipped."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        places = traceback.extract_tb(error.__traceback__)[-1:] if error else []
        self.found += [f"{record.getMessage()}: {error!r} in {os.path.basename(p.filename)}:{p.name}" for p in places]


@contextlib.contextmanager
def terminal() -> Iterator[list[str]]:
    """What is written to the process's standard error meanwhile, by libraries too."""
    found: list[str] = []
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield found
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            found.append(file.read().decode(errors="replace").strip())


def outcome(case_: Case, verbose: bool = False) -> tuple[str, str]:
    """What became of a case: 'ok', 'error' (a clear one) or 'FAILED', and what to say of it."""
    with warnings.catch_warnings(), terminal() as written:
        warnings.simplefilter("error")
        try:
            model = case_.estimator.fit(case_.X, case_.y, sample_weight=case_.weights)
            forward = model.transform if isinstance(model, SymbolicTransformer) else model.predict
            predicted = np.asarray(forward(case_.fresh), float)
            finite = np.isfinite(predicted)
            if not finite.all():
                shown = model.best_ if isinstance(model.best_, list) else [model.best_]
                texts = "; ".join(one.expression[:200] for one in shown)
                result = "FAILED", f"{(~finite).sum()} of {finite.size} predictions are not finite: {texts}"
            else:
                result = "ok", ""
        except DataError as error:
            result = "error", str(error)
        except Exception as error:
            if type(error) is ValueError and any(re.search(text, str(error)) for text in EXPECTED):
                result = "error", str(error)
            else:
                place = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{os.path.basename(place.filename)}:{place.name}"
                result = "FAILED", f"{type(error).__name__} in {where}: {str(error)[:150]}"
                if verbose:
                    result = "FAILED", traceback.format_exc()
    if written[0] and result[0] != "FAILED":
        result = "FAILED", f"wrote to the terminal: {written[0][:150]}"
    return result


def run(number: int) -> tuple[int, str, str, float, str, list[str]]:
    """One case in a worker: its number, what became of it, how long it took, and what was skipped."""
    made, skipped = case(number), Skipped()
    logger = logging.getLogger("shine")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(skipped)
    began = time.perf_counter()
    kind, text = outcome(made)
    logger.removeHandler(skipped)
    return number, kind, text, time.perf_counter() - began, ", ".join(made.notes), skipped.found


def general(text: str) -> str:
    """A message without its numbers and names, so that alike ones are counted together."""
    return re.sub(r"'[^']*'", "'...'", re.sub(r"-?\d[\d.e+-]*", "#", text.split(": (")[0]))[:110]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="run in this process, print tracebacks")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.cases)
    if options.verbose:
        for number in numbers:
            made = case(number)
            print(number, made.notes, *outcome(made, verbose=True))
        return
    counts: collections.Counter[str] = collections.Counter()
    said: collections.Counter[str] = collections.Counter()
    seconds: list[float] = []
    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(options.workers, maxtasksperchild=500) as pool:
        for number, kind, text, spent, notes, skipped in pool.imap_unordered(run, numbers):
            counts[kind] += 1
            seconds.append(spent)
            if kind == "FAILED":
                print(f"case {number} ({notes}): {text}", flush=True)
            if kind != "ok":
                said[f"{kind}: {general(text)}"] += 1
            for search in skipped:
                said[f"skipped {search[:150]}"] += 1
                counts["skipped"] += 1
            if spent > 5:
                print(f"case {number} took {spent:.1f} s ({notes})", flush=True)
    print("\n".join(f"{count:6} x {text}" for text, count in said.most_common(30)))
    quantiles = np.quantile(seconds, [0.5, 0.9, 0.99, 1])
    print("seconds a case: median {:.2f}, 90 % {:.2f}, 99 % {:.2f}, most {:.2f}".format(*quantiles))
    print(f"{dict(counts)} in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
