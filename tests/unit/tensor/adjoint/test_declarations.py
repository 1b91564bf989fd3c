"""Declared gradients: what they stand for, orders, calls, conditions, errors."""

from __future__ import annotations

import numpy as np
import pytest

from shine.base.errors import FormError
from shine.tensor.adjoint.declarations import gradient, with_gradients
from shine.tensor.form.interpreter import interpret
from shine.tensor.form.module import Function
from shine.tensor.form.printing import text_of
from shine.tensor.form.reading import module_of

LAYER = """
module @dlvm
func @foo: (<1 x 5 x f32>, <5 x 3 x f32>, <1 x 3 x f32>) -> <1 x 3 x f32> {
'entry(%x: <1 x 5 x f32>, %w: <5 x 3 x f32>, %b: <1 x 3 x f32>):
    %v1 = dot %x: <1 x 5 x f32>, %w: <5 x 3 x f32>
    %v2 = add %v1: <1 x 3 x f32>, %b: <1 x 3 x f32>
    return %v2: <1 x 3 x f32>
}
[gradient @foo wrt 1, 2 keeping 0 seedable]
func @foo_grad: (<1 x 5 x f32>, <5 x 3 x f32>, <1 x 3 x f32>, <1 x 3 x f32>)
    -> (<5 x 3 x f32>, <1 x 3 x f32>, <1 x 3 x f32>)
"""

CUBE = """
module @m
func @cube: (f64) -> f64 {
'entry(%x: f64):
    %y = mul %x: f64, %x: f64
    %z = mul %y: f64, %x: f64
    return %z: f64
}
[gradient @cube wrt 0]
func @first: (f64) -> f64
[gradient @first wrt 0 keeping 0]
func @second: (f64) -> (f64, f64)
"""

BRANCHES = """
module @m
func @outer: (f64, bool) -> f64 {
'entry(%x: f64, %c: bool):
    %a = call %x: f64 {function = @square}
    %b = cond %c: bool, %a: f64, %x: f64 {true = @product, false = @sine}
    return %b: f64
}
func @square: (f64) -> f64 {
'entry(%x: f64):
    %y = mul %x: f64, %x: f64
    return %y: f64
}
func @product: (f64, f64) -> f64 {
'entry(%a: f64, %b: f64):
    %y = mul %a: f64, %b: f64
    return %y: f64
}
func @sine: (f64, f64) -> f64 {
'entry(%a: f64, %b: f64):
    %y = sin %a: f64
    return %y: f64
}
"""


def test_a_layer_s_gradient_returns_what_the_declaration_says():
    module = with_gradients(module_of(LAYER))
    rng = np.random.default_rng(0)
    x, w, b, seed = (rng.normal(size=t.shape).astype("f4") for t in module.function("foo_grad").parameter_types)
    of_weights, of_bias, kept = interpret(module, "foo_grad", [x, w, b, seed])
    np.testing.assert_allclose(of_weights, np.outer(x, seed), rtol=1e-6)
    np.testing.assert_array_equal(of_bias, seed)
    np.testing.assert_array_equal(kept, x @ w + b)


def test_what_is_not_asked_for_is_not_computed():
    module = gradient(module_of(LAYER), "foo", wrt=[2], name="of_bias")
    assert module.function("of_bias").body == ()


def test_a_declaration_may_name_another():
    module = with_gradients(module_of(CUBE))
    assert interpret(module, "first", [np.float64(2)])[0] == 12
    assert [float(value) for value in interpret(module, "second", [np.float64(2)])] == [12, 12]


def test_gradients_pass_through_calls_and_conditions():
    module = gradient(module_of(BRANCHES), "outer")
    x = np.float64(0.7)
    assert interpret(module, "outer_grad", [x, np.True_])[0] == pytest.approx(3 * 0.49)
    assert interpret(module, "outer_grad", [x, np.False_])[0] == pytest.approx(np.cos(0.49) * 1.4)


def test_a_parameter_that_does_not_matter_has_the_gradient_zero():
    module = module_of("module @m func @f: (f64, <2 x f64>) -> f64 { 'entry(%x: f64, %y: <2 x f64>): return %x: f64 }")
    found = interpret(gradient(module, "f"), "f_grad", [np.float64(3), np.ones(2)])
    assert [value.tolist() for value in found] == [1, [0, 0]]


def test_integers_are_not_differentiated_unless_asked_for():
    text = "module @m func @f: (i32, f64) -> f64 { 'entry(%i: i32, %x: f64): return %x: f64 }"
    found = gradient(module_of(text), "f").functions["f_grad"]
    assert isinstance(found, Function) and len(found.results) == 1
    with pytest.raises(FormError, match="wrt 0: i32 has no derivative; only f32 and f64 have one"):
        gradient(module_of(text), "f", wrt=[0])


def test_a_loop_has_no_gradient():
    text = """module @m
    func @f: (f64) -> f64 { 'entry(%x: f64): %y = while %x: f64 {condition = @go, body = @half} return %y: f64 }
    func @go: (f64) -> bool { 'entry(%x: f64): %y = gt %x: f64, %x: f64 return %y: bool }
    func @half: (f64) -> f64 { 'entry(%x: f64): %y = add %x: f64, %x: f64 return %y: f64 }"""
    with pytest.raises(FormError, match="@f, %y: a loop has no gradient"):
        gradient(module_of(text), "f")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"of": "g"}, "there is no function @g; there are @foo, @foo_grad"),
        ({"wrt": [3]}, "wrt has 3, but the parameters of @foo are 0, 1, 2"),
        ({"wrt": [-1]}, "wrt has -1, but the parameters of @foo"),
        ({"keeping": [1]}, "keeping has 1, but the results of @foo are 0"),
        ({"wrt": [True]}, "wrt has True, but"),
        ({"wrt": []}, "wrt names no parameter"),
        ({"seedable": False}, "does not return one scalar, so its gradient must be seedable"),
        ({"name": "foo"}, "there is a function @foo already; choose another name"),
        ({"memory": 10}, "needs .* bytes for values, and memory is 10"),
    ],
)
def test_wrong_requests_say_what_is_allowed(options, message):
    with pytest.raises(FormError, match=message):
        gradient(module_of(LAYER), **{"of": "foo", "name": "another", **options})


@pytest.mark.parametrize("parameters", ["%x: f64", "%x: f64, %seed: f64"])
def test_a_function_with_the_name_of_a_derivative_is_not_taken_for_it(parameters):
    types = ", ".join(["f64"] * parameters.count("%"))
    text = f"""
module @m
func @g: (f64) -> f64 {{
'entry(%x: f64):
    %y = mul %x: f64, %x: f64
    return %y: f64
}}
func @g.wrt.0: ({types}) -> f64 {{
'entry({parameters}):
    return %x: f64
}}
func @h: (f64) -> f64 {{
'entry(%x: f64):
    %y = call %x: f64 {{function = @g}}
    return %y: f64
}}
[gradient @h wrt 0]
func @d: (f64) -> f64
[gradient @h wrt 0]
func @again: (f64) -> f64
"""
    module = with_gradients(module_of(text))
    (first,), (second,) = (interpret(module, name, [np.array(3.0)]) for name in ("d", "again"))
    assert first == second == 6
    assert list(module.functions) == ["g", "g.wrt.0", "h", "d", "again", "g.wrt.0_"]


def test_results_are_named_after_what_they_are():
    module = with_gradients(module_of(LAYER))
    text = text_of(module)
    assert "%d_w = dot" in text
    assert "%v2 = add" in text
    assert module_of(text).function("foo_grad").results == module.function("foo_grad").results


@pytest.mark.parametrize("memory", [None, 1000])
def test_derivatives_of_functions_that_call_others_keep_those_of_the_others(memory):
    calls = "".join(
        f"""
func @f{depth}: (f64) -> f64 {{
'entry(%x: f64):
    %y = call %x: f64 {{function = @f{depth - 1}}}
    %z = mul %y: f64, %x: f64
    return %z: f64
}}"""
        for depth in range(1, 5)
    )
    module = module_of(f"module @m\nfunc @f0: (f64) -> f64 {{\n'entry(%x: f64):\n    return %x: f64\n}}{calls}")
    module = gradient(module, "f4", memory=memory)
    assert interpret(module, "f4_grad", [np.array(2.0)])[0] == 5 * 2.0**4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wrt": 0}, "wrt=0 is no list of integers"),
        ({"wrt": "x"}, "wrt='x' is no list of integers"),
        ({"keeping": 0}, "keeping=0 is no list of integers"),
        ({"memory": "1k"}, "memory='1k' is no number of bytes; give an int"),
    ],
)
def test_arguments_of_another_kind_are_refused(options, message):
    with pytest.raises(TypeError, match=message):
        gradient(module_of(CUBE), "cube", **options)
    with pytest.raises(TypeError, match="3 is no module"):
        gradient(3, "cube")
