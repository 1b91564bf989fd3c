"""Parquet, Feather, Excel and OpenDocument, written by pandas and pyarrow; compressed text."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shine.base.errors import DataError, MissingExtraError
from shine.data.datasets.preparation import Reading
from shine.data.files import source
from shine.data.loading import load

TEXT = b"a,y\n1,2\n3,4.5\n"


def zipped(content: bytes, *names: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names or ("d.csv",):
            archive.writestr(name, content)
    return stream.getvalue()


def zstandard(content: bytes) -> bytes:
    compressed: bytes = pytest.importorskip("pyarrow").compress(content, codec="zstd", asbytes=True)
    return compressed


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zip": zipped, "zst": zstandard,
}  # fmt: skip


@pytest.mark.parametrize("ending", COMPRESSED)
def test_compressed_text_is_read(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"d.csv.{ending}"
    path.write_bytes(COMPRESSED[ending](TEXT))
    assert load(path, "y").dataset.target.tolist() == [2, 4.5]


@pytest.mark.parametrize("ending", COMPRESSED)
@pytest.mark.parametrize("damage", ["junk", "cut"])
def test_damaged_compressions_are_explained(ending: str, damage: str, tmp_path: Path) -> None:
    path = tmp_path / f"d.csv.{ending}"
    whole = COMPRESSED[ending](TEXT * 50)
    path.write_bytes(b"junk" * 10 if damage == "junk" else whole[:-9])
    with pytest.raises(DataError, match=r"is not a valid|is truncated"):
        load(path, "y")


def test_an_archive_of_several_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d.csv.zip").write_bytes(zipped(TEXT, "a.csv", "b.csv"))
    with pytest.raises(DataError, match="holds 2 files; an archive with exactly one is needed"):
        load(tmp_path / "d.csv.zip", "y")
    (tmp_path / "d.csv.zip").write_bytes(zipped(TEXT, "a.csv", "__MACOSX/a.csv"))
    assert load(tmp_path / "d.csv.zip", "y").dataset.n_rows == 2


def test_zstandard_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "d.csv.zst").write_bytes(b"x")
    with pytest.raises(MissingExtraError, match=r"reading Zstandard needs pyarrow; .* 'shine-gp\[parquet\]'"):
        load(tmp_path / "d.csv.zst", "y")


def write(name: str, folder: Path, **options: bool) -> Path:
    """A data frame of every kind of column, in a file."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "when": pandas.to_datetime(["2023-01-01", "2023-01-03", None]),
            "kind": ["x", "y", "x"],
            "sure": [True, False, True],
            "count": pandas.array([1, None, 4], dtype="Int64"),
            "y": [1.0, 2.0, 3.0],
        }
    )
    path = folder / name
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    elif path.suffix == ".feather":
        feather = pytest.importorskip("pyarrow.feather")
        feather.write_feather(frame, path)
    else:
        engine = {".xlsx": "openpyxl", ".ods": "odf"}[path.suffix]
        pytest.importorskip(engine)
        frame.to_excel(path, index=False, engine=engine, startrow=2 * options.get("lower", False))
    return path


TYPED = ["d.parquet", "d.feather", "d.xlsx", "d.ods"]


@pytest.mark.parametrize("name", TYPED)
def test_typed_columns_become_numbers_as_those_of_text_do(name: str, tmp_path: Path) -> None:
    data = load(write(name, tmp_path), "y", reading=Reading("mean", "one-hot")).dataset
    assert dict(zip(data.features, data.columns.tolist(), strict=True)) == {
        "when_days": [0, 2, 1], "kind_is_y": [0, 1, 0], "sure": [1, 0, 1], "count": [1, 2.5, 4],
    }  # fmt: skip


@pytest.mark.parametrize("name", TYPED)
def test_text_and_missing_values_in_typed_columns_are_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load(write(name, tmp_path), "y")
    lines = str(caught.value)
    first, last = ("row 2", "row 4") if name in ("d.xlsx", "d.ods") else ("row 0", "row 2")
    assert f"{name}: {first}: column 'kind': 'x' is not a number (2 different texts)" in lines
    assert f"{name}: {last}: column 'when': the value is missing; data.missing may be drop or mean" in lines


def test_a_table_may_begin_lower_on_a_sheet(tmp_path: Path) -> None:
    path = write("d.xlsx", tmp_path, lower=True)
    assert load(path, "y", ["sure"]).dataset.columns.tolist() == [[1, 0, 1]]
    with pytest.raises(DataError, match="row 5: column 'count': the value is missing"):
        load(path, "y", ["count"])


def test_a_sheet_may_hold_numbers_as_text_and_units(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    cells = [["v", "y"], ["km/h", "m"], ["1.520,5", 1], ["2,5", 2.5], ["", None]]
    pandas.DataFrame(cells).to_excel(tmp_path / "d.xlsx", index=False, header=False)
    data = load(tmp_path / "d.xlsx", "y")
    assert data.dataset.columns.tolist() == [[1520.5, 2.5]]
    assert data.dataset.target.tolist() == [1, 2.5]
    assert f"{tmp_path}/d.xlsx: row 2: holds units (km/h, m), not data; it is left out" in data.notes


@pytest.mark.parametrize("name", TYPED)
def test_damaged_typed_files_are_explained(name: str, tmp_path: Path) -> None:
    whole = write(name, tmp_path).read_bytes()
    for content in (b"", b"PK junk", whole[: len(whole) // 2]):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=rf"{name}: is not a valid"):
            load(tmp_path / name, "y")


@pytest.mark.parametrize(("name", "reader"), [("d.feather", "pyarrow.feather.read_table"), ("d.npz", "numpy.load"),
                                              ("d.parquet", "pyarrow.parquet.ParquetFile"),
                                              ("d.xlsx", "pandas.read_excel")])  # fmt: skip
def test_a_lack_of_memory_is_no_damage(name: str, reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(reader.rpartition(".")[0])
    kind = pytest.importorskip("pyarrow").ArrowMemoryError if reader.startswith("pyarrow") else MemoryError

    def fails(*arguments: object, **options: object) -> None:
        raise kind("malloc failed")

    (tmp_path / name).write_bytes(zipped(b""))
    monkeypatch.setattr(reader, fails)
    with pytest.raises(MemoryError):
        load(tmp_path / name, "y")


@pytest.mark.parametrize("name", ["d.xlsx", "d.ods"])
def test_a_sheet_that_would_unpack_to_too_much_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", 1000)
    with pytest.raises(DataError, match="holds more than 1000 bytes"):
        load(write(name, tmp_path), "y")


@pytest.mark.parametrize(("name", "package"), [("d.feather", "pyarrow"), ("d.xlsx", "pandas"), ("d.ods", "pandas")])
def test_what_to_install_is_said(name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(MissingExtraError, match=rf"needs {package}.*; install it with: pip install 'shine-gp\["):
        load(tmp_path / name, "y")


def test_numbers_as_text_are_read_in_parquet_too(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": ["1,5", "1.520"], "y": [1.0, 2.0]}), tmp_path / "d.parquet")
    np.testing.assert_array_equal(load(tmp_path / "d.parquet", "y").dataset.columns, [[1.5, 1520]])
