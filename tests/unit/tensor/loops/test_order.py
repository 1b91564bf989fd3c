import numpy as np
import pytest
from helpers.tensor_runs import assert_close, run

from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module
from shine.tensor.form.types import TensorType


def check(make, *arrays: np.ndarray) -> None:
    b = FunctionBuilder("main")
    names = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64", np.dtype(np.int64): "i64", np.dtype("u1"): "u8"}
    values = [b.parameter(f"x{i}", TensorType(names[a.dtype], a.shape)) for i, a in enumerate(arrays)]
    made = make(b, *values)
    module = Module("m", {"main": b.done(*(made if isinstance(made, tuple) else (made,)))})
    assert_close(run(module, arrays)[0], interpret(module, "main", arrays))


SPECIAL = np.array([3, np.nan, -1, 3, np.inf, np.nan, -0.0, 0.0, -np.inf, 3], np.float32)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_sorting_is_stable_and_puts_nan_at_the_large_end(axis, descending):
    x = np.stack([SPECIAL, SPECIAL[::-1], np.roll(SPECIAL, 3)])
    check(lambda b, v: b.sort(v, axis=axis, descending=descending), x)


@pytest.mark.parametrize("size", [1, 2, 3, 31, 32, 33, 1000])
def test_lines_of_any_length(size):
    rng = np.random.default_rng(8)
    check(lambda b, v: b.sort(v, axis=0), rng.integers(0, 50, size).astype(np.uint8))
    check(lambda b, v: b.top_k(v, k=min(5, size)), rng.standard_normal((2, size)))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_of_equals_and_the_first_nan(name):
    check(lambda b, v: getattr(b, name)(v, axis=0), SPECIAL)
    check(lambda b, v: getattr(b, name)(v, axis=1), np.stack([SPECIAL[[0, 2, 3]], SPECIAL[[2, 2, 0]]]))


def test_slices_are_added_in_the_order_of_their_indices():
    x, places = np.arange(12.0).reshape(4, 3), np.array([3, 0, 3, 9, -1])
    check(lambda b, v, i, s: b.scatter_add(v, i, s, axis=0), x, places, np.arange(15.0).reshape(5, 3) / 7)
