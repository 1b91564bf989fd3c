"""The same numbers in the containers that users have: arrays of all types, frames of three libraries, lists."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
from numpy.typing import NDArray

Array = NDArray[np.float64]
Container = Callable[[Array, list[str]], Any]
"""Makes a container of numbers, shape (n_rows, n_columns), and headings."""

HEADINGS = (
    "a", "b", "x0", "x1", "T [K]", "größe", "密度", "cat. mass / g", "", " ", "if", "sin", "pi", "1", "a b", "a-b",
    "µ", "e", "constant", "x" * 300, "\n", "'\"", "prediction", "target", "weight", "None", "_", "__x", "a.b",
    "100%", "α_β", "f", "k", "inf", "nan", "lambda",
)  # fmt: skip
"""Headings of columns, some of them not polite."""


def _typed(dtype: str) -> Container:
    def made(values: Array, heads: list[str]) -> Any:
        if dtype in ("int8", "uint8", "int16", "int64", "uint64"):
            span = np.iinfo(dtype)
            return np.clip(np.nan_to_num(values), max(span.min, -(2**62)), min(span.max, 2**62)).astype(dtype)
        return values.astype(dtype)

    return made


def _structured(values: Array, heads: list[str]) -> Any:
    return np.array([tuple(row) for row in values], dtype=[(f"f{i}", float) for i in range(values.shape[1])])


def _memory_map(values: Array, heads: list[str]) -> Any:
    with tempfile.TemporaryFile() as file:
        mapped = np.memmap(file, dtype=float, mode="w+", shape=values.shape) if values.size else values
        mapped[...] = values
        return mapped


def _read_only(values: Array, heads: list[str]) -> Any:
    values = values.copy()
    values.flags.writeable = False
    return values


def _masked(values: Array, heads: list[str]) -> Any:
    return np.ma.masked_where(values == values.ravel()[:1].sum(), values)


def _fractions(values: Array, heads: list[str]) -> Any:
    finite = np.nan_to_num(values, posinf=1e308, neginf=-1e308)
    return np.array([[Fraction(x) for x in row] for row in finite.tolist()], dtype=object).reshape(values.shape)


def _frame(values: Array, heads: list[str]) -> pd.DataFrame:
    return pd.DataFrame(values, columns=heads)


def _frame_with(change: Callable[[pd.Series], Any]) -> Container:
    """A frame whose first column is changed."""

    def made(values: Array, heads: list[str]) -> Any:
        columns: list[Any] = [pd.Series(column) for column in values.T]
        frame = pd.concat([pd.Series(change(columns[0])), *columns[1:]], axis=1) if columns else pd.DataFrame(values)
        frame.columns = heads
        return frame

    return made


def _rounded(column: pd.Series) -> pd.Series:
    return np.clip(np.nan_to_num(column, posinf=1e9, neginf=-1e9), -1e9, 1e9).round()  # type: ignore[no-any-return]


CONTAINERS: dict[str, Container] = {
    "array": lambda v, h: v,
    **{f"array of {dtype}": _typed(dtype) for dtype in (
        "float16", "float32", "longdouble", "int8", "uint8", "int16", "int64", "uint64", "bool", "complex128", ">f8",
        "object", "str", "bytes",
    )},
    "array of dates": lambda v, h: np.nan_to_num(_rounded(v)).astype("datetime64[s]"),
    "array of durations": lambda v, h: np.nan_to_num(_rounded(v)).astype("timedelta64[s]"),
    "array of fractions": _fractions,
    "array in Fortran's order": lambda v, h: np.asfortranarray(v),
    "array with strides": lambda v, h: np.repeat(np.repeat(v, 2, axis=0), 3, axis=1)[::2, ::3],
    "array backwards": lambda v, h: v[::-1].copy()[::-1],
    "array read-only": _read_only,
    "array without mask": lambda v, h: np.ma.array(v),
    "array masked": _masked,
    "array structured": _structured,
    "array of one dimension": lambda v, h: v[:, 0] if v.shape[1] else v,
    "array of three dimensions": lambda v, h: v[:, :, None],
    "array without columns": lambda v, h: v[:, :0],
    "memory map": _memory_map,
    "matrix, sparse": lambda v, h: scipy.sparse.csr_matrix(v),
    "array, sparse": lambda v, h: scipy.sparse.coo_array(v),
    "lists": lambda v, h: v.tolist(),
    "lists, ragged": lambda v, h: [row[: len(row) - (i == len(v) - 1)] for i, row in enumerate(v.tolist())],
    "tuples": lambda v, h: tuple(map(tuple, v.tolist())),
    "lists with None": lambda v, h: [[None, *row[1:]] if i == 0 else row for i, row in enumerate(v.tolist())],
    "frame": _frame,
    "frame of float32": lambda v, h: _frame(v, h).astype("float32"),
    "frame of objects": lambda v, h: _frame(v, h).astype(object),
    "frame, nullable": lambda v, h: _frame(v, h).astype("Float64"),
    "frame, nullable with NA": lambda v, h: _frame(
        np.where(np.arange(len(v))[:, None] == 1, np.nan, v), h).astype("Float64"),
    "frame, nullable whole": _frame_with(lambda c: pd.Series(_rounded(c)).astype("Int64")),
    "frame with booleans": _frame_with(lambda c: c > c.median()),
    "frame with nullable booleans": _frame_with(lambda c: (c > c.median()).astype("boolean")),
    "frame with categories": _frame_with(lambda c: pd.Categorical(np.where(c > c.median(), "hi", "lo"))),
    "frame with categories of numbers": _frame_with(lambda c: pd.Categorical(_rounded(c))),
    "frame with intervals": _frame_with(lambda c: pd.arrays.IntervalArray.from_arrays(_rounded(c), _rounded(c) + 1.0)),
    "frame with dates": _frame_with(lambda c: pd.to_datetime(_rounded(c), unit="s")),
    "frame with time zones": _frame_with(
        lambda c: pd.to_datetime(_rounded(c), unit="s", utc=True).tz_convert("Asia/Tokyo")),
    "frame with durations": _frame_with(lambda c: pd.to_timedelta(_rounded(c), unit="s")),
    "frame with periods": _frame_with(lambda c: pd.to_datetime(_rounded(c), unit="s").to_period("D")),
    "frame with texts": _frame_with(lambda c: c.map(lambda x: f"t{x:.0f}")),
    "frame with numbers as texts": _frame_with(lambda c: c.map(repr)),
    "frame with mixed values": _frame_with(lambda c: pd.Series(["?", *c.tolist()[1:]], dtype=object)),
    "frame with arrays in cells": _frame_with(lambda c: pd.Series([np.zeros(2) for _ in c], dtype=object)),
    "frame with sparse column": _frame_with(lambda c: pd.arrays.SparseArray(c)),
    "frame, all sparse": lambda v, h: _frame(v, h).astype(pd.SparseDtype(float, 0.0)),
    "frame of Arrow's types": lambda v, h: _frame(v, h).astype("float64[pyarrow]"),
    "frame with decimals": _frame_with(
        lambda c: pd.Series(pd.array(_rounded(c), dtype=pd.ArrowDtype(pa.decimal128(20, 2))))),
    "frame with complex numbers": _frame_with(lambda c: c.astype(complex)),
    "frame with index": lambda v, h: _frame(v, h).set_axis([f"r{i % 7}" for i in range(len(v))], axis=0),
    "frame with two levels": lambda v, h: _frame(v, h).set_axis(
        pd.MultiIndex.from_tuples([("u", x) for x in h]), axis=1),
    "frame with headings twice": lambda v, h: _frame(v, [h[0]] * len(h)),
    "frame with numbered columns": lambda v, h: pd.DataFrame(v),
    "frame with mixed headings": lambda v, h: _frame(v, [0, *h[1:]]),
    "frame without columns": lambda v, h: _frame(v, h)[[]],
    "series": lambda v, h: pd.Series(v[:, 0], name=h[0]),
    "Polars": lambda v, h: pl.DataFrame(v, schema=h),
    "Polars with nulls": lambda v, h: pl.DataFrame(
        np.where(v == v.ravel()[:1].sum(), np.nan, v), schema=h).fill_nan(None),
    "Polars with categories": lambda v, h: pl.DataFrame(v, schema=h).with_columns(
        (pl.col(h[0]) > 0).cast(pl.String).cast(pl.Categorical)),
    "Polars, lazy": lambda v, h: pl.DataFrame(v, schema=h).lazy(),
    "Arrow": lambda v, h: pa.table([pa.array(column) for column in v.T], names=h),
    "Arrow with nulls": lambda v, h: pa.table(
        [pa.array(column, mask=np.arange(len(v)) == 0) for column in v.T], names=h),
    "Arrow with a dictionary": lambda v, h: pa.table(
        [pa.array([f"t{x > 0}" for x in column]).dictionary_encode() if i == 0 else pa.array(column)
         for i, column in enumerate(v.T)], names=h),
    "Arrow with a dictionary of numbers": lambda v, h: pa.table(
        [pa.array(column).dictionary_encode() for column in v.T], names=h),
    "record batch": lambda v, h: pa.record_batch([pa.array(column) for column in v.T], names=h),
    "mapping": lambda v, h: dict(zip(h, v.T, strict=True)),
    "None": lambda v, h: None,
    "text": lambda v, h: "table.csv",
    "number": lambda v, h: 3.0,
}  # fmt: skip

PLAIN = (
    "array", "array in Fortran's order", "array with strides", "array backwards", "array read-only",
    "array without mask", "array of object", "array of >f8", "array of longdouble", "memory map", "lists", "tuples",
    "frame", "frame of objects", "frame, nullable", "frame of Arrow's types", "frame with index",
    "frame with numbered columns", "Polars", "Arrow", "record batch",
)  # fmt: skip
"""Containers of the numbers as they are; most programs have one of them."""


def headings(count: int, rng: np.random.Generator) -> list[str]:
    """Different headings."""
    if rng.random() < 0.5:
        return [f"v{i}" for i in range(count)]
    return [str(head) for head in rng.permutation(np.array(HEADINGS, dtype=object))[:count]] + [
        f"w{i}" for i in range(count - len(HEADINGS))
    ]


def contained(values: Array, heads: list[str], kind: str) -> Any:
    """Numbers in a container; in a plain array if the container cannot hold them."""
    with np.errstate(all="ignore"):
        try:
            return CONTAINERS[kind](values, heads)
        except Exception:  # of the libraries: overflow of their dates, names that they refuse, no rows
            return values
