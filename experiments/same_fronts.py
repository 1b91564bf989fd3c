"""Does a change of the code keep the results of searches to the last bit? `python experiments/same_fronts.py`.

Small searches of all kinds, limited by generations, print a hash of the formulas and the exact losses of each front.
`--keep FILE` writes them to a file, and `--against FILE` compares them with those of another tree: exit code 1 if one
differs. `--only NAME...` runs some of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import shine
from shine.data import open_dataset
from shine.estimators import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer
from shine.faces.config import read_job
from shine.runs import resume_job, run_job

QUICK: dict[str, Any] = {
    "population": 80,
    "seeding_members": 300,
    "seconds": None,
    "generations": 6,
    "max_size": 16,
    "primitives": ["add", "sub", "mul", "div", "sqrt", "exp"],
}
"""Settings of a search that takes about a second."""

CONFIG = """
data:
  generate:
    rows: 200
    noise: 0.05
    features: {a: {uniform: {low: 1, high: 3}}, b: {uniform: {low: 1, high: 3}}}
    target: a**1.5/b + 0.3*a*b
primitives: [add, sub, mul, div, sqrt]
evolution: {population: 80, max_size: 16, seeding_members: 300, islands: 2, migration_interval: 2}
stop: {generations: 8, seconds: null}
"""


def rows(count: int = 200, noise: float = 0.05) -> tuple[Any, Any]:
    """Two columns, and a noisy law of them."""
    rng = np.random.default_rng(7)
    X = rng.uniform(1, 4, (count, 2))
    return X, X[:, 0] * np.sqrt(X[:, 1]) + 0.7 * X[:, 0] + noise * rng.normal(size=count)


def estimator(**settings: Any) -> dict[str, Any]:
    """Settings of a small search as an estimator takes them."""
    own = {"generations": 6, "max_time": None, "population_size": 80, "max_size": 16, "random_state": 0}
    return {**own, "settings": {"seeding_members": 300}, **settings}


def found(X: Any, y: Any, **settings: Any) -> Iterable[Any]:
    """The front of `shine.evolve` for some data."""
    return shine.evolve(X, y, **{**QUICK, **settings}).front


def plain(**settings: Any) -> Iterable[Any]:
    """The front for the usual rows."""
    return found(*rows(), **settings)


def regressor() -> Iterable[Any]:
    """An estimator over noisy rows."""
    return SymbolicRegressor(**estimator()).fit(*rows()).front_


def weighted() -> Iterable[Any]:
    """Weights, and known deviations of the noise."""
    X, y = rows()
    weights = np.linspace(0.5, 2, len(y))
    return found(X, y, sample_weight=weights, sigma=np.linspace(0.1, 0.3, len(y)))


def transformer() -> Iterable[Any]:
    """Several components."""
    model = SymbolicTransformer(n_components=2, raw_features=False, **estimator()).fit(*rows())
    return [each for front in model.front_ for each in front]


def outliers() -> Iterable[Any]:
    """Gross outliers, which take no part in the search."""
    X, y = rows()
    y[[3, 50]] = 1e6
    return found(X, y)


def template(**more: Any) -> Iterable[Any]:
    """A template with a parameter."""
    X, y = rows()
    return found(X, np.exp(-0.5 * X[:, 0]) * y, template="exp(-k*x0)*f(x0, x1)", population=40, **more)


def grouped() -> Iterable[Any]:
    """A template with a parameter for each group."""
    X, y = rows()
    groups = np.repeat(np.arange(4.0), len(y) // 4)
    return found(np.column_stack([X, groups]), y + groups, template="f(x0, x1) + k[x2]", population=40)


def several_outputs() -> Iterable[Any]:
    """A template with two outputs."""
    X, y = rows()
    return found(X, np.column_stack([y, 2 * y + 1]), template="f(x0, x1), k*f(x0, x1) + c", population=40)


def objective(**settings: Any) -> Iterable[Any]:
    """An objective with a second value."""
    X, y = rows()
    return found(X, y, objective=lambda p: np.stack([np.abs(p - y).mean(1), np.abs(p - y).max(1)], 1), **settings)


def classifier(**settings: Any) -> Iterable[Any]:
    """Two classes."""
    X, y = rows()
    return SymbolicClassifier(**estimator(**settings)).fit(X, y > np.median(y)).front_


def streamed() -> Iterable[Any]:
    """A file that is read in pieces, with samples that are renewed."""
    X, y = rows(3000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_parquet(path, {"a": X[:, 0], "b": X[:, 1], "y": y})
        return found(open_dataset(path, stream=True), "y", rows=400, renewal=2)


def headed(**settings: Any) -> Iterable[Any]:
    """Columns whose headings are no names."""
    import pandas

    X, y = rows()
    return found(pandas.DataFrame({"a (m)": X[:, 0], "b (s)": X[:, 1]}), y, **settings)


def write_parquet(path: Path, columns: dict[str, Any]) -> None:
    """A file of the columns."""
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def in_folder(interrupted: bool) -> Iterable[Any]:
    """A run in a folder, of two islands; interrupted after some generations, and resumed."""
    with tempfile.TemporaryDirectory() as folder:
        path, run = Path(folder) / "config.yaml", Path(folder) / "run"
        path.write_text(CONFIG)
        run.mkdir()

        def stop(progress: Any) -> bool:
            if interrupted and progress.generation >= 4:
                raise KeyboardInterrupt
            return False

        result = run_job(read_job(path), run, stop, checkpoint_seconds=0)
        return (resume_job(run) if interrupted else result).front


def noisy_counts() -> Iterable[Any]:
    """A wide target, whose noise is examined."""
    X, y = rows()
    return found(X, np.exp(y) * (1 + 0.1 * np.sin(100 * y)))


SIGNS: dict[str, Any] = {"limits": {"/": 0, "*": 1}, "arguments": {"+": [2, -1]}}
"""Constraints that name functions by their signs."""

CASES: dict[str, Callable[[], Iterable[Any]]] = {
    "regressor": regressor,
    "weights and sigma": weighted,
    "transformer": transformer,
    "template": template,
    "template with guesses": lambda: template(guesses=({"f": "x0*x1", "k": 0.3},), seeding=0.0),
    "template with groups": grouped,
    "template with outputs": several_outputs,
    "template, mae": lambda: template(loss="mae"),
    "objective": objective,
    "classifier": classifier,
    "islands on workers": lambda: plain(islands=3, migration_interval=2, workers=2, population=40),
    "streamed": streamed,
    "constraints": lambda: plain(constraints={"monotonic": {"x0": "increasing"}, "required": ["x1"]}),
    "constraints by a sign": lambda: plain(constraints=SIGNS),
    "constraints by a heading": lambda: headed(
        constraints={"limits": {"b (s)": 1}, "monotonic": {"a (m)": "increasing"}}
    ),
    "complexity by a sign": lambda: headed(complexity={"*": 3, "a (m)": 2}),
    "objective, by a sign": lambda: objective(constraints=SIGNS),
    "classifier, by a sign": lambda: classifier(constraints=SIGNS),
    "whole run in a folder": lambda: in_folder(False),
    "resumed": lambda: in_folder(True),
    "float32": lambda: plain(dtype="float32"),
    "validation": lambda: plain(validation="random"),
    "samples": lambda: plain(rows=60, renewal=2),
    "few rows to fit to": lambda: plain(fitting_rows=10),
    "mae": lambda: plain(loss="mae"),
    "quantile": lambda: plain(loss="quantile(0.7)"),
    "unscaled": lambda: plain(linear_scaling=False, guesses=("x0*x1",)),
    "outliers": outliers,
    "relative noise": noisy_counts,
    "scaled columns": lambda: found(rows()[0] * [1e60, 1.0], rows()[1] * 1e-50),
}
"""The searches by name."""


def bits(models: Iterable[Any]) -> str:
    """A hash of the formulas, the exact losses and the digits of a front, and of which formula is recommended."""
    every = list(models)
    lines = [f"{each.expression} {float(each.loss).hex()} {float(each.r2).hex()} {each.digits}" for each in every]
    lines.append(str(getattr(models, "best_index", "")) + getattr(models, "reason", ""))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16] + f" {len(every)}"


def main() -> int:
    """Run the searches; 1 if a front differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    given = parser.parse_args()
    before = {} if given.against is None else json.loads(given.against.read_text())
    after, different = {}, []
    for name in given.only:
        began = time.process_time()
        after[name] = bits(CASES[name]())
        same = "" if given.against is None else " same" if before.get(name) == after[name] else " DIFFERENT"
        different += [name] if same == " DIFFERENT" else []
        print(f"{name:40} {after[name]} {time.process_time() - began:5.1f} s{same}", flush=True)
    if given.keep is not None:
        given.keep.write_text(json.dumps(after, indent=1))
    if different:
        print(f"different: {', '.join(different)}")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
