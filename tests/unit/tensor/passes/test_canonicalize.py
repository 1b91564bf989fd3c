import numpy as np
import pytest
from helpers.tensor_passes import after, lines_of

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
    "a reshape to its own shape": (
        """%x: <2 x f32>
        %a = reshape %x: <2 x f32> {shape = [2]}
        %a: <2 x f32>""",
        ["%x: <2 x f32>"],
    ),
    "transposes that cancel": (
        """%x: <2 x 3 x 4 x f32>
        %a = transpose %x: <2 x 3 x 4 x f32> {permutation = [1, 2, 0]}
        %b = transpose %a: <3 x 4 x 2 x f32> {permutation = [2, 0, 1]}
        %b: <2 x 3 x 4 x f32>""",
        ["%x: <2 x 3 x 4 x f32>"],
    ),
    "a transpose of axes of size 1": (
        """%x: <2 x 1 x f32>
        %a = transpose %x: <2 x 1 x f32> {permutation = [1, 0]}
        %a: <1 x 2 x f32>""",
        ["%v2 = reshape %x: <2 x 1 x f32> {shape = [1, 2]}", "%v2: <1 x 2 x f32>"],
    ),
    "broadcasts": (
        """%x: <1 x 3 x f32>
        %a = broadcast %x: <1 x 3 x f32> {shape = [4, 3]}
        %b = broadcast %a: <4 x 3 x f32> {shape = [2, 4, 3]}
        %b: <2 x 4 x 3 x f32>""",
        ["%v3 = broadcast %x: <1 x 3 x f32> {shape = [2, 4, 3]}", "%v3: <2 x 4 x 3 x f32>"],
    ),
    "a broadcast that only adds axes": (
        """%x: <3 x f32>
        %a = broadcast %x: <3 x f32> {shape = [1, 3]}
        %a: <1 x 3 x f32>""",
        ["%v2 = reshape %x: <3 x f32> {shape = [1, 3]}", "%v2: <1 x 3 x f32>"],
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
    "concatenations": (
        """%x: <2 x f32>, %e: <0 x f32>
        %a = concatenate %x: <2 x f32>, %e: <0 x f32> {axis = 0}
        %b = concatenate %a: <2 x f32>, %x: <2 x f32> {axis = 0}
        %b: <4 x f32>""",
        ["%b = concatenate %x: <2 x f32>, %x: <2 x f32> {axis = 0}", "%b: <4 x f32>"],
    ),
    "a cast to its own elements": (
        """%x: f32
        %a = cast %x: f32 {dtype = f32}
        %a: f32""",
        ["%x: f32"],
    ),
    "a broadcast operand": (
        """%x: <2 x 3 x f32>, %y: <3 x f32>
        %a = broadcast %y: <3 x f32> {shape = [2, 3]}
        %b = mul %x: <2 x 3 x f32>, %a: <2 x 3 x f32>
        %b: <2 x 3 x f32>""",
        ["%v4 = mul %x: <2 x 3 x f32>, %y: <3 x f32>", "%v4: <2 x 3 x f32>"],
    ),
    "a matrix that is repeated for a stack": (
        """%x: <9 x 2 x 3 x f32>, %w: <3 x 4 x f32>
        %a = broadcast %w: <3 x 4 x f32> {shape = [9, 3, 4]}
        %b = dot %x: <9 x 2 x 3 x f32>, %a: <9 x 3 x 4 x f32>
        %b: <9 x 2 x 4 x f32>""",
        ["%v4 = dot %x: <9 x 2 x 3 x f32>, %w: <3 x 4 x f32>", "%v4: <9 x 2 x 4 x f32>"],
    ),
    "a vector that is repeated into a matrix": (
        """%x: <2 x 3 x f32>, %w: <4 x f32>
        %a = broadcast %w: <4 x f32> {shape = [3, 4]}
        %b = dot %x: <2 x 3 x f32>, %a: <3 x 4 x f32>
        %b: <2 x 4 x f32>""",
        [
            "%a = broadcast %w: <4 x f32> {shape = [3, 4]}",
            "%b = dot %x: <2 x 3 x f32>, %a: <3 x 4 x f32>",
            "%b: <2 x 4 x f32>",
        ],
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
        ("mul", "i32", "mul %x"),
        ("lt", "f32", "gt %x"),
        ("ge", "f32", "le %x"),
        ("eq", "f32", "eq %x"),
        ("max", "i32", "max %x"),
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


def test_operands_stand_in_the_order_in_which_they_are_made():
    text = """%x: f32, %y: f32
        %a = exp %x: f32
        %b = add %a: f32, %y: f32
        %b: f32"""
    assert after(canonicalize, text)[1] == "%v4 = add %y: f32, %a: f32"


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


@pytest.mark.parametrize(
    "shapes", [((4,), (4,)), ((4,), (4, 2)), ((3, 4), (4,)), ((2, 3, 4), (4, 2)), ((4,), (2, 4, 3))]
)
def test_products_of_vectors_and_stacks(shapes):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 9, shape).astype(np.float64) for shape in shapes)
    found = folded(lambda b: b.dot(b.constant(x), b.constant(y)))
    assert found.shape == (x @ y).shape
    assert (found == x @ y).all()


def test_a_large_broadcast_stays():
    assert folded(lambda b: b.broadcast(b.constant(1.0, "f32"), shape=(1000,))) is None


def test_a_large_constant_is_transposed_in_place_of_the_other_but_not_beside_it():
    weights = np.zeros((300, 200), np.float32)
    assert folded(lambda b: b.transpose(b.constant(weights))).shape == (200, 300)
    b = FunctionBuilder("main")
    value = b.constant(weights)
    module = Module("m", {"main": b.done(b.transpose(value), value)})
    assert fold(module) is module
    assert "transpose" in lines_of(module)[1]


def test_what_has_no_elements_is_a_constant():
    assert after(fold, "%x: <0 x f32>\n%a = exp %x: <0 x f32>\n%a: <0 x f32>")[0] == (
        "%v2 = constant {value = <0 x f32> []}"
    )


def test_several_results_are_folded_together():
    text = """-
        %c = constant {value = <3 x f32> [2, 1, 3]}
        %a, %i = sort %c: <3 x f32> {axis = 0, descending = true}
        %i: <3 x i64>"""
    assert after(fold, text)[0] == "%v4 = constant {value = <3 x i64> [2, 0, 1]}"
