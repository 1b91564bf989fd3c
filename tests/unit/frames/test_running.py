"""Blocks, threads and chunks change nothing in a result."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import shine.arrow
import shine.pandas  # gives data frames their attribute
from shine.frames import running


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks so small that a table of some thousand rows has many, and threads to share them."""
    monkeypatch.setattr(running, "BLOCK_ROWS", 128)
    monkeypatch.setattr(running, "COPIED_ROWS", 64)
    monkeypatch.setattr(running, "SHARED_ROWS", 0)


@pytest.mark.parametrize("rows", [1, 128, 129, 5000])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("share", [0.01, 0.5, 1.0])
def test_indices_and_masks_are_numpys(small_blocks, rows, threads, share):
    x = np.random.default_rng(rows).random(rows)
    table = pa.table({"x": pa.chunked_array([x[: rows // 3], x[rows // 3 :]])})
    expected = x < share
    assert shine.arrow.filter(table, f"x < {share}", threads=threads).tolist() == np.flatnonzero(expected).tolist()
    assert shine.arrow.filter(table, f"x < {share}", "mask", threads=threads).to_pylist() == expected.tolist()


def test_values_are_numpys(small_blocks):
    block = np.random.default_rng(0).random((4999, 2))
    frame = pd.DataFrame(block, columns=["a", "b"], copy=False)
    values = frame.shine.eval("a*a + b", threads=3)
    assert values.to_numpy().tolist() == (block[:, 0] * block[:, 0] + block[:, 1]).tolist()
    truths = frame.shine.eval("a > b", threads=3)
    assert truths.to_numpy().tolist() == (block[:, 0] > block[:, 1]).tolist()


def test_indices_of_more_rows_than_uint32_counts_are_uint64(monkeypatch):
    monkeypatch.setattr(running, "LARGEST_INDEX", 99)
    found = pd.DataFrame({"x": np.arange(200)}).shine.query("x % 50 == 7")
    assert found.dtype == np.uint64
    assert found.tolist() == [7, 57, 107, 157]


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_a_number_of_threads_is_whole_and_positive(threads):
    with pytest.raises(ValueError, match="threads must be a whole number from 1 on"):
        pd.DataFrame({"x": [1]}).shine.query("x > 0", threads=threads)
