"""Tables that are read block by block mean the same as the same tables in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shine.base.errors import DataError
from shine.data import opening as opened_module
from shine.data.datasets.dataset import Dataset
from shine.data.datasets.preparation import Reading
from shine.data.loading import Roles, load
from shine.data.opening import open_dataset
from shine.data.streams import streaming, streams
from shine.data.streams.sources import open_stream

pyarrow = pytest.importorskip("pyarrow")
dataset = pytest.importorskip("pyarrow.dataset")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS = 53


@pytest.fixture(autouse=True)
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 8 rows."""
    monkeypatch.setattr(streams.Stream.blocks, "__defaults__", (8,))


def columns() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-02-27") + rng.integers(0, 300, ROWS)
    return {
        "a": rng.uniform(1, 5, ROWS),
        "count": rng.integers(0, 9, ROWS),
        "is on": rng.uniform(size=ROWS) > 0.5,
        "place": np.array(["north", "west", "east"], object)[rng.integers(0, 3, ROWS)],
        "day": days,
        "w": rng.integers(1, 3, ROWS).astype(float),
        "y": rng.normal(size=ROWS),
    }


def written(folder: Path, group: int = 10, **changed: Any) -> Path:
    path = folder / "d.parquet"
    parquet.write_table(pyarrow.table({**columns(), **changed}), path, row_group_size=group)
    return path


def whole_of(data: Dataset) -> Dataset:
    """All rows of a streamed data set."""
    assert data.all_rows is not None
    blocks = list(data.all_rows.read(data.features))
    return Dataset(
        np.concatenate([block.columns for block in blocks], axis=1),
        np.concatenate([block.target for block in blocks]),
        None if blocks[0].weights is None else np.concatenate([block.row_weights for block in blocks]),
        data.features,
    )


def check_alike(found: Dataset, memory: Dataset) -> None:
    assert found.features == memory.features
    np.testing.assert_array_equal(found.columns, memory.columns)
    np.testing.assert_array_equal(found.target, memory.target)
    np.testing.assert_array_equal(found.row_weights, memory.row_weights)


@pytest.mark.parametrize("categories", ["one-hot", "ordinal", "ignore"])
@pytest.mark.parametrize("group", [3, 100])
def test_numbers_dates_and_texts_mean_the_same_as_in_memory(tmp_path, categories, group):
    path = written(tmp_path, group)
    memory = load(path, "y", others=Roles("w"), reading=Reading(categories=categories))
    found = load(path, "y", others=Roles("w"), reading=Reading(categories=categories, stream=True))
    assert found.preparation == memory.preparation
    assert found.dataset.headings == memory.dataset.headings
    assert found.dataset.labels == memory.dataset.labels
    check_alike(found.dataset, memory.dataset)
    check_alike(whole_of(found.dataset), memory.dataset)


@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_missing_values_are_dropped_or_filled_as_in_memory(tmp_path, missing):
    values = columns()
    values["a"][[2, 40]] = np.nan
    y = pyarrow.array(values["y"], mask=np.arange(ROWS) == 30)
    path = written(tmp_path, a=values["a"], y=y)
    features = ["a", "count", "day"]
    memory = load(path, "y", features, reading=Reading(missing))
    found = load(path, "y", features, reading=Reading(missing, stream=True))
    check_alike(found.dataset, memory.dataset)
    check_alike(whole_of(found.dataset), memory.dataset)
    assert any("53 rows, where values are missing" in note for note in found.notes)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("ends", [(1, -1), (1, 1), (-1, 0)])
def test_means_of_numbers_near_the_ends_of_the_range_fill_gaps(tmp_path, stream, ends):
    low, high = np.array(ends) * np.finfo(np.float64).max
    values = np.resize([low, high], ROWS - 1)
    path = written(tmp_path, a=np.append(values, np.nan))
    found = load(path, "y", ["a", "count"], reading=Reading("mean", stream=stream))
    rows = whole_of(found.dataset) if stream else found.dataset
    assert rows.columns[0, -1] == pytest.approx(low / 2 + high / 2)


def test_the_moments_of_all_rows_are_those_in_memory(tmp_path):
    path = written(tmp_path)
    memory = load(path, "y", ["a"], Roles("w")).dataset
    all_rows = load(path, "y", ["a"], Roles("w"), reading=Reading(stream=True)).dataset.all_rows
    assert all_rows is not None
    expected = memory.weight, memory.effective_rows, memory.target_mean, memory.target_square
    found = all_rows.weight, all_rows.effective_rows, all_rows.target_mean, all_rows.target_square
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert all_rows.ranges["a"] == (memory.columns[0].min(), memory.columns[0].max())


def test_the_sample_has_a_row_of_each_stretch(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "SAMPLE_ROWS", 10)
    path = written(tmp_path, a=np.arange(ROWS, dtype=float))
    sample = load(path, "y", ["a"], reading=Reading(stream=True)).dataset
    assert sample.n_rows == 10
    assert (np.diff(sample.columns[0]) > 0).all()
    ends = np.arange(11) * ROWS // 10
    assert (sample.columns[0] >= ends[:-1]).all() and (sample.columns[0] < ends[1:]).all()


def test_the_checksum_depends_on_the_values_and_not_on_how_they_are_stored(tmp_path):
    def checksum(**options: Any) -> int:
        path = written(tmp_path, **options)
        found = load(path, "y", reading=Reading(categories="ordinal", stream=True)).dataset.all_rows
        assert found is not None
        return found.checksum

    a, place = columns()["a"], columns()["place"]
    assert checksum() == checksum(group=3) == checksum(place=pyarrow.array(place).dictionary_encode())
    a[50] += 1e-9
    assert checksum() != checksum(a=a)
    place[20] = "south"
    assert checksum() != checksum(place=place)


def broken(**changed: Any) -> Callable[[Path], Path]:
    return lambda folder: written(folder, **changed)


NULL = pyarrow.array(columns()["a"], mask=np.arange(ROWS) % 20 == 7)
INFINITE = np.where(np.arange(ROWS) == 33, np.inf, 1.0)


@pytest.mark.parametrize(
    "made, target, features, message",
    [
        (broken(a=NULL), "y", ["a"], "d.parquet: row 7: column 'a': the value is missing, as in 2 other rows; data.mi"),
        (broken(a=INFINITE), "y", ["a"], "d.parquet: row 33: column 'a': the value is infinite"),
        (broken(), "place", ["a"], "column 'place': the target must be numbers; the column holds text"),
        (broken(), "y", None, "column 'place': holds 3 different texts; data.categories may be one-hot, ordinal or ig"),
        (
            broken(a=["1.5"] * ROWS),
            "y",
            ["a"],
            "column 'a': holds numbers as texts, which are not read while stream",
        ),
        (broken(a=[[1.0]] * ROWS), "y", ["a"], "column 'a' holds list<"),
        (broken(a=np.full(ROWS, np.nan)), "y", ["a"], "column 'a': no row has a value"),
        (broken(), "z", None, "there is no column 'z'; the file has"),
        (lambda folder: folder / "none.parquet", "y", None, "none.parquet: no such file or folder"),
        (broken(**{name: values[:0] for name, values in columns().items()}), "y", None, "there is no row of data"),
    ],
)
def test_what_cannot_be_streamed_is_told_in_a_line(tmp_path, made, target, features, message):
    with pytest.raises(DataError) as caught:
        load(made(tmp_path), target, features, reading=Reading(stream=True))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_told(tmp_path):
    path = written(tmp_path)
    content = bytearray(path.read_bytes())
    content[8:4000] = bytes(len(content[8:4000]))
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"d\.parquet: cannot be read"):
        load(path, "y", ["a"], reading=Reading(stream=True))
    path.write_bytes(b"PAR1 nothing")
    with pytest.raises(DataError, match=r"d\.parquet: cannot be read as parquet"):
        load(path, "y", ["a"], reading=Reading(stream=True))


def test_a_batch_has_only_the_columns_asked_for(tmp_path):
    path = written(tmp_path)
    # The bytes of the other columns are gone.
    group = parquet.ParquetFile(path).metadata.row_group(0)
    content = bytearray(path.read_bytes())
    for index in range(1, group.num_columns):
        column = group.column(index)
        start = column.dictionary_page_offset or column.data_page_offset
        content[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    path.write_bytes(content)
    first = next(iter(open_stream(path).read([0])))
    np.testing.assert_array_equal(first[0], columns()["a"][: len(first[0])])


def test_row_groups_that_cannot_fulfil_the_condition_are_not_read(tmp_path):
    path = written(tmp_path, a=np.arange(ROWS, dtype=float))
    group = parquet.ParquetFile(path).metadata.row_group(0)
    content = bytearray(path.read_bytes())
    for index in range(group.num_columns):
        start = group.column(index).data_page_offset
        content[start : start + 10] = bytes(10)
    path.write_bytes(content)
    found = load(path, "y", ["a"], reading=Reading(where="a >= 10", stream=True)).dataset
    np.testing.assert_array_equal(found.columns[0], np.arange(10.0, ROWS))


def test_a_condition_also_holds_for_small_data_in_memory(tmp_path):
    found = load(written(tmp_path), "y", ["a"], reading=Reading(where="place in ('north', 'west') and not a < 2"))
    values = columns()
    kept = (values["place"] != "east") & (values["a"] >= 2)
    np.testing.assert_array_equal(found.dataset.columns[0], values["a"][kept])
    assert found.dataset.all_rows is None


def test_partitions_of_a_folder_are_columns(tmp_path):
    table = pyarrow.table({"year": np.repeat([2023, 2024], 5), "x": np.arange(10.0), "y": np.arange(10.0)})
    folder = tmp_path / "parts"
    dataset.write_dataset(table, folder, format="parquet", partitioning=["year"], partitioning_flavor="hive")
    for stream in (True, False):
        found = load(folder, "y", reading=Reading(stream=stream)).dataset
        assert found.features == ("x", "year")
        np.testing.assert_array_equal(found.columns[1], np.repeat([2023, 2024], 5))
    assert load(folder, "y", reading=Reading(where="year == 2024")).dataset.n_rows == 5


def test_files_of_a_folder_that_differ_are_an_error(tmp_path):
    parquet.write_table(pyarrow.table({"x": [1.0], "y": [2.0]}), tmp_path / "a.parquet")
    parquet.write_table(pyarrow.table({"x": [1], "z": [2.0]}), tmp_path / "b.parquet")
    with pytest.raises(
        DataError, match=r"differ in their columns: in a.parquet and b.parquet, 'x' is double and int64"
    ):
        load(tmp_path, "y")
    (tmp_path / "b.parquet").rename(tmp_path / "b.csv")
    with pytest.raises(DataError, match=r"files of one format, .* it has \.csv, \.parquet"):
        load(tmp_path, "y")


def of_npy(folder: Path, table: Any) -> Any:
    np.save(folder / "d.npy", np.rec.fromarrays([table["x"], table["y"]], names="x,y"))
    return folder / "d.npy"


def of_ipc(folder: Path, table: Any) -> Any:
    dataset.write_dataset(pyarrow.table(table), folder / "d", format="ipc")
    return folder / "d"


def of_memmap(folder: Path, table: Any) -> Any:
    np.save(folder / "d.npy", np.rec.fromarrays([table["x"], table["y"]], names="x,y"))
    return np.load(folder / "d.npy", mmap_mode="r")


def of_polars(folder: Path, table: Any) -> Any:
    return pytest.importorskip("polars").DataFrame(table).lazy()


def of_duckdb(folder: Path, table: Any) -> Any:
    arrow = pyarrow.table(table)  # DuckDB finds it by its name
    assert arrow.num_rows
    return pytest.importorskip("duckdb").sql("select * from arrow order by y")


def of_dataset(folder: Path, table: Any) -> Any:
    return dataset.dataset(pyarrow.table(table))


@pytest.mark.parametrize("made", [of_npy, of_ipc, of_memmap, of_polars, of_duckdb, of_dataset])
@pytest.mark.parametrize("stream", [True, False])
def test_every_source_has_the_same_rows(tmp_path, made, stream):
    table = {"x": np.arange(100, 153), "y": np.arange(53.0)}
    found = load(open_dataset(made(tmp_path, table), stream=stream), "y").dataset
    assert found.features == ("x",)
    np.testing.assert_array_equal(found.columns[0], table["x"])
    np.testing.assert_array_equal(found.target, table["y"])
    assert (found.all_rows is not None) == stream


def test_large_data_are_streamed_unless_the_user_wants_them_in_memory(tmp_path, monkeypatch):
    path = written(tmp_path)
    assert load(path, "y", ["a"]).dataset.all_rows is None
    monkeypatch.setattr(opened_module, "LARGEST", 100)
    assert load(path, "y", ["a"]).dataset.all_rows is not None
    assert load(path, "y", ["a"], reading=Reading(stream=False)).dataset.all_rows is None


def test_text_files_are_not_streamed(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("x,y\n1,2\n2,3\n")
    with pytest.raises(DataError, match=r"stream needs a folder of data, or a file that ends in one of \.parquet"):
        load(path, "y", reading=Reading(stream=True))


@pytest.mark.parametrize(
    "text, message",
    [
        ("z > 2", "there is no column 'z'"),
        ("a >", "line 1, column 4: not an expression"),
        ("abs(a) > 2", "line 1, column 1: 'abs' is no function of conditions"),
        ("day > 'soon'", "write dates as '2023-12-31'"),
    ],
)
def test_conditions_that_cannot_be_read_are_told(tmp_path, text, message):
    with pytest.raises(DataError) as caught:
        load(written(tmp_path), "y", reading=Reading(where=text))
    assert message in str(caught.value)


def test_conditions_compare_dates(tmp_path):
    found = load(written(tmp_path), "y", ["a"], reading=Reading(where="'2024-03-15' <= day < '2024-06-01'")).dataset
    days = columns()["day"]
    assert found.n_rows == ((days >= np.datetime64("2024-03-15")) & (days < np.datetime64("2024-06-01"))).sum()


def test_a_condition_on_a_file_that_cannot_have_one_is_an_error(tmp_path):
    np.save(tmp_path / "m.npy", np.ones((5, 2)))
    with pytest.raises(DataError, match=r"m\.npy: where needs Parquet or Arrow files"):
        open_dataset(tmp_path / "m.npy", where="x0 > 2")


@pytest.mark.parametrize(
    "option, message",
    [
        ({"missing": "foo"}, "missing is one of 'error', 'drop', 'mean', not 'foo'"),
        ({"categories": 3}, "categories is one of 'error', 'one-hot', 'ordinal', 'ignore', not 3"),
        ({"where": 3}, "where is a text such as 'year >= 2020', or an expression of Arrow, not 3"),
    ],
)
def test_an_unknown_option_is_an_error(tmp_path, option, message):
    with pytest.raises(DataError, match=message):
        open_dataset(written(tmp_path), **option)


def test_columns_are_of_one_kind_in_memory_and_streamed(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns: dict[str, list[Any]] = {"truth": [True, False, None], "binary": [b"a", b"b", None], "y": [1.0, 2.0, 3.0]}
    parquet.write_table(pyarrow.table({**columns, "lists": [[1], [2], [3]]}), tmp_path / "d.parquet")
    kinds, refused = [], []
    for stream in (False, True):
        found = open_dataset(tmp_path / "d.parquet", missing="mean", categories="ordinal", stream=stream)
        kinds.append([own.raw_kind for own in load(found, "y", ["truth", "binary"]).preparation.columns])
        with pytest.raises(DataError, match="column 'lists' holds list<element: int64>, not numbers") as error:
            load(found, "y")
        refused.append(str(error.value))
    assert kinds == [["number", "text"]] * 2
    assert refused[0] == refused[1]
