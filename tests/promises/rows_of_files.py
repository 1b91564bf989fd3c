"""Rows of the files of a configuration, and of one model on every face."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from promises.faces import X, calculated, occurrences, run_config, search
from promises.table import REGRESSORS, row

CONFIG = {
    "primitives": ["add", "mul"],
    "evolution": {"population": 40, "seeding": 0.0, "max_size": 7},
    "fitness": {"noise": "absolute", "threads": 1},
    "stop": {"generations": 2},
}


def _of_csv(text: str, **data: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rows.csv").write_text(text)
        return run_config({**CONFIG, "data": {"path": "rows.csv", "target": "y", **data}}, Path(folder))


def _means(text: str, **data: Any) -> float:
    """The constant of the front, which is the mean of the target."""
    return float(_of_csv(text, **data).front[0].expression)


TABLE = "a,b,y\n" + "".join(f"{n},{n % 3},{2 * n + 1}\n" for n in range(20))


@row("X", "y", "features", faces=("config",))
def a_file_has_the_target_and_the_features(face: str) -> None:
    assert occurrences([model.expression for model in _of_csv(TABLE).front], "a") > 0
    assert occurrences([model.expression for model in _of_csv(TABLE, features=["b"]).front], "a") == 0
    assert _means(TABLE, target="a") == np.mean(range(20))


@row("data.missing", "data.missing_marks", "data.decimal", "data.categories", faces=("config",))
def a_file_is_read_as_the_keys_say(face: str) -> None:
    gaps = TABLE + "-999,1,60\n,2,60\n"
    assert _means(gaps, missing="drop", missing_marks=[-999]) == _means(TABLE)
    filled = _means(gaps, missing="mean", missing_marks=[-999])
    np.testing.assert_allclose(filled, (sum(2 * n + 1 for n in range(20)) + 120) / 22)
    with pytest.raises(AssertionError, match="missing"):
        _means(gaps)
    comma = "a;y\n" + "".join(f"{n},5;{n},25\n" for n in range(20))
    np.testing.assert_allclose(_means(comma, decimal=","), np.mean(range(20)) + 0.25)
    texts = "kind,a,y\n" + "".join(f"{'uvw'[n % 3]},{n},{n + 10 * (n % 3)}\n" for n in range(21))
    for categories, name in (("one-hot", "kind_is_"), ("ordinal", "kind"), ("ignore", "a")):
        assert name in str([model.expression for model in _of_csv(texts, categories=categories).front])
    with pytest.raises(AssertionError, match="kind"):
        _of_csv(texts)


@row("data.where", faces=("config",))
def a_condition_leaves_rows_out(face: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pd.DataFrame({"a": range(20), "y": [2.0 * n + 1 for n in range(20)]}).to_parquet(Path(folder, "rows.parquet"))
        data = {"path": "rows.parquet", "target": "y", "where": "a >= 10"}
        result = run_config({**CONFIG, "data": data}, Path(folder))
    assert float(result.front[0].expression) == np.mean([2 * n + 1 for n in range(10, 20)])


@row("data.fold", faces=("config",))
def a_fold_leaves_its_rows_out(face: str) -> None:
    means = [_means(TABLE, fold=f"{part}/4") for part in range(1, 5)]
    assert len(set(means)) == 4
    # Each row is left out once.
    np.testing.assert_allclose(np.mean(means), 20)


@row(*(f"data.generate{key}" for key in ("", ".rows", ".features", ".target", ".noise", ".seed")), faces=("config",))
def a_recipe_makes_the_rows(face: str) -> None:
    recipe = {"rows": 30, "features": {"a": {"uniform": {"low": 1, "high": 2}}}, "target": "3*a"}
    losses = {}
    for name, more in (("plain", {}), ("noisy", {"noise": 0.5}), ("other", {"noise": 0.5, "seed": 7})):
        with tempfile.TemporaryDirectory() as folder:
            losses[name] = run_config({**CONFIG, "data": {"generate": {**recipe, **more}}}, Path(folder)).best.loss
    assert losses["plain"] < 1e-20 < losses["noisy"] != losses["other"]


@row("X", faces=REGRESSORS)
def predictions_exports_and_the_text_agree(face: str) -> None:
    found = search(face, generations=3)
    best = found.fitted.best_ if face == "SymbolicRegressor" else found.fitted.best
    space: dict[str, Any] = {}
    exec(best.export("python", name="law"), space)
    np.testing.assert_allclose(space["law"](*X[0]), found.predict()[0], rtol=1e-12)
    np.testing.assert_allclose(calculated(best.expression, X), found.predict(), rtol=1e-12)
