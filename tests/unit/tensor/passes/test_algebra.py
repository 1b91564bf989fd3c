import numpy as np
import pytest
from helpers.tensor_passes import after, main_of

from shine.tensor.form.interpreter import interpret
from shine.tensor.form.types import DTYPES
from shine.tensor.passes.algebra import simplify

SPECIAL = (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 5e-324, 1e-45, 3.4e38, 2.5)
"""Floats for which identities fail."""

ELEMENTWISE = {
    "x * 1": ("f32", "%a = mul %x: f32, %c: f32", 1, "%x"),
    "x / 1": ("f32", "%a = div %x: f32, %c: f32", 1, "%x"),
    "x + -0.0": ("f32", "%a = add %x: f32, %c: f32", -0.0, "%x"),
    "x + 0.0": ("f32", "%a = add %x: f32, %c: f32", 0.0, "add"),
    "x + 0": ("i32", "%a = add %x: i32, %c: i32", 0, "%x"),
    "x - 0.0": ("f32", "%a = sub %x: f32, %c: f32", 0.0, "%x"),
    "x - -0.0": ("f32", "%a = sub %x: f32, %c: f32", -0.0, "sub"),
    "-0.0 - x": ("f32", "%a = sub %c: f32, %x: f32", -0.0, "neg"),
    "0.0 - x": ("f32", "%a = sub %c: f32, %x: f32", 0.0, "sub"),
    "x * 0.0": ("f32", "%a = mul %x: f32, %c: f32", 0.0, "mul"),
    "x * 0": ("i32", "%a = mul %x: i32, %c: i32", 0, "constant"),
    "x * -1": ("f64", "%a = mul %x: f64, %c: f64", -1, "neg"),
    "x / 8": ("f32", "%a = div %x: f32, %c: f32", 8, "mul"),
    "x / 3": ("f32", "%a = div %x: f32, %c: f32", 3, "div"),
    "x / 0.0": ("f32", "%a = div %x: f32, %c: f32", 0.0, "div"),
    "x / smallest": ("f32", "%a = div %x: f32, %c: f32", 1e-45, "div"),
    "x / 2**127": ("f32", "%a = div %x: f32, %c: f32", 2.0**127, "div"),
    "x ** 2": ("f32", "%a = pow %x: f32, %c: f32", 2, "mul"),
    "x ** 2 of integers": ("i32", "%a = pow %x: i32, %c: i32", 2, "mul"),
    "x ** 0 of integers": ("i32", "%a = pow %x: i32, %c: i32", 0, "constant"),
    "x ** 0.5": ("f64", "%a = pow %x: f64, %c: f64", 0.5, "pow"),
    "x - x of floats": ("f32", "%a = sub %x: f32, %x: f32", 0, "sub"),
    "x - x of integers": ("i32", "%a = sub %x: i32, %x: i32", 0, "constant"),
    "max(x, x)": ("f32", "%a = max %x: f32, %x: f32", 0, "%x"),
    "-(-x)": ("f32", "%b = neg %x: f32\n%a = neg %b: f32", 0, "%x"),
    "abs(-x)": ("f32", "%b = neg %x: f32\n%a = abs %b: f32", 0, "abs"),
    "abs(abs(x))": ("f32", "%b = abs %x: f32\n%a = abs %b: f32", 0, "abs"),
    "abs(sqrt(x))": ("f32", "%b = sqrt %x: f32\n%a = abs %b: f32", 0, "abs"),
    "floor(ceil(x))": ("f32", "%b = ceil %x: f32\n%a = floor %b: f32", 0, "ceil"),
    "c + -x": ("f32", "%b = neg %x: f32\n%a = add %c: f32, %b: f32", 3, "sub"),
    "c - -x": ("f32", "%b = neg %x: f32\n%a = sub %c: f32, %b: f32", 3, "add"),
    "-x * -x": ("f32", "%b = neg %x: f32\n%a = mul %b: f32, %b: f32", 3, "mul"),
    "through f64": ("f32", "%b = cast %x: f32 {dtype = f64}\n%a = cast %b: f64 {dtype = f32}", 0, "%x"),
    "through bool": ("f32", "%b = cast %x: f32 {dtype = bool}\n%a = cast %b: bool {dtype = f32}", 0, "cast"),
    "through f64 of i64": ("i64", "%b = cast %x: i64 {dtype = f64}\n%a = cast %b: f64 {dtype = i64}", 0, "cast"),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_an_identity_keeps_every_bit(name):
    dtype, body, number, expected = ELEMENTWISE[name]
    value = np.array(number, DTYPES[dtype])
    text = f"%x: {dtype}\n%c = constant {{value = {dtype} [{value[()]!s}]}}\n{body}\n%a: {dtype}"
    before, lines = main_of(text), after(simplify, text)
    assert (lines[-1] if expected == "%x" else lines[-2].split(" = ")[1]).startswith(expected)
    numbers = SPECIAL if dtype[0] == "f" else (0, 1, -1, 7, -(2**31), 2**31 - 1)
    with np.errstate(over="ignore"):
        samples = np.array(numbers, np.float64 if dtype[0] == "f" else np.int64).astype(DTYPES[dtype])
    found = simplify(before)
    for sample in samples:
        old, new = (interpret(module, "main", [sample])[0] for module in (before, found))
        assert old.tobytes() == new.tobytes() or (np.isnan(old) and np.isnan(new))
