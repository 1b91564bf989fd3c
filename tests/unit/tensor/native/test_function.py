"""Tensor programs as functions of arrays: signature, gradients, texts, copies in other processes."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import shine.tensor
from shine.base.errors import CompilationError, FormError

LAYER = """module @layer

label %x = "input:0"

func @foo: (<2 x 3 x f32>, <3 x 4 x f32>, <4 x f32>) -> <2 x 4 x f32> {
'entry(%x: <2 x 3 x f32>, %w: <3 x 4 x f32>, %b: <4 x f32>):
    %v1 = dot %x: <2 x 3 x f32>, %w: <3 x 4 x f32>
    %v2 = add %v1: <2 x 4 x f32>, %b: <4 x f32>
    return %v2: <2 x 4 x f32>
}

[gradient @foo wrt 1, 2 keeping 0 seedable]
func @foo_grad: (<2 x 3 x f32>, <3 x 4 x f32>, <4 x f32>, <2 x 4 x f32>) -> (<3 x 4 x f32>, <4 x f32>, <2 x 4 x f32>)

func @energy: (<5 x f64>) -> f64 {
'entry(%p: <5 x f64>):
    %square = mul %p: <5 x f64>, %p: <5 x f64>
    %cube = mul %square: <5 x f64>, %p: <5 x f64>
    %total = reduce_sum %cube: <5 x f64> {axes = [0], keep = false}
    return %total: f64
}
"""


@pytest.fixture(scope="module")
def layer():
    return shine.tensor.load(LAYER)


def arrays():
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape).astype("float32") for shape in ((2, 3), (3, 4), (4,)))


def test_it_computes_what_its_text_says(layer):
    x, w, b = arrays()
    np.testing.assert_allclose(layer(x, w, b), x @ w + b, rtol=1e-5)


def test_the_signature_has_labels_and_types(layer):
    assert layer.signature == "(input:0: <2 x 3 x f32>, w: <3 x 4 x f32>, b: <4 x f32>) -> v2: <2 x 4 x f32>"
    assert repr(layer) == f"<TensorFunction layer{layer.signature}>"
    assert [(each.name, each.label) for each in layer.parameters] == [("x", "input:0"), ("w", "w"), ("b", "b")]


def test_another_function_is_chosen_by_name(layer):
    assert layer.function == "foo"
    energy = shine.tensor.load(LAYER, "energy")
    assert energy([1, 2, 3, 0, 0]) == 36.0 and isinstance(energy([1, 2, 3, 0, 0]), np.float64)
    with pytest.raises(FormError, match="there is no function 'bar'; the module layer has foo, foo_grad, energy"):
        shine.tensor.load(LAYER, "bar")
    with pytest.raises(FormError, match="there is no function 'main'; the module empty has none"):
        shine.tensor.load("module @empty\n")


def test_a_declared_gradient_is_a_function(layer):
    x, w, b = arrays()
    seed = np.ones((2, 4), "float32")
    found = shine.tensor.load(LAYER, "foo_grad")(x, w, b, seed)
    again = layer.gradient(["w", "b"], keeping=[0], seedable=True)(x, w, b, seed)
    for one, other, expected in zip(found, again, (x.T @ seed, seed.sum(0), x @ w + b), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, expected, rtol=1e-5)


def test_gradients_have_gradients():
    energy = shine.tensor.load(LAYER, "energy")
    first = energy.gradient()
    p = np.array([1.0, -2, 3, 0, 0.5])
    np.testing.assert_allclose(first(p), 3 * p * p)
    second = first.gradient("p")
    np.testing.assert_allclose(second(p, np.ones(5)), 6 * p)


def test_what_has_no_gradient_is_refused(layer):
    with pytest.raises(FormError, match="there is no 'z'; there are input:0, w, b"):
        layer.gradient("z")
    with pytest.raises(FormError, match="wrt has 7, but the parameters of @foo are 0, 1, 2"):
        layer.gradient(7)
    for options in ({"wrt": 1.5}, {"wrt": [1.5]}, {"keeping": 1.5}, {"memory": "8"}):
        with pytest.raises(TypeError, match=next(iter(options))):
            layer.gradient(**options)


def test_it_travels_to_other_processes(layer):
    copy = pickle.loads(pickle.dumps(layer))
    assert repr(copy) == repr(layer)
    np.testing.assert_array_equal(copy(*arrays()), layer(*arrays()))


@pytest.mark.slow
def test_threads_may_call_it_the_first_time_at_once():
    fresh = shine.tensor.load(LAYER)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: fresh(*arrays()), range(8)))
    assert all(np.array_equal(result, results[0]) for result in results)


def test_names_and_targets_are_checked(layer):
    with pytest.raises(ValueError, match="is not free"):
        layer.code("int")
    with pytest.raises(ValueError, match="is no name for a class"):
        layer.code(cpp_class="a-b")
    with pytest.raises(CompilationError, match="a GPU has no classes"):
        layer.code(target="nvptx64-nvidia-cuda", cpp_class="Layer")
