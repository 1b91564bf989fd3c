"""``shine predict``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from cli.commandline import shine

from shine.data.loading import FORMATS
from shine.faces.cli.prediction_files import WRITERS
from shine.runs import open_run


def test_a_column_that_the_formula_does_not_use_may_be_missing(run: Path) -> None:
    constant = shine("predict", run, Path("data.csv").write_text("b,a\n4,3\n") and "data.csv", "--index", "0")
    assert constant.exit_code == 0
    assert float(constant.stdout.splitlines()[1]) == float(open_run(run).result.front[0].expression)


def test_every_format_that_is_read_is_written() -> None:
    assert WRITERS.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", ["out.csv", "out.CSV.GZ", "out.tsv", "out.npz", "out.parquet"])
def test_the_name_says_the_format(run: Path, name: str) -> None:
    Path("data.csv").write_text("a,b\n3,4\n5,12\n")
    result = shine("predict", run, "data.csv", "--out", name)
    assert (result.exit_code, result.stdout) == (0, "")
    content = Path(name).read_bytes()
    if name.endswith("npz"):
        assert np.load(name)["prediction"].tolist() == [12, 60]
    elif name.endswith("parquet"):
        parquet = pytest.importorskip("pyarrow.parquet")
        assert parquet.read_table(name).to_pydict() == {"prediction": [12, 60]}
    else:
        text = gzip.decompress(content) if name.endswith("GZ") else content
        assert text == b"prediction\n12.0\n60.0\n"


@pytest.mark.parametrize("name", ["out.xyz", "out.csv.7z", "out.parq"])
def test_an_unknown_ending_of_the_output_is_wrong_usage(run: Path, name: str) -> None:
    Path("data.csv").write_text("a,b\n3,4\n")
    result = shine("predict", run, "data.csv", "--out", name)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {name}: data files end in one of .csv, .tsv, ")
    assert not Path(name).exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "none.csv: no such file"),
        ("data.xls", "a,b\n1,2\n", "data.xls: data files end in one of .csv, "),
        ("data.csv", "", "data.csv: the file is empty"),
        ("data.csv", "a,b\n", "data.csv: there is a header, but no row"),
        ("data.csv", "a,c\n1,2\n", "data.csv: there is no column b; the formula needs a, b, and the file has a, c"),
        ("data.npz", "no archive", "data.npz: is not a valid NPZ file"),
    ],
)
def test_data_that_do_not_fit_are_wrong_usage(run: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        Path(name).write_text(content)
    result = shine("predict", run, name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {message}")


def test_data_larger_than_memory_are_read_and_written_block_by_block(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    Path("parts").mkdir()
    for part in range(2):
        parquet.write_table(arrow.table({"a": [3.0 + part], "b": [4.0]}), f"parts/{part}.parquet")
    whole = shine("predict", run, "parts")
    monkeypatch.setattr("shine.data.opening.LARGEST", 1)
    result = shine("predict", run, "parts", "--out", "out.csv", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["rows"] == 2
    assert Path("out.csv").read_text() == whole.stdout


def test_an_index_beyond_the_front_is_wrong_usage(run: Path) -> None:
    Path("data.csv").write_text("a,b\n1,2\n")
    count = len(open_run(run).result.front)
    result = shine("predict", run, "data.csv", "--index", str(count))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: --index {count}: the front of run has the indices 0 to {count - 1}")


def test_output_that_cannot_be_written_is_a_failure(run: Path) -> None:
    Path("data.csv").write_text("a,b\n1,2\n")
    Path("folder").mkdir()
    for name, reason in {"none/out.csv": "No such file or directory", "folder": "Is a directory"}.items():
        result = shine("predict", run, "data.csv", "--out", name)
        assert (result.exit_code, result.stderr) == (1, f"error: {name}: cannot be written: {reason}\n")
    assert sorted(path.name for path in Path().iterdir()) == ["data.csv", "folder", "run"]


@pytest.mark.parametrize("out", ["data.csv", "./data.csv", "link.csv"])
def test_the_data_are_not_overwritten(run: Path, out: str) -> None:
    Path("data.csv").write_text("a,b\n3,4\n")
    Path("link.csv").symlink_to("data.csv")
    result = shine("predict", run, "data.csv", "--out", out)
    assert result.exit_code != 0
    assert "is what the data are read from; write the predictions to another file" in result.stderr
    assert Path("data.csv").read_text() == "a,b\n3,4\n"
