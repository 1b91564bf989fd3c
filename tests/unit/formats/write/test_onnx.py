"""Formulas as ONNX models, run by ONNX Runtime: the model's own predictions."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from helpers.formulas import APPROXIMATE
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from strategies import trees
from unit.formats.write.native import (
    EXACT,
    application,
    chain_of_functions,
    deep_tree,
    differences,
    primitives_of_the_target,
    rows,
)

import shine
from shine.evaluate.kernels.kernel import Kernel
from shine.formats.write.onnx import onnx_model
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import ARITIES
from shine.lang.interpret import evaluate

with warnings.catch_warnings():
    # Warnings of libraries during their import are not about this project.
    warnings.simplefilter("ignore")
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

pytestmark = pytest.mark.slow
DTYPES = ["float64", "float32"]


def session(tree, dtype="float64", optimized=False):
    """The formula in ONNX Runtime, as a function of columns."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = onnx_model(tree, dtype=dtype).SerializeToString()
    loaded = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda *columns: loaded.run(None, {"X": np.array(columns).T.copy()})[0]


@cache
def primitive(name, dtype):
    return session(application(name), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXACT)
def test_an_exact_primitive_has_the_same_bits(name, dtype):
    columns = rows(0, 10_000, dtype)
    assert differences(primitive(name, dtype)(*columns), evaluate(application(name), columns, dtype), columns) == []


@pytest.mark.parametrize("name", APPROXIMATE)
def test_a_primitive_is_within_two_ulp_of_the_compiled_one(name):
    columns = rows(1, 10_000)
    if name in ("sin", "cos", "tan"):
        columns[0] = np.where(np.isfinite(columns[0]), np.clip(columns[0], -(2.0**16), 2.0**16), columns[0])
    expected = Kernel(application(name))(*columns)
    assert differences(primitive(name, "float64")(*columns), expected, columns, 2) == []


@pytest.mark.parametrize("name", APPROXIMATE)
def test_a_float32_primitive_is_within_two_ulp(name):
    columns = rows(1, 10_000, "float32")
    with np.errstate(all="ignore"):
        expected = evaluate(application(name), [c.astype(np.float64) for c in columns]).astype(np.float32)
    assert differences(primitive(name, "float32")(*columns), expected, columns, 2) == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [name for name in STANDARD if name not in ARITIES])
def test_a_composite_is_made_of_the_same_primitives(name, dtype):
    columns = rows(2, 10_000, dtype)
    with primitives_of_the_target({name: primitive(name, dtype) for name in APPROXIMATE}):
        expected = evaluate(application(name), columns, dtype)
    assert differences(primitive(name, dtype)(*columns), expected, columns) == []


@settings(max_examples=30, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(trees(EXACT), st.integers(0, 2**32), st.sampled_from(DTYPES))
def test_random_trees_of_exact_primitives_have_their_bits(tree, seed, dtype):
    # Inexact values may depend on their place in a vector: the libraries' loop bodies and tails differ.
    columns = rows(seed, 500, dtype)
    with primitives_of_the_target({name: primitive(name, dtype) for name in APPROXIMATE}), np.errstate(all="ignore"):
        expected = evaluate(tree, columns, dtype)
    assert differences(session(tree, dtype)(*columns), expected, columns) == [], str(tree)


def test_the_model_says_what_goes_in_and_what_comes_out():
    model = onnx_model(shine.parse("a + b", ("b", "c", "a")), "sum", "float32")
    onnx.checker.check_model(model, full_check=True)
    assert model.graph.name == "sum"
    (X,), (y,) = model.graph.input, model.graph.output
    assert (X.name, [d.dim_param or d.dim_value for d in X.type.tensor_type.shape.dim]) == ("X", ["n", 3])
    assert (y.name, [d.dim_param for d in y.type.tensor_type.shape.dim]) == ("y", ["n"])
    assert {v.type.tensor_type.elem_type for v in (X, y)} == {onnx.TensorProto.FLOAT}


def test_depth_is_no_special_case():
    # ONNX Runtime itself takes a time that is not linear in the number of nodes to load a model.
    tree = deep_tree(1500)
    columns = rows(3, 20, features=2)
    assert differences(session(tree)(*columns), evaluate(tree, columns), columns) == []
    assert len(onnx_model(deep_tree(10_000)).graph.node) > 10_000


def test_functions_may_call_functions_to_any_depth():
    point = np.array([0.5, 3.0])
    assert session(chain_of_functions(500))(point, point, point).tolist() == [0.5, 3.0]


def test_a_formula_that_it_cannot_write_is_an_error():
    with pytest.raises(ValueError, match="use one of float64, float32"):
        onnx_model(shine.parse("a"), dtype="int32")
