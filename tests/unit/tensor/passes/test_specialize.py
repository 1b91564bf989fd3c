import numpy as np
from helpers.contracts import checked_optimized
from helpers.tensor_passes import lines_of, main_of

from shine.tensor.form.interpreter import interpret
from shine.tensor.form.printing import function_text
from shine.tensor.passes.dce import remove_dead
from shine.tensor.passes.specialize import specialize

SCALE = """
func @scale: (f32, f32) -> f32 {
'entry(%x: f32, %k: f32):
    %y = mul %x: f32, %k: f32
    return %y: f32
}
"""

LOOP = """
func @below: (i32, i32, f32, <2 x f32>) -> bool {
'entry(%i: i32, %n: i32, %x: f32, %w: <2 x f32>):
    %b = lt %i: i32, %n: i32
    return %b: bool
}
func @more: (i32, i32, f32, <2 x f32>) -> (i32, i32, f32, <2 x f32>) {
'entry(%i: i32, %n: i32, %x: f32, %w: <2 x f32>):
    %one = constant {value = i32 [1]}
    %j = add %i: i32, %one: i32
    %s = reduce_sum %w: <2 x f32> {axes = [0], keep = false}
    %y = mul %x: f32, %s: f32
    return %j: i32, %n: i32, %y: f32, %w: <2 x f32>
}
"""

TEXT = """%x: f32, %v: <2 x f32>
    %i = constant {value = i32 [0]}
    %n = constant {value = i32 [3]}
    %w = constant {value = <2 x f32> [1, 2]}
    %j, %m, %y, %u = while %i: i32, %n: i32, %x: f32, %w: <2 x f32> {condition = @below, body = @more}
    %y: f32, %u: <2 x f32>"""


def test_a_constant_argument_moves_into_the_function():
    text = """%x: f32
        %k = constant {value = f32 [2]}
        %a = call %x: f32, %k: f32 {function = @scale}
        %a: f32"""
    found = specialize(main_of(text, SCALE))
    assert lines_of(found)[1] == "%a = call %x: f32 {function = @scale.0}"
    assert function_text(found.function("scale.0")).splitlines()[2:4] == [
        "    %k = constant {value = f32 [2.0]}",
        "    %y = mul %x: f32, %k: f32",
    ]


def test_a_loop_does_not_carry_constants_that_it_does_not_change():
    found = remove_dead(specialize(main_of(TEXT, LOOP)))
    assert lines_of(found) == [
        "%i = constant {value = i32 [0]}",
        "%w = constant {value = <2 x f32> [1.0, 2.0]}",
        "%j, %y = while %i: i32, %x: f32 {condition = @below.0, body = @more.0}",
        "%y: f32, %w: <2 x f32>",
    ]


def test_what_depends_on_constants_is_folded_in_the_loop():
    module = main_of(TEXT, LOOP)
    found = checked_optimized(module)
    (body,) = (f for f in found.defined if f.name.startswith("more"))
    assert "reduce_sum" not in [i.operation for i in body.body]
    arguments = [np.float32(1.5), np.zeros(2, np.float32)]
    for old, new in zip(interpret(module, "main", arguments), interpret(found, "main", arguments), strict=True):
        np.testing.assert_array_equal(old, new)
