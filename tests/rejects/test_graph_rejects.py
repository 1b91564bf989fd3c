"""Bad graphs give the exact error and its node, only GraphImportError, in little time and memory."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.graph_texts import node
from hypothesis import given
from hypothesis import strategies as st

from shine.base.errors import GraphImportError
from shine.tensor.graphdef import load_graph

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

CORPUS = Path(__file__).parent / "graphs"
"""Files that tests/campaigns/fuzz_graphs.py made, named by what is wrong with each, and how the message begins."""


def constant(name: str, tensor: str, dtype: str = "DT_FLOAT") -> str:
    """A Const with a tensor as text."""
    return node(name, "Const", dtype=dtype, value=f"tensor {{ dtype: {dtype} {tensor} }}")


def placeholder(name: str, dtype: str = "DT_FLOAT", *sizes: int) -> str:
    """A Placeholder; its shape is unknown if it has no sizes."""
    shape = "".join(f"dim {{ size: {size} }} " for size in sizes)
    return node(name, "Placeholder", dtype=dtype, **({"shape": f"shape {{ {shape}}}"} if sizes else {}))


def binary(op: str, *inputs: str, dtype: str = "DT_FLOAT") -> str:
    """A node `r` of an operation with an element type."""
    return node("r", op, *inputs, T=dtype)


def library(*functions: str) -> str:
    """A library as text."""
    return f"library {{ {' '.join(functions)} }}\n"


def function(name: str, body: str, result: str = "y:z:0") -> str:
    """A function of one float, for a library; its body is made of nodes."""
    argument, returned = 'input_arg { name: "x" type: DT_FLOAT }', 'output_arg { name: "y" type: DT_FLOAT }'
    body = body.replace("node {", "node_def {")
    return (
        f'function {{ signature {{ name: "{name}" {argument} {returned} }} {body} '
        f'ret {{ key: "y" value: "{result}" }} }}\n'
    )


X = placeholder("x")
FLOAT = "DT_FLOAT"
SUPPORTED = "supported are DT_FLOAT, DT_DOUBLE, DT_INT32, DT_INT64, DT_BOOL"

REJECTED: dict[str, tuple[str, str]] = {
    "empty": ("", "it is empty; a GraphDef as text or binary is expected"),
    "prose": ("To be, or not to be", "it is not a GraphDef as text: 1:4"),
    "latin": ("node { name: 'x' op: '\udce9' }", "neither a binary GraphDef nor UTF-8 text: invalid continuation byte"),
    "saved model": (
        "saved_model_schema_version: 1 meta_graphs { }",
        "SavedModel or MetaGraphDef, not a GraphDef; freeze",
    ),
    # Names and inputs.
    "self": (binary("Neg", "r"), "node 'r' depends on itself: 'r' reads 'r'; loops are not supported"),
    "cycle": (
        X + binary("Add", "x", "b") + node("b", "Neg", "c", T=FLOAT) + node("c", "Neg", "r", T=FLOAT),
        "node 'r' depends on itself: 'r' reads 'b' reads 'c' reads 'r'; loops are not supported",
    ),
    "missing": (binary("Neg", "y"), "node 'r' (op 'Neg'): reads 'y', but there is no such node"),
    "duplicate": (X + X, "there are two nodes with the name 'x'; names must differ"),
    "nameless": (X + node("", "Neg", "x"), "node number 1 (op 'Neg') has no name"),
    "dangling": (X + binary("Neg", "x:1"), "node 'r' (op 'Neg'): 'x' has no output 1; it has 1 output"),
    "function's reference": (X + binary("Neg", "x:z:0"), "input 'x:z:0' names an output, which only functions allow"),
    "no result": (node("n", "NoOp"), "the graph has no results"),
    # Operations.
    "unknown op": (
        X + binary("MatMul", "x", "x"),
        "node 'r' (op 'MatMul'): this op is not supported: only elementwise operations and calls of the graph's own "
        "functions are supported (Abs, Acos,",
    ),
    "variable": (binary("VariableV2"), "variables are not part of a graph; freeze it first"),
    "too few inputs": (X + binary("Add", "x"), "node 'r' (op 'Add'): reads 1 values, but takes 2"),
    "sum of none": (node("r", "AddN", T=FLOAT, N="i: 0"), "node 'r' (op 'AddN'): attr 'N' must be at least 1, is 0"),
    "integer round": (
        placeholder("x", "DT_INT32") + binary("Round", "x", dtype="DT_INT32"),
        "node 'r' (op 'Round'): there is no Round of int32; supported are float32, float64",
    ),
    "computed default": (
        X + node("y", "Neg", "x", T=FLOAT) + node("r", "PlaceholderWithDefault", "y", dtype=FLOAT, shape="shape { }"),
        "node 'r' (op 'PlaceholderWithDefault'): its default is computed; only a Const is supported",
    ),
    # Types.
    "no type": (X + node("r", "Neg", "x"), "node 'r' (op 'Neg'): attr 'T' is missing"),
    "no real type": (
        X + node("r", "Neg", "x", T='s: "x"'),
        "node 'r' (op 'Neg'): attr 'T' must be of the kind 'type', is 's'",
    ),
    "string": (
        placeholder("x", "DT_STRING"),
        f"node 'x' (op 'Placeholder'): attr 'dtype': element type DT_STRING is not supported; {SUPPORTED}",
    ),
    "unknown type": (
        node("x", "Placeholder", dtype="type: 77"),
        "attr 'dtype': element type number 77 is not supported",
    ),
    "wrong type": (
        X + binary("Neg", "x", dtype="DT_INT32"),
        "node 'r' (op 'Neg'): input 0 is float32, but must be int32",
    ),
    "number as condition": (X + binary("Select", "x", "x", "x"), "its condition is float32, but must be bool"),
    # Shapes.
    "no broadcast": (
        placeholder("x", FLOAT, 2, 3) + placeholder("y", FLOAT, 4, 3) + binary("Add", "x", "y"),
        "node 'r' (op 'Add'): shapes [2, 3] and [4, 3] do not broadcast",
    ),
    "bomb": (
        placeholder("x", FLOAT, 65536, 1) + placeholder("y", FLOAT, 1, 65536) + binary("Add", "x", "y"),
        "node 'r' (op 'Add'): broadcasting [65536, 1] and [1, 65536] makes 4294967296 elements; at most 67108864",
    ),
    "negative length": (
        placeholder("x", FLOAT, -2),
        "node 'x' (op 'Placeholder'): its shape [-2] has a negative length",
    ),
    "overflow": (
        placeholder("x", FLOAT, 1 << 32, 1 << 32),
        "node 'x' (op 'Placeholder'): its shape [4294967296, 4294967296] has more elements than 64 bits can address",
    ),
    "too many axes": (placeholder("x", FLOAT, *[1] * 33), "its shape has 33 axes; at most 32 are supported"),
    "rows chosen": (
        placeholder("c", "DT_BOOL", 2) + placeholder("x", FLOAT, 2, 2) + binary("Select", "c", "x", "x"),
        "output 'r' depends on reshape of <2 x bool>; only elementwise operations are part of a formula",
    ),
    # Constants.
    "no value": (node("c", "Const", dtype=FLOAT), "node 'c' (op 'Const'): attr 'value' is missing"),
    "two types": (
        node("c", "Const", dtype=FLOAT, value="tensor { dtype: DT_INT32 int_val: 1 }"),
        "node 'c' (op 'Const'): attr 'dtype' is float32, but its tensor is int32",
    ),
    "unknown shape": (
        constant("c", "tensor_shape { dim { size: -1 } }"),
        "the shape of a constant must be known, but is [?]",
    ),
    "huge": (
        constant("c", "tensor_shape { dim { size: 1099511627776 } } float_val: 0"),
        "node 'c' (op 'Const'): its shape [1099511627776] has 1099511627776 elements; at most 67108864 are read",
    ),
    "large, little given": (
        constant("c", "tensor_shape { dim { size: 60000000 } } float_val: 0 float_val: 1"),
        "float_val has 2 values for 60000000 elements; the last values of a graph's constants are repeated for up to",
    ),
    "too many values": (
        constant("c", "tensor_shape { } float_val: 0 float_val: 1"),
        "float_val has 2 values, but the shape has 1 elements",
    ),
    "too few bytes": (
        constant("c", 'tensor_shape { dim { size: 2 } } tensor_content: "abcd"'),
        "node 'c' (op 'Const'): tensor_content has 4 bytes, but 2 elements of float32 take 8",
    ),
    "values elsewhere": (
        constant("c", "tensor_shape { } int_val: 1"),
        "its values are in int_val, but those of float32 belong in float_val",
    ),
    # Functions.
    "recursion": (
        X + node("r", "f", "x") + library(function("f", node("y", "f", "x"))),
        "node 'y' (op 'f') in function 'f': function 'f' calls itself, which is not supported",
    ),
    "no such function": (
        X + node("r", "PartitionedCall", "x", f='func { name: "g" }'),
        "node 'r' (op 'PartitionedCall'): calls 'g', but the graph has no such function",
    ),
    "inside": (
        X + node("r", "f", "x") + library(function("f", node("y", "Fft", "x"))),
        "node 'y' (op 'Fft') in function 'f': this op is not supported",
    ),
    "no type given": (
        X + node("r", "f", "x") + library(function("f", node("y", "Neg", "x", T='placeholder: "T"'))),
        "node 'y' (op 'Neg') in function 'f': the call gives no value for the attr placeholder 'T'",
    ),
    "argument of another type": (
        placeholder("x", "DT_INT32") + node("r", "f", "x") + library(function("f", node("y", "Neg", "x", T=FLOAT))),
        "node 'r' (op 'f'): argument 'x' is int32, but must be float32",
    ),
    "too few arguments": (
        node("r", "f") + library(function("f", node("y", "Neg", "x", T=FLOAT))),
        "gives 0 arguments, but its function declares 1",
    ),
    "no such result": (
        X + node("r", "f", "x") + library(function("f", "", "z:y:0")),
        "node 'r' (op 'f'): function 'f': result 'y' is 'z'; there is no such node",
    ),
    "placeholder inside": (
        X + node("r", "f", "x") + library(function("f", placeholder("y"))),
        "in function 'f': it is needed, but not fed; feed it, or fetch what does not need it; functions have arguments",
    ),
    "function twice": (
        X + library(function("f", ""), function("f", "")),
        "there are two functions with the name 'f'",
    ),
}


@pytest.mark.parametrize(("text", "message"), REJECTED.values(), ids=REJECTED.keys())
def test_it_is_rejected_with_node_and_reason(text, message):
    with pytest.raises(GraphImportError, match=re.escape(message)):
        load_graph(text.encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (["y"], "there is no node 'y'; nodes are 'x', 'r'"),
        (["r:1"], "'r' has no output 1; it has 1 output"),
        (["^r"], "output '^r' is not an output of a node"),
        (["r", "r"], "an output is listed twice"),
        ([], "outputs is empty; name at least one node"),
    ],
)
def test_invalid_outputs_are_rejected(outputs, message):
    with pytest.raises(GraphImportError, match=re.escape(message)):
        load_graph((X + binary("Neg", "x")).encode(), outputs=outputs)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["y"], "there is no placeholder 'y'"),
        (["r"], "there is no placeholder 'r'"),
        ([], "the outputs need placeholder 'x', which is not among the inputs"),
        (["x", "x"], "an input is listed twice"),
    ],
)
def test_invalid_inputs_are_rejected(inputs, message):
    with pytest.raises(GraphImportError, match=re.escape(message)):
        load_graph((X + binary("Neg", "x")).encode(), inputs=inputs)


@pytest.mark.slow
def test_calls_that_double_each_time_are_counted_before_they_fill_the_memory():
    doubling = [
        function(f"f{i}", node("a", f"f{i + 1}", "x") + node("y", f"f{i + 1}", "a:y:0"), "y:y:0") for i in range(60)
    ]
    last = function("f60", node("y", "Identity", "x", T=FLOAT))
    graph = X + node("r", "f0", "x") + library(*doubling, last)
    with pytest.raises(GraphImportError, match="more than 120000 nodes"):
        load_graph(graph.encode())


@pytest.mark.parametrize("opening", [b"node{", b"node<", b"node:[", b"x{"])
def test_deep_nesting_is_noticed_before_the_text_is_parsed(opening):
    with pytest.raises(GraphImportError, match="line 2: messages nest more than 60 deep"):
        load_graph(b"\n" + opening * 100_000)


def length(content: bytes) -> bytes:
    """Bytes with their length in front, as protobuf writes them."""
    number, written = len(content), b""
    while number > 127:
        written, number = written + bytes([number & 127 | 128]), number >> 7
    return written + bytes([number]) + content


def test_the_place_of_a_file_is_named(tmp_path):
    path = tmp_path / "net.pb"
    with pytest.raises(GraphImportError, match=r"net\.pb: it cannot be read: No such file"):
        load_graph(path)
    with pytest.raises(GraphImportError, match="it is a folder; give the path of a GraphDef file in it"):
        load_graph(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(
        GraphImportError, match="it is a SavedModel, with its variables in other files; freeze it first"
    ):
        load_graph(str(tmp_path))
    path.write_bytes(b"\x00")
    with pytest.raises(GraphImportError, match=r"net\.pb: it is not a GraphDef"):
        load_graph(path)
    with pytest.raises(GraphImportError, match="it is not a regular file"):
        load_graph("/dev/zero")
    with pytest.raises(GraphImportError, match="it is not the path of a file"):
        load_graph("a\0b")


@pytest.mark.parametrize("field", [b"\x12", b"\x08\x01\x12"])
def test_other_models_are_rejected(field):
    # Field 2 of a MetaGraphDef is its graph; field 2 of a SavedModel are its MetaGraphDefs.
    graph = b"\x12" + length(b"\x0a" + length(b"\x0a\x01x\x12\x0bPlaceholder"))
    content = graph if field == b"\x12" else field + length(graph)
    with pytest.raises(GraphImportError, match=r"it is a (SavedModel|MetaGraphDef), not a GraphDef; freeze it first"):
        load_graph(content)


LARGE = """
import os, sys
from shine.base.errors import GraphImportError
from shine.tensor.graphdef import load_graph

def length(content):
    number, written = len(content), b""
    while number > 127:
        written, number = written + bytes([number & 127 | 128]), number >> 7
    return written + bytes([number]) + content

def tensors(count):
    return b"\\x0a" + length(b"\\x2a" + length(b"\\x12" + length(b"\\x0a" + length(b"\\x42\\0" * count))))

files = {
    "junk": lambda: None,
    "zeros": lambda: bytes(24 << 20),
    "tensors": lambda: tensors(3 << 20),
    "as many as fit": lambda: tensors(1_800_000),
    "texts": lambda: b"node{}" * (4 << 20),
    "lines": lambda: b"node{}" + b"ab\\n" * (8 << 20),
    "deep": lambda: b"node{" * (6 << 20),
    "string": lambda: b'node{name:"' + b"a" * (30 << 20),
}
path = os.path.join(sys.argv[1], "file")
for name, content in files.items():
    with open(path, "wb") as file:
        file.truncate(1 << 30) if name == "junk" else file.write(content())
    try:
        load_graph(path)
        print("read")
    except GraphImportError as error:
        print(name, str(error)[len(path):][:90])
# Not the peak that getrusage reports: it includes the memory of the process that started this one.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) // 1024)
"""


@pytest.mark.slow
def test_large_files_of_all_kinds_stay_below_half_a_gigabyte(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", LARGE, str(tmp_path)], capture_output=True, text=True, check=True, timeout=200
    )
    *lines, peak = ran.stdout.splitlines()
    assert len(lines) == 8 and "read" not in lines
    assert "junk : it has 1073741824 bytes; a graph of at most 134217728 is read" in lines[0]
    assert int(peak) < 512, lines


@given(st.binary(max_size=300))
def test_any_bytes_are_a_graph_or_one_error(content):
    with contextlib.suppress(GraphImportError):
        load_graph(content)


EXPECTED = json.loads((CORPUS / "expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_damaged_graph_is_rejected(name):
    with pytest.raises(GraphImportError) as caught:
        load_graph((CORPUS / name).read_bytes())
    assert str(caught.value).startswith(EXPECTED[name])


def test_each_damaged_graph_has_its_message():
    assert {path.name for path in CORPUS.glob("*.graph")} == set(EXPECTED)
