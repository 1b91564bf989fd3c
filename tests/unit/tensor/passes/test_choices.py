from helpers.tensor_passes import after

from shine.tensor.passes.algebra import simplify

BRANCHES = """
func @one: (f32) -> f32 {
'entry(%x: f32):
    %y = exp %x: f32
    return %y: f32
}
func @two: (f32) -> f32 {
'entry(%x: f32):
    return %x: f32
}
"""

LOOP = """
func @below: (i32, f32) -> bool {
'entry(%i: i32, %x: f32):
    %n = constant {value = i32 [3]}
    %b = lt %i: i32, %n: i32
    return %b: bool
}
func @more: (i32, f32) -> (i32, f32) {
'entry(%i: i32, %x: f32):
    %n = constant {value = i32 [1]}
    %j = add %i: i32, %n: i32
    %y = exp %x: f32
    return %j: i32, %y: f32
}
"""


def test_a_known_predicate_calls_its_branch():
    text = """%x: f32
        %p = constant {value = bool [false]}
        %a = cond %p: bool, %x: f32 {true = @one, false = @two}
        %a: f32"""
    assert after(simplify, text, BRANCHES)[0] == "%v3 = call %x: f32 {function = @two}"


def test_equal_branches_are_a_call():
    text = """%x: f32, %p: bool
        %a = cond %p: bool, %x: f32 {true = @one, false = @one}
        %a: f32"""
    assert after(simplify, text, BRANCHES)[0] == "%v3 = call %x: f32 {function = @one}"


def test_a_loop_that_never_runs_gives_its_first_state():
    text = """%x: f32
        %i = constant {{value = i32 [{}]}}
        %j, %y = while %i: i32, %x: f32 {{condition = @below, body = @more}}
        %j: i32, %y: f32"""
    assert after(simplify, text.format(3), LOOP)[-1] == "%i: i32, %x: f32"
    assert "while" in after(simplify, text.format(2), LOOP)[1]


def test_a_select_of_a_known_condition():
    text = """%x: f32, %y: <2 x f32>
        %p = constant {value = <2 x bool> [true, true]}
        %a = select %p: <2 x bool>, %x: f32, %y: <2 x f32>
        %a: <2 x f32>"""
    assert after(simplify, text)[0] == "%v4 = broadcast %x: f32 {shape = [2]}"
