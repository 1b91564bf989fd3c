"""Feeds, fetches, names, variables, branches and loops; what cannot be read is an error that names the node."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.damaged_modules import ModuleCorpus, judged
from helpers.graph_texts import node

from shine.base.errors import GraphImportError
from shine.tensor.form.interpreter import interpret
from shine.tensor.graphdef import load_module

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

FOLDER = Path(__file__).parents[3] / "fixtures" / "tensor_graphs"


def placeholder(name: str, *shape: int, dtype: str = "float32") -> str:
    """A Placeholder."""
    dims = " ".join(f"dim {{ size: {size} }}" for size in shape)
    return node(name, "Placeholder", dtype=dtype, shape=f"shape {{ {dims} }}")


def integers(name: str, *values: int) -> str:
    """A Const of integers."""
    listed = " ".join(f"int_val: {value}" for value in values)
    tensor = f"dtype: DT_INT32 tensor_shape {{ dim {{ size: {len(values)} }} }} {listed}"
    return node(name, "Const", dtype="int32", value=f"tensor {{ {tensor} }}")


def load(text: str, *fetches: str, **options: object):
    """The module of a text."""
    return load_module(text.encode(), fetches=fetches or None, **options)


def values(module, *arguments: object) -> list:
    """The results of `main`."""
    return [result.tolist() for result in interpret(module, "main", [np.asarray(each) for each in arguments])]


X = placeholder("x", 2)
TEXT = (
    X
    + placeholder("scope/y", 2)
    + node("sum", "AddV2", "x", "scope/y", T="float32")
    + node("double", "AddV2", "sum", "sum", T="float32")
)


def test_parameters_and_results_have_the_graphs_names():
    module = load(TEXT, "double", "sum")
    main = module.function("main")
    assert [each.name for each in main.parameters] == ["x", "scope_y"]
    assert [each.name for each in main.results] == ["double", "sum"]
    assert module.labels == {"x": "x", "scope_y": "scope/y", "double": "double", "sum": "sum"}


def test_names_that_become_the_same_are_told_apart():
    text = placeholder("a/b", 1) + placeholder("a_b", 1) + node("a-b", "Sub", "a/b", "a_b", T="float32")
    module = load(text)
    assert sorted(module.labels.values()) == ["a-b", "a/b", "a_b"]
    assert values(module, np.float32([5]), np.float32([3])) == [[2]]


def test_feeds_cut_the_graph():
    module = load(TEXT, "double", feeds={"sum": (3,)})
    assert values(module, np.float32([1, 2, 3])) == [[2, 4, 6]]


def test_an_output_of_a_node_can_be_fetched():
    top = integers("k", 1).replace("dim { size: 1 }", "") + node("top", "TopKV2", "x", "k", T="float32")
    assert values(load(X + top, "top:1", "top"), np.float32([3, 7])) == [[1], [7]]


def test_all_last_nodes_are_results_by_default():
    module = load(TEXT + node("top", "TopKV2", "x", "k", T="float32") + integers("k", 1).replace("dim { size: 1 }", ""))
    assert list(module.labels.values())[-3:] == ["double", "top:0", "top:1"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (TEXT, {"feeds": ["no"]}, "feed 'no' is no node"),
        (TEXT, {"fetches": ["no"]}, "there is no node 'no'; nodes are 'x'"),
        (TEXT, {"feeds": ["x"]}, r"node 'scope/y' \(op 'Placeholder'\): it is needed, but not fed; feed it"),
        (TEXT, {"feeds": {"sum": None}}, r"feed node 'sum' \(op 'AddV2'\): its shape is of unknown rank; give a"),
        (TEXT, {"feeds": {"x": (3,), "scope/y": None}}, r"shapes \[3\] and \[2\] must be the same"),
        (TEXT, {"feeds": ["x:1", "scope/y"], "fetches": ["sum"]}, "'x' is fed, and its output 0 is needed"),
        (X + node("r", "Roll", "x", T="float32"), {}, r"node 'r' \(op 'Roll'\): this op is not supported: there are"),
        (X + node("e", "Enter", "x", T="float32"), {}, "loops of TensorFlow 1 are not supported"),
        (X + node("a", "AddV2", "x", T="float32"), {}, r"node 'a' \(op 'AddV2'\): reads 1 values, but takes 2"),
        (
            X + placeholder("z", 3) + node("a", "AddV2", "x", "z", T="float32"), {},
            r"node 'a' \(op 'AddV2'\): shapes \[2\] and \[3\] do not broadcast",
        ),
        (
            X + placeholder("s", 1, dtype="int32") + node("r", "Reshape", "x", "s", T="float32"), {},
            r"node 'r' \(op 'Reshape'\): its shape must be a constant, but depends on the arguments",
        ),
        (X + integers("s", 3) + node("r", "Reshape", "x", "s", T="float32"), {}, r"node 'r' .*2 elements"),
        (node("v", "VariableV2", dtype="float32"), {}, "the value of variable 'v' is not known; give a checkpoint"),
        (node("v", "VarHandleOp", dtype="float32"), {}, "fetch 'v' is a variable; fetch what reads it"),
        (
            X + node("w", "Assign", "x", "x", T="float32") + node("i", "Identity", "x", "^w", T="float32"),
            {"fetches": ["i"]}, r"node 'w' \(op 'Assign'\): a result waits for this change of a variable",
        ),
        (X + node("f", "PartitionedCall", "x", f='func { name: "g" }'), {}, "calls 'g', but the graph has no such"),
        ("", {}, "it is empty"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(text, options, message):
    with pytest.raises(GraphImportError, match=message):
        load_module(text.encode(), **options)


def test_either_a_config_or_names():
    with pytest.raises(TypeError, match="either config or feeds"):
        load_module(TEXT.encode(), ["x"], config=b"")


@pytest.mark.parametrize(
    "options", [{"feeds": 5}, {"feeds": [5]}, {"feeds": {"x": 5}}, {"fetches": [5]}, {"shapes": {"x": 5}}]
)
def test_names_and_shapes_are_what_they_should_be(options):
    with pytest.raises(TypeError, match="is a sequence of"):
        load_module(TEXT.encode(), **options)


@pytest.mark.parametrize("option", ["config", "checkpoint"])
def test_files_are_named_by_paths(option):
    with pytest.raises(TypeError, match=f"{option}=5 is no path"):
        load_module(TEXT.encode(), **{option: 5})


def test_some_feeds_are_given_their_shapes():
    text = placeholder("z", -1) + X + node("d", "Sub", "x", "z", T="float32")
    main = load_module(text.encode(), shapes={"z": (2,)}).function("main")
    assert [str(each) for each in main.parameter_types] == ["<2 x f32>", "<2 x f32>"]
    with pytest.raises(GraphImportError, match="there is no feed 'y' to give a shape; there are z, x"):
        load_module(text.encode(), shapes={"y": (2,)})


def test_variables_can_be_arguments():
    text = X + node("v", "VariableV2", dtype="float32") + node("s", "AddV2", "x", "v", T="float32")
    config = (
        'feed { id { node_name: "x" } shape { dim { size: 2 } } } fetch { id { node_name: "s" } } '
        'variable { node_name: "v" readonly: true type: DT_FLOAT shape { dim { size: 1 } } }'
    )
    module = load_module(text.encode(), config=config.encode())
    assert module.labels == {"x": "x", "v": "v", "s": "s"}
    assert values(module, np.float32([1, 2]), np.float32([10])) == [[11, 12]]


def test_a_variable_that_is_missing_names_its_node():
    with pytest.raises(
        GraphImportError, match=r"node 'v' \(op 'VariableV2'\): checkpoint .* has no tensor 'v'; it has"
    ):
        load(node("v", "VariableV2", dtype="float32"), checkpoint=FOLDER / "network.ckpt")


def test_an_index_that_is_an_ellipsis_and_a_new_axis_is_an_ellipsis():
    # TensorFlow says so; the index before it takes the first axis.
    text = (
        placeholder("x", 2, 3)
        + integers("begin", 0, 0)
        + integers("end", 1, 0)
        + integers("step", 1, 1)
        + node("s", "StridedSlice", "x", "begin", "end", "step", ellipsis_mask="i: 2", new_axis_mask="i: 2")
    )
    x = np.arange(6, dtype="f4").reshape(2, 3)
    assert values(load(text, "s"), x) == [x[0:1, ...].tolist()]


def test_channels_may_come_first():
    rng = np.random.default_rng(0)
    image, kernel = rng.normal(size=(2, 5, 6, 3)).astype("f4"), rng.normal(size=(3, 2, 3, 4)).astype("f4")
    results = []
    for order, strides in (("NHWC", "i: 1 i: 2 i: 1 i: 1"), ("NCHW", "i: 1 i: 1 i: 2 i: 1")):
        given = image if order == "NHWC" else image.transpose(0, 3, 1, 2)
        common = {
            "data_format": f's: "{order}"',
            "strides": f"list {{ {strides} }}",
            "padding": 's: "SAME"',
            "T": "float32",
        }
        text = (
            placeholder("x", *given.shape)
            + placeholder("k", *kernel.shape)
            + node("c", "Conv2D", "x", "k", **common)
            + node("b", "BiasAdd", "c", "bias", data_format=common["data_format"], T="float32")
            + placeholder("bias", 4)
            + node("p", "MaxPool", "b", ksize=f"list {{ {strides.replace('2', '3')} }}", **common)
            + node("a", "AvgPool", "p", ksize=f"list {{ {strides} }}", **common)
        )
        (result,) = interpret(
            load(text, "a", feeds=["x", "k", "bias"]), "main", [given, kernel, np.arange(4, dtype="f4")]
        )
        results.append(result if order == "NHWC" else result.transpose(0, 2, 3, 1))
    assert (results[0] == results[1]).all()


def test_loops_keep_constants_and_variables_out_of_their_state():
    module = load_module(FOLDER / "loop.pbtxt", fetches=["state"])
    (loop,) = [each for each in module.function("main").body if each.operation == "while"]
    condition = module.function(loop.attributes["condition"])
    assert len(loop.operands) == len(condition.parameters) < 6


@pytest.mark.parametrize(("arguments", "message"), [(1, "1 arguments"), (3, "3 arguments")])
def test_the_body_of_a_loop_takes_what_the_loop_has(arguments, message):
    """TensorFlow never writes such a body, but damage does."""
    listed = "".join(f'input_arg {{ name: "a{i}" type: DT_FLOAT }} ' for i in range(arguments))
    results = "".join(f'output_arg {{ name: "r{i}" type: DT_FLOAT }} ' for i in (0, 1))
    returned = "".join(f'ret {{ key: "r{i}" value: "a0" }} ' for i in (0, 1))
    library = f'library {{ function {{ signature {{ name: "f" {listed}{results} }} {returned} }} }}'
    loop = node("w", "While", "x", "x", cond='func { name: "f" }', body='func { name: "f" }')
    with pytest.raises(GraphImportError, match=f"node 'w' .*its body has {message}, and the loop 2 values"):
        load(X + loop + library)


@pytest.mark.slow
def test_damaged_files_are_read_or_refused():
    corpus = ModuleCorpus()
    verdicts = [judged(corpus.file(20_26, position)) for position in range(300)]
    assert not [message for verdict, message in verdicts if verdict == "wrong"]
    assert {verdict for verdict, _ in verdicts} == {"read", "refused"}


def test_numbers_beyond_their_type_are_refused():
    floats = "".join(
        node(
            name, "Const", dtype="float32", value=f"tensor {{ dtype: DT_FLOAT tensor_shape {{ }} float_val: {value} }}"
        )
        for name, value in (("a", 0), ("b", 1e30), ("c", 1e-40))
    )
    with pytest.raises(GraphImportError, match="node 'r'"):
        load(floats + node("r", "Range", "a", "b", "c", Tidx="float32"))
    x = node("x", "Placeholder", dtype="type: DT_INT8", shape="shape { dim { size: 300 } }")
    axis = integers("axis", 0)
    with pytest.raises(GraphImportError, match=r"node 'm'.*300 is beyond the numbers of int8"):
        load(x + axis + node("m", "Mean", "x", "axis", T="type: DT_INT8"))


def test_there_is_no_largest_truth():
    x = placeholder("x", 1, 2, 2, 1, dtype="bool")
    ones = "list { i: 1 i: 1 i: 1 i: 1 }"
    with pytest.raises(GraphImportError, match=r"node 'm'.*no MaxPool of bool"):
        load(x + node("m", "MaxPool", "x", ksize=ones, strides=ones, padding='s: "SAME"', T="bool"))


def test_a_fed_comparison_is_truth():
    text = X + node("less", "Less", "x", "x", T="float32") + node("all", "LogicalNot", "less")
    assert values(load(text, "all", feeds={"less": (2,)}), np.bool_([True, False])) == [[False, True]]


def test_a_merge_of_a_loop_is_refused_where_it_is_needed():
    loop = node("e", "Enter", "x", T="float32") + node("m", "Merge", "e", "n", T="float32")
    loop += node("n", "NextIteration", "m", T="float32")
    text = X + loop + node("a", "Neg", "x", T="float32")
    assert values(load(text, "a"), np.float32([1, 2])) == [[-1, -2]]
    with pytest.raises(GraphImportError, match="node 'm' depends on itself"):
        load(text, "m")
    with pytest.raises(GraphImportError, match=r"'m' \(op 'Merge'\): it is no condition of two branches"):
        load(X + node("m", "Merge", "x", "x", T="float32"), "m")


def test_a_list_of_tensors_is_no_tensor():
    text = X + integers("s", 2) + node("l", "TensorListFromTensor", "x", "s", element_dtype="float32")
    with pytest.raises(GraphImportError, match=r"node 'r' \(op 'Reshape'\): its input is a list of tensors"):
        load(text + node("r", "Reshape", "l", "s", T="float32"))
    stacked = node("t", "TensorListStack", "l", "s", element_dtype="float32")
    assert values(load(text + stacked, "t"), np.float32([1, 2])) == [[1, 2]]
    with pytest.raises(GraphImportError, match="its input is float32, but must be a list of tensors"):
        load(text + node("t", "TensorListStack", "x", "s", element_dtype="float32"))


HUGE = placeholder("x", 1, 1 << 40, 2, 1)
PAIRS = (
    'dtype: DT_INT32 tensor_shape { dim { size: 4 } dim { size: 2 } } '
    + "int_val: 0 " * 2 + "int_val: 1 " * 2 + "int_val: -1 " + "int_val: 0 " * 3
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (integers("a", 1) + node("r", "ReverseV2", "x", "a", T="float32"), "at most 1048576 are supported"),
        (
            node("r", "AvgPool", "x", ksize="list { i: 1 i: 2 i: 1 i: 1 }", strides="list { i: 1 i: 1 i: 1 i: 1 }",
                 padding='s: "SAME"', T="float32"),
            "is too large",
        ),
        (
            node("p", "Const", dtype="int32", value=f"tensor {{ {PAIRS} }}")
            + node("r", "MirrorPad", "x", "p", mode='s: "REFLECT"', T="float32"),
            "must be at least 0",
        ),
        (
            integers("s", 1 << 30, 1 << 30, 1 << 30) + node("r", "BroadcastTo", "x", "s", T="float32"),
            "2\\*\\*48 elements",
        ),
    ],
)  # fmt: skip
def test_what_would_take_much_memory_is_refused(text, message):
    with pytest.raises(GraphImportError, match=f"node 'r'.*{message}"):
        load(HUGE + text, "r")


def test_normalization_is_of_floats():
    parts = placeholder("x", 1, 1, 1, 2, dtype="int32") + "".join(
        placeholder(f"p{i}", 2, dtype="int32") for i in range(4)
    )
    made = node("n", "FusedBatchNormV3", "x", "p0", "p1", "p2", "p3", is_training="b: false", epsilon="f: nan")
    with pytest.raises(GraphImportError, match=r"node 'n'.*must be float32 or float64"):
        load(parts + made, "n")
