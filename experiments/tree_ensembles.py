"""How fast are compiled trees and key tables, on one thread? `python experiments/tree_ensembles.py`.

Beside scikit-learn; ONNX Runtime (with skl2onnx); and LightGBM's model of the same size, by LightGBM itself and by
lleaves; each if it is installed. Key tables are compared with `bisect` and `numpy.searchsorted`. Every number is a
median of interleaved repeats of one run; ratios are to Shine. `--rows`, `--trees`, `--leaves` and `--features` set the
size, `--only ensembles` or `keys` a part, `--forest` adds deep random forests.
"""

from __future__ import annotations

import argparse
import bisect
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import shine

Call = Callable[[Any], Any]
REPEATS, SECONDS = 25, 1.0
"""Most repeats of a call, and about the most time for them."""


def medians(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Median seconds of each call; the calls take turns."""
    took: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    began = time.perf_counter()
    for _ in range(REPEATS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            took[name].append(time.perf_counter() - start)
        if time.perf_counter() - began > SECONDS * len(calls):
            break
    return {name: float(np.median(times)) for name, times in took.items()}


def shown(title: str, times: dict[str, float], unit: float, label: str) -> None:
    """Print a line a contestant: its time, and its ratio to Shine's."""
    print(title)
    for name, seconds in times.items():
        print(f"  {name:34} {seconds * unit:10.3f} {label}  {seconds / times['Shine']:8.2f} x Shine")


def data(rows: int, features: int) -> tuple[Any, Any]:
    """Rows of numbers, and a target with interactions and noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    return X, X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + 0.1 * rng.normal(size=rows)


def onnx_runtime(model: Any, features: int) -> Call | None:
    """A model in ONNX Runtime, on one thread; it compares float32 numbers."""
    try:
        import onnxruntime
        from skl2onnx import to_onnx
    except ImportError:
        return None
    try:
        graph = to_onnx(model, np.zeros((1, features), np.float32))
    except ValueError as error:
        # skl2onnx 1.20 does not write histogram gradient boosting with onnx 1.19 or later.
        print(f"  ONNX Runtime: not converted, {str(error)[:60]}")
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda X: session.run(None, {name: X})


def boosters(X: Any, y: Any, trees: int, leaves: int) -> dict[str, Call]:
    """LightGBM's model of the same size, by itself and by lleaves."""
    try:
        import lightgbm
        import lleaves
    except ImportError:
        return {}
    settings = {"num_leaves": leaves, "num_threads": 1, "verbose": -1, "objective": "regression"}
    booster = lightgbm.train(settings, lightgbm.Dataset(X, y), trees)
    found: dict[str, Call] = {"LightGBM": lambda Z: booster.predict(Z, num_threads=1)}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model.txt"))
        booster.save_model(path)
        compiled = lleaves.Model(model_file=path)
        start = time.perf_counter()
        try:
            compiled.compile()
        except AttributeError as error:
            # lleaves 1.3 calls functions that llvmlite has not had since 0.45.
            print(f"  lleaves does not run with this llvmlite: {error}")
            return found
        print(f"  lleaves compiles in {time.perf_counter() - start:.2f} s")
    return {"lleaves, LightGBM's trees": lambda Z: compiled.predict(Z, n_jobs=1), **found}


def compared(name: str, model: Any, X: Any, others: dict[str, Call]) -> None:
    """Measure all rows and one row."""
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    compiled = shine.trees.compile(model)
    compiled.predict(X[:1])
    print(f"\n{name}: ready in {time.perf_counter() - start:.2f} s\n  " + compiled.report.replace("\n", "\n  "))
    gap = np.abs(model.predict(X) - compiled.predict(X)).max()
    print(f"  largest difference to scikit-learn: {gap:g}")
    single = onnx_runtime(model, X.shape[1])
    X32 = X.astype(np.float32)
    for rows in (len(X), 1):
        part, part32 = X[:rows].copy(), X32[:rows].copy()
        calls: dict[str, Callable[[], Any]] = {
            "Shine": lambda part=part: compiled.predict(part, threads=1),
            "Shine, float32 rows": lambda part=part32: compiled.predict(part, threads=1),
            "scikit-learn": lambda part=part: model.predict(part),
        }
        if single:
            calls["ONNX Runtime"] = lambda part=part32: single(part)
        for other, call in others.items():
            calls[other] = lambda call=call, part=part: call(part)
        with threadpool_limits(1):
            unit, label = (1e3, "ms") if rows > 1 else (1e6, "us")
            shown(f" {rows} row{'s' * (rows > 1)}", medians(calls), unit, label)


def ensembles(options: argparse.Namespace) -> None:
    """Gradient boosting, and random forests."""
    from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor

    X, y = data(options.rows, options.features)
    size = {"max_leaf_nodes": options.leaves}
    hist = HistGradientBoostingRegressor(max_iter=options.trees, early_stopping=False, **size).fit(X, y)
    compared("HistGradientBoostingRegressor", hist, X, boosters(X, y, options.trees, options.leaves))
    fitted = GradientBoostingRegressor(n_estimators=options.trees, max_depth=None, random_state=0, **size)
    compared("GradientBoostingRegressor", fitted.fit(X[:4000], y[:4000]), X, {})
    leaves = [options.leaves, *([None] if options.forest else [])]
    for most in leaves:
        forest = RandomForestRegressor(options.trees, max_leaf_nodes=most, random_state=0, n_jobs=1)
        compared(f"RandomForestRegressor, at most {most} leaves", forest.fit(X, y), X, {})


def keys() -> None:
    """Tables of 1000 to a million keys: many at once, and one."""
    rng = np.random.default_rng(0)
    for count in (10**3, 10**4, 10**5, 10**6):
        sorted_keys = np.sort(rng.normal(size=count))
        table, listed = shine.trees.KeyTable(sorted_keys), sorted_keys.tolist()
        queries = rng.choice(sorted_keys, 100_000)
        numbers = queries.tolist()
        ones = queries[:1000].tolist()
        many = {
            "Shine": lambda table=table, queries=queries: table.searchsorted(queries),
            "Shine, find": lambda table=table, queries=queries: table.find(queries),
            "numpy.searchsorted": lambda keys=sorted_keys, queries=queries: np.searchsorted(keys, queries),
            "bisect": lambda keys=listed, queries=numbers: [bisect.bisect_left(keys, q) for q in queries],
        }
        shown(f"\n{count} keys, 100 000 queries at once", medians(many), 1e9 / len(queries), "ns a query")
        one = {
            "Shine": lambda table=table, ones=ones: [table[q] for q in ones],
            "numpy.searchsorted": lambda keys=sorted_keys, ones=ones: [np.searchsorted(keys, q) for q in ones],
            "bisect": lambda keys=listed, ones=ones: [bisect.bisect_left(keys, q) for q in ones],
        }
        shown(f"{count} keys, one query at a time", medians(one), 1e9 / len(ones), "ns a query")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--forest", action="store_true")
    parser.add_argument("--only", choices=("ensembles", "keys"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    # Libraries with OpenMP are imported after this.
    os.environ["OMP_NUM_THREADS"] = "1"
    if options.only != "keys":
        ensembles(options)
    if options.only != "ensembles":
        keys()


if __name__ == "__main__":
    main()
