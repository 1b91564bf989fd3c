"""Columns beside the features: taken out of data frames, or given as arrays."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.base.errors import DataError
from shine.data.columns.headings import check_heading, frame_headings, split_loss_columns, without_columns

VALUES = {"a": [1.0, 2.0], "upper limit": [3.0, 4.0], "b": [5.0, 6.0]}


def frames():
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    return [pandas.DataFrame(VALUES), polars.DataFrame(VALUES), arrow.table(VALUES)]


@pytest.mark.parametrize("number", [0, 1, 2], ids=["pandas", "polars", "arrow"])
def test_columns_of_a_frame_are_taken_out(number):
    frame = frames()[number]
    rest, columns = split_loss_columns(frame, ["upper limit"])
    assert np.asarray(rest).shape == (2, 2)
    assert list(columns) == ["upper_limit"] and columns["upper_limit"].tolist() == [3.0, 4.0]
    assert without_columns(rest, ["upper limit"]) is rest


def test_arrays_go_by_their_names():
    X = np.zeros((2, 1))
    assert split_loss_columns(X, {"limit": [1, 2]}) == (X, {"limit": [1, 2]})
    assert split_loss_columns(X, None) == (X, {})


def test_an_unknown_column_is_refused():
    with pytest.raises(DataError, match=r"X has no column 'upper', which is given as loss_columns; .*it has a, upper"):
        split_loss_columns(frames()[0], ["upper"])


def test_an_index_of_the_name_is_told():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"t": [0.0, 1.0], "x": [2.0, 3.0]}).set_index("t")
    with pytest.raises(DataError, match=r"t; its index has this name: X.reset_index\(\) makes it a column; it"):
        check_heading(table, "t", "t")


def test_whole_numbers_are_headings_unless_they_only_count():
    pandas = pytest.importorskip("pandas")
    table = np.random.default_rng(0).uniform(1, 5, (50, 2))
    years = pandas.DataFrame(table, columns=[2020, 2021])
    found = shine.evolve(years, table @ [1, -2], generations=1, seconds=None, seeding=0, guesses=["x_2020 - 2*x_2021"])
    np.testing.assert_allclose(found.predict(years[[2021, 2020]]), table @ [1, -2])
    assert frame_headings(pandas.DataFrame(table)) is None
