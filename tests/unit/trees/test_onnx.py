"""Ensembles of trees in ONNX predict what a plain walk predicts, and what ONNX Runtime predicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from helpers.damaged_graphs import damage_bytes
from helpers.damaged_models import damage_field

import shine.tensor
import shine.trees
from shine.base.errors import GraphImportError
from shine.faces.cli.commands import shine as group
from shine.tensor.onnx.files import messages
from shine.trees.compiled import compile as compiled

onnx = pytest.importorskip("onnx")

FEATURES = 4
MODES = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
}
ML = "ai.onnx.ml"


def attributes(modes: list[str], outputs: int, seed: int = 0, positive: bool = False, trees: int = 5) -> dict[str, Any]:
    """Random trees, in no order, with nodes in no order, except that roots are first."""
    rng = np.random.default_rng(seed)
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    found: dict[str, Any] = {f"nodes_{name}": [] for name in (*names, "missing_value_tracks_true")}
    found |= {f"leaf_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree in rng.permutation(trees) * 3:
        count = int(rng.integers(0, 9))
        ids = rng.permutation(2 * count + 1).tolist()
        rows, leaves, following = {ids[0]: None}, [ids[0]], ids[1:]
        for _ in range(count):
            split = leaves.pop(int(rng.integers(len(leaves))))
            pair = [following.pop(), following.pop()]
            rows[split] = pair
            rows |= dict.fromkeys(pair)
            leaves += pair
        for place, (node, children) in enumerate(rows.items()):
            true, false = children or (0, 0)
            values = (tree, node, rng.integers(FEATURES), np.float32(rng.integers(-3, 4) / 10),
                      modes[place % len(modes)] if children else "LEAF", true, false)  # fmt: skip
            for name, value in zip(names, values, strict=True):
                found[f"nodes_{name}"].append(value.item() if isinstance(value, np.generic) else value)
            found["nodes_missing_value_tracks_true"].append(int(rng.integers(2)))
            for column in range(outputs) if not children else ():
                weight = rng.random() / 5 if positive else rng.normal()
                for name, value in zip(
                    ("treeids", "nodeids", "ids", "weights"), (tree, node, column, weight), strict=True
                ):
                    found[f"leaf_{name}"].append(float(np.float32(value)) if name == "weights" else int(value))
    return found


def model(kind: str, given: dict[str, Any], double: bool = False, version: int = 1, **more: Any) -> bytes:
    """A model of one node, whose outputs are the model's."""
    leaf = "target" if kind == "Regressor" else "class"
    given = {name.replace("leaf_", f"{leaf}_"): value for name, value in given.items()} | more
    if double:
        for name in ("nodes_values", f"{leaf}_weights"):
            given[f"{name}_as_tensor"] = onnx.numpy_helper.from_array(np.array(given.pop(name), "f8"))
    elements = onnx.TensorProto.DOUBLE if double else onnx.TensorProto.FLOAT
    outputs = ["y"] if leaf == "target" else ["label", "y"]
    node = onnx.helper.make_node(f"TreeEnsemble{kind}", ["x"], outputs, domain=ML, **given)
    label = onnx.TensorProto.STRING if "classlabels_strings" in given else onnx.TensorProto.INT64
    shown = [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    if leaf == "class":
        shown.insert(0, onnx.helper.make_tensor_value_info("label", label, None))
    graph = onnx.helper.make_graph(
        [node], "g", [onnx.helper.make_tensor_value_info("x", elements, [None, FEATURES])], shown
    )
    opsets = [onnx.helper.make_opsetid("", 9), onnx.helper.make_opsetid(ML, version)]
    data: bytes = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=6).SerializeToString()
    return data


def rows() -> np.ndarray:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(200, FEATURES)).astype("f4") / 3
    X[:60] = (rng.integers(-4, 5, (60, FEATURES)) / 10).astype("f4")
    X[60:110][rng.random((50, FEATURES)) < 0.4] = np.nan
    X[110:115], X[115:120] = np.inf, -np.inf
    return X


def sums(given: dict[str, Any], X: np.ndarray, outputs: int) -> np.ndarray:
    """The sums of the trees, walked one row and one node at a time."""
    nodes = list(zip(*(given[f"nodes_{name}"] for name in (
        "treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids",
        "missing_value_tracks_true",
    )), strict=True))  # fmt: skip
    table = {node[:2]: node[2:] for node in nodes}
    weights: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for tree, node, column, weight in zip(
        *(given[f"leaf_{n}"] for n in ("treeids", "nodeids", "ids", "weights")), strict=True
    ):
        weights.setdefault((tree, node), []).append((column, weight))
    roots: dict[int, int] = {}
    for tree, node, *_ in nodes:
        roots.setdefault(tree, node)
    found = np.zeros((len(X), outputs))
    for row, x in enumerate(X):
        for tree, root in roots.items():
            node = root
            while table[tree, node][0] != "LEAF":
                mode, feature, value, true, false, track = table[tree, node]
                goes = track if np.isnan(x[feature]) else MODES[mode](x[feature], type(x[feature])(value))
                node = true if goes else false
            for column, weight in weights.get((tree, node), []):
                found[row, column] += weight
    return found


def runtime(content: bytes, X: np.ndarray) -> list[Any]:
    made: list[Any] = pytest.importorskip("onnxruntime").InferenceSession(content).run(None, {"x": X})
    return made


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("double", [False, True])
def test_each_comparison_sends_rows_and_missing_values_where_it_says(mode, double):
    given = attributes([mode], 1, seed=len(mode))
    X = rows().astype("f8" if double else "f4")
    found = compiled(model("Regressor", given, double, 3)).predict(X)
    assert np.allclose(found, sums(given, X, 1)[:, 0], rtol=1e-12, atol=1e-12)


def test_numbers_are_rounded_to_float32_before_they_are_compared():
    given = attributes(["BRANCH_LEQ", "BRANCH_LT"], 1, seed=3)
    X = rows().astype("f8") + np.random.default_rng(0).choice([-1e-12, 1e-12], (200, FEATURES))
    content = model("Regressor", given)
    assert np.array_equal(compiled(content).predict(X), compiled(content).predict(X.astype("f4")))


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE"])
def test_targets_have_bases_and_are_added_or_averaged(aggregate):
    given = attributes(list(MODES), 3)
    X = rows()
    made = compiled(model("Regressor", given, n_targets=3, aggregate_function=aggregate, base_values=[0.5, -1.0, 2.0]))
    expected = sums(given, X, 3) / (5 if aggregate == "AVERAGE" else 1) + [0.5, -1.0, 2.0]
    assert np.allclose(made.predict(X), expected, rtol=1e-12, atol=1e-12)


def test_one_score_of_two_classes_is_a_probability_if_no_weight_is_negative():
    given = attributes(["BRANCH_LEQ"], 1, positive=True)
    X = rows()
    made = compiled(model("Classifier", given, classlabels_strings=["no", "yes"]))
    second = sums(given, X, 1)[:, 0]
    assert np.allclose(made.predict_proba(X), np.stack([1 - second, second], axis=1), atol=1e-12)
    assert made.predict(X).tolist() == np.where(second > 0.5, "yes", "no").tolist()


@pytest.mark.slow
def test_scores_of_classes_become_probabilities():
    X = rows()
    three = attributes(["BRANCH_LEQ"], 3)
    made = compiled(model("Classifier", three, classlabels_int64s=[7, 3, 5], post_transform="SOFTMAX"))
    powers = np.exp(sums(three, X, 3))
    assert np.allclose(made.predict_proba(X), powers / powers.sum(axis=1, keepdims=True), atol=1e-12)
    assert np.array_equal(made.predict(X), np.array([7, 3, 5])[powers.argmax(axis=1)])
    one = attributes(["BRANCH_LEQ"], 1)
    two = compiled(model("Classifier", one, classlabels_int64s=[0, 1], post_transform="LOGISTIC", base_values=[0.25]))
    assert np.allclose(two.predict_proba(X)[:, 1], 1 / (1 + np.exp(-0.25 - sums(one, X, 1)[:, 0])), atol=1e-12)
    assert np.allclose(two.decision_function(X), 0.25 + sums(one, X, 1)[:, 0], atol=1e-12)


CLASSIFIERS: dict[str, tuple[int, bool, dict[str, Any]]] = {
    "probability": (1, True, {"classlabels_int64s": [4, 9]}),
    "score": (1, False, {"classlabels_int64s": [4, 9]}),
    "score and base": (1, False, {"classlabels_int64s": [4, 9], "base_values": [0.3]}),
    "logistic": (1, False, {"classlabels_strings": ["b", "a"], "post_transform": "LOGISTIC"}),
    "logistic and base": (
        1,
        False,
        {"classlabels_int64s": [0, 1], "post_transform": "LOGISTIC", "base_values": [-0.3]},
    ),
    "logistic of positive": (1, True, {"classlabels_int64s": [0, 1], "post_transform": "LOGISTIC"}),
    "positive and base": (1, True, {"classlabels_int64s": [0, 1], "base_values": [0.1]}),
    "three": (3, True, {"classlabels_strings": ["b", "a", "c"]}),
    "softmax": (
        3,
        False,
        {"classlabels_int64s": [5, 0, 1], "post_transform": "SOFTMAX", "base_values": [0.1, 0.0, 1.0]},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes_and_their_scores_are_those_of_onnx_runtime(name):
    outputs, positive, more = CLASSIFIERS[name]
    content = model("Classifier", attributes(["BRANCH_LEQ"], outputs, positive=positive), **more)
    made, X = compiled(content), rows()
    labels, scores = runtime(content, X)
    assert np.allclose(made.predict_proba(X), scores, atol=1e-6)
    assert np.array_equal(made.predict(X), labels)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("double", "aggregate"), [(False, "SUM"), (True, "AVERAGE")])
def test_targets_are_those_of_onnx_runtime(mode, double, aggregate):
    given = attributes([mode, *(["BRANCH_LEQ"] if aggregate == "SUM" else [])], 2, seed=5)
    more = {"aggregate_function": aggregate, "base_values": [1.0, 0.5]}
    content, X = model("Regressor", given, double, 3, n_targets=2, **more), rows().astype("f8" if double else "f4")
    assert np.allclose(compiled(content).predict(X), runtime(content, X)[0], atol=1e-6)


def wrapped(content: bytes, before: list[Any], after: list[Any], outputs: list[str]) -> Any:
    """A model with nodes around its ensemble, and other outputs."""
    made = onnx.ModelProto.FromString(content)
    ensemble = made.graph.node[0]
    ensemble.input[0] = before[-1].output[0] if before else "x"
    del made.graph.node[:]
    made.graph.node.extend([*before, ensemble, *after])
    del made.graph.output[:]
    made.graph.output.extend(onnx.helper.make_tensor_value_info(name, 1, None) for name in outputs)
    return made


def three_classes(**more: Any) -> bytes:
    return model("Classifier", attributes(["BRANCH_LEQ"], 3), classlabels_int64s=[5, 0, 1], **more)


def test_what_skl2onnx_writes_around_trees_is_read(tmp_path: Path):
    make = onnx.helper.make_node
    after = [
        make("Cast", ["label"], ["output_label"], to=onnx.TensorProto.STRING),
        make("ZipMap", ["y"], ["output_probability"], domain=ML, classlabels_int64s=[5, 0, 1]),
    ]
    before = [make("Cast", ["x"], ["c"], to=onnx.TensorProto.FLOAT), make("Identity", ["c"], ["d"])]
    made = wrapped(three_classes(), before, after, ["output_label", "output_probability"])
    made.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    (tmp_path / "forest.onnx").write_bytes(made.SerializeToString())
    plain, X = compiled(three_classes()), rows()
    for source in (made, made.SerializeToString(), tmp_path / "forest.onnx", str(tmp_path / "forest.onnx")):
        found = compiled(source)
        assert found.predict(X).tolist() == plain.predict(X).astype(str).tolist()
        assert np.array_equal(found.predict_proba(X.astype("f8")), plain.predict_proba(X))


def changed(given: dict[str, Any], **more: Any) -> bytes:
    return model("Regressor", given | more)


def refused() -> dict[str, tuple[Any, str]]:
    """Models, and what is wrong with them."""
    given = attributes(["BRANCH_LEQ"], 1)
    leaf, split = given["nodes_modes"].index("LEAF"), given["nodes_modes"].index("BRANCH_LEQ")
    make = onnx.helper.make_node

    def with_item(name: str, place: int, value: Any) -> dict[str, Any]:
        return given | {name: [*given[name][:place], value, *given[name][place + 1 :]]}

    both = attributes(["BRANCH_LEQ"], 2)
    return {
        "mode": (changed(with_item("nodes_modes", split, "BRANCH_EQ")), "nodes of mode 'BRANCH_EQ' are not supported"),
        "length": (changed(given, nodes_values=[1.0]), "its attributes differ in length: .*nodes_values 1"),
        "weights": (changed(given, leaf_weights=[1.0]), "its attributes differ in length: .*target_weights 1"),
        "child": (changed(with_item("nodes_truenodeids", split, 999)), "name a node that a tree lacks"),
        "loop": (
            changed(with_item("nodes_truenodeids", split, given["nodes_nodeids"][split])),
            "roots, and not one|circle",
        ),
        "tree": (changed(with_item("leaf_treeids", 0, 77)), "its weights name a tree that has no nodes"),
        "target": (changed(with_item("leaf_ids", 0, 4)), "its attribute target_ids names another than the 1"),
        "feature": (changed(with_item("nodes_featureids", split, 9)), "compares feature 9; there are 4"),
        "negative": (changed(with_item("nodes_featureids", split, -9)), "has a negative feature"),
        "threshold": (changed(with_item("nodes_values", split, np.nan)), "has a threshold that is NaN"),
        "type": (
            changed(with_item("nodes_featureids", leaf, 0) | {"nodes_treeids": [1.0]}),
            "nodes_treeids is no list of int",
        ),
        "targets": (changed(given, n_targets=1 << 40), "it has 1099511627776 targets or classes"),
        "aggregate": (changed(given, aggregate_function="MIN"), "its aggregate_function MIN is not supported"),
        "transform": (changed(given, post_transform="PROBIT"), "the post_transform PROBIT of a regressor"),
        "base": (changed(given, base_values=[1.0, 2.0]), "base_values has 2 numbers, and not 1"),
        "logistic": (three_classes(post_transform="LOGISTIC"), "the post_transform LOGISTIC of 3 scores"),
        "both": (model("Classifier", both, classlabels_int64s=[0, 1]), "its weights score 2 of 2 classes"),
        "scaler": (
            wrapped(changed(given), [make("Scaler", ["x"], ["s"], domain=ML)], [], ["y"]).SerializeToString(),
            r"its node '' \(Scaler\) is not read; beside an ensemble of trees, Cast, Identity and ZipMap are",
        ),
        "integers": (
            wrapped(changed(given), [make("Cast", ["x"], ["s"], to=7)], [], ["y"]).SerializeToString(),
            "makes features int64, and not floats",
        ),
        "empty": (b"", "it is no ONNX model"),
    }


@pytest.mark.parametrize("name", refused())
def test_what_cannot_be_read_is_told_in_one_line(name):
    content, message = refused()[name]
    with pytest.raises(GraphImportError, match=message) as error:
        compiled(content)
    assert "\n" not in str(error.value)


def test_other_ensembles_and_models_without_trees_are_refused(tmp_path: Path):
    make = onnx.helper.make_node
    for node, message in (
        (make("TreeEnsemble", ["x"], ["y"], domain=ML), "the operator TreeEnsemble is not supported; export"),
        (make("Neg", ["x"], ["y"]), "it has 0 ensembles of trees"),
    ):
        made = onnx.ModelProto.FromString(changed(attributes(["BRANCH_LEQ"], 1)))
        made.graph.node[0].CopyFrom(node)
        with pytest.raises(GraphImportError, match=message):
            compiled(made)
    with pytest.raises(GraphImportError, match="there is no such file"):
        compiled(tmp_path / "none.onnx")


def test_files_for_c_are_made_of_a_model(tmp_path: Path):
    (tmp_path / "forest.onnx").write_bytes(three_classes())
    (header,) = shine.trees.build(tmp_path / "forest.onnx", tmp_path, "vote", "header")
    assert "the probability of class 5" in header.read_text()


def test_the_command_line_compiles_a_model(tmp_path: Path):
    (tmp_path / "forest.onnx").write_bytes(three_classes())
    (tmp_path / "bad.onnx").write_bytes(three_classes(post_transform="LOGISTIC"))
    run = CliRunner()
    out = run.invoke(group, ["compile", str(tmp_path / "forest.onnx"), "--out", str(tmp_path), "--emit", "header"])
    assert (out.exit_code, out.output.strip()) == (0, str(tmp_path / "forest.h"))
    out = run.invoke(group, ["compile", str(tmp_path / "bad.onnx"), "--out", str(tmp_path)])
    assert out.exit_code == 2 and "the post_transform LOGISTIC of 3 scores is not supported" in out.output


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_damaged_models_are_read_or_refused(part):
    rng = np.random.default_rng(part)
    contents = [
        three_classes(),
        changed(attributes(list(MODES), 1)),
        changed(attributes(["BRANCH_LT"], 2), n_targets=2),
    ]
    X = rows()
    for _ in range(1500 if part else 150):
        content, other = (contents[int(i)] for i in rng.integers(len(contents), size=2))
        if rng.random() < 0.4:
            content = damage_bytes(content, other, rng)
        else:
            message = messages()["ModelProto"].FromString(content)
            for _ in range(rng.geometric(0.5)):
                damage_field(message, rng)
            content = message.SerializeToString()
        try:
            read = compiled(content)
        except GraphImportError as error:
            assert "\n" not in str(error)
            continue
        width = read.n_features_in_
        assert len(read.predict(np.resize(X, (7, width)))) == 7
