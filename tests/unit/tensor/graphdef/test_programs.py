"""Graphs that are written out here, against formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.graph_texts import TYPES, node

from shine.formats.read.protobuf import messages
from shine.lang.program.interpret import interpret
from shine.lang.program.program import Program
from shine.tensor.graphdef import load_graph

pytest.importorskip("google.protobuf", reason="protobuf is not installed")


def placeholder(name: str, dtype: str = "float32", shape: str = "unknown_rank: true") -> str:
    """A Placeholder."""
    return node(name, "Placeholder", dtype=dtype, shape=f"shape {{ {shape} }}")


def constant(name: str, value: float, dtype: str = "float32", shape: str = "") -> str:
    """A Const of one number."""
    field = {"float32": "float", "float64": "double", "int32": "int", "int64": "int64", "bool": "bool"}[dtype]
    tensor = f"dtype: {TYPES[dtype]} tensor_shape {{ {shape} }} {field}_val: {value}"
    return node(name, "Const", dtype=dtype, value=f"tensor {{ {tensor} }}")


def load(text: str, **options: object) -> Program:
    """The graph of a text."""
    return load_graph(text.encode(), **options)


def values(program: Program, **arguments: object) -> list:
    """The outputs, as Python numbers."""
    return [output.tolist() for output in interpret(program, {k: np.asarray(v) for k, v in arguments.items()})]


X, Y = placeholder("x"), placeholder("y")
CLASSIC = (
    placeholder("input", "int32")
    + "".join(constant(f"c{value}", value, "int32") for value in (2, 5, 100))
    + node("Sub", "Sub", "input", "c2", T="int32")
    + node("Add", "Add", "Sub", "c5", T="int32")
    + node("Add_1", "Add", "Add", "c100", T="int32")
)


def as_bytes(text: str) -> bytes:
    """A text in the binary form."""
    graph = messages().GraphDef()
    messages().text_format.Parse(text, graph, descriptor_pool=messages().pool)
    return graph.SerializeToString()


def test_the_classic_graph_as_text_as_bytes_and_from_files(tmp_path):
    (tmp_path / "text.pb").write_text(CLASSIC)
    (tmp_path / "binary.pbtxt").write_bytes(as_bytes(CLASSIC))
    sources = [CLASSIC.encode(), as_bytes(CLASSIC), tmp_path / "text.pb", str(tmp_path / "binary.pbtxt")]
    for source in sources:
        program = load_graph(source)
        assert values(program, input=np.int32(10)) == [113]
        assert [(each.label, each.dtype) for each in program.outputs] == [("Add_1", "int32")]
        assert [each.label for each in program.parameters] == ["input"]


def test_the_messages_do_not_clash_with_tensorflow_s():
    from google.protobuf import descriptor_pool

    messages()
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("tensorflow.GraphDef")


@pytest.mark.slow
def test_a_long_chain_is_no_deeper_than_a_short_one():
    length = 2_000
    chain = X + "".join(node(f"n{i}", "Neg", f"n{i - 1}" if i else "x", T="float32") for i in range(length))
    program = load_graph(as_bytes(chain))
    assert len(program.statements) == length
    assert values(program, x=2.5) == [2.5]


def test_results_are_the_nodes_that_no_node_reads():
    text = X + Y + node("a", "Neg", "x", T="float32") + node("b", "Abs", "x", T="float32") + node("n", "NoOp", "^b")
    assert [each.label for each in load(text).outputs] == ["a"]
    assert [each.label for each in load(text, outputs=["b", "x", "a:0"]).outputs] == ["b", "x", "a:0"]
    assert [each.label for each in load(X + Y).outputs] == ["x", "y"]


def test_nodes_that_no_output_needs_may_be_anything():
    text = X + node("r", "Neg", "x", T="float32") + node("m", "MatMul", "x", "missing")
    assert values(load(text, outputs=["r"]), x=1.0) == [-1.0]


def test_arguments_are_called_in_the_order_of_the_graph_or_as_told():
    text = X + Y + placeholder("unused") + node("r", "Sub", "y", "x", T="float32")
    order = [each.label for each in load(text, outputs=["r"]).arguments]
    told = load(text, outputs=["r"], inputs=["unused", "y", "x"])
    assert order == ["x", "y"]
    assert [each.label for each in told.arguments] == ["unused", "y", "x"]
    assert values(told, unused=0.0, y=5.0, x=3.0) == [2.0]


def test_several_outputs_of_one_node():
    types = "list { type: DT_FLOAT type: DT_INT32 }"
    text = X + placeholder("i", "int32") + node("both", "IdentityN", "x", "i", T=types)
    program = load(text + node("r", "Neg", "both:1", T="int32"), outputs=["r", "both", "both:1"])
    assert values(program, x=1.5, i=np.int32(4)) == [-4, 1.5, 4]
    assert [each.label for each in load(text).outputs] == ["both:0", "both:1"]


def test_an_argument_with_a_default():
    text = constant("c", 2.5) + node("rate", "PlaceholderWithDefault", "c", dtype="float32", shape="shape { }")
    program = load(text + X + node("r", "Mul", "rate", "x", T="float32"))
    assert [(each.label, each.default is None) for each in program.arguments] == [("rate", False), ("x", True)]
    assert program.parameters[0].default.tolist() == 2.5


def test_constants_are_numbers_where_they_do_not_change_the_shape():
    row = "dim { size: 3 }"
    matrix = placeholder("x", shape="dim { size: -1 } dim { size: 3 }")
    vector = placeholder("x", shape="dim { size: -1 }")
    total = constant("c", 0.1, shape=row) + node("r", "Add", "x", "c", T="float32")
    inline, kept = load(matrix + total), load(vector + total)
    assert [each.label for each in inline.parameters] == ["x"]
    assert inline.statements[0].value.right.value == 0.1
    assert [each.label for each in kept.parameters] == ["x", "c"]
    assert kept.parameters[1].value.shape == (3,)
    twice = load(total.replace('"x"', '"c"'))
    assert [output.shape for output in interpret(twice, [])] == [(3,)]


def test_truth_is_a_number_of_the_type_it_came_from():
    text = X + placeholder("i", "int64") + constant("zero", 0) + constant("n", 0, "int64")
    text += node("a", "Less", "x", "zero", T="float32") + node("b", "Greater", "i", "n", T="int64")
    text += node("both", "LogicalAnd", "a", "b") + node("r", "SelectV2", "both", "i", "n", T="int64")
    program = load(text, outputs=["r", "both", "a"])
    for x, i in [(-1.0, 7), (-1.0, -7), (1.0, 7), (math.nan, 7)]:
        expected = [i if x < 0 and i > 0 else 0, x < 0 and i > 0, x < 0]
        assert values(program, x=x, i=np.int64(i)) == expected


def test_integer_division_and_powers_fail_as_in_tensorflow():
    i, j = placeholder("i", "int32"), placeholder("j", "int32")
    for op, arguments in {"FloorDiv": (1, 0), "Div": (1, 0), "TruncateMod": (1, 0), "Pow": (2, -1)}.items():
        program = load(i + j + node("r", op, "i", "j", T="int32"))
        with pytest.raises(ZeroDivisionError):
            values(program, i=np.int32(arguments[0]), j=np.int32(arguments[1]))
    assert values(load(i + j + node("r", "Pow", "i", "j", T="int32")), i=np.int32(-3), j=np.int32(3)) == [-27]


def body(name: str, nodes: str, result: str, arguments: str = "x", **type_: str) -> str:
    """A function for a library."""
    kind = f'type_attr: "{type_["attr"]}"' if type_ else "type: DT_FLOAT"
    inputs = "".join(f'input_arg {{ name: "{each}" {kind} }} ' for each in arguments.split())
    declared = f'attr {{ name: "{type_["attr"]}" type: "type" }}' if type_ else ""
    signature = f'signature {{ name: "{name}" {inputs} output_arg {{ name: "y" {kind} }} {declared} }}'
    returned = f'ret {{ key: "y" value: "{result}" }}'
    return f"function {{ {signature} {nodes.replace('node {', 'node_def {')} {returned} }}\n"


def library(*functions: str) -> str:
    """A library of functions."""
    return f"library {{ {''.join(functions)} }}\n"


def test_calls_of_functions():
    affine = body(
        "affine",
        constant("two", 2.0)
        + node("t", "Mul", "x", "two:output:0", T="float32")
        + node("s", "Add", "t:z:0", "b", T="float32"),
        "s:z:0",
        "x b",
    )
    direct = node("r", "affine", "x", "y") + node("q", "affine", "r", "r:0")
    program = load(X + Y + direct + library(affine))
    assert values(program, x=3.0, y=1.0) == [21.0]
    called = node("r", "StatefulPartitionedCall", "x", "y", f='func { name: "affine" }') + node(
        "q", "Neg", "r", T="float32"
    )
    assert values(load(X + Y + called + library(affine)), x=3.0, y=1.0) == [-7.0]
    outer = body("outer", node("a", "affine", "x", "x") + node("n", "Neg", "a:y:0", T="float32"), "n:y:0")
    assert values(load(X + node("r", "outer", "x") + library(outer, affine)), x=3.0) == [-9.0]


def test_types_are_put_into_functions():
    double = body("double", node("s", "Add", "x", "x", T='placeholder: "kind"'), "s:z:0", attr="kind")
    through = body("through", node("d", "double", "x", kind='placeholder: "other"'), "d:y:0", attr="other")
    for dtype, number in {"int32": np.int32(21), "float64": np.float64(21)}.items():
        text = placeholder("x", dtype) + node("r", "through", "x", other=dtype) + library(double, through)
        program = load(text)
        assert program.outputs[0].dtype == dtype and values(program, x=number) == [42]
        call = f'func {{ name: "double" attr {{ key: "kind" value {{ type: {TYPES[dtype]} }} }} }}'
        text = placeholder("x", dtype) + node("r", "PartitionedCall", "x", f=call) + library(double)
        assert values(load(text), x=number) == [42]


def test_constants_are_put_into_functions():
    value = 'attr { key: "value" value { placeholder: "number" } }'
    const = node("c", "Const", dtype="float32").replace("}\n", f"{value} }}\n")
    plus = body("plus", const + node("s", "Add", "x", "c:output:0", T="float32"), "s:z:0")
    tensors = [f"tensor {{ dtype: DT_FLOAT tensor_shape {{ }} float_val: {number} }}" for number in (1, 10)]
    calls = node("a", "plus", "x", number=tensors[0]) + node("r", "plus", "a", number=tensors[1])
    assert values(load(X + calls + library(plus)), x=0.5) == [11.5]


@pytest.mark.slow
def test_functions_may_nest_deeply():
    depth = 1500
    chain = [body(f"f{i}", node("c", f"f{i + 1}", "x"), "c:y:0") for i in range(depth)]
    last = body(f"f{depth}", node("n", "Neg", "x", T="float32"), "n:y:0")
    assert values(load(X + node("r", "f0", "x") + library(*chain, last)), x=2.0) == [-2.0]
