"""Values that look like marks of missing ones are named, on every face, and those of real columns are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import shine
from shine.base.typing import Floats
from shine.data.columns.numbers import numbers
from shine.data.datasets.doubts import doubts, facts, marks
from shine.data.loading import load
from shine.data.trajectory_tables import trajectories
from shine.faces.mcp.tables import describe_table

RNG = np.random.default_rng(0)
ORDINARY = RNG.uniform(20, 40, 60)


def marked(mark: float, count: int = 3, values: Floats = ORDINARY) -> Floats:
    return np.where(np.arange(len(values)) < count, mark, values)


@pytest.mark.parametrize("mark", [-999.0, -9999.0, 9999.0, 99.99, 1e30, 0.0, -888.0, float(np.float32(-999.9))])
def test_repeated_values_far_outside_are_marks(mark: float) -> None:
    assert list(marks(marked(mark, values=ORDINARY + 100 * (mark == 0))).values()) == [mark]


def test_several_marks_of_a_column_are_found_at_both_ends() -> None:
    values = marked(-999, 3)
    values[10:12], values[20:22] = -9999, 9999
    assert list(marks(values)) == ["-9999", "-999", "9999"]


NO_MARKS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "a single outlier": lambda rng, n: np.append(rng.normal(size=n), -999.0),
    "binary": lambda rng, n: (rng.uniform(size=n) < 0.1) * 1000.0,
    "counts": lambda rng, n: rng.negative_binomial(0.3, 0.01, n) * 1.0,
    "heavy counts": lambda rng, n: rng.zipf(1.5, n) * 1.0,
    "zero-inflated": lambda rng, n: np.exp(rng.normal(size=n)) * (rng.uniform(size=n) < 0.5),
    "log-normal, drawn again": lambda rng, n: rng.choice(np.exp(3 * rng.normal(size=n)), n),
    "Cauchy, twice": lambda rng, n: np.repeat(rng.standard_cauchy(n), 2),
    "clipped": lambda rng, n: np.clip(rng.normal(size=n), -1, 0.5),
    "saturated": lambda rng, n: np.minimum(np.exp(2 * rng.normal(size=n)), 8),
    "decades": lambda rng, n: rng.choice(10.0 ** np.arange(-3, 4), n),
    "levels": lambda rng, n: rng.choice([1.0, 2.0, 3.0, 20.0], n),
    "on and off": lambda rng, n: np.where(rng.uniform(size=n) < 0.5, 0, rng.normal(1500, 20, n)),
    "prices": lambda rng, n: np.floor(np.exp(rng.normal(3, 1, n))) + 0.99,
    "constant": lambda _, n: np.full(n, 99.0),
    "none": lambda _, n: np.zeros(0 * n),
}


@pytest.mark.parametrize("family", NO_MARKS)
def test_real_columns_have_no_marks(family: str) -> None:
    rng = np.random.default_rng(1)
    assert [n for n in (3, 5, 10, 30, 100, 300) for _ in range(10) if marks(NO_MARKS[family](rng, n))] == []


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "d.csv"
    pd.DataFrame({"a b": marked(-999), "c": ORDINARY, "y": ORDINARY}).to_csv(path, index=False)
    return path


TOLD = r"'?a b'?: -999 in 3 rows is far from all other values; .* missing_marks: \[-999\]"


def test_arrays_frames_and_files_warn(table: Path) -> None:
    frame = pd.read_csv(table)
    few = {"primitives": ["add"], "generations": 0}
    with pytest.warns(UserWarning, match=TOLD):
        shine.evolve(frame, "y", **few)
    with pytest.warns(UserWarning, match=TOLD):
        shine.evolve(table, "y", **few)
    with pytest.warns(UserWarning, match=TOLD):
        shine.SymbolicRegressor(**few).fit(frame[["a b", "c"]], frame["y"])
    with pytest.warns(UserWarning, match="the target: -999 in 3 rows"):
        shine.evolve(frame[["c"]], marked(-999), **few)


def test_the_named_key_treats_them(table: Path) -> None:
    opened = shine.data.open_dataset(table, missing="drop", missing_marks=[-999])
    assert doubts(load(opened, "y").dataset) == []


def test_agents_and_trajectories_are_told_too(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(table.parent)
    assert any("-999 in 3 rows" in text for text in describe_table("d.csv")["warnings"])
    with pytest.warns(shine.SamplingWarning, match="state 'x': 1e\\+30 in 3 rows"):
        trajectories(pd.DataFrame({"x": marked(1e30, 3, np.sin(np.arange(60) / 9))}), 1.0)


def test_few_rows_and_a_constant_target_are_noted(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,y\n1,3\n2,3\n4,3\n")
    assert facts(load(tmp_path / "d.csv", "y").dataset) == [
        "3 rows: nearly every formula fits them", "the target is 3 in all rows",
    ]  # fmt: skip


def test_digits_that_float64_does_not_hold_are_noted(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,b,y\n9007199254740993,9007199254740992,1\n3,1e30,2\n")
    told = "column 'a': whole numbers beyond 2**53 lose digits (1 of them); subtract a common one, or leave keys out"
    assert load(tmp_path / "d.csv", "y").notes == (told,)
    whole = np.array([[2**53 + 1, 2], [2**53, 2**60]])
    with pytest.warns(UserWarning, match="X: whole numbers beyond"):
        numbers(whole, "X", 2)
    with pytest.warns(UserWarning, match="column 'a': whole"):
        numbers(pd.DataFrame({"a": [2**53 + 1, 1], "b": [0.5, 1e30]}), "X", 2)
