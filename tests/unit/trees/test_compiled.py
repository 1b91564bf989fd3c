"""Compiled estimators predict what scikit-learn's predict: sums of trees to the last bit."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from helpers.markers import mostly_slow
from sklearn import ensemble as ensembles
from sklearn import tree as trees
from sklearn.exceptions import ConvergenceWarning

import shine
from shine.trees import CompiledRegressor

METHODS = ("predict", "predict_proba", "decision_function")
COUNT = 300


def table(kind: str) -> Any:
    """Rows of five features: as they are, with missing values, or with categories and missing values."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(COUNT, 5))
    X[:, 2] = np.round(X[:, 2])
    if kind == "categories":
        X[:, 1], X[:, 3] = rng.integers(0, 40, COUNT), rng.integers(-3, 5, COUNT) * 2.5
    if kind != "numbers":
        X[rng.random(X.shape) < 0.1] = np.nan
    return X


def target(X: Any, kind: str) -> Any:
    """Numbers or classes that depend on rows."""
    filled = np.nan_to_num(X)
    y = filled[:, 0] * filled[:, 1] + np.sin(3 * filled[:, 3]) + filled[:, 2]
    classes = np.array(["low", "middle", "top"])[np.digitize(y, [-0.5, 0.7])]
    return {
        "number": y,
        "positive": np.abs(y),
        "constant": np.zeros(COUNT),
        "numbers": np.column_stack([y, filled[:, 2] ** 2]),
        "classes": classes,
        "two": classes == "top",
        "several": np.column_stack([np.digitize(y, [0.0, 1.0]), filled[:, 2] > 0]),
    }[kind]


CASES = {
    "tree": (trees.DecisionTreeRegressor(random_state=0), "missing", "number"),
    "leaf": (trees.DecisionTreeRegressor(), "numbers", "constant"),
    "stump": (trees.DecisionTreeRegressor(max_depth=1), "missing", "number"),
    "extra tree": (trees.ExtraTreeRegressor(random_state=0), "numbers", "numbers"),
    "tree of targets": (trees.DecisionTreeRegressor(max_leaf_nodes=31), "numbers", "numbers"),
    "tree of classes": (trees.DecisionTreeClassifier(random_state=0), "missing", "classes"),
    "tree of labels": (trees.DecisionTreeClassifier(max_depth=4), "numbers", "several"),
    "forest": (ensembles.RandomForestRegressor(12, random_state=0), "missing", "number"),
    "forest of targets": (ensembles.RandomForestRegressor(8, max_leaf_nodes=40, random_state=0), "numbers", "numbers"),
    "forest of classes": (ensembles.RandomForestClassifier(9, random_state=0), "numbers", "classes"),
    "forest of labels": (ensembles.RandomForestClassifier(9, max_depth=5, random_state=0), "numbers", "several"),
    "32 leaves": (ensembles.ExtraTreesRegressor(5, max_leaf_nodes=32, random_state=0), "numbers", "number"),
    "64 leaves": (ensembles.ExtraTreesRegressor(5, max_leaf_nodes=64, random_state=0), "numbers", "number"),
    "65 leaves": (ensembles.ExtraTreesClassifier(5, max_leaf_nodes=65, random_state=0), "numbers", "classes"),
    "boosting": (ensembles.GradientBoostingRegressor(n_estimators=15, random_state=0), "numbers", "number"),
    "from zero": (ensembles.GradientBoostingRegressor(n_estimators=5, init="zero"), "numbers", "number"),
    "boosted classes": (ensembles.GradientBoostingClassifier(n_estimators=8, random_state=0), "numbers", "classes"),
    "two boosted classes": (ensembles.GradientBoostingClassifier(n_estimators=8), "numbers", "two"),
    "exponential": (
        ensembles.GradientBoostingClassifier(n_estimators=8, loss="exponential"), "numbers", "two",
    ),
    "histograms": (ensembles.HistGradientBoostingRegressor(max_iter=15), "missing", "number"),
    "large and small": (
        ensembles.HistGradientBoostingRegressor(max_iter=9, max_leaf_nodes=90, min_samples_leaf=2), "missing", "number",
    ),
    "counts": (ensembles.HistGradientBoostingRegressor(max_iter=15, loss="poisson"), "missing", "positive"),
    "categories": (
        ensembles.HistGradientBoostingRegressor(max_iter=15, categorical_features=[1, 3], min_samples_leaf=5),
        "categories", "number",
    ),
    "many categories": (
        ensembles.HistGradientBoostingRegressor(
            max_iter=6, categorical_features=[1, 3], max_leaf_nodes=120, min_samples_leaf=2
        ),
        "categories", "number",
    ),
    "classes by histograms": (
        ensembles.HistGradientBoostingClassifier(max_iter=8, categorical_features=[1]), "categories", "classes",
    ),
    "two by histograms": (ensembles.HistGradientBoostingClassifier(max_iter=8), "missing", "two"),
}  # fmt: skip
"""An estimator, its rows, and its target."""

FAST = ("tree", "leaf", "tree of labels", "65 leaves", "boosted classes", "two boosted classes", "many categories")


def fitted(name: str) -> tuple[Any, Any, Any]:
    """A fitted estimator, its compiled form, and its rows."""
    model, rows, goal = CASES[name]
    X = table(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, target(X, goal))
    return model, shine.trees.compile(model), X


def is_same(found: Any, expected: Any, digits: float) -> bool:
    """Whether results have the same types and bits, or differ in the last digits only."""
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(is_same, found, expected, [digits] * len(found)))
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if digits:
        return np.allclose(found, expected, rtol=digits, atol=0)
    return np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("name", mostly_slow(CASES, FAST))
def test_predictions_are_those_of_scikit_learn(name):
    model, compiled, X = fitted(name)
    strange = X * 1.37
    strange[0], strange[1], strange[2], strange[3] = 0.0, -0.0, 5e-324, 1e30
    batches = [X, X[:1], X[:17], X[:33], np.asfortranarray(X), X[::3], X[::-1], X.astype(np.float32), strange]
    if compiled.reading.allows_infinite and not compiled.reading.categories:
        batches += [np.full_like(X, np.inf), np.full_like(X, -np.inf), np.full_like(X, 1e300)]
    if compiled.reading.allows_nan:
        batches.append(np.full_like(X, np.nan))
    for method in METHODS:
        assert hasattr(compiled, method) == hasattr(model, method)
        if hasattr(model, method):
            link = compiled.reading.ensemble.link
            digits = 4e-15 if link != "identity" and (method == "predict_proba" or name == "counts") else 0.0
            for batch in batches:
                assert is_same(getattr(compiled, method)(batch), getattr(model, method)(batch), digits)


@pytest.mark.parametrize("name", ["forest", "histograms"])
def test_thresholds_themselves_go_left(name):
    model, compiled, X = fitted(name)
    found = np.concatenate([tree.threshold[tree.feature >= 0] for tree in compiled.reading.ensemble.trees])
    found = found[np.isfinite(found)]
    near = [np.nextafter(found, -np.inf), found, np.nextafter(found, np.inf)]
    rows = np.concatenate([np.repeat(values[:60, None], X.shape[1], axis=1) for values in near])
    assert is_same(compiled.predict(rows), model.predict(rows), 0.0)


def test_categories_may_be_text_and_columns_of_a_frame():
    frames = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    words = rng.choice(["red", "green", "blue", "grey"], COUNT)
    X = frames.DataFrame(
        {"size": rng.normal(size=COUNT), "colour": frames.Categorical(words), "age": rng.normal(size=COUNT)}
    )
    model = ensembles.HistGradientBoostingRegressor(max_iter=10, categorical_features="from_dtype")
    model.fit(X, X["size"] + (words == "red"))
    compiled = shine.trees.compile(model)
    assert is_same(compiled.predict(X), model.predict(X), 0.0)
    other = X.assign(colour=frames.Categorical(np.where(words == "red", "pink", None)))
    assert is_same(compiled.predict(other), model.predict(other), 0.0)
    with pytest.raises(
        ValueError, match="in another order; the HistGradientBoostingRegressor was fitted to size, colour"
    ):
        compiled.predict(X[["colour", "size", "age"]])
    with pytest.raises(ValueError, match="no column 'size'"):
        compiled.predict(X.rename(columns={"size": "width"}))


def test_rows_do_not_depend_on_threads_or_on_each_other():
    _, compiled, X = fitted("forest")
    many = np.tile(X, (20, 1))
    alone = compiled.predict(many, threads=1)
    assert is_same(compiled.predict(many, threads=3), alone, 0.0)
    assert is_same(np.concatenate([compiled.predict(row[None]) for row in X[:40]]), alone[:40], 0.0)


def test_no_rows_give_no_predictions():
    _, compiled, X = fitted("boosted classes")
    assert compiled.predict(X[:0]).shape == (0,)
    assert compiled.predict_proba(X[:0]).shape == (0, 3)


def test_a_pickled_one_predicts_the_same_without_scikit_learn():
    _, compiled, X = fitted("boosted classes")
    again = pickle.loads(pickle.dumps(compiled))
    assert is_same(again.predict_proba(X), compiled.predict_proba(X), 0.0)
    assert again.classes_.tolist() == ["low", "middle", "top"]


def test_it_says_what_it_is():
    _, compiled, _ = fitted("two boosted classes")
    assert repr(compiled).startswith("<CompiledBoostedClassifier of GradientBoostingClassifier: 8 trees, ")
    assert "8 trees as lists of" in compiled.report
    assert 'define internal i32 @"ensemble"' in compiled.ir
    assert isinstance(fitted("leaf")[1], CompiledRegressor)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros((2, 4)), ValueError, "X has 4 features; the DecisionTreeRegressor was fitted to 5"),
        (np.zeros(5), ValueError, r"X has one dimension; for one row, give X.reshape\(1, -1\)"),
        (np.zeros((1, 1, 5)), ValueError, "X has 3 dimensions; give rows of 5 features"),
        (np.full((1, 5), np.nan), ValueError, "X has NaN, which a DecisionTreeRegressor does not take"),
        (np.full((1, 5), np.inf), ValueError, "X has infinity, or a number too large for float32"),
        (np.full((1, 5), 1e39), ValueError, "X has infinity, or a number too large for float32"),
        ([[1.0, "a", 2.0, 3.0, 4.0]], ValueError, "X has values of type <U32; give numbers"),
        (np.array([[1, 2, "a", 3, 4]], object), ValueError, "column 2 of X has values that are not numbers"),
        ([[1.0], [1.0, 2.0]], ValueError, "the rows of X have different lengths"),
    ],
)
def test_bad_rows_are_refused(X, error, message):
    rows = table("numbers")
    model = trees.DecisionTreeRegressor(splitter="random", random_state=0).fit(rows, target(rows, "number"))
    compiled = shine.trees.compile(model)
    compiled.reading.__dict__["allows_nan"] = False
    with pytest.raises(error, match=message):
        compiled.predict(X)


def test_numbers_of_other_types_are_rounded_once():
    model, compiled, X = fitted("tree")
    for other in (
        np.round(np.nan_to_num(X) * 1e9).astype(np.int64),
        X > 0,
        X.astype(np.float16),
        X.tolist(),
        X.astype(object),
    ):
        assert is_same(compiled.predict(other), model.predict(other), 0.0)


def test_threads_must_be_a_number():
    _, compiled, X = fitted("leaf")
    for threads in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="threads must be a whole number from 1 on"):
            compiled.predict(X, threads=threads)


def test_what_cannot_be_compiled_is_refused():
    from scipy import sparse
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    X, y = table("numbers"), target(table("numbers"), "number")
    search = GridSearchCV(trees.DecisionTreeRegressor(), {"max_depth": [1, 2]}).fit(X, y)
    stated = ensembles.GradientBoostingRegressor(init=LinearRegression(), n_estimators=2).fit(X, y)
    for model, error, message in [
        (
            LinearRegression().fit(X, y),
            TypeError,
            "LinearRegression cannot be compiled; there are DecisionTreeRegressor",
        ),
        (search, TypeError, "GridSearchCV cannot be compiled: compile its best_estimator_"),
        (make_pipeline(trees.DecisionTreeRegressor()), TypeError, "Pipeline cannot be compiled: compile its last step"),
        (trees.DecisionTreeRegressor, TypeError, "give a fitted estimator, not its class"),
        (trees.DecisionTreeRegressor(), ValueError, "the DecisionTreeRegressor is not fitted; call its fit first"),
        (stated, ValueError, r"begins from a LinearRegression \(init\)"),
        (type("Booster", (), {"__module__": "lightgbm.basic"})(), TypeError, "models of lightgbm are not read"),
        (None, TypeError, "NoneType cannot be compiled"),
    ]:
        with pytest.raises(error, match=message):
            shine.trees.compile(model)
    with pytest.raises(TypeError, match=r"X is a sparse matrix; give X.toarray\(\)"):
        shine.trees.compile(search.best_estimator_).predict(sparse.csr_matrix(X))
