import numpy as np
import pytest
from helpers.tensor_passes import after

from shine.compiler.arrays import exp
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Module
from shine.tensor.passes.canonicalize import canonicalize, fold

MOVED = {
    "reshapes": (
        """%x: <2 x 3 x f32>
        %a = reshape %x: <2 x 3 x f32> {shape = [6]}
        %b = reshape %a: <6 x f32> {shape = [3, 2]}
        %b: <3 x 2 x f32>""",
        ["%v3 = reshape %x: <2 x 3 x f32> {shape = [3, 2]}", "%v3: <3 x 2 x f32>"],
    ),
    "transposes that cancel": (
        """%x: <2 x 3 x 4 x f32>
        %a = transpose %x: <2 x 3 x 4 x f32> {permutation = [1, 2, 0]}
        %b = transpose %a: <3 x 4 x 2 x f32> {permutation = [2, 0, 1]}
        %b: <2 x 3 x 4 x f32>""",
        ["%x: <2 x 3 x 4 x f32>"],
    ),
    "slices": (
        """%x: <10 x f32>
        %a = slice %x: <10 x f32> {start = [1], stop = [10], step = [2]}
        %b = slice %a: <5 x f32> {start = [1], stop = [5], step = [2]}
        %b: <2 x f32>""",
        ["%v3 = slice %x: <10 x f32> {start = [3], stop = [8], step = [4]}", "%v3: <2 x f32>"],
    ),
    "paddings": (
        """%x: <2 x f32>, %c: f32
        %a = pad %x: <2 x f32>, %c: f32 {low = [1], high = [0], interior = [0]}
        %b = pad %a: <3 x f32>, %c: f32 {low = [1], high = [2], interior = [0]}
        %b: <6 x f32>""",
        ["%v4 = pad %x: <2 x f32>, %c: f32 {low = [2], high = [2], interior = [0]}", "%v4: <6 x f32>"],
    ),
    "a broadcast operand": (
        """%x: <2 x 3 x f32>, %y: <3 x f32>
        %a = broadcast %y: <3 x f32> {shape = [2, 3]}
        %b = mul %x: <2 x 3 x f32>, %a: <2 x 3 x f32>
        %b: <2 x 3 x f32>""",
        ["%v4 = mul %x: <2 x 3 x f32>, %y: <3 x f32>", "%v4: <2 x 3 x f32>"],
    ),
    "an operation on a broadcast": (
        """%x: <3 x f32>
        %a = broadcast %x: <3 x f32> {shape = [9, 3]}
        %b = exp %a: <9 x 3 x f32>
        %b: <9 x 3 x f32>""",
        [
            "%v3 = exp %x: <3 x f32>",
            "%v4 = broadcast %v3: <3 x f32> {shape = [9, 3]}",
            "%v4: <9 x 3 x f32>",
        ],
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_what_only_moves_is_composed(name):
    text, expected = MOVED[name]
    assert after(canonicalize, text) == expected


@pytest.mark.parametrize(
    ("operation", "dtype", "expected"),
    [
        ("add", "f32", "add %x"),
        ("lt", "f32", "gt %x"),
        ("max", "f32", "max %c"),
        ("sub", "f32", "sub %c"),
    ],
)
def test_constants_stand_right_where_the_order_does_not_matter(operation, dtype, expected):
    made = "bool" if operation in ("lt", "ge", "eq") else dtype
    text = f"""%x: {dtype}
        %c = constant {{value = {dtype} [3]}}
        %a = {operation} %c: {dtype}, %x: {dtype}
        %a: {made}"""
    assert after(canonicalize, text)[1].split(" = ")[1].startswith(expected)


def folded(build):
    """The constant that a function without parameters becomes."""
    b = FunctionBuilder("main")
    found = fold(Module("m", {"main": b.done(build(b))})).function("main")
    return found.body[-1].attributes.get("value") if found.body[-1].operation == "constant" else None


def test_instructions_of_constants_become_constants():
    text = """%x: <2 x f32>
        %a = constant {value = <2 x f32> [1, 2]}
        %b = constant {value = f32 [3]}
        %c = mul %a: <2 x f32>, %b: f32
        %d = add %x: <2 x f32>, %c: <2 x f32>
        %d: <2 x f32>"""
    assert after(fold, text) == [
        "%v5 = constant {value = <2 x f32> [3.0, 6.0]}",
        "%d = add %x: <2 x f32>, %v5: <2 x f32>",
        "%d: <2 x f32>",
    ]


def test_elementary_functions_have_the_bits_of_compiled_code():
    values = np.linspace(-3, 3, 50)
    assert folded(lambda b: b.exp(b.constant(values))).tobytes() == exp(values).tobytes()


def test_elementary_functions_of_f32_stay():
    assert folded(lambda b: b.exp(b.constant(1.0, "f32"))) is None


def test_integers_have_the_bits_of_the_form():
    assert folded(lambda b: b.div(b.constant([7, -7, 1], "i32"), b.constant([2, 2, 0], "i32"))).tolist() == [3, -3, 0]


def test_products_are_sums_in_order():
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 5), (5, 2)))
    total = np.zeros((3, 2), np.float32)
    for k in range(5):
        total = x[:, k, None] * y[None, k] + total if k else x[:, 0, None] * y[None, 0]
    assert folded(lambda b: b.dot(b.constant(x), b.constant(y))).tobytes() == total.tobytes()


def test_what_has_no_elements_is_a_constant():
    assert after(fold, "%x: <0 x f32>\n%a = exp %x: <0 x f32>\n%a: <0 x f32>")[0] == (
        "%v2 = constant {value = <0 x f32> []}"
    )
