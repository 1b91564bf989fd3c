"""scikit-learn's requirements of every estimator, by its own checks and in its own tools."""

from __future__ import annotations

import copy
import pickle

import cloudpickle
import joblib
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from helpers.markers import mostly_slow
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from shine.estimators import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer

QUICK = {
    "population_size": 20,
    "generations": 1,
    "max_time": None,
    "max_size": 8,
    "primitives": ("add", "mul"),
    "random_state": 0,
    "n_jobs": 1,
    "settings": {"seeding": 0.0, "constant_steps": 0},
}
"""Parameters of a very short search, which finds little."""

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (60, 2))
Y = X[:, 0] * X[:, 1]
REGRESSOR = SymbolicRegressor(noise="absolute", **QUICK | {"generations": 3, "population_size": 40})
# Four nodes of its own, and four of its line.
CLASSIFIER = SymbolicClassifier(**QUICK | {"generations": 0, "max_size": 8})
TRANSFORMER = SymbolicTransformer(n_components=2, **QUICK)
ESTIMATORS = [REGRESSOR, CLASSIFIER, TRANSFORMER]


def named(estimator):
    return type(estimator).__name__


def fitted(estimator, columns=X):
    target = Y > 8 if isinstance(estimator, SymbolicClassifier) else Y
    return clone(estimator).fit(columns, target)


def values(estimator, columns=X):
    return estimator.transform(columns) if hasattr(estimator, "transform") else estimator.predict(columns)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::shine.ExtrapolationWarning")  # rows of weight 0 are predicted, too
@pytest.mark.parametrize("estimator", [REGRESSOR, CLASSIFIER, TRANSFORMER], ids=named)
def test_no_check_of_scikit_learn_fails(estimator):
    short = clone(estimator).set_params(generations=1, population_size=40)
    results = check_estimator(short, on_fail=None, on_skip=None)
    assert len(results) > 50
    assert [(each["check_name"], each["exception"]) for each in results if each["status"] == "failed"] == []
    # Arrays of other libraries are checked only where the environment says so before scikit-learn is imported.
    assert {each["check_name"] for each in results if each["status"] != "passed"} <= {"check_array_api_input"}


@pytest.fixture(scope="module", params=ESTIMATORS, ids=named)
def found(request):
    return fitted(request.param)


def test_a_fitted_estimator_can_be_copied_and_pickled(found, tmp_path):
    before = values(found)  # compiled by now
    path = tmp_path / "estimator"
    joblib.dump(found, path)
    copies = [
        pickle.loads(pickle.dumps(found)),
        cloudpickle.loads(cloudpickle.dumps(found)),
        joblib.load(path),
        copy.deepcopy(found),
    ]
    for other in copies:
        assert np.array_equal(values(other), before)
        assert repr(other) == repr(found)


def test_a_clone_has_the_parameters_and_nothing_else(found):
    assert clone(found).get_params() == found.get_params()
    assert [name for name in vars(clone(found)) if name.endswith("_")] == []


@pytest.mark.parametrize("jobs", mostly_slow([1, 2], fast=[1]))
def test_a_grid_search_fits_in_other_processes(jobs):
    search = GridSearchCV(REGRESSOR, {"max_size": [3, 5]}, n_jobs=jobs, cv=2).fit(X, Y)
    assert search.best_score_ > 0.99
    assert search.best_estimator_.best_.expression in {"x0*x1", "x1*x0"}


def test_a_pipeline_ends_with_a_formula():
    pipeline = make_pipeline(StandardScaler(), clone(REGRESSOR)).fit(X, X[:, 0])
    assert pipeline.score(X, X[:, 0]) == pytest.approx(1)


@pytest.mark.parametrize(
    "frame",
    [
        pandas.DataFrame(X, columns=["mass", "my col"]),
        polars.DataFrame(X, schema=["mass", "my col"]),
        pyarrow.table({"mass": X[:, 0], "my col": X[:, 1]}),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_data_frames_are_read_with_their_headings(frame):
    target = {"pandas": pandas.Series, "polars": polars.Series}.get(type(frame).__module__.split(".")[0], pyarrow.array)
    found = clone(REGRESSOR).fit(frame, target(Y))
    assert found.feature_names_in_.tolist() == ["mass", "my col"]
    assert found.formula_names_.tolist() == ["mass", "my_col"]
    assert found.best_.expression in {"mass*my_col", "my_col*mass"}
    assert np.array_equal(found.predict(frame), found.predict(frame))
    assert found.score(frame, Y) == 1.0


def test_a_transformer_makes_data_frames():
    transformer = clone(TRANSFORMER).set_output(transform="pandas")
    frame = transformer.fit_transform(pandas.DataFrame(X, columns=["a", "b"]), Y)
    assert list(frame.columns) == ["a", "b", *(model.expression for model in transformer.best_)]
    assert np.array_equal(frame.to_numpy(), transformer.set_output(transform="default").transform(frame_of(X)))


def frame_of(columns):
    return pandas.DataFrame(columns, columns=["a", "b"])


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_before_fit_there_is_nothing_to_ask_for(estimator):
    for question in (lambda e: e.equations_, lambda e: e.get_best(), lambda e: e.latex(), values):
        with pytest.raises(NotFittedError):
            question(clone(estimator))
    assert not hasattr(estimator, "equations_")


BAD = [
    ({"X": [[1.0, np.nan]] * 60}, ValueError, "Input X contains NaN"),
    ({"X": [[1.0, np.inf]] * 60}, ValueError, "Input X contains infinity"),
    ({"y": [np.nan] * 60}, ValueError, "Input y contains NaN"),
    ({"X": X[:1], "y": Y[:1]}, ValueError, r"Found array with 1 sample\(s\) .* while a minimum of 2 is required"),
    ({"X": np.empty((60, 0))}, ValueError, r"Found array with 0 feature\(s\) .* while a minimum of 1 is required"),
    ({"X": X[:3]}, ValueError, "Found input variables with inconsistent numbers of samples"),
    ({"X": X[:, 0]}, ValueError, "Expected 2D array, got 1D array instead"),
    ({"X": np.array([["a", "b"]] * 60)}, ValueError, "X: column 0 holds text, such as 'a'; column 1 holds text"),
    ({"X": np.array([[{}, 1]] * 60, dtype=object)}, (TypeError, ValueError), "must be a string or a real number"),
    ({"sample_weight": [-1.0] * 60}, ValueError, "Negative values in data passed to `sample_weight`"),
    ({"sample_weight": [0.0] * 60}, ValueError, "Sample weights must contain at least one non-zero number"),
    ({"sample_weight": [1.0] * 3}, ValueError, "sample_weight.shape"),
    ({"sample_weight": [np.nan] * 60}, ValueError, "Input sample_weight contains NaN"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
@pytest.mark.parametrize(("data", "error", "message"), BAD)
def test_bad_data_are_refused_in_scikit_learn_s_words(estimator, data, error, message):
    with pytest.raises(error, match=message):
        clone(estimator).fit(**{"X": X, "y": np.int64(Y > 8) * 1.0} | data)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_sparse_data_are_refused(estimator):
    from scipy import sparse

    with pytest.raises(TypeError, match="Sparse data was passed"):
        clone(estimator).fit(sparse.csr_array(X), Y > 8)


def test_other_columns_than_in_fit_are_refused(found):
    with pytest.raises(ValueError, match=r"X has 3 features, but Symbolic.* is expecting 2 features as input"):
        values(found, np.ones((2, 3)))
    with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
        values(fitted(found, frame_of(X)), pandas.DataFrame(X, columns=["b", "c"]))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"max_size": 0}, ValueError, "max_size must be at least 1, is 0"),
        ({"settings": {"population": 10}}, ValueError, "settings has 'population'; use the parameter population_size"),
        (
            {"settings": {"tournamnt": 10}},
            ValueError,
            "settings has no 'tournamnt'; did you mean 'tournament'",
        ),
        (
            {"model_selection": "good"},
            ValueError,
            "model_selection must be one of 'best', .* is 'good'",
        ),
        ({"model_selection": lambda front: 99}, ValueError, "model_selection chose formula 99 of a front that has"),
        ({"model_selection": lambda front: None}, ValueError, "chose formula None of .*; return a position, 0 to"),
        ({"model_selection": lambda front: front[0]}, ValueError, "chose formula .* of .*; return a position, 0 to"),
        ({"dtype": "int32"}, ValueError, "dtype must be one of float64, float32, is 'int32'"),
        ({"primitives": ["plus"]}, ValueError, "unknown primitive 'plus'"),
        ({"constraints": {"most": 1}}, ValueError, "constraints has no 'most'"),
    ],
)
@pytest.mark.parametrize("estimator", mostly_slow(ESTIMATORS, fast=ESTIMATORS[:1]), ids=named)
def test_bad_parameters_are_named(estimator, parameters, error, message):
    with pytest.raises(error, match=message):
        fitted(clone(estimator).set_params(**parameters))
