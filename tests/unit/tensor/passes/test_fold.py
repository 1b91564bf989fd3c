import numpy as np
import pytest
from helpers.tensor_passes import after, lines_of

from shine.compiler.arrays import exp
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Module
from shine.tensor.passes.fold import fold


def folded(build):
    """The constant that a function without parameters becomes."""
    b = FunctionBuilder("main")
    found = fold(Module("m", {"main": b.done(build(b))})).function("main")
    return found.body[-1].attributes.get("value") if found.body[-1].operation == "constant" else None


def test_instructions_of_constants_become_constants():
    text = """%x: <2 x f32>
        %a = constant {value = <2 x f32> [1, 2]}
        %b = constant {value = f32 [3]}
        %c = mul %a: <2 x f32>, %b: f32
        %d = add %x: <2 x f32>, %c: <2 x f32>
        %d: <2 x f32>"""
    assert after(fold, text) == [
        "%v5 = constant {value = <2 x f32> [3.0, 6.0]}",
        "%d = add %x: <2 x f32>, %v5: <2 x f32>",
        "%d: <2 x f32>",
    ]


def test_elementary_functions_have_the_bits_of_compiled_code():
    values = np.linspace(-3, 3, 50)
    assert folded(lambda b: b.exp(b.constant(values))).tobytes() == exp(values).tobytes()


def test_elementary_functions_of_f32_stay():
    assert folded(lambda b: b.exp(b.constant(1.0, "f32"))) is None


def test_integers_have_the_bits_of_the_form():
    assert folded(lambda b: b.div(b.constant([7, -7, 1], "i32"), b.constant([2, 2, 0], "i32"))).tolist() == [3, -3, 0]


def test_products_are_sums_in_order():
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 5), (5, 2)))
    total = np.zeros((3, 2), np.float32)
    for k in range(5):
        total = x[:, k, None] * y[None, k] + total if k else x[:, 0, None] * y[None, 0]
    assert folded(lambda b: b.dot(b.constant(x), b.constant(y))).tobytes() == total.tobytes()


@pytest.mark.parametrize(
    "shapes", [((4,), (4,)), ((4,), (4, 2)), ((3, 4), (4,)), ((2, 3, 4), (4, 2)), ((4,), (2, 4, 3))]
)
def test_products_of_vectors_and_stacks(shapes):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 9, shape).astype(np.float64) for shape in shapes)
    found = folded(lambda b: b.dot(b.constant(x), b.constant(y)))
    assert found.shape == (x @ y).shape
    assert (found == x @ y).all()


def test_a_large_broadcast_stays():
    assert folded(lambda b: b.broadcast(b.constant(1.0, "f32"), shape=(1000,))) is None


def test_a_large_constant_is_transposed_in_place_of_the_other_but_not_beside_it():
    weights = np.zeros((300, 200), np.float32)
    assert folded(lambda b: b.transpose(b.constant(weights))).shape == (200, 300)
    b = FunctionBuilder("main")
    value = b.constant(weights)
    module = Module("m", {"main": b.done(b.transpose(value), value)})
    assert fold(module) is module
    assert "transpose" in lines_of(module)[1]


def test_what_has_no_elements_is_a_constant():
    assert after(fold, "%x: <0 x f32>\n%a = exp %x: <0 x f32>\n%a: <0 x f32>")[0] == (
        "%v2 = constant {value = <0 x f32> []}"
    )


def test_several_results_are_folded_together():
    text = """-
        %c = constant {value = <3 x f32> [2, 1, 3]}
        %a, %i = sort %c: <3 x f32> {axis = 0, descending = true}
        %i: <3 x i64>"""
    assert after(fold, text)[0] == "%v4 = constant {value = <3 x i64> [2, 0, 1]}"
