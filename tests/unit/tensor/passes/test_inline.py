from dataclasses import replace

from helpers.tensor_passes import after, main_of

from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.types import TensorType
from shine.tensor.passes.specialize import SMALL, inline

F = "func @f: (f32) -> f32 { 'entry(%x: f32): %y = exp %x: f32 return %y: f32 }"
G = "func @g: (f32) -> f32 { 'entry(%x: f32): %y = call %x: f32 {function = @f} return %y: f32 }"
TEXT = """%x: f32
    %a = call %x: f32 {function = @g}
    %b = call %a: f32 {function = @f}
    %b: f32"""


def test_calls_of_calls_become_instructions():
    assert after(inline, TEXT, F + G) == ["%v3 = exp %x: f32", "%v4 = exp %v3: f32", "%v4: f32"]


def long_function(length):
    b = FunctionBuilder("f")
    value = b.parameter("x", TensorType("f32"))
    for _ in range(length):
        value = b.exp(value)
    return b.done(value)


def test_a_long_function_is_inlined_only_where_it_is_the_only_call():
    module = main_of(TEXT, F + G).with_functions(long_function(SMALL + 1))
    assert inline(module).function("main").body[-1].operation == "call"
    once = main_of("%x: f32\n%a = call %x: f32 {function = @f}\n%a: f32", F).with_functions(long_function(SMALL + 1))
    assert len(inline(once).function("main").body) == SMALL + 1


def test_a_separate_function_stays_one():
    module = main_of("%x: f32\n%a = call %x: f32 {function = @f}\n%a: f32", F)
    module = module.with_functions(replace(module.function("f"), separate=True))
    assert inline(module) is module
