from helpers.tensor_passes import after, lines_of, main_of

from shine.tensor.passes.dce import entries_of, remove_dead

F = """
func @f: (f32, f32) -> (f32, f32) {
'entry(%x: f32, %y: f32):
    %a = exp %x: f32
    %b = log %y: f32
    return %a: f32, %b: f32
}
"""
UNUSED = "func @unused: () -> () { 'entry(): return }\n"


def test_instructions_that_nobody_needs_go_but_parameters_stay():
    text = """%x: f32, %y: f32
        %a = exp %y: f32
        %b = log %a: f32
        %c = sqrt %x: f32
        %c: f32"""
    assert after(remove_dead, text) == ["%c = sqrt %x: f32", "%c: f32"]


def test_functions_that_no_entry_needs_go():
    module = main_of("%x: f32\n%x: f32", UNUSED)
    assert entries_of(module) == ("main", "unused")
    assert list(remove_dead(module, ["main"]).functions) == ["main"]
    assert remove_dead(module) is module


def test_a_call_loses_results_and_parameters():
    text = "%x: f32\n%a, %b = call %x: f32, %x: f32 {function = @f}\n%b: f32"
    found = remove_dead(main_of(text, F))
    assert lines_of(found)[0] == "%b = call %x: f32 {function = @f.0}"
    assert found.function("f.0").parameters[0].name == "y"
    assert list(found.functions) == ["main", "f.0"]


LOOP = """
func @below: (i32, f32, f32) -> bool {
'entry(%i: i32, %x: f32, %y: f32):
    %n = constant {value = i32 [3]}
    %b = lt %i: i32, %n: i32
    return %b: bool
}
func @more: (i32, f32, f32) -> (i32, f32, f32) {
'entry(%i: i32, %x: f32, %y: f32):
    %n = constant {value = i32 [1]}
    %j = add %i: i32, %n: i32
    %z = add %y: f32, %x: f32
    %w = exp %x: f32
    return %j: i32, %w: f32, %z: f32
}
"""


def test_a_loop_loses_the_states_that_nothing_depends_on():
    text = """%i: i32, %x: f32, %y: f32
        %j, %a, %b = while %i: i32, %x: f32, %y: f32 {{condition = @below, body = @more}}
        {}"""
    assert after(remove_dead, text.format("%a: f32"), LOOP)[0] == (
        "%j, %a = while %i: i32, %x: f32 {condition = @below.0, body = @more.0}"
    )
    # The second state needs the first one, and the condition the counter.
    assert "%j, %a, %b = while" in after(remove_dead, text.format("%b: f32"), LOOP)[0]


def test_a_declared_gradient_keeps_its_function():
    declared = "[gradient @main wrt 0]\nfunc @slope: (f32) -> f32\n"
    module = main_of("%x: f32\n%a = exp %x: f32\n%a: f32", declared)
    assert remove_dead(module, ["slope"]) is module
