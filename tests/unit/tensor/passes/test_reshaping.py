import pytest
from helpers.tensor_passes import after

from shine.tensor.passes.algebra import simplify

MOVED = {
    "a sum of equal elements": (
        """%x: <3 x f32>
        %a = broadcast %x: <3 x f32> {shape = [4, 3]}
        %b = reduce_sum %a: <4 x 3 x f32> {axes = [0], keep = false}
        %b: <3 x f32>""",
        "mul %v",
    ),
    "the largest of equal elements": (
        """%x: <1 x 3 x f32>
        %a = broadcast %x: <1 x 3 x f32> {shape = [4, 3]}
        %b = reduce_max %a: <4 x 3 x f32> {axes = [0], keep = false}
        %b: <3 x f32>""",
        "reshape",
    ),
    "sums of sums": (
        """%x: <2 x 3 x 4 x f32>
        %a = reduce_sum %x: <2 x 3 x 4 x f32> {axes = [1], keep = false}
        %b = reduce_sum %a: <2 x 4 x f32> {axes = [1], keep = false}
        %b: <2 x f32>""",
        "reduce_sum %x: <2 x 3 x 4 x f32> {axes = [1, 2], keep = false}",
    ),
    "a sum over one element": (
        """%x: <2 x 1 x f32>
        %a = reduce_sum %x: <2 x 1 x f32> {axes = [1], keep = false}
        %a: <2 x f32>""",
        "reshape %x: <2 x 1 x f32> {shape = [2]}",
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
    "the transpose of a product with a constant": (
        """%x: <2 x 3 x f32>
        %a = transpose %x: <2 x 3 x f32> {permutation = [1, 0]}
        %b = constant {value = <1 x 3 x f32> [1, 2, 3]}
        %c = dot %b: <1 x 3 x f32>, %a: <3 x 2 x f32>
        %d = transpose %c: <1 x 2 x f32> {permutation = [1, 0]}
        %d: <2 x 1 x f32>""",
        "dot %x",
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
    "a gather out of order": (
        """%x: <5 x f32>
        %i = constant {value = <2 x i32> [3, 1]}
        %a = gather %x: <5 x f32>, %i: <2 x i32> {axis = 0}
        %a: <2 x f32>""",
        "gather",
    ),
    "a slice of one part": (
        """%x: <2 x f32>, %y: <3 x f32>
        %a = concatenate %x: <2 x f32>, %y: <3 x f32> {axis = 0}
        %b = slice %a: <5 x f32> {start = [3], stop = [5], step = [1]}
        %b: <2 x f32>""",
        "slice %y: <3 x f32> {start = [1], stop = [3], step = [1]}",
    ),
    "a slice over two parts": (
        """%x: <2 x f32>, %y: <3 x f32>
        %a = concatenate %x: <2 x f32>, %y: <3 x f32> {axis = 0}
        %b = slice %a: <5 x f32> {start = [1], stop = [5], step = [1]}
        %b: <4 x f32>""",
        "slice %a",
    ),
    "neighbouring slices": (
        """%x: <6 x f32>
        %a = slice %x: <6 x f32> {start = [1], stop = [3], step = [1]}
        %b = slice %x: <6 x f32> {start = [3], stop = [4], step = [1]}
        %c = concatenate %a: <2 x f32>, %b: <1 x f32> {axis = 0}
        %c: <3 x f32>""",
        "slice %x: <6 x f32> {start = [1], stop = [4], step = [1]}",
    ),
    "a slice without the padding": (
        """%x: <3 x f32>, %c: f32
        %a = pad %x: <3 x f32>, %c: f32 {low = [2], high = [2], interior = [0]}
        %b = slice %a: <7 x f32> {start = [2], stop = [4], step = [1]}
        %b: <2 x f32>""",
        "slice %x: <3 x f32> {start = [0], stop = [2], step = [1]}",
    ),
    "a transpose of a broadcast": (
        """%x: <3 x f32>
        %a = broadcast %x: <3 x f32> {shape = [2, 3]}
        %b = transpose %a: <2 x 3 x f32> {permutation = [1, 0]}
        %b: <3 x 2 x f32>""",
        "broadcast",
    ),
    "a slice of a broadcast": (
        """%x: <3 x f32>
        %a = broadcast %x: <3 x f32> {shape = [4, 3]}
        %b = slice %a: <4 x 3 x f32> {start = [1, 1], stop = [3, 3], step = [1, 1]}
        %b: <2 x 2 x f32>""",
        "broadcast",
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


def test_a_sum_that_others_need_stays():
    text = """%x: <2 x 3 x f32>
        %a = reduce_sum %x: <2 x 3 x f32> {axes = [0], keep = false}
        %b = reduce_sum %a: <3 x f32> {axes = [0], keep = false}
        %a: <3 x f32>, %b: f32"""
    assert after(simplify, text)[1] == "%b = reduce_sum %a: <3 x f32> {axes = [0], keep = false}"
