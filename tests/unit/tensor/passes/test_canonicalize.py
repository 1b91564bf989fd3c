import pytest
from helpers.tensor_passes import after

from shine.tensor.passes.canonicalize import canonicalize

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
