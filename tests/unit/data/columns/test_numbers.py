"""Columns of tables for the parameters of formulas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import shine
from shine.base.errors import DataError
from shine.data.columns.numbers import columns_for
from shine.search.models.front import Front
from shine.search.models.model import Model

HEADINGS = {"my_area": "my area", "rooms": "rooms", "age": "age"}
NAMES = tuple(HEADINGS)
FRAME = pd.DataFrame({"my area": [1.0, 2.0], "rooms": [3, 4], "age": [5.0, 6.0]})
MODEL = Model(shine.parse("my_area - 10*rooms", NAMES), 0.0, 1.0, {}, HEADINGS)
VALUES = [-29.0, -38.0]


def tables(frame):
    yield frame
    yield pytest.importorskip("polars").from_pandas(frame)
    yield pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        FRAME[["age", "rooms", "my area"]],
        FRAME[["rooms", "my area"]],
        FRAME.rename(columns={"my area": "my_area"}),
        FRAME.assign(city=["Rome", "Oslo"], age=["old", None])[["city", "age", "rooms", "my area"]],
    ],
    ids=["as in the search", "reordered", "the used ones", "by name", "with texts beside them"],
)
def test_a_data_frame_s_columns_are_taken_by_heading_or_name(frame):
    for table in tables(frame):
        assert MODEL.predict(table).tolist() == VALUES
        assert Front((MODEL,), 0).best.predict(table).tolist() == VALUES


def test_an_array_has_its_columns_by_position():
    assert MODEL.predict(FRAME.to_numpy()).tolist() == VALUES
    assert MODEL.predict(FRAME.set_axis(range(3), axis=1)).tolist() == VALUES


def test_features_without_headings_are_taken_by_position_unless_a_frame_has_them():
    model = Model(shine.parse("x0 - 10*x1", ("x0", "x1")), 0.0, 1.0)
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    assert model.predict(frame).tolist() == [-19.0]
    assert model.predict(pd.DataFrame({"x1": [2.0], "x0": [1.0]})).tolist() == [-19.0]


def test_a_constant_has_a_value_for_each_row_of_any_frame():
    model = Model(shine.parse("2.5", NAMES), 0.0, 1.0, {}, HEADINGS)
    assert model.predict(pd.DataFrame({"city": ["Rome", "Oslo"]})).tolist() == [2.5, 2.5]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME[["rooms", "age"]], "X has no column 'my area', which the formula needs; it has rooms, age"),
        (FRAME.rename(columns={"rooms": "room"}), "no column 'rooms', .* did you mean 'room'"),
        (FRAME.assign(rooms=["three", "four"]), "X: column 'rooms' holds text, such as 'three'"),
        (FRAME.assign(rooms=[1.0, np.nan]), "column 'rooms' of X has 1 values that are NaN .* first in row 1"),
        (FRAME[["my area", "rooms", "rooms"]], "X has 2 columns with the heading 'rooms'"),
    ],
)
def test_a_frame_without_a_used_column_of_numbers_is_refused(frame, message):
    with pytest.raises(DataError, match=message):
        MODEL.predict(frame)


def test_columns_that_are_not_needed_are_zero():
    columns = columns_for(FRAME.drop(columns="age"), NAMES, HEADINGS, ["rooms"])
    assert [column.tolist() for column in columns] == [[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]]


@pytest.mark.slow
def test_the_result_of_a_search_predicts_a_reordered_frame():
    target = 2 * FRAME["rooms"].repeat(10) + np.arange(20)
    result = shine.evolve(FRAME.loc[target.index].assign(age=np.arange(20.0)), target, generations=0, seeding=0.0)
    rows = FRAME.assign(city="Rome")
    assert result.predict(rows[rows.columns[::-1]]).tolist() == result.predict(FRAME.to_numpy()).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [shine.SymbolicRegressor, shine.SymbolicClassifier, shine.SymbolicTransformer])
def test_an_estimator_wants_the_columns_of_fit_and_says_how_to_pass_them(kind):
    X = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) % 3})
    model = kind(generations=0, population_size=10, settings={"seeding": 0.0}).fit(X, X["a"] > 9)
    method = model.transform if kind is shine.SymbolicTransformer else model.predict
    for frame in (X[["b", "a"]], X.assign(city="Rome")):
        with pytest.raises(
            ValueError, match=r"(?s)The feature names should match .*X\[model.feature_names_in_\]"
        ) as caught:
            method(frame)
        assert ("best_.predict(X)" in str(caught.value)) == (kind is shine.SymbolicRegressor)
        assert np.array_equal(method(frame[model.feature_names_in_]), method(X))
