"""Formulas as graphs of TensorFlow: the values that TensorFlow computed, and the formulas read back.

`tests/fixtures/make_graphs.py` writes the graphs with Shine and has TensorFlow compute them; the graphs are in the
repository, and the tests check that Shine still writes the same.
"""

from __future__ import annotations

import numpy as np
import pytest
from fixtures.exported_formulas import EXPORTED, exported_formulas
from helpers.equality import same_bits, ulps
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import trees
from unit.formats.write.native import chain_of_functions, deep_tree, rows

import shine
from shine.formats.write.graphdef import graphdef, graphdef_bytes, graphdef_text
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


def test_the_placeholders_are_the_features_and_the_result_has_the_name():
    message = graphdef(shine.parse("speed*2 - mass", ("mass", "speed", "unused")), "energy", "float32")
    assert [(node.name, node.op) for node in message.node] == [
        ("mass", "Placeholder"), ("speed", "Placeholder"), ("unused", "Placeholder"),
        ("Const", "Const"), ("Mul", "Mul"), ("Sub", "Sub"), ("energy", "Identity"),
    ]  # fmt: skip
    kernel = shine.jit(shine.load_graph(message.SerializeToString(), outputs=["energy"]))
    assert dict(zip(kernel.labels, kernel.dtypes, strict=True)) == dict.fromkeys(("mass", "speed"), "float32")
    assert kernel(mass=1, speed=4) == 7


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
