import numpy as np
import pytest
from helpers.contracts import checked_optimized
from helpers.tensor_passes import after

from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module
from shine.tensor.form.types import TensorType
from shine.tensor.passes.algebra import simplify
from shine.tensor.passes.reshaping import choose_layout

MOVED = {
    "a sum of equal elements": (
        """%x: <3 x f32>
        %a = broadcast %x: <3 x f32> {shape = [4, 3]}
        %b = reduce_sum %a: <4 x 3 x f32> {axes = [0], keep = false}
        %b: <3 x f32>""",
        "mul %v",
    ),
    "sums of sums": (
        """%x: <2 x 3 x 4 x f32>
        %a = reduce_sum %x: <2 x 3 x 4 x f32> {axes = [1], keep = false}
        %b = reduce_sum %a: <2 x 4 x f32> {axes = [1], keep = false}
        %b: <2 x f32>""",
        "reduce_sum %x: <2 x 3 x 4 x f32> {axes = [1, 2], keep = false}",
    ),
    "a sum after a transpose": (
        """%x: <2 x 3 x f32>
        %a = transpose %x: <2 x 3 x f32> {permutation = [1, 0]}
        %b = reduce_sum %a: <3 x 2 x f32> {axes = [0], keep = false}
        %b: <2 x f32>""",
        "reduce_sum %x: <2 x 3 x f32> {axes = [1], keep = false}",
    ),
    "the transpose of a product of transposes": (
        """%x: <2 x 3 x f32>, %y: <3 x 4 x f32>
        %a = transpose %x: <2 x 3 x f32> {permutation = [1, 0]}
        %b = transpose %y: <3 x 4 x f32> {permutation = [1, 0]}
        %c = dot %b: <4 x 3 x f32>, %a: <3 x 2 x f32>
        %d = transpose %c: <4 x 2 x f32> {permutation = [1, 0]}
        %d: <2 x 4 x f32>""",
        "dot %x: <2 x 3 x f32>, %y: <3 x 4 x f32>",
    ),
    "a gather of places in order": (
        """%x: <5 x 2 x f32>
        %i = constant {value = <2 x i32> [1, 3]}
        %a = gather %x: <5 x 2 x f32>, %i: <2 x i32> {axis = 0}
        %a: <2 x 2 x f32>""",
        "slice %x: <5 x 2 x f32> {start = [1, 0], stop = [4, 2], step = [2, 1]}",
    ),
    "a gather beyond the end": (
        """%x: <5 x f32>
        %i = constant {value = i32 [9]}
        %a = gather %x: <5 x f32>, %i: i32 {axis = 0}
        %a: f32""",
        "reshape %v",
    ),
    "a slice of one part": (
        """%x: <2 x f32>, %y: <3 x f32>
        %a = concatenate %x: <2 x f32>, %y: <3 x f32> {axis = 0}
        %b = slice %a: <5 x f32> {start = [3], stop = [5], step = [1]}
        %b: <2 x f32>""",
        "slice %y: <3 x f32> {start = [1], stop = [3], step = [1]}",
    ),
    "neighbouring slices": (
        """%x: <6 x f32>
        %a = slice %x: <6 x f32> {start = [1], stop = [3], step = [1]}
        %b = slice %x: <6 x f32> {start = [3], stop = [4], step = [1]}
        %c = concatenate %a: <2 x f32>, %b: <1 x f32> {axis = 0}
        %c: <3 x f32>""",
        "slice %x: <6 x f32> {start = [1], stop = [4], step = [1]}",
    ),
    "a product of no terms": (
        """%x: <2 x 0 x f32>, %y: <0 x 3 x f32>
        %a = dot %x: <2 x 0 x f32>, %y: <0 x 3 x f32>
        %a: <2 x 3 x f32>""",
        "broadcast",
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_the_last_instruction_is(name):
    text, expected = MOVED[name]
    assert after(simplify, text)[-2].split(" = ", 1)[1].startswith(expected)


def test_a_sum_counts_the_equal_elements_of_all_its_axes():
    b = FunctionBuilder("main")
    wide = b.broadcast(b.parameter("x", TensorType("f32", (3, 1))), shape=(4, 3, 2))
    module = Module("m", {"main": b.done(b.reduce_sum(wide, axes=(0, 2), keep=False))})
    given = np.arange(3, dtype=np.float32)[:, None]
    (found,) = interpret(simplify(module), "main", [given])
    np.testing.assert_array_equal(found, 8 * given[:, 0])


def network(layers=3, size=8):
    """Convolutions that were written for channels first, with a bias, relu and a skip connection."""
    rng = np.random.default_rng(0)
    b = FunctionBuilder("main")
    value = b.parameter("x", TensorType("f32", (1, 4, size, size)))
    for _ in range(layers):
        kernel = b.constant(rng.normal(size=(3, 3, 4, 4)).astype(np.float32))
        turned = b.transpose(value, permutation=(0, 2, 3, 1))
        made = b.transpose(b.convolve(turned, kernel, low=(1, 1), high=(1, 1)), permutation=(0, 3, 1, 2))
        bias = b.constant(rng.normal(size=(4, 1, 1)).astype(np.float32))
        value = b.add(value, b.max(b.add(made, bias), b.like(made, 0)))
    return Module("m", {"main": b.done(value)})


def test_channels_first_becomes_two_transposes():
    module = network()
    found = checked_optimized(module)
    operations = [i.operation for i in found.function("main").body]
    assert operations.count("transpose") == 2
    x = np.random.default_rng(1).normal(size=(1, 4, 8, 8)).astype(np.float32)
    assert (interpret(module, "main", [x])[0] == interpret(found, "main", [x])[0]).all()


def test_slices_and_paddings_and_concatenations_let_it_pass():
    text = """%x: <2 x 3 x f32>, %f: f32
        %a = transpose %x: <2 x 3 x f32> {permutation = [1, 0]}
        %b = pad %a: <3 x 2 x f32>, %f: f32 {low = [1, 0], high = [0, 2], interior = [0, 1]}
        %c = slice %b: <4 x 5 x f32> {start = [0, 1], stop = [4, 5], step = [1, 2]}
        %d = concatenate %c: <4 x 2 x f32>, %c: <4 x 2 x f32> {axis = 0}
        %e = transpose %d: <8 x 2 x f32> {permutation = [1, 0]}
        %e: <2 x 8 x f32>"""
    lines = after(choose_layout, text)
    assert not any("transpose" in line for line in lines)
    assert lines[0].endswith("{low = [0, 1], high = [2, 0], interior = [1, 0]}")
