"""The loop over rows: every number of rows, nothing written or counted beyond the last, the same bits at any width."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from llvmlite import ir

import shine
from shine.compiler.codegen.native import loops
from shine.compiler.codegen.native.loops import emit_predict
from shine.compiler.llvm import Engine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import SQUARED
from shine.evaluate.scores import products_of
from shine.evaluate.tiers.native_tier import NativeFitness
from shine.evaluate.tiers.rows import Rows
from shine.lang.interpret import evaluate

CANARY = 77
ROWS = range(41)


def predict_function(text: str, dtype: str, level: str = "O1"):
    """Compiled ``predict(columns, out, rows)`` over NumPy arrays; whether an integer division failed."""
    module = ir.Module()
    emit_predict(module, shine.parse(text), "predict", dtype)
    kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    function = Engine(str(module), level).function("predict", ctypes.c_uint8, *kinds)

    def predict(columns: list[np.ndarray], out: np.ndarray, rows: int) -> bool:
        pointers = np.array([column.ctypes.data for column in columns] or [0], dtype=np.uintp)
        return bool(function(pointers.ctypes.data, out.ctypes.data, rows))

    return predict


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64"])
@pytest.mark.parametrize("text", ["a*b - a", "7", "b"])
def test_every_number_of_rows_is_computed_and_nothing_written_beyond(text, dtype):
    rng = np.random.default_rng(0)
    tree, predict = shine.parse(text), predict_function(text, dtype)
    columns = [rng.integers(-9, 9, len(ROWS) + 16).astype(dtype) for _ in tree.parameters]
    for rows in ROWS:
        out = np.full(rows + 32, CANARY, dtype)
        assert not predict(columns, out, rows)
        expected = np.broadcast_to(evaluate(tree, [column[:rows] for column in columns], dtype), rows)
        assert out[:rows].tolist() == expected.tolist(), rows
        assert (out[rows:] == CANARY).all(), rows


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_memory_after_the_last_row_does_not_count_as_a_division_by_zero(dtype):
    predict = predict_function("a // b", dtype)
    for rows in ROWS:
        a, b, out = np.arange(64, dtype=dtype), np.full(64, 2, dtype), np.zeros(64, dtype)
        b[rows:] = 0
        assert not predict([a, b], out, rows), rows


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_division_by_zero_is_seen_in_whatever_row_it_is(dtype):
    predict = predict_function("a // b", dtype)
    for row in range(40):
        a, b, out = np.arange(40, dtype=dtype), np.full(40, 2, dtype), np.zeros(40, dtype)
        b[row] = 0
        assert predict([a, b], out, 40), row


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_predictions_have_the_same_bits_at_every_vector_width(dtype, monkeypatch):
    text = "exp(-a*a)*sin(b*100) + a % b + tanh(a/b) + a**b"
    rng = np.random.default_rng(1)
    columns = [rng.normal(size=83).astype(dtype) * 3, rng.normal(size=83).astype(dtype)]
    results = set()
    for size in (16, 32, 64, 128):
        monkeypatch.setattr(loops, "VECTOR_BYTES", size)
        out = np.zeros(83, dtype)
        predict_function(text, dtype)(columns, out, 83)
        results.add(out.tobytes())
    assert len(results) == 1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums_over_the_rows_have_the_same_bits_at_every_vector_width(dtype, monkeypatch):
    rng = np.random.default_rng(2)
    dataset = Dataset.from_arrays(
        rng.normal(size=(1037, 2)), rng.normal(size=1037), sample_weight=rng.random(1037), features=("a", "b")
    )
    results = set()
    for size in (32, 64, 128):
        monkeypatch.setattr(loops, "VECTOR_BYTES", size)
        measure = NativeFitness([shine.parse("exp(a) - b*a")], dtype, "O1").over(Rows(dataset, dtype))
        errors = measure.errors(np.array([0]), SQUARED, np.array([2.0]), np.array([0.5]))
        products = products_of(measure, np.array([0]))
        results.add(tuple(v.tobytes() for v in (errors, products.moments)))
    assert len(results) == 1
