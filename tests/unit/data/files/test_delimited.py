"""Text files in the dialects of the programs that write them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from shine.base.errors import DataError
from shine.data.loading import load

TABLE = [[1.0, 2.0], [4.0, -5.5]]
"""Columns a and y."""

SAME = {
    "UTF-8 with a mark": "\ufeffa,y\n1,4\n2,-5.5\n".encode(),
    "UTF-16": "a,y\n1,4\n2,-5.5\n".encode("utf-16"),
    "UTF-16, high bytes first": b"\xfe\xff" + "a,y\n1,4\n2,-5.5\n".encode("utf-16-be"),
    "UTF-16, without a mark": "a,y\n1,4\n2,-5.5\n".encode("utf-16-le"),
    "UTF-32": "a,y\n1,4\n2,-5.5\n".encode("utf-32"),
    "Windows": b"a,y\r\n1,4\r\n2,-5.5\r\n",
    "old Mac": b"a,y\r1,4\r2,-5.5\r",
    "no last line feed": b"a,y\n1,4\n2,-5.5",
    "Excel's first line": b"sep=;\na;y\n1;4\n2;-5.5\n",
    "bars": b"a|y\n1|4\n2|-5.5\n",
    "blanks": b"a    y\n1    4\n 2 -5.5\n",
    "quoted headings": b'"a","y"\n1,4\n2,-5.5\n',
    "comments": b"# made by hand\n# in May, at night\na,y\n1,4\n# the second row\n2,-5.5\n#\n",
    "np.savetxt with a header": b"# a,y\n1,4\n2,-5.5\n",
    "blank lines": b"\n\na,y\n\n1,4\n  \n2,-5.5\n\n\n",
    "Excel's empty rows": b"a,y\n1,4\n,\n2,-5.5\n,\n,\n",
    "a last separator everywhere": b"a,y,\n1,4,\n2,-5.5,\n",
    "a last separator in rows": b"a,y\n1,4,\n2,-5.5,,\n",
    "units": b"a,y\nkm/h,m2\n1,4\n2,-5.5\n",
    "some units": b"a,y\n,m\n1,4\n2,-5.5\n",
    "index of a data frame": b",a,y\n0,1,4\n1,2,-5.5\n",
    "decimal commas": b"a;y\n1;4\n2;-5,5\n",
    "decimal commas in quotes": b'a,y\n1,4\n2,"-5,5"\n',
}


@pytest.mark.parametrize("dialect", SAME)
def test_a_dialect_is_read(dialect: str, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_bytes(SAME[dialect])
    dataset = load(tmp_path / "d.csv", "y").dataset
    assert dataset.features == ("a",)
    np.testing.assert_array_equal([dataset.columns[0], dataset.target], TABLE)


def notes(folder: Path, content: bytes) -> list[str]:
    (folder / "d.csv").write_bytes(content)
    return [note.replace(f"{folder}/", "") for note in load(folder / "d.csv", "y").notes]


def test_the_user_is_told_what_was_guessed(tmp_path: Path) -> None:
    assert notes(tmp_path, b"a,y\n1,2\n") == []
    assert notes(tmp_path, "größe;y\n1;2,5\n".encode("cp1252")) == [
        "d.csv:1: is not UTF-8, and is read as Windows-1252 (Latin-1); if letters are wrong, save it as UTF-8",
        "d.csv: numbers have a decimal comma, as '2,5'",
    ]
    assert notes(tmp_path, SAME["units"]) == ["d.csv:2: holds units (km/h, m2), not data; it is left out"]
    assert notes(tmp_path, SAME["index of a data frame"]) == [
        "d.csv: the first column has no heading and numbers the rows; it is left out"
    ]
    assert notes(tmp_path, b'a,y\n"$1,520",2\n$7,3\n') == [
        "column 'a': the sign $ beside its numbers is left out",
        "column 'a': numbers have thousands separators, as '$1,520'",
    ]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (gzip.compress(b"a,y\n1,2\n", mtime=0), "a gzip file, which should end in .csv.gz"),
        (b"PK\x03\x04...", "a zip or Excel file, which should end in .csv.zip or .xlsx"),
        (b"PAR1...", "a Parquet file, which should end in .parquet"),
    ],
)
def test_files_that_are_no_text_are_recognized(content: bytes, kind: str, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_bytes(content)
    with pytest.raises(DataError, match=f"d.csv: is not text, but begins like {kind}$"):
        load(tmp_path / "d.csv", "y")


def test_a_cell_that_begins_like_a_comment_stays(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,b,y\n1,2,3\n#N/A,5,6\n")
    with pytest.raises(DataError, match=r"d\.csv:3: column 'a': the value is missing \('#N/A'\)"):
        load(tmp_path / "d.csv", "y")


def test_thousands_in_an_unused_column_do_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text('a,price,y\n1.5,"1,520",2\n2.5,cheap,3\n')
    assert load(tmp_path / "d.csv", "y", ["a"]).dataset.columns.tolist() == [[1.5, 2.5]]


def test_a_point_means_thousands_if_another_column_has_decimal_commas(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a;b;y\n1.520;2,5;3\n2.310;3,5;4\n")
    assert load(tmp_path / "d.csv", "y", ["a"]).dataset.columns.tolist() == [[1520, 2310]]


def test_lines_of_errors_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("# one\na,y\nm,s\n\n# five\n1,2\n3,4\nx,5\n")
    with pytest.raises(DataError, match=r"d\.csv:8: column 'a': 'x' is not a number$"):
        load(tmp_path / "d.csv", "y")
