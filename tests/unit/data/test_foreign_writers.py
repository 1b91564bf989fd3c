"""Tables that Python's csv, pandas and DuckDB write, in many dialects, are read back as they were."""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shine.data.datasets.preparation import Reading
from shine.data.loading import load

NUMBERS = st.floats(-1e12, 1e12).map(lambda value: round(value, 4) + 0.0)
LABELS = st.text("abc ä,;\t'\"|", max_size=6).map(lambda text: f"k{text}k")
ROWS = st.lists(st.tuples(NUMBERS, LABELS, NUMBERS), min_size=3, max_size=12)
HEADINGS = st.sampled_from(["a", "unit price (€)", "x, y", "größe; m²", 'the "a"', "#a"])

few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(path: Path, rows: list[tuple[float, str, float]], heading: str) -> None:
    """The columns, the texts and the target are those of the rows."""
    loaded = load(path, "target", [heading, "label"], reading=Reading(categories="ordinal"))
    texts = sorted({label for _, label, _ in rows})
    numbers, *codes = loaded.dataset.columns
    np.testing.assert_array_equal(numbers, [number for number, _, _ in rows])
    np.testing.assert_array_equal(loaded.dataset.target, [target for _, _, target in rows])
    if len(texts) > 1:  # a text that is the same everywhere is left out
        assert codes[0].tolist() == [texts.index(label) for _, label, _ in rows]


@few
@given(
    rows=ROWS,
    heading=HEADINGS,
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    line=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_csv_writes(
    rows: list[Any], heading: str, delimiter: str, quoting: Any, line: str, encoding: str, tmp_path: Path
) -> None:
    path = tmp_path / "d.csv"
    with path.open("w", encoding=encoding, newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter, quoting=quoting, lineterminator=line)
        writer.writerows([[heading, "label", "target"], *rows])
    check(path, rows, heading)


@pytest.mark.slow
@few
@given(
    rows=ROWS,
    heading=HEADINGS,
    options=st.fixed_dictionaries(
        {
            "sep": st.sampled_from(";\t|"),
            "decimal": st.sampled_from(",."),
            "index": st.booleans(),
            "quoting": st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
            "lineterminator": st.sampled_from(["\n", "\r\n"]),
        }
    ),
    ending=st.sampled_from(["", ".gz", ".bz2", ".xz", ".zip"]),
)
def test_pandas_writes(rows: list[Any], heading: str, options: dict[str, Any], ending: str, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    rows = [*rows, (0.25, "k", 0.25)]  # one number whose decimal sign is sure: 1,234 alone may be a thousand
    path = tmp_path / f"d.csv{ending}"
    pandas.DataFrame(rows, columns=[heading, "label", "target"]).to_csv(path, **options)
    check(path, rows, heading)


@pytest.mark.slow
@few
@given(
    rows=ROWS,
    heading=HEADINGS,
    delimiter=st.sampled_from(",;\t|"),
    forced=st.booleans(),
    compression=st.sampled_from(["", ".gz", ".zst"]),
)
def test_duckdb_writes(
    rows: list[Any], heading: str, delimiter: str, forced: bool, compression: str, tmp_path: Path
) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / f"d.csv{compression}"
    quoted = heading.replace('"', '""')
    with duckdb.connect() as base:
        base.execute(f'CREATE TABLE t ("{quoted}" DOUBLE, label TEXT, target DOUBLE)')
        base.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        quote = ", FORCE_QUOTE *" if forced else ""
        base.execute(f"COPY t TO '{path}' (HEADER, DELIMITER '{delimiter}'{quote})")
    check(path, rows, heading)


@few
@given(
    days=st.lists(st.dates(date(1990, 1, 13), date(2150, 1, 1)), min_size=2, max_size=9),
    form=st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M"]),
)
def test_pandas_writes_dates(days: list[date], form: str, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"day": pandas.to_datetime(days), "target": range(len(days))})
    frame.to_csv(tmp_path / "d.csv", date_format=form, index=False)
    found = load(tmp_path / "d.csv", "target").dataset.columns[0]
    assert found.tolist() == [(day - min(days)).days for day in days]
