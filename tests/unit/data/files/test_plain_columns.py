"""Columns of plain numbers of large files, beside `float`."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from shine.data.files import delimited
from shine.data.files.delimited import open_delimited, plain_columns

pytest.importorskip("pyarrow")


def cells(kind, rng):
    """Texts of numbers."""
    for value in rng.integers(0, 2**63, 2000).view(np.float64)[:2000]:
        size = float(value)
        if not np.isfinite(size):
            continue
        if kind == "any":
            yield repr(size)
        elif kind == "digits":
            yield f"{size:.{int(rng.integers(0, 40))}e}"
        elif kind == "fixed":
            yield f"{float(rng.normal() * 10.0 ** rng.integers(-8, 12)):.{int(rng.integers(0, 30))}f}"
        elif kind == "whole":
            yield f"{'+' * int(rng.integers(2))}{int(rng.integers(0, 2**62)) >> int(rng.integers(0, 62))}"
        elif kind == "zeros":
            yield "-" + "0" * int(rng.integers(0, 30)) + f"{rng.uniform():.17f}" + "0" * int(rng.integers(0, 30))
        elif kind == "powers":
            yield f"{int(rng.integers(0, 10 ** int(rng.integers(1, 19))))}E{int(rng.integers(-345, 290)):+d}"
        else:  # halfway between two doubles, or a digit beside it
            with localcontext(prec=80):
                number = float(rng.uniform(1, 2) * 10.0 ** rng.integers(-3, 20))
                half = (Decimal(number) + Decimal(float(np.nextafter(number, np.inf)))) / 2
                yield f"{half}" + str(rng.choice(["", "1"])) * (half != half.to_integral())


@pytest.mark.parametrize("kind", ["any", "digits", "fixed", "whole", "zeros", "powers", "halves"])
def test_numbers_are_those_of_float_to_the_last_bit(kind):
    texts = [text for text in cells(kind, np.random.default_rng(0)) if np.isfinite(float(text))]
    found = plain_columns("\n".join(texts).encode(), 0, ",", 1, [0])[0]
    assert found.view(np.int64).tolist() == np.array([float(text) for text in texts]).view(np.int64).tolist()


def test_blanks_empty_lines_and_both_line_ends_are_passed_over():
    found = plain_columns(b"head\n\r\n 1 ; .5;-3.\r\n\n+4;5e2 ;6", 5, ";", 3, [2, 0])
    assert {index: column.tolist() for index, column in found.items()} == {2: [-3.0, 6.0], 0: [1.0, 4.0]}


@pytest.mark.parametrize(
    "text",
    ["1,2\n3", "1,2\n3,4,5", "1,2\n,4", "1,x\n", '1,"2"\n', "1,nan\n", "1,1e999\n", "1,2\n#3,4", "1,.\n",
     "1,1e\n", "1,+\n", "1,- 2\n", "1,0x1\n", "1,1_0\n", "1,2 3\n", "1,2\0\n"],
)  # fmt: skip
def test_other_cells_are_left_to_other_readers(text):
    assert plain_columns(text.encode(), 0, ",", 2, [0, 1]) is None


ROWS = "\n".join(f"{row},{row / 7},{row % 5 - 2}e-3" for row in range(1200))

FILES = {
    "plain": f"a,b,c\n{ROWS}\n",
    "no end of the last line": f"a,b,c\n{ROWS}",
    "line ends of Windows": f"a,b,c\n{ROWS}\n".replace("\n", "\r\n"),
    "units": f"a,b,c\nm,s,kg\n{ROWS}\n",
    "letters in headings": f"\ufeffT [°C],b,c\n{ROWS}\n",
    "a comment and empty lines above": f"# of a logger\n\n\na,b,c\n{ROWS}\n",
    "a header that is a comment": f"# a,b,c\n{ROWS}\n",
    "sep": f"sep=;\na;b;c\n{ROWS.replace(',', ';')}\n",
    "decimal commas": f"a;b;c\n{ROWS.replace(',', ';').replace('.', ',')}\n",
    "tabs": f"a\tb\tc\n{ROWS}\n".replace(",", "\t"),
    "blanks": f"a b c\n{ROWS}\n".replace(",", " "),
    "a comment below": f"a,b,c\n{ROWS}\n# the end\n",
    "a missing value below": f"a,b,c\n{ROWS}\n1,,2\n",
    "text below": f"a,b,c\n{ROWS}\n1,x,2\n",
    "a letter below": f"a,b,c\n{ROWS}\n1,ä,2\n",
    "a short row below": f"a,b,c\n{ROWS}\n1,2\n",
    "quotes": '"a","b, of it","c"\n' + ROWS,
    "many lines above": "\n" * 1500 + f"a,b,c\n{ROWS}\n",
    "old line ends": f"a,b,c\n{ROWS}\n".replace("\n", "\r"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_large_file_is_read_as_a_small_one(name, tmp_path, monkeypatch):
    def said(large):
        monkeypatch.setattr(delimited, "_LARGE", 1000 if large else 1 << 40)
        try:
            source = open_delimited(path)
            columns = source.read(range(len(source.headings)))
        except Exception as error:
            return type(error), str(error)
        rows = [(column.heading, column.values.tolist(), column.problem(1100, "odd")) for column in columns]
        return source.headings, source.notes, source.separator, rows

    path = tmp_path / "rows.csv"
    path.write_bytes(FILES[name].encode())
    assert said(large=True) == said(large=False)


def test_large_files_of_numbers_have_no_lines_made(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_LARGE", 1000)
    path = tmp_path / "rows.csv"
    path.write_text(FILES["plain"])
    source = open_delimited(path)
    monkeypatch.setattr(delimited, "_Body", None)
    assert [len(column.values) for column in source.read([1, 2])] == [1200, 1200]
