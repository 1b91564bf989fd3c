"""Formulas as graphs of TensorFlow: the values that TensorFlow computed, and the formulas read back.

`tests/fixtures/make_graphs.py` writes the graphs with Shine and has TensorFlow compute them; the graphs are in the
repository, and the tests check that Shine still writes the same.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from fixtures.exported_formulas import EXPORTED, exported_formulas
from helpers.equality import same_bits, ulps
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import trees
from unit.formats.write.native import chain_of_functions, deep_tree, rows

import shine
from shine.formats.write import export
from shine.formats.write.graphdef import graphdef, graphdef_bytes, graphdef_text
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.lang.program.interpret import interpret

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

FORMULAS = exported_formulas()
FEATURES = ("a", "b", "c")

ULP_A_NODE = 2


@pytest.fixture(scope="module")
def recorded():
    """TensorFlow's values by formula, each with the arguments."""
    with np.load(EXPORTED / "values.npz") as arrays:
        return {
            name: (list(arrays[f"{dtype}/in"]), values)
            for dtype in ("float64", "float32", "int32", "int64")
            for name, values in zip(arrays[f"{dtype}/names"].tolist(), arrays[f"{dtype}/out"], strict=True)
        }


def test_every_primitive_is_among_the_formulas(recorded):
    assert recorded.keys() == FORMULAS.keys()
    assert {f"only_{name}" for name in STANDARD} < FORMULAS.keys()


@pytest.mark.parametrize("name", FORMULAS)
def test_the_graph_is_the_one_that_tensorflow_ran(name):
    text, dtype = FORMULAS[name]
    tree = shine.parse(text, FEATURES)
    if dtype == "int32":
        assert graphdef_text(tree, "result", dtype) == (EXPORTED / f"{name}.pbtxt").read_text(encoding="utf-8")
    else:
        assert graphdef_bytes(tree, "result", dtype) == (EXPORTED / f"{name}.pb").read_bytes()


@pytest.mark.parametrize("name", FORMULAS)
def test_tensorflow_computes_what_shine_computes(name, recorded):
    text, dtype = FORMULAS[name]
    tree = shine.parse(text, FEATURES)
    arguments, expected = recorded[name]
    values = evaluate(tree, arguments, dtype)
    if expected.dtype.kind == "i":
        assert values.tolist() == expected.tolist()
        return
    nodes = sum(node.op not in ("Placeholder", "Const", "Identity") for node in graphdef(tree, dtype=dtype).node)
    assert (ulps(values, expected) <= ULP_A_NODE * nodes).all(), (values, expected)
    zeros = (values == 0) & (expected == 0)
    assert (np.signbit(values) == np.signbit(expected))[zeros].all()


def read_back(program, tree, columns):
    """The value of a program that was read from the tree's graph, which has only the features that it needs."""
    given = dict(zip(tree.parameters, columns, strict=True))
    (values,) = interpret(program, {parameter.label: given[parameter.label] for parameter in program.arguments})
    return values


@settings(max_examples=60)
@given(trees(), st.integers(0, 2**32), st.sampled_from(["float64", "float32"]))
def test_a_graph_that_is_read_back_has_the_same_values(tree, seed, dtype):
    columns = rows(seed, 60, dtype)
    program = shine.load_graph(graphdef_bytes(tree, "result", dtype), outputs=["result"])
    values = read_back(program, tree, columns)
    expected = evaluate(tree, columns, dtype)
    assert same_bits(np.broadcast_to(values, expected.shape), expected).all(), str(tree)


INTEGERS = ("add", "sub", "mul", "neg", "abs", "sign", "min", "max", "square", "lt", "ge", "eq", "where", "logical_and",
            "logical_or", "logical_not", "relu", "floor")  # fmt: skip


@settings(max_examples=30)
@given(trees(INTEGERS), st.integers(0, 2**32), st.sampled_from(["int32", "int64"]))
def test_integers_are_read_back_with_the_same_values(tree, seed, dtype):
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    columns = [rng.choice([limits.min, -3, 0, 1, limits.max], 20).astype(dtype) for _ in tree.parameters]
    try:
        expected = evaluate(tree, columns, dtype)
    except shine.LoweringError:
        with pytest.raises(shine.ExportError, match=f"does not fit {dtype}; use whole numbers"):
            graphdef(tree, dtype=dtype)
        return
    program = shine.load_graph(graphdef_text(tree, "result", dtype).encode(), outputs=["result"])
    values = read_back(program, tree, columns)
    assert np.broadcast_to(values, expected.shape).tolist() == expected.tolist(), str(tree)


def operations(message):
    return [node.op for node in message.node]


def test_the_placeholders_are_the_features_and_the_result_has_the_name():
    message = graphdef(shine.parse("speed*2 - mass", ("mass", "speed", "unused")), "energy", "float32")
    assert [(node.name, node.op) for node in message.node] == [
        ("mass", "Placeholder"), ("speed", "Placeholder"), ("unused", "Placeholder"),
        ("Const", "Const"), ("Mul", "Mul"), ("Sub", "Sub"), ("energy", "Identity"),
    ]  # fmt: skip
    kernel = shine.jit(shine.load_graph(message.SerializeToString(), outputs=["energy"]))
    assert dict(zip(kernel.labels, kernel.dtypes, strict=True)) == dict.fromkeys(("mass", "speed"), "float32")
    assert kernel(mass=1, speed=4) == 7


def test_names_that_tensorflow_does_not_allow_are_changed():
    message = graphdef(shine.parse("_a + α + Const + f + x_a + 1", ("_a", "α", "Const", "f", "x_a")), "f")
    names = [node.name for node in message.node]
    assert all(re.fullmatch("[A-Za-z0-9.][A-Za-z0-9_.\\\\/>-]*", name) for name in names)
    assert len(set(names)) == len(names) and names[:5] == ["x_a", "x_", "Const", "f", "x_a_2"]
    assert names[-1] == "f_2"


def test_equal_values_are_one_node():
    message = graphdef(shine.parse("def f(a):\n    s = sin(a)\n    return s*s + exp(sin(a)) + exp(s)"))
    counts = {operation: operations(message).count(operation) for operation in ("Sin", "Exp", "Mul", "AddV2")}
    assert counts == {"Sin": 1, "Exp": 1, "Mul": 1, "AddV2": 2}


def test_conditions_are_booleans_not_numbers():
    message = graphdef(shine.parse("a if a < b and not b == 3 else b"))
    assert operations(message)[2:] == ["Less", "Const", "Equal", "LogicalNot", "LogicalAnd", "SelectV2", "Identity"]
    message = graphdef(shine.parse("(a < b) + 1"))
    assert operations(message)[2:] == ["Less", "Const", "Cast", "AddV2", "Identity"]


def test_the_table_of_exports_writes_text():
    tree = shine.parse("a - 2")
    assert export(tree, "graphdef", "g") == graphdef_text(tree, "g")
    assert 'name: "g"\n  op: "Identity"\n' in graphdef_text(tree, "g")


def test_depth_is_no_special_case():
    tree = deep_tree(1200)
    columns = rows(3, 20, features=2)
    program = shine.load_graph(graphdef_bytes(tree, "result"), outputs=["result"])
    values = read_back(program, tree, columns)
    assert same_bits(values, evaluate(tree, columns)).all()


def test_functions_may_call_functions_to_any_depth():
    # A graph has each value once: 2**500 calls are 1000 nodes and a few.
    assert len(graphdef(chain_of_functions(500)).node) < 2000


def test_a_formula_that_it_cannot_write_is_an_error():
    with pytest.raises(shine.ExportError, match="'cbrt' cannot be exported to GraphDef"):
        graphdef(Tree(("a",), shine.parse("cbrt(a)").result))
    with pytest.raises(
        shine.ExportError, match="'exp' cannot be exported to GraphDef in int32; use float64 or float32"
    ):
        graphdef(shine.parse("sigmoid(a)"), dtype="int32")
    with pytest.raises(shine.ExportError, match=r"constant 2\.5 does not fit int64; use whole numbers"):
        graphdef(shine.parse("a + 2.5"), dtype="int64")
    with pytest.raises(ValueError, match="use one of float64, float32, int32, int64"):
        graphdef(shine.parse("a"), dtype="bool")
