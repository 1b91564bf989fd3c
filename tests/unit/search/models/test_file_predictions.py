"""Predictions from file to file are those of the same rows in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shine
from shine.data.opening import open_dataset
from shine.data.streams import streams
from shine.lang.parse import parse
from shine.search.models.file_predictions import predict_file, predict_table
from shine.search.models.model import Model
from shine.search.models.result import Result

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")

ROWS = 100
FEW: dict[str, Any] = {"generations": 2, "seconds": None, "population": 50, "seeding_members": 200}


def table(rows: int = ROWS) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    x = rng.uniform(1, 5, rows)
    kind = np.where(np.arange(rows) % 3 == 0, "new", "old")
    return {"spare": x, "x": x, "kind": kind, "y": 3 * x + 5.0 * (kind == "old") + rng.normal(0, 0.1, rows)}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    path = tmp_path_factory.mktemp("training") / "d.parquet"
    parquet.write_table(pyarrow.table(table()), path)
    data = open_dataset(path, missing="drop", categories="one-hot")
    return shine.evolve(data, "y", features=["x", "kind"], primitives=["add", "mul"], **FEW)


@pytest.fixture
def new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new file, with another order of the columns, that is read in blocks of 8 rows."""
    monkeypatch.setattr(streams.Stream.blocks, "__defaults__", (8,))
    values = table()
    parquet.write_table(pyarrow.table({"kind": values["kind"], "x": values["x"]}), tmp_path / "new.parquet")
    return tmp_path / "new.parquet"


READERS = {
    ".parquet": lambda path: parquet.read_table(path)["prediction"].to_numpy(),
    ".feather": lambda path: feather.read_table(path)["prediction"].to_numpy(),
    ".arrow": lambda path: feather.read_table(path)["prediction"].to_numpy(),
    ".npy": np.load,
    ".csv": lambda path: np.loadtxt(path, skiprows=1),
}


@pytest.mark.slow
@pytest.mark.parametrize("ending", READERS)
def test_each_format_has_the_predictions_in_memory(result, new, tmp_path, ending):
    values = table()
    X = np.column_stack([values["x"], values["kind"] == "old"])
    out = tmp_path / f"out{ending}"
    assert result.predict_file(new, out) == ROWS
    np.testing.assert_array_equal(READERS[ending](out), result.best.predict(X))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["new.parquet", out.name])


@pytest.mark.slow
def test_intervals_are_columns_beside_the_predictions(result, new, tmp_path):
    values = table()
    X = np.column_stack([values["x"], values["kind"] == "old"])
    result.predict_file(new, tmp_path / "out.npy", interval=0.9, kind="mean", where="x > 2")
    expected = np.column_stack([result.best.predict(X), result.best.predict_interval(X, 0.9, "mean")])
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected[values["x"] > 2], rtol=1e-12)


@pytest.mark.slow
def test_rows_without_a_value_have_no_prediction(result, tmp_path):
    path = tmp_path / "gaps.parquet"
    parquet.write_table(pyarrow.table({"x": [1.0, None, 2.0], "kind": ["old", "new", None]}), path)
    result.predict_file(path, tmp_path / "out.npy")
    assert np.isnan(np.load(tmp_path / "out.npy")).tolist() == [False, True, True]


@pytest.mark.parametrize(
    "columns, message",
    [
        ({"x": [1.0], "kind": ["used"]}, r"row 0: column 'kind': 'used' was not in the training data; known are"),
        ({"x": ["1.0"], "kind": ["old"]}, r"row 0: column 'x': holds text, but numbers in the training data"),
        ({"x": [np.inf], "kind": ["old"]}, r"row 0: column 'x': the value is infinite"),
        ({"z": [1.0], "kind": ["old"]}, r"there is no column x; the formula needs x, kind, and the file has z, kind"),
    ],
)
def test_a_file_that_does_not_fit_is_told_and_nothing_is_left(result, tmp_path, columns, message):
    path = tmp_path / "new.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    with pytest.raises(shine.DataError, match=message):
        result.predict_file(path, tmp_path / "out.parquet")
    assert [found.name for found in tmp_path.iterdir()] == ["new.parquet"]


def test_the_data_are_not_overwritten(result, new):
    with pytest.raises(shine.DataError, match="is what the data are read from"):
        result.predict_file(new, new)


def test_nothing_is_written_into_the_folder_of_the_data(result, new):
    with pytest.raises(shine.DataError, match="lies in the folder of the data"):
        result.predict_file(new.parent, new.with_name("p.parquet"))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("p.xyz", r"^'?[^.]*p\.xyz'?: predictions of streamed rows go to a file that ends in one of"),
        ("", "^'': predictions of streamed rows go to a file"),
        (None, "^None: predictions of streamed rows go to a file"),
        ("nowhere/p.parquet", r"^nowhere/p\.parquet: there is no folder 'nowhere'; create it"),
        ("here.csv", r"^here\.csv: is a folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_as_it_was_given(result, new, tmp_path, monkeypatch, out, message):
    monkeypatch.chdir(tmp_path)
    Path("here.csv").mkdir()
    with pytest.raises(shine.DataError, match=message):
        result.predict_file(new, out)


def test_rows_far_outside_those_of_the_search_are_told_once(result, tmp_path):
    path = tmp_path / "far.parquet"
    parquet.write_table(pyarrow.table({"x": [1.0, 100.0], "kind": ["old", "new"]}), path)
    with pytest.warns(shine.ExtrapolationWarning, match="x"):
        result.predict_file(path, tmp_path / "out.npy")


def test_an_estimator_predicts_from_file_to_file(tmp_path):
    estimators = pytest.importorskip("shine.estimators")
    x = np.linspace(1, 5, 40)
    parquet.write_table(pyarrow.table({"x0": x}), tmp_path / "d.parquet")
    model = estimators.SymbolicRegressor(primitives=["add"], generations=1, max_time=None, population_size=20)
    model.fit(x[:, None], x + 1)
    model.predict_file(tmp_path / "d.parquet", tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), model.predict(x[:, None]))


@pytest.fixture(params=[("u", "v", "w"), (0, 1, 2)], ids=["texts", "numbers"])
def grouped(request):
    """A fitted template with a constant by group, and its rows."""
    pandas, estimators = pytest.importorskip("pandas"), pytest.importorskip("shine.estimators")
    frame = pandas.DataFrame({"a": np.linspace(1, 2, 30), "g": [*request.param] * 10})
    model = estimators.SymbolicRegressor(template="p[g] * f(a)", generations=1, max_time=None, population_size=20)
    return model.fit(frame, frame["a"] * np.tile([1.5, 2.5, 3.5], 10)), frame


@pytest.mark.slow
def test_labels_of_groups_are_known_in_files(grouped, tmp_path):
    model, frame = grouped
    frame.iloc[::-1].to_parquet(tmp_path / "d.parquet")
    model.predict_file(tmp_path / "d.parquet", tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), model.predict(frame.iloc[::-1]))


def test_unknown_groups_in_files_are_refused(grouped, tmp_path):
    model, frame = grouped
    frame["g"] = frame["g"].replace({frame["g"][0]: "new" if isinstance(frame["g"][0], str) else 7})
    frame.to_parquet(tmp_path / "d.parquet")
    with pytest.raises(shine.DataError, match=r"'g'.*(new|7).*was not in the"):
        model.predict_file(tmp_path / "d.parquet", tmp_path / "out.npy")
    assert not (tmp_path / "out.npy").exists()


def test_two_columns_of_one_heading_are_named(result, tmp_path):
    twice = pyarrow.table([pyarrow.array([1.0, 2.0])] * 3, names=["x", "x", "kind"])
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "d.parquet", tmp_path / "folder" / "d.parquet"):
        parquet.write_table(twice, path)
    feather.write_feather(twice, tmp_path / "d.feather")
    for path in (tmp_path / "d.parquet", tmp_path / "folder", tmp_path / "d.feather"):
        with pytest.raises(shine.DataError, match=r"2 columns have the heading 'x'; rename one of them"):
            result.predict_file(path, tmp_path / "out.npy")


@pytest.mark.parametrize("ways", [lambda path: open_dataset(path, stream=True), open_dataset])
def test_damage_of_pages_with_checksums_is_an_error(tmp_path, ways):
    path = tmp_path / "d.parquet"
    table = pyarrow.table({"x": np.linspace(1, 2, 1000), "y": np.linspace(1, 2, 1000)})
    parquet.write_table(table, path, write_page_checksum=True, use_dictionary=False, compression="none")
    content = bytearray(path.read_bytes())
    content[4000] ^= 1
    path.write_bytes(content)
    with pytest.raises(shine.DataError, match=r"(?i)crc|checksum"):
        shine.evolve(ways(path), "y", generations=0)


def test_a_formula_without_features_has_a_value_for_each_row(tmp_path):
    constant, data = Model(parse("2 + 0.5"), 0.0, 1.0), tmp_path / "new.csv"
    data.write_text("a,b\n1,x\n,y\n3,z\n", encoding="utf-8")
    columns, _ = predict_table(constant, data)
    assert columns["prediction"].tolist() == [2.5] * 3
    parquet.write_table(pyarrow.table({"a": [1.0, None, 3.0]}), tmp_path / "new.parquet")
    assert predict_file(constant, tmp_path / "new.parquet", tmp_path / "out.csv") == 3
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").split() == ["prediction", *["2.5"] * 3]


def test_a_table_is_told_once_that_the_formula_extrapolates(tmp_path: Path) -> None:
    x, rng = np.linspace(1, 9, 40), np.random.default_rng(0)
    model = Model(parse("2*x"), 0.0, 0.9).with_data(x[:, None], 2 * x + rng.normal(size=40))
    data = tmp_path / "far.csv"
    data.write_text("x\n100\n", encoding="utf-8")
    _, notes = predict_table(model, data, 0.9)
    assert len(notes) == 1 and "the formula extrapolates" in notes[0] and "in 1 row" in notes[0]
