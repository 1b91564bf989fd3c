"""A front that is found on a sample is fitted to and judged on all rows, as if they were in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shine
from shine.data.opening import open_dataset
from shine.data.streams import streaming
from shine.search.models.result import Result

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

SETTINGS: dict[str, Any] = {
    "primitives": ["add", "mul", "div"],
    "generations": 6,
    "seconds": None,
    "population": 100,
    "features": ["a", "b"],
    "seeding_members": 300,
}


def table(rows: int = 3000) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(1, 5, (2, rows))
    sigma = rng.uniform(0.05, 0.3, rows)
    y = 2.51 * a / b + 1.73 + sigma * rng.normal(size=rows)
    counts = rng.poisson(3 * a * b).astype(float)
    return {"a": a, "b": b, "y": y, "s": sigma, "w": rng.integers(1, 4, rows).astype(float), "counts": counts}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    parquet.write_table(pyarrow.table(table()), tmp_path / "d.parquet", row_group_size=700)
    return tmp_path / "d.parquet"


def alike(found: Result, memory: Result) -> None:
    """Check that two results say the same."""
    assert [model.expression for model in found.front] == [model.expression for model in memory.front]
    assert found.best_index == memory.best_index
    for own, other in zip(found.front, memory.front, strict=True):
        assert own.loss == pytest.approx(other.loss, rel=1e-12)
        assert own.r2 == pytest.approx(other.r2, rel=1e-12)
        assert own.digits == other.digits
        for name, error in own.standard_errors().items():
            assert error == pytest.approx(other.standard_errors()[name], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"sigma": "s"}, {"sample_weight": "w", "loss": "mae"}, {"y": "counts", "loss": "poisson"}]
)
def test_the_front_is_that_of_the_table_in_memory_if_the_sample_is_the_whole(path, options):
    options = {"y": "y", **SETTINGS, **options}
    memory = shine.evolve(open_dataset(path), **options)
    alike(shine.evolve(open_dataset(path, stream=True), **options), memory)


@pytest.mark.slow
def test_digits_are_counted_without_a_forbidden_column(path):
    options = {**SETTINGS, "generations": 0, "population": 20, "seeding_members": 30, "guesses": ["a/b"]}
    options |= {"features": ["w", "a", "b"], "constraints": {"forbidden": ["w"]}}
    best = shine.evolve(open_dataset(path, stream=True), "y", sigma="s", **options).best
    assert best.tree.used_parameters == ("a", "b") and best.digits


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows in memory, and small blocks."""
    monkeypatch.setattr(streaming, "SAMPLE_ROWS", 400)


@pytest.mark.slow
def test_constants_losses_and_errors_are_those_of_all_rows(path, sampled):
    result = shine.evolve(open_dataset(path, stream=True), "y", **SETTINGS)
    assert result.reason.endswith("; by all 3000 rows")
    rows = table()
    X = np.column_stack([rows["a"], rows["b"]])
    law = next(model for model in result.front if len(model.form().names) == 2 and model.r2 > 0.9)
    residuals = rows["y"] - law.predict(X)
    assert law.loss == pytest.approx(np.mean(residuals**2), rel=1e-9)
    assert law.r2 == pytest.approx(1 - np.mean(residuals**2) / np.var(rows["y"]), rel=1e-9)
    # Ordinary least squares on all rows is an independent judge of a law that is linear in its constants.
    design = np.column_stack([rows["a"] / rows["b"], np.ones(3000)])
    coefficients, (left,), _, _ = np.linalg.lstsq(design, rows["y"], rcond=None)
    covariance = np.linalg.inv(design.T @ design) * left / (3000 - 2)
    assert law.loss == pytest.approx(left / 3000, rel=2e-3)
    assert sorted(law.uncertainty.best) == pytest.approx(sorted(coefficients), rel=1e-5)
    assert sorted(law.standard_errors(covariance="auto").values()) == pytest.approx(
        sorted(np.sqrt(np.diagonal(covariance))), rel=0.05
    )
    assert law.uncertainty.rows == 3000
    assert law.uncertainty.ranges["a"] == (rows["a"].min(), rows["a"].max())


@pytest.mark.slow
def test_the_result_does_not_depend_on_row_groups_or_threads(path, sampled, tmp_path):
    first = shine.evolve(open_dataset(path, stream=True), "y", **SETTINGS, threads=1)
    other = tmp_path / "other.parquet"
    parquet.write_table(pyarrow.table(table()), other, row_group_size=101)
    second = shine.evolve(open_dataset(other, stream=True), "y", **SETTINGS, threads=2)
    assert [(m.expression, m.loss, m.r2) for m in first.front] == [(m.expression, m.loss, m.r2) for m in second.front]
    assert first.reason == second.reason


@pytest.mark.slow
def test_rows_that_are_kept_back_choose_the_formula_and_all_rows_fit_it(path, sampled):
    result = shine.evolve(open_dataset(path, stream=True), "y", **SETTINGS, validation="random")
    assert "rows that the search did not see" in result.reason
    assert result.reason.endswith("; by all 3000 rows")
    assert result.best.uncertainty.rows == 3000


@pytest.mark.slow
def test_a_front_from_a_pickle_has_the_same_errors(path, sampled):
    import pickle

    result = shine.evolve(open_dataset(path, stream=True), "y", **SETTINGS)
    again = pickle.loads(pickle.dumps(result))
    assert again.best.standard_errors() == result.best.standard_errors()
    assert str(again.best.summary()) == str(result.best.summary())


@pytest.mark.parametrize(
    "options, message",
    [
        ({"template": "f(a)*b"}, "a template needs all rows in memory"),
        ({"objective": lambda predictions: predictions[:, 0]}, "an objective needs all rows in memory"),
    ],
)
def test_what_needs_all_rows_is_refused(path, options, message):
    settings = {name: value for name, value in SETTINGS.items() if name != "features"}
    with pytest.raises(shine.DataError, match=message):
        shine.evolve(
            open_dataset(path, stream=True),
            "y",
            features=["a", "b"],
            **options,
            **{name: value for name, value in settings.items() if name not in options},
        )


def test_columns_of_opened_data_are_given_by_heading(path):
    with pytest.raises(TypeError, match=r"X is .*: y is the heading of one of its columns"):
        shine.evolve(path, np.zeros(3000), generations=0)
    with pytest.raises(shine.DataError, match="there is no column 'z'"):
        shine.evolve(path, "z", generations=0)
