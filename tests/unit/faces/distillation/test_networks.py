"""Networks as functions of rows: batches, inputs, layers, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.markers import mostly_slow
from helpers.small_networks import network

from shine.base.errors import DataError, FormError, GraphImportError
from shine.faces.distillation.networks import compiled, network_of
from shine.tensor.loading import load

WEIGHTS = [np.random.default_rng(0).normal(size=(3, 5)), np.random.default_rng(1).normal(size=(6, 2))]
X = np.random.default_rng(2).normal(size=(37, 2))


def expected(rows: np.ndarray, layers: int = 2) -> np.ndarray:
    found = rows
    for place, matrix in enumerate(WEIGHTS[:layers]):
        found = found @ matrix[:-1] + matrix[-1]
        found = np.tanh(found) if place + 1 < len(WEIGHTS) else found
    return found


def module(signature: str, body: str) -> str:
    """A module of one function, as text."""
    return f"module @m\nfunc @main: {signature} {{\n{body}\n}}"


@pytest.mark.parametrize("rows", mostly_slow([1, 5, 37, 64], fast=[5]))
def test_a_batch_of_any_size_gives_every_row(rows: int):
    names, found = network_of(network(WEIGHTS, rows), ("a", "b"), None, {}).outputs(X)
    assert names == tuple(f"{names[0][:-2]}_{place}" for place in range(2))
    assert np.allclose(found, expected(X), rtol=1e-12, atol=1e-12)


def test_features_are_rounded_to_what_the_network_reads():
    single = network_of(network(WEIGHTS, 4, "f32"), ("a", "b"), None, {})
    assert (single.rounded(X) == X.astype(np.float32)).all()
    assert np.allclose(single.outputs(single.rounded(X))[1], expected(X), atol=1e-5)


def test_a_layer_is_what_the_network_has_inside():
    whole = network(WEIGHTS, 8)
    layer = next(each.result.name for each in whole.function("main").body if each.operation == "tanh")
    assert np.allclose(network_of(whole, ("a", "b"), layer, {}).outputs(X)[1], expected(X, 1), atol=1e-12)
    with pytest.raises(FormError, match=f"there is no layer 'nothing'; there are .*{layer}"):
        network_of(whole, ("a", "b"), "nothing", {})


DIFFERENCE = module(
    "(<4 x f64>, <4 x f64>) -> <4 x f64>",
    "'entry(%x: <4 x f64>, %y: <4 x f64>):\n    %z = sub %x: <4 x f64>, %y: <4 x f64>\n    return %z: <4 x f64>",
)
SUM = module(
    "(<2 x f64>) -> f64",
    "'entry(%x: <2 x f64>):\n    %z = reduce_sum %x: <2 x f64> {axes = [0], keep = false}\n    return %z: f64",
)


@pytest.mark.parametrize(("names", "sign"), [(("x", "y"), 1), (("y", "x"), -1), (("a", "b"), 1)])
def test_inputs_take_features_by_name_or_in_order(names: tuple[str, ...], sign: int):
    found = network_of(DIFFERENCE, names, None, {}).outputs(X)[1]
    assert np.allclose(found[:, 0], sign * (X[:, 0] - X[:, 1]))


def test_names_that_are_inputs_in_part_are_refused():
    with pytest.raises(GraphImportError, match="the inputs of the network are x, y, and the features x, z; name all"):
        network_of(DIFFERENCE, ("x", "z"), None, {})


def written(inputs: str, results: str, parameters: str, body: str, returned: str) -> str:
    return module(f"({inputs}) -> {results}", f"'entry({parameters}):\n{body}    return {returned}")


def same(kind: str) -> str:
    """A module that returns its argument."""
    return written(kind, kind, f"%x: {kind}", "", f"%x: {kind}")


FOUR, LESS = "<4 x 2 x f64>", "<4 x 2 x bool>"
COMPARED = written(FOUR, LESS, f"%x: {FOUR}", f"    %z = lt %x: {FOUR}, %x: {FOUR}\n", f"%z: {LESS}")
TURNED = written(
    FOUR,
    "<2 x 4 x f64>",
    f"%x: {FOUR}",
    f"    %z = transpose %x: {FOUR} {{permutation = [1, 0]}}\n",
    "%z: <2 x 4 x f64>",
)
DEEP = written(
    "<2 x f64>", "<1 x 2 x 1 x f64>", "%x: <2 x f64>", "    %z = reshape %x: <2 x f64> {shape = [1, 2, 1]}\n",
    "%z: <1 x 2 x 1 x f64>",
)  # fmt: skip
UNEQUAL = written(
    "<3 x 1 x f64>, <4 x 1 x f64>", "<3 x 1 x f64>", "%x: <3 x 1 x f64>, %y: <4 x 1 x f64>", "", "%x: <3 x 1 x f64>"
)


@pytest.mark.parametrize(
    ("text", "features", "message"),
    [
        (DIFFERENCE, 3, "8 features, or 2 of a batch, and 3 are given"),
        (same(FOUR), 3, "2 features, and 3 are given"),
        (same("<2 x 2 x 2 x f64>"), 2, "inputs of one axis or two"),
        (same("<0 x 2 x f64>"), 2, "has no rows"),
        (same("<2 x i32>"), 1, "is not of floating-point numbers"),
        (COMPARED, 2, "is not of floating-point numbers"),
        (TURNED, 2, "4 numbers, or 4 rows of numbers would be"),
        (DEEP, 2, "cannot be distilled"),
        (UNEQUAL, 2, "numbers of rows differ"),
    ],
)
def test_what_cannot_be_distilled_is_refused(text: str, features: int, message: str):
    with pytest.raises(DataError, match=message):
        compiled(load(text), [f"x{place}" for place in range(features)])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X: np.ones(len(X), int), "elements of int64"),
        (lambda X: np.ones(3), r"the shape \[3\] for 37 rows"),
        (lambda X: np.ones((len(X), 2, 2)), r"the shape \[37, 2, 2\]"),
        (lambda X: [["a"]] * len(X), "elements of"),
    ],
)
def test_functions_give_real_numbers_for_each_row(function, message: str):
    with pytest.raises(DataError, match=message):
        network_of(function, ("a", "b"), None, {}).outputs(X)


def test_what_is_no_network_is_told():
    with pytest.raises(TypeError, match="3 is no network"):
        network_of(3, ("a",), None, {})
    with pytest.raises(TypeError, match="no layers that can be named"):
        network_of(np.sin, ("a",), "hidden", {})
    with pytest.raises(TypeError, match="has no option 'shapes'"):
        network_of(load(SUM), ("a", "b"), None, {"shapes": {}})
