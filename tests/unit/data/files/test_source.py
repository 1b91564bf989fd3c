"""A table's own marks for missing values, which the user names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shine.base.errors import DataError
from shine.data import open_dataset
from shine.data.applying import new_blocks, new_rows
from shine.data.datasets.preparation import Reading
from shine.data.datasets.training import Loaded
from shine.data.files.source import Marks
from shine.data.loading import load
from shine.data.streams.sources import open_stream

MARKS = Marks(("k.A.", -999))


def loaded(path: Path, text: str, marks: Marks = MARKS, **reading: Any) -> Loaded:
    path.write_text(text, encoding="utf-8")
    return load(path, "y", reading=Reading(**{"missing": "drop"} | reading, marks=marks))


@pytest.mark.parametrize("cell", ["k.A.", "K.A.", " k.a. ", "-999", "-999.0", "-9.99e2", "NA", ""])
def test_rows_with_a_mark_are_dropped(cell: str, tmp_path: Path) -> None:
    data = loaded(tmp_path / "d.csv", f"a,y\n1,2\n{cell},3\n5,6\n")
    assert data.dataset.columns.tolist() == [[1, 5]]


@pytest.mark.parametrize("cell", ["-99", "-9990", "k", "kein", "k.A"])
def test_other_cells_stay(cell: str, tmp_path: Path) -> None:
    data = loaded(tmp_path / "d.csv", f"a,y\nx,2\n{cell},3\nz,6\n", categories="ordinal")
    assert data.dataset.n_rows == 3


@pytest.mark.parametrize("mark", [-999, -999.0, "-999", " -999.0 "])
def test_a_number_is_a_mark_as_text_and_as_number(mark: str | float, tmp_path: Path) -> None:
    assert loaded(tmp_path / "d.csv", "a,y\n1,2\n-999,3\n4,-999\n", Marks((mark,))).dataset.n_rows == 1


def test_a_mark_with_a_decimal_comma(tmp_path: Path) -> None:
    data = loaded(tmp_path / "d.csv", "a;y\n1,5;2\n-99,9;3\n", Marks((-99.9,)))
    assert data.dataset.columns.tolist() == [[1.5]]


def test_a_mark_in_a_column_of_text_is_no_category(tmp_path: Path) -> None:
    data = loaded(tmp_path / "d.csv", "a,y\nred,2\nk.A.,3\nblue,4\n", categories="ordinal")
    assert data.dataset.labels["a"] == ("blue", "red")


def test_a_mark_among_dates(tmp_path: Path) -> None:
    data = loaded(tmp_path / "d.csv", "a,y\n2023-01-01,2\n9999-12-31,3\n2023-01-03,4\n", Marks(("9999-12-31",)))
    assert data.dataset.columns.tolist() == [[0, 2]]


def test_a_mark_is_an_error_that_shows_it_by_default(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"d\.csv:3: column 'a': the value is missing \('k\.A\.'\); data\.missing may"):
        loaded(tmp_path / "d.csv", "a,y\n1,2\nk.A.,3\n", missing="error")


def test_without_marks_the_number_stays(tmp_path: Path) -> None:
    assert loaded(tmp_path / "d.csv", "a,y\n1,2\n-999,3\n", Marks()).dataset.columns.tolist() == [[1, -999]]


def test_new_files_have_the_same_marks(tmp_path: Path) -> None:
    data = loaded(tmp_path / "d.csv", "a,y\n1,2\n2,3\n5,6\n")
    assert data.preparation is not None
    (tmp_path / "new.csv").write_text("a\nk.A.\n4\n-999\n")
    new, *_ = new_rows(tmp_path / "new.csv", data.preparation, ["a"])
    np.testing.assert_array_equal(new["a"], [np.nan, 4, np.nan])


def test_means_of_new_files_replace_marks(tmp_path: Path) -> None:
    data = loaded(tmp_path / "d.csv", "a,y\n1,2\n-999,3\n5,6\n", missing="mean")
    assert data.dataset.columns.tolist() == [[1, 3, 5]]
    assert data.preparation is not None
    (tmp_path / "new.csv").write_text("a\n-999\n4\n")
    assert new_rows(tmp_path / "new.csv", data.preparation, ["a"])[0]["a"].tolist() == [3, 4]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_numbers_of_binary_files(dtype: Any, stream: bool, tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    low = -99.9 if np.dtype(dtype).kind == "f" else -99
    columns = {"a": np.array([1, low, 3, 4], dtype), "t": ["u", "v", "k.A.", "w"], "y": np.arange(4.0)}
    parquet.write_table(pa.table(columns), tmp_path / "d.parquet")
    opened = open_dataset(
        tmp_path / "d.parquet", missing="drop", categories="ordinal", stream=stream, missing_marks=["k.A.", low]
    )
    data = load(opened, "y")
    assert data.dataset.columns[0].tolist() == [1, 4]
    assert data.preparation is not None
    assert data.preparation.missing_marks == ("k.A.", low)


def test_new_blocks_have_the_same_marks(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", np.array([[1, 2], [-999, 3]]))
    data = load(open_dataset(tmp_path / "d.npy", missing="drop", missing_marks=[-999], stream=True), "x1")
    assert data.dataset.columns.tolist() == [[1]]
    assert data.preparation is not None
    (block,) = new_blocks(open_stream(tmp_path / "d.npy"), data.preparation, ["x0"])
    np.testing.assert_array_equal(block["x0"], [1, np.nan])


@pytest.mark.parametrize("marks", ["k.A.", [None], [["a"]]])
def test_other_marks_are_refused(marks: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"missing_marks lists texts and numbers, such as \['k\.A\.', -999\], not "):
        open_dataset(tmp_path / "d.csv", missing_marks=marks)
