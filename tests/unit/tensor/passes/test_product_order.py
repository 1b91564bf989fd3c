from itertools import pairwise

import numpy as np
import pytest
from helpers.tensor_passes import after

from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module
from shine.tensor.form.types import TensorType
from shine.tensor.passes.products import cost, order_products


def test_a_vector_is_multiplied_first():
    text = """%a: <50 x 60 x f32>, %b: <60 x 70 x f32>, %x: <70 x f32>
        %p = dot %a: <50 x 60 x f32>, %b: <60 x 70 x f32>
        %q = dot %p: <50 x 70 x f32>, %x: <70 x f32>
        %q: <50 x f32>"""
    assert after(order_products, text) == [
        "%v5 = dot %b: <60 x 70 x f32>, %x: <70 x f32>",
        "%v6 = dot %a: <50 x 60 x f32>, %v5: <60 x f32>",
        "%v6: <50 x f32>",
    ]


def least(sizes):
    """Fewest multiplications, by trying all orders."""
    if len(sizes) == 2:
        return 0
    return min(
        least(sizes[: cut + 1]) + least(sizes[cut:]) + sizes[0] * sizes[cut] * sizes[-1]
        for cut in range(1, len(sizes) - 1)
    )


def chain(rng, shapes, dtype):
    """Products of matrices in a random order."""
    b = FunctionBuilder("main")
    values = [b.parameter(f"x{i}", TensorType(dtype, shape)) for i, shape in enumerate(shapes)]
    while len(values) > 1:
        # In matrix products, neighbours are joined; vectors at the ends are rows and columns.
        place = int(rng.integers(len(values) - 1))
        values[place : place + 2] = [b.dot(*values[place : place + 2])]
    return Module("m", {"main": b.done(*values)})


@pytest.mark.parametrize("seed", range(5))
def test_the_order_has_the_fewest_multiplications_and_the_same_bits_for_integers(seed):
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(1, 12, 7)]
    first, last = seed % 2, seed // 2 % 2
    shapes = [*pairwise(sizes)]
    shapes[0] = shapes[0][1:] if first else shapes[0]
    shapes[-1] = shapes[-1][:1] if last else shapes[-1]
    sizes[0], sizes[-1] = 1 if first else sizes[0], 1 if last else sizes[-1]
    module = chain(rng, shapes, "i32")
    found = order_products(module)
    spent = sum(cost(*(v.type for v in i.operands)) for i in found.function("main").body)
    assert spent == least(sizes)
    arguments = [rng.integers(-9, 9, shape, np.int32) for shape in shapes]
    assert (interpret(module, "main", arguments)[0] == interpret(found, "main", arguments)[0]).all()


@pytest.mark.slow
@pytest.mark.parametrize("is_left", [False, True])
def test_a_long_chain_is_ordered_in_parts(is_left):
    b = FunctionBuilder("main")
    matrix = b.parameter("x", TensorType("f32", (2, 2)))
    product = matrix
    for _ in range(1200):
        product = b.dot(product, matrix) if is_left else b.dot(matrix, product)
    module = Module("m", {"main": b.done(product)})
    assert len(order_products(module).function("main").body) == 1200
