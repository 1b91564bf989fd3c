"""Threads share the large loops of a tensor program, and results have the same bits for any number of them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers.tensor_modules import random_arguments, random_module

import shine.tensor
from shine.tensor.compositions.networks import softmax
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Module, Value
from shine.tensor.form.types import TensorType
from shine.tensor.native.function import TensorFunction

COUNTS = (2, 3, 8)


@pytest.fixture
def all_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small work is divided, too."""
    monkeypatch.setattr("shine.tensor.loops.sharing.SHARED_GROUP", 1)
    monkeypatch.setattr("shine.tensor.loops.sharing.LINE", 1)
    monkeypatch.setattr("shine.tensor.loops.sharing.STREAM", 64)
    monkeypatch.setattr("shine.tensor.loops.emission.SHARED_CALL", 1)


def module(make: Callable[..., Value], *shapes: tuple[int, ...], dtype: str = "f32") -> Module:
    b = FunctionBuilder("main")
    given = [b.parameter(f"x{place}", TensorType(dtype, shape)) for place, shape in enumerate(shapes)]
    return Module("m", {"main": b.done(make(b, *given))})


def check(made: Module, arguments: tuple[np.ndarray, ...], is_divided: bool | None = True) -> None:
    """Threads give the bits of one thread."""
    alone = TensorFunction(made)(*arguments)
    alone = alone if isinstance(alone, tuple) else (alone,)
    for threads in COUNTS:
        function = TensorFunction(made, threads=threads)
        for _ in range(2):
            found = function(*arguments)
            found = found if isinstance(found, tuple) else (found,)
            for one, other in zip(alone, found, strict=True):
                assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
        if is_divided is not None:
            assert ("shared by threads" in function.report) == is_divided


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_modules(all_shared, seed):
    made = random_module(seed)
    check(made, random_arguments(made, "main", seed), None)


SIZES = [
    pytest.param(1, 1, 2, id="tiny"),
    pytest.param(2, 3, 257, id="few rows"),
    pytest.param(1, 300, 211, id="one row", marks=pytest.mark.slow),
    pytest.param(1, 517, 1203, id="streamed", marks=pytest.mark.slow),
    pytest.param(97, 101, 103, id="primes", marks=pytest.mark.slow),
    pytest.param(64, 700, 515, id="packed", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
@pytest.mark.parametrize("is_transposed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_products(all_shared, m, k, n, is_transposed):
    def product(b, x, y):
        return b.max(b.dot(x, b.transpose(y, permutation=(1, 0)) if is_transposed else y), b.constant(np.float32(0)))

    rng = np.random.default_rng(m)
    right = (n, k) if is_transposed else (k, n)
    arrays = tuple(rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), right))
    check(module(product, (m, k), right), arrays, m * n > 4 or None)


@pytest.mark.slow
@pytest.mark.parametrize("stack", [(3,), (2, 5)])
def test_stacks_of_products(all_shared, stack):
    shapes = ((*stack, 33, 20), (*stack, 20, 41))
    rng = np.random.default_rng(1)
    arrays = tuple(rng.standard_normal(shape) for shape in shapes)
    check(module(lambda b, x, y: b.dot(x, y), *shapes, dtype="f64"), arrays)


@pytest.mark.parametrize(
    ("image", "kernel", "around"),
    [
        pytest.param((1, 13, 11, 3), (3, 3, 3, 20), 1, id="one image, padded", marks=pytest.mark.slow),
        pytest.param((3, 9, 10, 4), (2, 5, 4, 7), 0, id="images", marks=pytest.mark.slow),
        pytest.param((2, 7, 7, 256), (3, 3, 256, 400), 1, id="packed filters", marks=pytest.mark.slow),
    ],
)
def test_convolutions(all_shared, image, kernel, around):
    rng = np.random.default_rng(2)
    filters, x = (rng.standard_normal(shape).astype(np.float32) for shape in (kernel, image))

    def layer(b, x):
        return softmax(b, b.convolve(x, b.constant(filters), low=(around,) * 2, high=(around,) * 2))

    check(module(layer, image), (x,))


@pytest.mark.slow
def test_softmax_of_rows_is_divided_and_whole_sums_are_not(all_shared):
    x = np.random.default_rng(3).standard_normal((37, 70)).astype(np.float32)
    check(module(lambda b, x: softmax(b, b.exp(x)), x.shape), (x,))
    check(module(lambda b, x: b.reduce_sum(x, axes=(0, 1), keep=False), x.shape), (x,), False)


def big() -> tuple[Module, np.ndarray, np.ndarray]:
    """A product that is divided without being asked to."""
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal((400, 400)).astype(np.float32) for _ in range(2))
    return module(lambda f, x, y: f.dot(x, y), a.shape, b.shape), a, b


@pytest.mark.slow
def test_small_work_is_not_divided_and_one_thread_is_the_default():
    small = module(lambda f, x, y: f.dot(x, y), (8, 8), (8, 8))
    assert "shared" not in TensorFunction(small, threads=2).report
    assert "shared" not in TensorFunction(big()[0]).report


@pytest.mark.slow
def test_threads_may_call_at_once():
    made, a, b = big()
    function = TensorFunction(made, threads=3)
    expected = TensorFunction(made)(a, b)
    scaled = [(a * 2**i, expected * 2**i) for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for (_, wanted), found in zip(scaled * 5, pool.map(lambda one: function(one[0], b), scaled * 5), strict=True):
            assert np.array_equal(found, wanted)
    assert np.array_equal(function(a, b, out=np.empty_like(expected)), expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_forked_process_makes_its_own_threads():
    made, a, b = big()
    function = TensorFunction(made, threads=2)
    expected = function(a, b)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(function(a, b), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_bad_numbers_of_threads(threads):
    with pytest.raises(ValueError, match="threads must be a whole number from 1 on, or None for all processors"):
        shine.tensor.load(big()[0], threads=threads)


def test_threads_go_with_copies_and_gradients_and_not_into_files():
    made, *_ = big()
    function = shine.tensor.load(made, threads=2)
    assert pickle.loads(pickle.dumps(function)).threads == function.gradient("x0").threads == 2
    assert shine.tensor.load(made, threads=None).threads is None
    assert function.code().ir == TensorFunction(made).code().ir
