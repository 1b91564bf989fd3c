import numpy as np
from helpers.contracts import checked
from helpers.tensor_passes import after

from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Module
from shine.tensor.form.types import TensorType
from shine.tensor.passes.layout import choose_layout, transposed_bytes
from shine.tensor.passes.pipeline import optimized


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
    found = optimized(module, run=checked)
    operations = [i.operation for i in found.function("main").body]
    assert operations.count("transpose") == 2
    x = np.random.default_rng(1).normal(size=(1, 4, 8, 8)).astype(np.float32)
    assert (interpret(module, "main", [x])[0] == interpret(found, "main", [x])[0]).all()


def test_a_transpose_moves_behind_what_follows_to_cancel():
    text = """%x: <2 x 3 x f32>, %b: <2 x 1 x f32>
        %a = transpose %x: <2 x 3 x f32> {permutation = [1, 0]}
        %c = exp %a: <3 x 2 x f32>
        %d = transpose %c: <3 x 2 x f32> {permutation = [1, 0]}
        %e = add %d: <2 x 3 x f32>, %b: <2 x 1 x f32>
        %e: <2 x 3 x f32>"""
    assert after(choose_layout, text)[0] == "%v6 = exp %x: <2 x 3 x f32>"


def test_a_transpose_stays_where_moving_it_gains_nothing():
    text = """%x: <2 x 3 x f32>
        %a = transpose %x: <2 x 3 x f32> {permutation = [1, 0]}
        %c = exp %a: <3 x 2 x f32>
        %c: <3 x 2 x f32>"""
    assert after(choose_layout, text)[1] == "%c = exp %a: <3 x 2 x f32>"


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


def test_bytes_of_transposes():
    assert transposed_bytes(network(1).function("main")) == 2 * 4 * 8 * 8 * 4
