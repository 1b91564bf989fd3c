"""Each operator beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shine.tensor.form.interpreter import interpret
from shine.tensor.onnx import load_onnx
from shine.tensor.onnx.rules import RULES

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.slow

X = np.random.default_rng(0).uniform(-2, 2, (2, 3, 4)).astype("f4")
IMAGE = np.random.default_rng(1).uniform(-1, 1, (2, 4, 7, 6)).astype("f4")
POSITIVE = np.abs(X) + np.float32(0.5)
UNIT = X / np.float32(2.2)
WHOLE = np.random.default_rng(2).integers(-5, 6, (2, 3)).astype("i8")
TRUTH = X > 0
i64 = np.int64


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).uniform(-1, 1, shape).astype("f4")


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, i64)


Case = tuple[list[Any], dict[str, Any]]

CASES: dict[str, Case] = {
    **{name: ([X, drawn(3, 1)], {}) for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean")},
    **{f"{name} of three": ([X, drawn(4), drawn(3, 1)], {}) for name in ("Max", "Min", "Sum", "Mean")},
    **{
        name: ([X], {})
        for name in (
            "Neg", "Abs", "Exp", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Tanh", "Floor", "Ceil", "Round", "Sign",
            "Sigmoid", "Reciprocal", "Relu", "LeakyRelu", "Elu", "Celu", "Selu", "Softplus", "Softsign", "Mish",
            "HardSigmoid", "HardSwish", "Erf", "ThresholdedRelu", "Shrink", "Identity", "Asinh", "IsNaN", "IsInf",
            "Softmax", "LogSoftmax", "Transpose", "Flatten", "Shape", "Size", "ReduceSum", "ReduceProd", "ReduceMax",
            "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ArgMax", "ArgMin",
            "LpNormalization", "Dropout",
        )
    },
    **{name: ([POSITIVE], {}) for name in ("Sqrt", "Log", "ReduceLogSum")},
    **{name: ([UNIT], {}) for name in ("Asin", "Acos", "Atanh")},
    "Acosh": ([POSITIVE + 1], {}),
    **{name: ([X, drawn(3, 1)], {}) for name in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")},
    **{name: ([TRUTH, TRUTH[:, ::-1].copy()], {}) for name in ("And", "Or", "Xor")},
    "Not": ([TRUTH], {}),
    "Where": ([TRUTH, X, drawn(4)], {}),
    "Pow": ([POSITIVE, drawn(4)], {}),
    "Pow of integers": ([WHOLE, np.float32(2)], {}),
    **{
        f"{name} near and far": ([np.array([-1e30, -200, -1e-3, -0.0, 1e-20, 0.5, 1, 2, 1e30], "f4")], {})
        for name in ("Asinh", "Acosh", "Atanh")
    },
    **{
        f"{name} of integers": ([np.array([[5, 7, 2], [3, 1, 1]], "i4")], {})
        for name in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
    },
    **{
        f"{name} of nothing": ([np.zeros((2, 0), "f4")], {})
        for name in ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd")
    },
    "Pad, more cut off than is there": ([np.arange(6, dtype="f4").reshape(2, 3), ints(0, -4, 0, 3)], {}),
    "Mod of what is infinite": (
        [np.array([5, -5, np.inf, 3, np.nan, -0.0], "f4"), np.array([3, -3, 3, np.inf, 2, 2], "f4")], {"fmod": 1},
    ),
    "Mod": ([WHOLE, ints(3, -2, 4)], {}),
    "Mod as in C": ([X, drawn(4) + 2], {"fmod": 1}),
    "Div of integers": ([WHOLE, ints(3, -2, 4)], {}),
    "LeakyRelu of 0.3": ([X], {"alpha": 0.3}),
    "Gelu": ([X], {}),
    "Gelu by tanh": ([X], {"approximate": "tanh"}),
    "PRelu": ([X, drawn(3, 1)], {}),
    "Clip": ([X, np.float32(-0.5), np.float32(0.7)], {}),
    "Clip above": ([X, None, np.float32(0.7)], {}),
    "Cast": ([X], {"to": 7}),
    "CastLike": ([X, WHOLE], {}),
    "IsInf above": ([np.array([1, np.inf, -np.inf, np.nan], "f4")], {"detect_negative": 0}),
    "Softmax along 1": ([X], {"axis": 1}),
    "Transpose by order": ([X], {"perm": [1, 0, 2]}),
    "Flatten at 2": ([X], {"axis": 2}),
    "Reshape": ([X, ints(0, -1, 2)], {}),
    "Squeeze": ([drawn(1, 3, 1), ints(0)], {}),
    "Squeeze all": ([drawn(1, 3, 1)], {}),
    "Unsqueeze": ([X, ints(0, -1)], {}),
    "Expand": ([drawn(3, 1), ints(2, 1, 4)], {}),
    "Tile": ([X, ints(2, 1, 3)], {}),
    "Concat": ([X, drawn(2, 1, 4)], {"axis": 1}),
    "Split": ([X, ints(1, 3)], {"axis": 2, "outputs": 2}),
    "Split evenly": ([X], {"axis": 2, "outputs": 2, "num_outputs": 2}),
    "Slice": ([X, ints(0, 3), ints(9, -9), ints(1, -1), ints(2, -2)], {}),
    "Slice from before the first": ([X, ints(-9, -9), ints(-99, -99), ints(0, 1), ints(-1, -2)], {}),
    "Slice simply": ([X, ints(0, 1), ints(1, -1)], {}),
    "Pad": ([X, ints(0, 1, 2, 1, 0, 0), np.float32(5)], {}),
    "Pad less": ([X, ints(0, -1, 2, 0, 0, -1)], {}),
    **{f"Pad by {mode}": ([X, ints(0, 1, 2, 0, 1, 1)], {"mode": mode}) for mode in ("edge", "reflect", "wrap")},
    "Gather": ([X, np.array([[0, -1], [2, 1]])], {"axis": 1}),
    "GatherElements": ([X, np.array([[[0, 1, 2, -1]], [[1, 1, 0, 0]]])], {"axis": 1}),
    "CumSum": ([X, i64(1)], {}),
    "CumSum backwards": ([X, i64(2)], {"exclusive": 1, "reverse": 1}),
    "Trilu": ([X], {}),
    "Trilu below": ([X, i64(1)], {"upper": 0}),
    "OneHot": ([ints(0, 2, -1), i64(4), np.array([-1, 2], "f4")], {"axis": 0}),
    "DepthToSpace": ([IMAGE], {"blocksize": 2}),
    "DepthToSpace by columns": ([IMAGE], {"blocksize": 2, "mode": "CRD"}),
    "SpaceToDepth": ([drawn(1, 2, 4, 6)], {"blocksize": 2}),
    "Resize": ([IMAGE, None, np.array([1, 1, 2, 3], "f4")], {"mode": "nearest", "nearest_mode": "floor",
                                                             "coordinate_transformation_mode": "asymmetric"}),
    **{
        f"Resize {mode} {rounding}": ([IMAGE, None, np.array([1, 1, 2, 3], "f4")], {
            "mode": "nearest", "nearest_mode": rounding, "coordinate_transformation_mode": mode})
        for mode in ("asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners", "half_pixel_symmetric")
        for rounding in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    },
    "Constant": ([], {"value_floats": [1.5, 2.5]}),
    "ConstantOfShape": ([ints(2, 3)], {}),
    "Range": ([i64(3), i64(12), i64(4)], {}),
    "EyeLike": ([drawn(3, 4)], {"k": 1}),
    "ReduceSum of axes": ([X, ints(0, -1)], {"keepdims": 0}),
    "ReduceMax of axes": ([X, ints(1)], {"keepdims": 0}),
    "ReduceSum of nothing": ([X], {"noop_with_empty_axes": 1}),
    "ArgMax, the last": ([np.array([[1, 3, 3, 0]], "f4")], {"axis": 1, "select_last_index": 1, "keepdims": 0}),
    "TopK": ([X, ints(2)], {"outputs": 2, "axis": 1}),
    "TopK, the least": ([X, ints(3)], {"outputs": 2, "largest": 0}),
    "LayerNormalization": ([X, drawn(4), drawn(4)], {}),
    "RMSNormalization": ([X, drawn(4)], {}),
    "BatchNormalization": ([IMAGE, drawn(4), drawn(4), drawn(4), np.abs(drawn(4))], {}),
    "InstanceNormalization": ([IMAGE, drawn(4), drawn(4)], {}),
    "GroupNormalization": ([IMAGE, drawn(4), drawn(4)], {"num_groups": 2}),
    "LRN": ([IMAGE], {"size": 3, "alpha": 0.1}),
    "MatMul": ([X, drawn(2, 4, 5)], {}),
    "MatMul of a vector": ([drawn(4), drawn(2, 4, 5)], {}),
    "Gemm": ([drawn(4, 3), drawn(5, 4), drawn(5)], {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}),
    "Einsum": ([X, drawn(2, 4, 5)], {"equation": "bij,bjk->bki"}),
    "Conv": ([IMAGE, drawn(6, 4, 3, 2), drawn(6)], {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
    "Conv of groups": ([IMAGE, drawn(6, 2, 3, 3)], {"group": 2, "dilations": [2, 1]}),
    "Conv of one axis": ([drawn(2, 3, 9), drawn(4, 3, 3)], {"strides": [2]}),
    "Conv, same": ([IMAGE, drawn(6, 4, 3, 2)], {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    "ConvTranspose": ([IMAGE, drawn(4, 3, 3, 2), drawn(3)], {"strides": [2, 3], "pads": [1, 0, 0, 1]}),
    "ConvTranspose of groups": ([IMAGE, drawn(4, 3, 3, 2)], {"group": 2, "strides": [2, 1], "output_padding": [1, 0]}),
    "ConvTranspose, much cut": ([IMAGE, drawn(4, 3, 2, 2)], {"pads": [2, 2, 3, 2]}),
    "ConvTranspose, same": ([IMAGE, drawn(4, 3, 3, 3)], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "MaxPool": ([IMAGE], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    "MaxPool, ceil": ([IMAGE], {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1, "dilations": [2, 1]}),
    "AveragePool": ([IMAGE], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    "AveragePool with padding": ([IMAGE], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    "GlobalMaxPool": ([IMAGE], {}),
    "GlobalAveragePool": ([IMAGE], {}),
    "RNN": ([drawn(5, 2, 3), drawn(1, 4, 3), drawn(1, 4, 4), drawn(1, 8)], {"outputs": 2, "hidden_size": 4}),
    "LSTM": ([drawn(5, 2, 3), drawn(1, 16, 3), drawn(1, 16, 4), drawn(1, 32)], {"outputs": 3, "hidden_size": 4}),
    "LSTM both ways": (
        [drawn(5, 2, 3), drawn(2, 16, 3), drawn(2, 16, 4), drawn(2, 32), None, drawn(2, 2, 4), drawn(2, 2, 4)],
        {"outputs": 3, "hidden_size": 4, "direction": "bidirectional"},
    ),
    "GRU": ([drawn(5, 2, 3), drawn(1, 12, 3), drawn(1, 12, 4), drawn(1, 24)], {"outputs": 2, "hidden_size": 4}),
    "GRU backwards": (
        [drawn(5, 2, 3), drawn(1, 12, 3), drawn(1, 12, 4), drawn(1, 24)],
        {"outputs": 2, "hidden_size": 4, "direction": "reverse", "linear_before_reset": 1},
    ),
}  # fmt: skip

STATIC = {"Reshape", "Squeeze", "Unsqueeze", "Expand", "Tile", "Split", "Slice", "Pad", "CumSum", "Trilu", "OneHot",
          "Resize", "ConstantOfShape", "Range", "ReduceSum", "ReduceMax", "TopK"}  # fmt: skip
"""Operators whose inputs after the first are constants of the model."""


def model_of(operator: str, inputs: list[Any], options: dict[str, Any]) -> tuple[bytes, dict[str, np.ndarray]]:
    """A model of one node, and what its inputs are."""
    attributes = {k: v for k, v in options.items() if k != "outputs"}
    names = ["" if x is None else f"i{n}" for n, x in enumerate(inputs)]
    outputs = [f"o{n}" for n in range(options.get("outputs", 1))]
    node = onnx.helper.make_node(operator, names, outputs, **attributes)
    first = 0 if operator in ("ConstantOfShape", "Range") else 1
    constant = {n for n, x in enumerate(inputs) if x is not None and operator in STATIC and n >= first}
    given = {f"i{n}": np.asarray(x) for n, x in enumerate(inputs) if x is not None}
    values = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in given.items()
        if int(name[1:]) not in constant
    ]
    kept = [onnx.numpy_helper.from_array(x, name) for name, x in given.items() if int(name[1:]) in constant]
    made = [onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = onnx.helper.make_graph([node], "g", values, made, kept)
    version = 23 if operator == "RMSNormalization" else 21
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", version)], ir_version=10)
    return model.SerializeToString(), {k: v for k, v in given.items() if int(k[1:]) not in constant}


@pytest.mark.parametrize("case", CASES)
def test_operators_agree_with_onnx_runtime(case):
    runtime = pytest.importorskip("onnxruntime")
    inputs, options = CASES[case]
    content, given = model_of(case.split()[0].rstrip(","), inputs, options)
    inferred = onnx.shape_inference.infer_shapes(onnx.load_from_string(content)).SerializeToString()
    options_of_session = runtime.SessionOptions()
    options_of_session.log_severity_level = 3
    expected = runtime.InferenceSession(inferred, options_of_session).run(None, given)
    module = load_onnx(content)
    found = interpret(module, "main", list(given.values()))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)
        assert ours.dtype == theirs.dtype


def test_every_operator_is_tried():
    assert {case.split()[0].rstrip(",") for case in CASES} == set(RULES)
