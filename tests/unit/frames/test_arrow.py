"""`shine.arrow`."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shine.arrow
from shine import UnsupportedSyntaxError
from shine.frames.language.steps import HOLDS

TABLE = pa.table({
    "x": pa.chunked_array([[1.0, None, 3.0], [], [4.0, 5.0]]),
    "s": pa.chunked_array([["a", "b"], [None, "c", "a"]]),
    "flag": [True, None, False, True, False],
    "day": pa.array([0, 1, None, 3, 4], pa.int32()).cast(pa.date32()),
    "time": pa.array([0, 86_400_000, None, 1, -1], pa.timestamp("ms", "UTC")),
    "nothing": pa.nulls(5),
})  # fmt: skip

CASES = {
    "x > 2": [2, 3, 4],
    "~(x > 2)": [0],
    "x > 2 | isna(x)": [1, 2, 3, 4],
    "s in ('a', 'c')": [0, 3, 4],
    "s != 'a'": [1, 3],
    "flag": [0, 3],
    "not flag": [2, 4],
    "flag | x > 4": [0, 3, 4],
    "day >= '1970-01-02'": [1, 3, 4],
    "day == '1970-01-02T12:00'": [],
    "day < '1970-01-02T12:00'": [0, 1],
    "time < '1970-01-01T00:00:00.0005+00:00'": [0, 4],
    "nothing > 1": [],
    "isna(nothing)": [0, 1, 2, 3, 4],
}


@pytest.mark.parametrize("text", CASES)
def test_a_condition_selects_its_rows_in_all_chunks(text):
    assert shine.arrow.filter(TABLE, text).tolist() == CASES[text]


@pytest.mark.parametrize("text", CASES)
def test_a_sliced_record_batch_is_read_from_its_first_row(text):
    batch = pa.concat_tables([TABLE.slice(4), TABLE]).combine_chunks().to_batches()[0].slice(1)
    assert shine.arrow.filter(batch, text).tolist() == CASES[text]


def test_results_are_arrows():
    mask = shine.arrow.filter(TABLE, "x > 2", "mask")
    assert mask.type == pa.bool_()
    assert mask.to_pylist() == [False, False, True, True, True]
    assert shine.arrow.filter(TABLE, "x > 2", "rows").equals(TABLE.slice(2))
    batch = TABLE.combine_chunks().to_batches()[0]
    assert shine.arrow.filter(batch, "x > 2", "rows").equals(batch.slice(2))
    assert shine.arrow.filter(batch, "x > 2", "mask").equals(mask)


def test_values_are_arrays_with_nulls():
    assert shine.arrow.eval(TABLE, "x*2").to_pylist() == [2.0, None, 6.0, 8.0, 10.0]
    assert shine.arrow.eval(TABLE, "x > 2 & flag").to_pylist() == [False, None, False, True, False]


def test_chunks_may_have_different_dictionaries():
    first, second = pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "a", None]).dictionary_encode()
    table = pa.table({"s": pa.chunked_array([first, second])})
    assert shine.arrow.filter(table, "s == 'b'").tolist() == [1, 2]
    assert shine.arrow.filter(table, "s != 'b'").tolist() == [0, 3]


def test_a_missing_entry_of_a_dictionary_is_missing():
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), pa.array(["a", None, "b"]))
    table = pa.table({"s": array, "n": pa.array([1.5, 2.5, 1.5]).dictionary_encode()})
    assert shine.arrow.filter(table, "s != 'a'").tolist() == [2]
    assert shine.arrow.filter(table, "isna(s) | n > 2").tolist() == [1]


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 129])
@pytest.mark.parametrize("offset", [0, 1, 7, 9])
def test_bitmaps_are_read_from_any_bit(rows, offset):
    rng = np.random.default_rng(rows)
    values = [None if missing else bool(value) for value, missing in rng.random((rows + offset, 2)) < 0.4]
    table = pa.table({"b": values}, schema=pa.schema({"b": pa.bool_()})).slice(offset)
    given = values[offset:]
    assert shine.arrow.filter(table, "b").tolist() == [i for i, value in enumerate(given) if value]
    assert shine.arrow.filter(table, "~b").tolist() == [i for i, value in enumerate(given) if value is False]
    assert shine.arrow.eval(table, "~b").to_pylist() == [None if value is None else not value for value in given]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "count"), [("s", 2**40), ("ms", 2**50), ("us", 2**60), ("ns", 2**62), ("ns", -(2**62) - 1)]
)
def test_times_of_different_units_are_compared_exactly(unit, count):
    scale = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
    for other in ("s", "ms", "us", "ns"):
        near = count * scale[unit] // scale[other]
        values = [value for value in (near - 1, near, near + 1) if -(2**63) < value < 2**63]
        counts = pa.array([count] * len(values), pa.timestamp(unit))
        table = pa.table({"a": counts, "b": pa.array(values, pa.timestamp(other))})
        for comparison, holds in HOLDS.items():
            expected = [i for i, value in enumerate(values) if holds(count * scale[unit], value * scale[other])]
            assert shine.arrow.filter(table, f"a {comparison} b").tolist() == expected, (comparison, other)


@pytest.mark.parametrize(
    "array", [pa.array([b"x"]), pa.array([[1]]), pa.array([datetime.time(1)]), pa.array([1]).cast(pa.decimal128(20))]
)
def test_types_that_queries_do_not_read_are_refused_with_their_place(array: Any):
    with pytest.raises(UnsupportedSyntaxError, match=r"line 1, column 9: column 'x' is of type .* cast it"):
        shine.arrow.filter(pa.table({"y": [1], "x": array}), "y > 0 & x == 1")


def test_other_tables_are_refused():
    with pytest.raises(TypeError, match=r"a table is a pyarrow.Table or a pyarrow.RecordBatch, not dict"):
        shine.arrow.filter({"x": [1]}, "x > 0")


def test_variables_are_the_callers():
    limit = 4  # noqa: F841  # the queries read them
    assert shine.arrow.filter(TABLE, "x >= @limit").tolist() == [3, 4]
    assert shine.arrow.eval(TABLE, "x >= @limit", variables={"limit": 5}).to_pylist()[4]
