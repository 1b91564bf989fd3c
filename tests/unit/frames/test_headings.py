"""Queries read the column that a heading names, blanks included, and values and functions of the caller's modules."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from shine import UnsupportedSyntaxError

COLUMNS = {"A": [1.0, 2.0, 3.0], " A": [30.0, 20.0, 10.0], "B ": [0.0, 1.0, 2.0], "a  b": [5.0, 6.0, 7.0]}

SETTINGS = SimpleNamespace(limit=2, levels=[1.0, 3.0])

CASES = {
    "` A` > 15": [0, 1],
    "A > 1 and ` A` < 15": [2],
    "`A` > 1": [1, 2],
    "`B ` > 1": [2],
    "`B` > 1": [2],
    "B > 1": [2],
    "`a  b` > 6": [2],
    "  `a  b` > 6 ": [2],
    "`A`>1&` A`<15": [2],
    "A > @SETTINGS.limit": [2],
    "A in @SETTINGS.levels": [0, 2],
    "@np.sqrt(A) > 1": [1, 2],
    "@root(A) > 1": [1, 2],
}

REFUSED = {"` A ` > 1": "may be 'A', ' A'; write the heading", "`a b` > 1": "there is no column 'a b'"}


def table(library: str) -> Any:
    importlib.import_module(f"shine.{library.removeprefix('py')}")
    if library == "pandas":
        return pd.DataFrame(COLUMNS).shine
    module = pytest.importorskip(library)
    if library == "polars":
        return module.DataFrame(COLUMNS).shine
    arrow, rows = importlib.import_module("shine.arrow"), module.table(COLUMNS)
    return SimpleNamespace(query=lambda text, **given: arrow.filter(rows, text, **given))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_each_library_finds_the_same_columns(library: str) -> None:
    known = {"SETTINGS": SETTINGS, "np": np, "root": np.sqrt}
    for text, rows in CASES.items():
        assert table(library).query(text, variables=known).tolist() == rows, text
    for text, message in REFUSED.items():
        with pytest.raises(UnsupportedSyntaxError, match=message):
            table(library).query(text)
