import re

import numpy as np
import pytest
from helpers.tensor_runs import assert_close, run

from shine.compiler.processor import Machine
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Module
from shine.tensor.form.types import TensorType
from shine.tensor.loops.emission import emit

TINY = Machine(32, 16, True, (1 << 10, 1 << 12, 1 << 14))
"""Caches so small that products are packed and sums are interrupted."""

SHAPES = [
    ((1, 1), (1, 1)),
    ((7, 5), (5, 3)),
    ((17, 33), (33, 31)),
    ((64, 100), (100, 48)),
    ((1, 784), (784, 10)),
    ((5,), (5, 9)),
    ((9, 5), (5,)),
    ((77,), (77,)),
    ((3, 4, 5), (3, 5, 6)),
    ((2, 1, 4, 5), (3, 5, 2)),
    ((4, 0), (0, 3)),
    ((0, 4), (4, 3)),
]


def arrays(rng: np.random.Generator, dtype: str, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    if np.dtype(dtype).kind == "f":
        return [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    return [rng.integers(-9, 9, shape).astype(dtype) for shape in shapes]


def product(dtype: str, left: tuple[int, ...], right: tuple[int, ...], turned: str = "") -> Module:
    b = FunctionBuilder("main")
    values = []
    for name, shape in (("a", left), ("b", right)):
        axes = list(range(len(shape)))
        if name in turned:
            axes[-2:] = reversed(axes[-2:])
        value = b.parameter(name, TensorType(dtype, tuple(shape[axis] for axis in axes)))
        values.append(b.transpose(value, permutation=tuple(axes)) if name in turned else value)
    return Module("m", {"main": b.done(b.dot(*values))})


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "machine"), [("f32", None), ("f64", TINY), ("i16", TINY)])
def test_every_shape(dtype, machine):
    rng = np.random.default_rng(3)
    for shapes in SHAPES:
        given = arrays(rng, {"f32": "float32", "f64": "float64", "i16": "int16"}[dtype], *shapes)
        found, _ = run(product(dtype, *shapes), given, machine)
        assert_close(found, [np.asarray(given[0] @ given[1])])


def test_edges_of_tiles_and_blocks():
    rng = np.random.default_rng(3)
    for shapes in [((17, 70), (70, 31)), ((3, 4, 5), (5, 6))]:
        given = arrays(rng, "float32", *shapes)
        found, _ = run(product("f32", *shapes), given, TINY)
        assert_close(found, [given[0] @ given[1]])


@pytest.mark.slow
@pytest.mark.parametrize("turned", ["a", "b", "ab"])
def test_transposed_operands_are_read_where_they_are(turned):
    rng = np.random.default_rng(4)
    for shapes in [((6, 20), (20, 9)), ((1, 30), (30, 40)), ((20, 30), (30, 1)), ((2, 6, 20), (2, 20, 9))]:
        a, b = arrays(rng, "float64", *shapes)
        given = [x.swapaxes(-1, -2).copy() if name in turned else x for name, x in (("a", a), ("b", b))]
        found, interface = run(product("f64", *shapes, turned), given)
        assert_close(found, [a @ b])
        assert len(interface.report) == 1


def test_blocks_of_the_caches_change_no_bit():
    rng = np.random.default_rng(5)
    given = arrays(rng, "float32", (40, 300), (300, 70))
    module = product("f32", (40, 300), (300, 70))
    sizes = [(1 << 10, 1 << 12, 1 << 14), (1 << 20, 1 << 24, 1 << 26)]
    found = [run(module, given, Machine(32, 16, True, caches))[0][0] for caches in sizes]
    np.testing.assert_array_equal(found[0].view(np.int32), found[1].view(np.int32))


@pytest.mark.slow
@pytest.mark.parametrize("turned", ["", "ab"])
def test_both_operands_of_a_large_product_are_packed(turned):
    rng = np.random.default_rng(10)
    for dtype, machine, (m, k, n) in (
        ("f32", TINY, (99, 170, 75)),
        ("f64", Machine(64, 32, True, TINY.caches), (130, 190, 65)),
    ):
        a, b = arrays(rng, {"f32": "float32", "f64": "float64"}[dtype], (m, k), (k, n))
        given = [x.T.copy() if name in turned else x for name, x in (("a", a), ("b", b))]
        (found,), interface = run(product(dtype, (m, k), (k, n), turned), given, machine)
        exact = a.astype(float) @ b
        unit = (k + 1) * np.finfo(a.dtype).eps
        assert (abs(found - exact) <= unit * (abs(a).astype(float) @ abs(b))).all()
        (tile,) = re.findall(r": (\d+) x 2 vectors of \d+, packed (\d+) x \d+ and (\d+) x (\d+)$", interface.report[0])
        rows, depth, high, terms = map(int, tile)
        assert depth == terms
        assert depth < k
        assert high % rows == 0
        assert high < m


def test_a_row_times_a_matrix_beyond_the_first_cache():
    rng = np.random.default_rng(6)
    tiny = (64, 1 << 12, 1 << 14)
    machines = [Machine(16, 8, False, tiny), Machine(32, 16, True, tiny), Machine(64, 32, True, tiny)]
    for number in range(8):
        dtype, machine = ("f32", "f64")[number % 2], machines[number % 3]
        k, n = (int(size) for size in rng.integers(9, 90, 2))
        shapes = [(k,), (k, n)] if number % 4 == 0 else [(1, k), (k, n)] if number % 4 < 3 else [(3, 1, k), (3, k, n)]
        x, w, bias = arrays(rng, {"f32": "float32", "f64": "float64"}[dtype], *shapes, (n,))
        b = FunctionBuilder("main")
        given, weights, shift = (b.parameter(f"x{i}", TensorType(dtype, a.shape)) for i, a in enumerate((x, w, bias)))
        moved = b.add(b.dot(given, weights), shift)
        module = Module("m", {"main": b.done(b.max(moved, b.like(moved, 0.0)))})
        (found,), interface = run(module, [x, w, bias], machine)
        exact = x.astype(float) @ w.astype(float) + bias
        unit = (k + 1) * np.finfo(x.dtype).eps / 2
        bound = unit / (1 - unit) * (abs(x).astype(float) @ abs(w) + abs(bias)) + 1e-15 * abs(exact)
        assert (abs(found - np.maximum(exact, 0)) <= bound).all()
        assert "terms at a time" in interface.report[0] or k <= machine.registers // 2


def test_rows_times_matrices_add_in_the_same_order_at_any_place():
    rng = np.random.default_rng(7)
    x, w = arrays(rng, "float32", (1, 70), (70, 50))
    machine = Machine(32, 16, True, (64, 1 << 12, 1 << 14))
    (found,), _ = run(product("f32", (1, 70), (70, 50)), [x, w], machine)
    (turned,), _ = run(product("f32", (1, 70), (70, 50)), [x, w[:, ::-1].copy()], machine)
    np.testing.assert_array_equal(found, turned[:, ::-1])


@pytest.mark.parametrize("machine", [Machine(16, 16), TINY, Machine(64, 32, True)])
def test_constant_matrices_have_rows_of_whole_vectors(machine):
    rng = np.random.default_rng(8)
    w, v = rng.standard_normal((40, 47)).astype("float32"), rng.standard_normal((2, 47, 31)).astype("float32")
    x = rng.standard_normal((2, 5, 40)).astype("float32")
    b = FunctionBuilder("main")
    given = b.parameter("x", TensorType("f32", x.shape))
    module = Module("m", {"main": b.done(b.dot(b.dot(given, b.constant(w)), b.constant(v)))})
    found, _ = run(module, [x], machine)
    assert_close(found, [x @ w @ v])
    ir, _ = emit(module, machine)
    assert all(f"[{4 * rows * 16 * columns} x i8]" in ir for rows, columns in ((40, 3), (94, 2)))
