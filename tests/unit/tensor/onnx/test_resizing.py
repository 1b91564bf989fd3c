"""Resize beside ONNX Runtime: every mode, by sizes and by scales."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from shine.base.errors import GraphImportError
from shine.tensor.form.interpreter import interpret
from shine.tensor.onnx import load_onnx
from shine.tensor.onnx.rules.windows import PLACES, ROUNDED

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.slow

Inputs = dict[str, np.ndarray]


def model_of(x: np.ndarray, inputs: Inputs, **attributes: Any) -> bytes:
    """A model that resizes an image."""
    names = ["x", "", "scales"] if "scales" in inputs else ["x", "", "", "sizes"]
    node = onnx.helper.make_node("Resize", names, ["y"], **attributes)
    kept = [onnx.numpy_helper.from_array(value, name) for name, value in inputs.items()]
    given = onnx.helper.make_tensor_value_info("x", onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    made = onnx.helper.make_empty_tensor_value_info("y")
    graph = onnx.helper.make_graph([node], "g", [given], [made], kept)
    return onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=8
    ).SerializeToString()


def check(x: np.ndarray, inputs: Inputs, **attributes: Any) -> None:
    """Compare with ONNX Runtime."""
    runtime = pytest.importorskip("onnxruntime")
    content = model_of(x, inputs, **attributes)
    content_with_shape = onnx.shape_inference.infer_shapes(onnx.load_from_string(content)).SerializeToString()
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    (expected,) = runtime.InferenceSession(content_with_shape, options).run(None, {"x": x})
    (found,) = interpret(load_onnx(content), "main", [x])
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)


def drawn(rng: Generator) -> tuple[np.ndarray, Inputs]:
    """An image, and another size for its rows and columns."""
    height, width = (int(n) for n in rng.integers(1, 12, 2))
    x = rng.uniform(-1, 1, (2, 3, height, width)).astype("f4")
    if rng.random() < 0.5:
        sizes = rng.integers(1, 25, 2)
        return x, {"sizes": np.array([2, 3, *sizes])}
    # Numbers on a grid of quarters, and any others; at least one element is left.
    scales = np.maximum(
        rng.choice([rng.uniform(0.3, 3, 2), rng.integers(1, 13, 2) / 4]), 1.01 / np.array([height, width])
    )
    return x, {"scales": np.array([1, 1, *scales], "f4")}


@pytest.mark.parametrize("places", PLACES)
def test_linear_interpolation_is_that_of_onnx_runtime(places):
    rng = default_rng([1, len(places)])
    for _ in range(40):
        x, inputs = drawn(rng)
        check(x, inputs, mode="linear", coordinate_transformation_mode=places)


# Of half_pixel_symmetric, ONNX Runtime rounds other steps to single precision, and whole places jump there.
JUMPS = {("half_pixel_symmetric", "floor"), ("half_pixel_symmetric", "ceil")}


@pytest.mark.parametrize(("places", "rounded"), sorted(set(product(PLACES, ROUNDED)) - JUMPS))
def test_nearest_elements_are_those_of_onnx_runtime(places, rounded):
    rng = default_rng([2, len(places), len(rounded)])
    for _ in range(20):
        x, inputs = drawn(rng)
        check(x, inputs, mode="nearest", coordinate_transformation_mode=places, nearest_mode=rounded)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_the_aspect_ratio_can_be_kept(policy):
    x = default_rng(3).uniform(-1, 1, (1, 2, 5, 9)).astype("f4")
    for sizes in ([10, 9], [4, 20], [3, 3]):
        options = {"axes": [2, 3], "keep_aspect_ratio_policy": policy}
        check(x, {"sizes": np.array(sizes)}, mode="linear", **options)


@pytest.mark.parametrize(
    ("x", "inputs", "attributes", "message"),
    [
        ((1, 1, 4, 4), {"sizes": [1, 1, 8, 8]}, {"mode": "cubic"}, "its mode is 'cubic'; nearest and"),
        ((1, 1, 4, 4), {"sizes": [1, 1, 8, 8]}, {"coordinate_transformation_mode": "tf_crop_and_resize"}, "supported"),
        ((1, 1, 4, 4), {"sizes": [1, 1, 8, 8]}, {"nearest_mode": "up"}, "its nearest_mode is 'up'; supported are"),
        ((1, 1, 4, 4), {"sizes": [1, 1, 2, 8]}, {"mode": "linear", "antialias": 1}, "images that become smaller"),
        ((1, 1, 4, 4), {"sizes": [1, 1, 8]}, {}, "must be constants, one for each of 4 axes"),
        ((1, 1, 4, 4), {"sizes": [1, 1, 0, 8]}, {}, "an axis of 4 elements cannot become one of 0"),
        ((1, 1, 0, 4), {"sizes": [1, 1, 3, 8]}, {}, "an axis of 0 elements cannot become one of 3"),
        ((1, 1, 4, 4), {"sizes": [1, 1, 1 << 40, 8]}, {}, "cannot become one of 1099511627776"),
        ((1, 1, 4, 4), {"scales": [1, 1, -1, 2]}, {}, "must be positive numbers"),
        ((1, 1, 4, 4), {"scales": [1, 1, np.nan, 2]}, {}, "must be positive numbers"),
        ((1, 1, 4, 4), {"scales": [1, 1, 3e38, 2]}, {}, "must be positive numbers up to 65536"),
        ((1, 1, 4, 4), {"scales": [1, 1, 6e4, 2]}, {}, "cannot become one of 240000"),
        ((1, 1, 4, 4), {"sizes": [9, 9]}, {"axes": [1.5, 2.5]}, "do not fit"),
        ((1, 1, 4, 4), {"sizes": [9]}, {"axes": [7]}, "its axis 7 is not one of 4"),
        ((1, 1, 4, 4), {"sizes": [9, 9]}, {"axes": [2, 2]}, "name one twice"),
        ((1, 1, 4, 4), {"sizes": [9, 9]}, {"axes": [2, 3], "keep_aspect_ratio_policy": "no"}, "there are stretch"),
    ],
)  # fmt: skip
def test_what_cannot_be_resized_is_said(x, inputs, attributes, message):
    arrays = {name: np.array(value, "f4" if name == "scales" else "i8") for name, value in inputs.items()}
    with pytest.raises(GraphImportError, match=message):
        load_onnx(model_of(np.zeros(x, "f4"), arrays, **attributes))


def test_integers_are_not_interpolated():
    with pytest.raises(GraphImportError, match="elements int32 are not interpolated; cast them to float32"):
        load_onnx(model_of(np.zeros((1, 1, 4, 4), "i4"), {"sizes": np.array([1, 1, 8, 8])}, mode="linear"))
