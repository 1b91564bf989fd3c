"""The node tests that the package onnx brings, with inputs and results made by its reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shine.base.errors import GraphImportError
from shine.tensor.form.interpreter import interpret
from shine.tensor.onnx import load_onnx

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnx.backend.test.case.node")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

OTHERWISE = {"test_resize_downsample_scales_linear_align_corners"}
"""Sizes that are not whole count as such there, and are rounded here, as in ONNX Runtime."""

LEAST_READ = 700


def as_read(value: Any) -> np.ndarray:
    """Elements as Shine has them: half precision becomes float32."""
    array = np.asarray(value if not hasattr(value, "raw_data") else onnx.numpy_helper.to_array(value))
    return array.astype(np.float32) if array.dtype.name in ("float16", "bfloat16") else array


def agrees(case: Any) -> bool | None:
    """Whether the results are those of a case; None if its model is refused."""
    try:
        module = load_onnx(case.model.SerializeToString())
    except GraphImportError:
        return None
    half = any(t.type.tensor_type.elem_type in (10, 16) for t in (*case.model.graph.input, *case.model.graph.output))
    close = {"rtol": 1e-2, "atol": 1e-2} if half else {"rtol": 1e-3, "atol": 1e-5}
    for given, wanted in case.data_sets:
        arguments = [as_read(value) for value in given][: len(module.function("main").parameters)]
        found = interpret(module, "main", arguments)
        for ours, theirs in zip(found, map(as_read, wanted), strict=True):
            if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
                return False
            if not np.allclose(ours, theirs, equal_nan=True, **close):
                return False
    return True


def test_what_is_read_has_the_results_of_the_reference():
    cases = onnx.backend.test.case.node.collect_testcases(None)
    found = {case.name: agrees(case) for case in cases}
    wrong = {name for name, agreed in found.items() if agreed is False}
    assert wrong - OTHERWISE == set()
    assert sum(agreed is True for agreed in found.values()) > LEAST_READ
