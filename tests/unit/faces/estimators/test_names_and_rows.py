"""Names of columns in formulas, merged rows, guesses of a warm start, and checked parameters."""

from __future__ import annotations

import numpy as np
import pandas
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from shine.base.errors import DataError
from shine.data.columns.headings import check_features
from shine.data.datasets.dataset import Dataset
from shine.faces.estimators import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer
from shine.faces.estimators.checks import formula_names, seen
from shine.faces.estimators.parameters import checked_seed, checked_threads
from shine.lang.forms.library import STANDARD


@pytest.mark.parametrize(
    ("headings", "names"),
    [
        (["mass", "x_1"], ("mass", "x_1")),
        (["my col", "my_col", "my-col"], ("my_col_2", "my_col", "my_col_3")),
        (["a", "a", "a"], ("a", "a_2", "a_3")),
        (["a", "a", "a_2"], ("a", "a_3", "a_2")),
        (["lambda", "sin", "constant", "1st", "", "_"], ("lambda_", "sin_", "constant_", "x_1st", "x", "x_2")),
        (["größe", "密度"], ("größe", "密度")),
        (None, ("x0", "x1")),
    ],
)
def test_headings_become_names_that_formulas_can_have(headings, names):
    assert formula_names(headings, len(names)) == names


@given(st.lists(st.one_of(st.text(max_size=4), st.sampled_from(["a", "a_2", "a 2", "if", "exp", "None", "__x"]))))
def test_every_heading_gets_a_name_of_its_own(headings):
    names = formula_names(headings, len(headings))
    try:
        assert check_features(names) == names
    except DataError as error:  # pragma: no cover - the message says which
        pytest.fail(str(error))
    assert not set(names) & (set(STANDARD) | {"constant"})


@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
def test_weights_and_repetitions_in_any_order_are_the_same_rows(seed, count):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-1, 2, (count, 2)) / 2, rng.integers(0, 2, count) * 1.0
    weights = rng.integers(0, 4, count)
    weights[0] += 1
    repeated = rng.permutation(np.repeat(np.arange(count), weights))
    found = []
    for own, rows, target in ((weights * 1.0, X, y), (None, X[repeated], y[repeated])):
        own, rows, target, _ = seen(own, rows, target, shuffled=True)
        data = Dataset.from_arrays(rows, target, sample_weight=own).merged()
        found.append(np.vstack([*data.columns, data.target, data.row_weights]))
    assert np.array_equal(*found)
    assert found[0][-1].sum() == weights.sum()
    assert len(np.unique(found[0][:-1], axis=1).T) == len(found[0].T)


def test_threads_and_seeds_are_counted_as_scikit_learn_does():
    assert checked_threads(None) == 1
    assert checked_threads(3) == 3
    assert checked_threads(-1) >= checked_threads(-2) >= 1
    assert checked_seed(5) == 5
    assert checked_seed(np.random.RandomState(1)) == checked_seed(np.random.RandomState(1))
    for wrong in (0, 1.5, True):
        with pytest.raises(ValueError, match="n_jobs must be a whole number other than 0"):
            checked_threads(wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    "table",
    [
        lambda values, headings: pandas.DataFrame(values, columns=headings),
        lambda values, headings: pyarrow.table([*values.T], headings),
    ],
)
def test_equal_headings_are_told_in_the_same_words_by_every_method(table):
    values = np.random.default_rng(0).uniform(1, 2, (20, 2))
    equal, usual = table(values, ["a", "a"]), table(values, ["a", "b"])
    for kind in (SymbolicRegressor, SymbolicClassifier, SymbolicTransformer):
        estimator = kind(generations=1, population_size=20, random_state=0, settings={"seeding": 0.0})
        target = values[:, 0] > 1.5 if kind is SymbolicClassifier else values[:, 0]
        fitted = clone(estimator).fit(usual, target)
        asked = fitted.transform if kind is SymbolicTransformer else fitted.predict
        message = "X has 2 columns with the heading 'a'; rename them"
        with pytest.raises(ValueError, match=message):
            estimator.fit(equal, target)
        with pytest.raises(ValueError, match=message):
            asked(equal)
