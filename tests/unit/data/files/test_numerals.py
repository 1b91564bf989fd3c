"""Numbers as people write them, and what their signs mean."""

from __future__ import annotations

import math
from decimal import Decimal as Exact

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.base.errors import DataError
from shine.data.files.numerals import is_missing, numeral, writing_of

READ = {
    ("1.520", "."): 1.52,
    ("1.520", ","): 1520,
    ("1,520", "."): 1520,
    ("1,520", ","): 1.52,
    ("1.520,5", ","): 1520.5,
    ("1,520.5", "."): 1520.5,
    ("1 520,5", ","): 1520.5,
    ("1\u2009520,5", ","): 1520.5,
    ("1\u202f520\u202f000,5", ","): 1_520_000.5,
    ("1'520.5", "."): 1520.5,
    ("1’520.5", "."): 1520.5,
    ("12,345,678", "."): 12_345_678,
    ("1,5e3", ","): 1500,
    ("-2,5E-2", ","): -0.025,
    ("−7", "."): -7,
    ("+.5", "."): 0.5,
    (",5", ","): 0.5,
    ("5.", "."): 5,
    ("0,123", ","): 0.123,
    ("12 %", "."): 12,
    ("€ 1.520,50", ","): 1520.5,
    ("-$1,520.50", "."): -1520.5,
    ("3 ₽", "."): 3,
}


@pytest.mark.parametrize(("cell", "decimal"), READ)
def test_numbers_are_read(cell: str, decimal: str) -> None:
    found = numeral(cell, decimal)  # type: ignore[arg-type]
    assert found is not None
    assert found.value == READ[cell, decimal]


@pytest.mark.parametrize(
    ("cell", "decimal"),
    [
        ("1.520,5", "."),
        ("1,520.5", ","),
        ("0,123", "."),  # no thousands begin with 0
        ("12,34", "."),
        ("1,2345", "."),
        ("1,520e3", "."),
        ("1 520.5 7", "."),
        ("1,520 000", "."),  # two separators
        ("$5%", "."),
        ("5 kg", "."),
        ("0x1F", "."),
        ("1_000", "."),
        ("inf", "."),
        ("nan", "."),
        ("TRUE", "."),
        ("1.2.3", "."),
        ("2023-01-05", "."),
        ("(5)", "."),
        ("--5", "."),
        ("-$-5", "."),
        ("", "."),
        ("٣", "."),
        ("9" * 5000, "."),
    ],
)
def test_other_cells_are_no_numbers(cell: str, decimal: str) -> None:
    assert numeral(cell, decimal) is None  # type: ignore[arg-type]


def test_a_number_beyond_float64_is_infinite() -> None:
    found = numeral("9" * 400, ".")
    assert found is not None
    assert math.isinf(found.value)


@pytest.mark.parametrize("cell", ["", "-", "–", "?", ".", "NA", "n/a", "#N/A", "NaN", "null", "None", "#DIV/0!"])
def test_marks_of_missing_values_are_known(cell: str) -> None:
    assert is_missing(cell)


@pytest.mark.parametrize("cell", ["0", "-1", "no", "north", "a", "nano", "missing data"])
def test_other_texts_are_not_missing(cell: str) -> None:
    assert not is_missing(cell)


DECIDED = {
    ("1.5", "1,520"): ".",
    ("1,5", "1.520"): ",",
    ("1.520", "2"): ".",
    ("1.520,5",): ",",
    ("1,520.5",): ".",
    ("0,123", "1,520"): ",",
    ("1,520,000",): ".",
    ("1.520.000",): ",",
    ("12,5 %",): ",",
    ("1,5", "2,5", "3.5"): ",",  # most cells decide
    ("red", "5", ""): ".",
}


@pytest.mark.parametrize("cells", DECIDED)
def test_the_cells_tell_the_decimal_sign(cells: tuple[str, ...]) -> None:
    assert writing_of(cells, ";", None, None).decimal == DECIDED[cells]


def test_what_decides_where_no_cell_does() -> None:
    unclear = ["1,520", "950"]
    assert writing_of(unclear, ",", None, None).decimal == "."  # commas separate columns, so this one means thousands
    assert writing_of(unclear, ";", ",", None).decimal == ","  # the user
    assert writing_of(unclear, ";", None, ",").decimal == ","  # the training data
    assert writing_of(["1,5", "1.520"], ";", None, ".").decimal == ","  # the cells, before the training data
    with pytest.raises(DataError, match=r"^'1,520' may be 1520 or 1\.520, and no other number tells; set"):
        writing_of(unclear, ";", None, None)


@given(
    value=st.decimals(-(10**12), 10**12, places=4, allow_nan=False),
    gap=st.sampled_from(["", ",", " ", "\u202f", "'"]),
    sign=st.sampled_from(["{}", "{} %", "€ {}", "{}$"]),
)
def test_whatever_python_formats_is_read_back(value: Exact, gap: str, sign: str) -> None:
    english = f"{value:,.4f}"
    text = sign.format(english.replace(",", gap))
    found = numeral(text, ".")
    assert found is not None
    assert found.value == float(value)
    swapped = sign.format(english.translate(str.maketrans(",.", ".,")).replace(".", "." if gap == "," else gap))
    found = numeral(swapped, ",")
    assert found is not None
    assert found.value == float(value)
