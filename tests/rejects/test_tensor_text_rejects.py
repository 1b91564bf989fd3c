"""Bad text of tensor programs gives the exact error and its place."""

from __future__ import annotations

import pytest

from shine.base.errors import FormError
from shine.tensor.form.reading import module_of


def function(body, parameters="%x: <2 x f32>", types="(<2 x f32>) -> ()"):
    return f"module @m\nfunc @f: {types} {{\n'entry({parameters}):\n{body}\nreturn\n}}"


def constant(array):
    return function(f"%c = constant {{value = {array}}}")


REJECTED = [
    ("", 1, 1, "expected `module`, and found 'the end'"),
    ("module m", 1, 8, "expected a name that begins with @, and found 'm'"),
    ("module @m\nfun @f", 2, 1, "expected `func`, and found 'fun'"),
    ("module @m ٣", 1, 11, "'٣' is not part of the text form"),
    ('module @m label %x = "\\q"', 1, 22, "the label has a broken escape sequence"),
    ('module @m label %x = "\\U00110000"', 1, 22, "the label has a broken escape sequence"),
    ('module @m label %x = "a" label %x = "b"', 1, 37, "there are two labels of %x"),
    (function("") + "\n" + function("").removeprefix("module @m\n"), 7, 1, "there are two functions @f"),
    (function("", types="(<3 x f32>) -> ()"), 2, 1, "the types of @f are not those of its parameters and results"),
    (function("%y = swish %x: <2 x f32>"), 4, 6, "there is no operation 'swish'; near it are sinh"),
    (function("%y = neg %z: <2 x f32>"), 4, 10, "%z is not defined before"),
    (function("%y = neg %x: <3 x f32>"), 4, 10, "%x has the type <2 x f32>"),
    (function("%y = add %x: <2 x f32>"), 4, 6, "add takes 2 operands, and is given 1"),
    (function("%x = neg %x: <2 x f32>"), 4, 1, "%x is defined twice"),
    (function("%y, %z = neg %x: <2 x f32>"), 4, 1, "neg has 1 results, and 2 are named"),
    (function("%y = neg %x: <2 x f32> {axis = 0}"), 4, 25, "there is no attribute 'axis' here; there are none"),
    (function("%y = cast %x: <2 x f32> {dtype = f16}"), 4, 6, "there is no element type 'f16'; there are f32, f64"),
    (function("%y = cast %x: <2 x f32>"), 4, 6, "cast needs dtype; its attributes are dtype"),
    (function("%y = cast %x: <2 x f32> {dtype = i8, dtype = i8}"), 4, 38, "there are two attributes 'dtype'"),
    (function("%y = reduce_max %x: <2 x f32> {axes = [-9], keep = true}"), 4, 6, "axes = [-9] of <2 x f32>: ascending"),
    (function("%y = call %x: <2 x f32> {function = @g}"), 4, 6, "there is no function @g"),
    (function("", parameters="%x: <-2 x f32>"), 3, 12, "the shape [-2] has a negative size"),
    (function("", parameters=f"%x: <{'1 x ' * 33}f32>"), 3, 12, "a tensor has at most 32 axes, and not 33"),
    (function("", parameters=f"%x: <{'9' * 20} x f32>"), 3, 12, "the shape [99999999999999999999] has a negative"),
    (constant("i8 [128]"), 4, 28, "'128' is no element i8"),
    (constant("u8 [-1]"), 4, 28, "'-1' is no element u8"),
    (constant("i64 [9223372036854775808]"), 4, 29, "'9223372036854775808' is no element i64"),
    (constant("i32 [1.0]"), 4, 29, "'1.0' is no element i32"),
    (constant("f32 [1e39]"), 4, 29, "'1e39' is beyond the elements f32"),
    (constant("f64 [0x7ff8]"), 4, 29, "'0x7ff8' is no element f64"),
    (constant("bool [1]"), 4, 30, "'1' is no element bool"),
    (constant("<2 x bool> 0x0102"), 4, 35, "the bytes of truth are 00 and 01"),
    (constant("<2 x i8> 0x010"), 4, 33, "the bytes of an array have two hexadecimal digits each"),
    (constant("<2 x i8> 0x01"), 4, 33, "<2 x i8> has 2 bytes, and 1 are given"),
    (constant("<2 x i8> [1]"), 4, 24, "<2 x i8> has 2 elements, and 1 are given"),
    (constant("<2 x i8> [1, 2"), 4, 38, "expected `]`, and found '}'"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), REJECTED, ids=[case[3][:50] for case in REJECTED])
def test_what_is_wrong_and_where(text, line, column, message):
    with pytest.raises(FormError) as caught:
        module_of(text)
    assert str(caught.value).startswith(f"line {line}, column {column}: {message}")
