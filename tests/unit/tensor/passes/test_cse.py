from helpers.tensor_passes import after

from shine.tensor.passes.dce import share


def test_what_is_computed_twice_is_computed_once():
    text = """%x: <2 x f32>
        %c = constant {value = f32 [2]}
        %d = constant {value = f32 [2]}
        %a = pow %x: <2 x f32>, %c: f32
        %b = pow %x: <2 x f32>, %d: f32
        %s = add %a: <2 x f32>, %b: <2 x f32>
        %s: <2 x f32>"""
    assert after(share, text) == [
        "%c = constant {value = f32 [2.0]}",
        "%a = pow %x: <2 x f32>, %c: f32",
        "%s = add %a: <2 x f32>, %a: <2 x f32>",
        "%s: <2 x f32>",
    ]


def test_zeros_of_two_signs_differ():
    text = """%x: f32
        %c = constant {value = f32 [0.0]}
        %d = constant {value = f32 [-0.0]}
        %a = div %x: f32, %c: f32
        %b = div %x: f32, %d: f32
        %a: f32, %b: f32"""
    assert len(after(share, text)) == 5


def test_attributes_tell_instructions_apart():
    text = """%x: <2 x 2 x f32>
        %a = reduce_sum %x: <2 x 2 x f32> {axes = [0], keep = false}
        %b = reduce_sum %x: <2 x 2 x f32> {axes = [1], keep = false}
        %a: <2 x f32>, %b: <2 x f32>"""
    assert len(after(share, text)) == 3


def test_calls_have_no_effects():
    other = "func @f: (f32) -> f32 { 'entry(%x: f32): %y = exp %x: f32 return %y: f32 }"
    text = """%x: f32
        %a = call %x: f32 {function = @f}
        %b = call %x: f32 {function = @f}
        %a: f32, %b: f32"""
    assert after(share, text, other) == ["%a = call %x: f32 {function = @f}", "%a: f32, %a: f32"]
