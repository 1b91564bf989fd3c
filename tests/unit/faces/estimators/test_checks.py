"""What R hands over is understood, and what it cannot hand over is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import shine
from shine import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer
from shine.base.errors import DataError
from shine.faces.estimators.parameters import checked_seed, checked_threads

X = np.random.default_rng(0).uniform(1, 2, (30, 2))
Y = X[:, 0] * X[:, 1]
QUICK = {"generations": 1.0, "population_size": 20.0, "max_size": 10.0, "settings": {"seeding": 0.0, "islands": 2.0}}
NA = -(2**31)


def test_whole_floats_are_integers():
    assert (checked_threads(2.0), checked_seed(3.0), checked_seed(np.float64(3))) == (2, 3, 3)
    assert isinstance(checked_seed(3.0), int)


@pytest.mark.slow
def test_estimators_take_whole_floats():
    floats = SymbolicRegressor(n_jobs=1.0, random_state=1.0, max_depth=5.0, **QUICK).fit(X, Y)
    integers = SymbolicRegressor(n_jobs=1, random_state=1, max_depth=5, **QUICK).fit(X, Y)
    assert list(map(str, floats.front_)) == list(map(str, integers.front_))
    components = SymbolicTransformer(n_components=2.0, raw_features=False, random_state=0.0, **QUICK)
    assert components.fit_transform(X, Y).shape[1] <= 2


@pytest.mark.parametrize("estimator", [SymbolicRegressor, SymbolicClassifier, SymbolicTransformer])
def test_missing_integers_of_r_are_told(estimator):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": X[:, 0], "my rooms": np.arange(30, dtype=np.int32)})
    frame.loc[4, "my rooms"] = NA
    with pytest.raises(ValueError, match="X has -2147483648 in row 4 of column 'my rooms', which is NA"):
        estimator(**QUICK).fit(frame, Y > 2)


def test_a_lazy_frame_of_features_is_told_with_a_template_too():
    frame = pytest.importorskip("polars").LazyFrame({"a": Y})
    with pytest.raises(TypeError, match="X is of type LazyFrame"):
        SymbolicRegressor(template="f(a)", **QUICK).fit(frame, Y)


def test_missing_classes_are_told():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="Input y contains missing values"):
        SymbolicClassifier(**QUICK).fit(X, pandas.Series([None, "b"] * 15).astype("string"))


@pytest.mark.parametrize("kind", [SymbolicRegressor, SymbolicClassifier, SymbolicTransformer])
@pytest.mark.parametrize("given", ["rows.parquet", Path("rows.csv")])
def test_paths_are_refused_with_the_way_that_works(kind, given):
    with pytest.raises(TypeError, match=r"^X is .*; estimators take arrays and data frames\. shine\.evolve"):
        kind().fit(given, "y")


def unread(kind):
    """Something with the values of Y that no array can be made of."""
    if kind == "generator":
        return (value for value in Y)
    if kind == "LazyFrame":
        return pytest.importorskip("polars").LazyFrame({"y": Y})
    table = pytest.importorskip("pyarrow").table({"y": Y})
    if kind == "DuckDBPyRelation":
        return pytest.importorskip("duckdb").connect().from_arrow(table)
    if kind == "RecordBatchReader":
        return table.to_reader()
    found = pytest.importorskip("pyarrow.dataset").dataset(table)
    return found if kind == "InMemoryDataset" else found.scanner()


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["LazyFrame", "DuckDBPyRelation", "InMemoryDataset", "RecordBatchReader", "Scanner", "generator"]
)
@pytest.mark.parametrize("role", ["y", "sample_weight", "sigma", "groups"])
def test_values_that_are_not_computed_yet_are_told(kind, role):
    message = f"^{role} is of type {kind}, which is no array"
    for fit in (SymbolicRegressor(**QUICK).fit, shine.evolve):
        with pytest.raises(DataError, match=message):
            fit(X, **{"y": Y, role: unread(kind)})
    if role == "y":
        for estimator in (SymbolicClassifier(**QUICK), SymbolicTransformer(**QUICK)):
            with pytest.raises(DataError, match=message):
                estimator.fit(X, unread(kind))


def test_predictions_refuse_paths_and_take_memory_maps(tmp_path):
    np.save(tmp_path / "x.npy", X)
    model = SymbolicRegressor(**QUICK).fit(X, Y)
    with pytest.raises(TypeError, match=r"^X is .x\.npy.; .* predict_file"):
        model.predict("x.npy")
    np.testing.assert_array_equal(model.predict(np.load(tmp_path / "x.npy", mmap_mode="r")), model.predict(X))


@pytest.mark.slow
def test_sparse_columns_of_a_frame_are_read():
    pandas = pytest.importorskip("pandas")
    dense = pandas.DataFrame({"a": [0.0, 1, 2, 3], "b": [1.0, 0, 0, 2], "c": [5, 6, 7, 9]})
    sparse = dense.astype({"a": pandas.SparseDtype(float, 0.0), "b": pandas.SparseDtype(float, np.nan)})
    every = dense.astype(pandas.SparseDtype(float, 1.0))
    y = pandas.Series([0, 1, 0, 3], dtype=pandas.SparseDtype(int, 0))
    expected = SymbolicRegressor(generations=0, random_state=0).fit(dense, y.to_numpy()).best_
    for frame in (sparse, every):
        model = SymbolicRegressor(generations=0, random_state=0).fit(frame, y)
        assert model.best_.expression == expected.expression
        assert model.predict(frame).shape == (4,)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_without_columns_is_told(library):
    frame = pytest.importorskip(library).DataFrame()
    with pytest.raises(ValueError, match="X has no columns; SymbolicRegressor needs at least one feature"):
        SymbolicRegressor().fit(frame, [1.0, 2.0])


def test_a_heading_as_target_is_told():
    frame = pytest.importorskip("pandas").DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0]})
    with pytest.raises(TypeError, match=r"y is 'y'; estimators take .* fit\(X.drop\(columns='y'\), X\['y'\]\)"):
        SymbolicRegressor().fit(frame, "y")


@pytest.mark.parametrize("weights", ["weights", ["a", "b", "c"], [[1], [1, 2], [3]]])
def test_weights_that_are_no_numbers_are_told(weights):
    with pytest.raises(ValueError, match=r"^sample_weight .*number"):
        SymbolicRegressor().fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0], sample_weight=weights)


def test_a_target_without_columns_is_told():
    import pandas

    with pytest.raises(ValueError, match="y has no columns"):
        SymbolicRegressor().fit([[1.0], [2.0], [3.0]], pandas.DataFrame(index=range(3)))


@pytest.mark.parametrize("kind", [SymbolicRegressor, SymbolicClassifier, SymbolicTransformer])
def test_complex_numbers_are_refused_with_what_to_do(kind):
    X = np.ones((20, 2))
    for given, y in ((X, 1j * X[:, 0]), (1j * X, X[:, 0])):
        if kind is not SymbolicClassifier or given is not X:
            with pytest.raises(
                ValueError, match=r"Complex data not supported: take .* two outputs of a template"
            ) as told:
                kind().fit(given, y)
            assert "\n" not in str(told.value)
