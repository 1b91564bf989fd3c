"""From an ONNX model to an ensemble: `TreeEnsembleRegressor` or `TreeEnsembleClassifier`, and the nodes around it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from shine.base.errors import FormError, GraphImportError, placed
from shine.base.typing import AnyArray, Floats, Indices
from shine.tensor.onnx.files import array_of, damaged, read_model
from shine.tensor.onnx.node import attributes_of
from shine.trees.form import Ensemble, Tree, check, levels
from shine.trees.reading import Reading

T = TypeVar("T", int, str)

MOST_COLUMNS = 1 << 20
"""Most features, and most targets or classes."""

MOST_VALUES = 1 << 24
"""Most values of leaves that may be far more than the weights in the file."""

_REGRESSOR, _CLASSIFIER = "TreeEnsembleRegressor", "TreeEnsembleClassifier"

# Names of the types of elements, by their numbers in onnx.proto.
_ELEMENTS = {
    1: "float32",
    2: "uint8",
    3: "int8",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "str",
    9: "bool",
    11: "float64",
}

_MODES = {
    "BRANCH_LEQ": (False, False),
    "BRANCH_LT": (True, False),
    "BRANCH_GT": (False, True),
    "BRANCH_GTE": (True, True),
}
"""Whether a node compares with the number before its threshold, and whether its children change places."""


def read_onnx(source: str | os.PathLike[str] | bytes) -> Reading:
    """The reading of an ONNX model that is an ensemble of trees, as skl2onnx writes it.

    A `GraphImportError` if it cannot be read, or is something else; the message names the operator or the attribute.
    """
    where = "the model" if isinstance(source, bytes) else os.fspath(source)
    # Numbers and names of a damaged file, in a place where nothing expects them.
    errors = TypeError, ValueError, AttributeError, ArithmeticError, MemoryError
    with placed(where, GraphImportError, FormError), damaged("its attributes or names are damaged", *errors):
        model, folder = read_model(source)
        return _reading(model.graph, folder)


def is_ensemble(source: str | os.PathLike[str] | bytes) -> bool:
    """Whether it is an ONNX model with an ensemble of trees; what cannot be read is none."""
    try:
        model, _ = read_model(source)
    except GraphImportError:
        return False
    return bool(_ensembles(model.graph))


def _ensembles(graph: Any) -> list[Any]:
    return [node for node in graph.node if node.op_type.startswith("TreeEnsemble")]


def _reading(graph: Any, folder: Path | None) -> Reading:
    nodes = _ensembles(graph)
    if len(nodes) != 1:
        raise GraphImportError(f"it has {len(nodes)} ensembles of trees; a model of one ensemble can be compiled")
    (node,) = nodes
    if node.op_type not in (_REGRESSOR, _CLASSIFIER):
        raise GraphImportError(
            f"the operator {node.op_type} is not supported; export {_REGRESSOR} or {_CLASSIFIER} (ai.onnx.ml 3)"
        )
    attributes = _Attributes(attributes_of(node), folder)
    labels = attributes.labels() if node.op_type == _CLASSIFIER else None
    n_features, rounding, classes = _around(graph, node, labels)
    count = attributes.value("n_targets", 1) if labels is None else len(labels)
    if not 1 <= count <= MOST_COLUMNS:
        raise GraphImportError(f"it has {count} targets or classes; 1 to {MOST_COLUMNS} are read")
    sums = _regression(attributes, count) if labels is None else _classification(attributes, count)
    trees = tuple(_trees(attributes, sums, rounding))
    if not trees:
        raise GraphImportError("its ensemble has no trees")
    divisor = float(len(trees)) if sums.is_mean else 1.0
    n_features = n_features or 1 + max(int(tree.feature.max()) for tree in trees)
    if not 0 <= n_features <= MOST_COLUMNS:
        raise GraphImportError(f"it has {n_features} features; at most {MOST_COLUMNS} are read")
    # ONNX adds the base after the division.
    ensemble = Ensemble(trees, n_features, sums.base * divisor, divisor, rounding, sums.link)
    check(ensemble)
    for place, tree in enumerate(trees):
        if sum(map(len, levels(tree))) != len(tree.feature):
            raise GraphImportError(f"tree {place} has nodes in a circle")
    return Reading(
        name=node.op_type,
        ensemble=ensemble,
        classes=() if classes is None else (classes,),
        threshold=sums.threshold,
        is_boosted=sums.link != "identity",
        n_targets=count if labels is None else 1,
        allows_nan=True,
        allows_infinite=True,
        feature_names=(),
        categories={},
    )


@dataclass(frozen=True)
class _Attributes:
    """Attributes of the ensemble, and the folder of tensors in files."""

    found: dict[str, Any]
    folder: Path | None

    def value(self, name: str, default: T) -> T:
        found = self.found.get(name, default)
        if not isinstance(found, type(default)):
            raise GraphImportError(f"its attribute {name} is no {'integer' if isinstance(default, int) else 'text'}")
        return found

    def listed(self, name: str, kind: type) -> tuple[Any, ...]:
        found = self.found.get(name, ())
        if not isinstance(found, tuple) or not all(isinstance(each, kind) for each in found):
            raise GraphImportError(f"its attribute {name} is no list of {kind.__name__}")
        return found

    def integers(self, name: str) -> Indices:
        return np.array(self.listed(name, int), np.int64)

    def numbers(self, name: str) -> Floats:
        """Floats, or a tensor of them in the attribute of doubles."""
        tensor = self.found.get(f"{name}_as_tensor")
        if tensor is None:
            return np.array(self.listed(name, float), np.float64)
        return array_of(tensor, self.folder).reshape(-1).astype(np.float64)

    def labels(self) -> AnyArray:
        texts, numbers = self.listed("classlabels_strings", str), self.integers("classlabels_int64s")
        return np.array(texts) if texts else numbers

    def same_lengths(self, **arrays: Any) -> None:
        """Raise if arrays, which belong together, differ in length."""
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise GraphImportError(f"its attributes differ in length: {told}")


def _around(graph: Any, ensemble: Any, labels: AnyArray | None) -> tuple[int, str, AnyArray | None]:
    """Number of features, 0 if it is open; their rounding before the ensemble; the classes as they go out after it."""
    inputs = [value for value in graph.input if value.name not in {tensor.name for tensor in graph.initializer}]
    if len(inputs) != 1:
        raise GraphImportError(f"it has {len(inputs)} inputs; a model of one matrix of features can be compiled")
    kind = inputs[0].type.tensor_type
    if _ELEMENTS.get(kind.elem_type, "str") in ("str", "bool"):
        raise GraphImportError(f"its input {inputs[0].name!r} has no numbers as elements")
    sizes = [size.dim_value for size in kind.shape.dim]
    if kind.HasField("shape") and len(sizes) != 2:
        raise GraphImportError(f"its input {inputs[0].name!r} has {len(sizes)} axes, and not 2")
    before = {inputs[0].name: _ELEMENTS[kind.elem_type]}
    rounding = ""
    outputs: dict[str, AnyArray | None] = {}
    for node in graph.node:
        name = node.input[0] if node.input else ""
        if node.op_type == ensemble.op_type:
            if name not in before:
                raise GraphImportError(f"the input {name!r} of the {node.op_type} is no column of the model's input")
            rounding = "float64" if before[name] == "float64" else "float32"
            outputs |= dict(zip(node.output, [labels, None] if labels is not None else [None], strict=False))
        elif name in before and node.op_type in ("Cast", "Identity"):
            before |= dict.fromkeys(node.output, _features_after(node, before[name]))
        elif name in outputs and node.op_type in ("Cast", "Identity", "ZipMap"):
            outputs |= dict.fromkeys(node.output, _output_after(node, outputs[name]))
        else:
            raise GraphImportError(
                f"its node {node.name!r} ({node.op_type}) is not read; beside an ensemble of trees, "
                "Cast, Identity and ZipMap are"
            )
    values = [outputs[value.name] for value in graph.output if value.name in outputs]
    if not rounding or len(values) != len(graph.output) or not values:
        raise GraphImportError("its outputs are not those of its ensemble of trees")
    classes = next((found for found in values if found is not None), labels)
    return sizes[1] if sizes else 0, rounding, classes


def _target_type(node: Any) -> str:
    return _ELEMENTS.get(attributes_of(node).get("to", 0), "") if node.op_type == "Cast" else ""


def _features_after(node: Any, before: str) -> str:
    """The narrowest numbers that features were: a double that was a float stays one."""
    kind = _target_type(node)
    if node.op_type == "Cast" and kind not in ("float32", "float64"):
        raise GraphImportError(f"its node {node.name!r} makes features {kind or 'another type'}, and not floats")
    return "float32" if "float32" in (kind, before) else kind or before


def _output_after(node: Any, before: AnyArray | None) -> AnyArray | None:
    kind = _target_type(node)
    if before is None:
        if node.op_type == "Cast" and kind not in ("float32", "float64"):
            raise GraphImportError(f"its node {node.name!r} makes scores {kind or 'another type'}, and not floats")
        return None
    no_cast = not kind or (before.dtype.kind == "U" and kind != "str")
    if node.op_type == "ZipMap" or (node.op_type == "Cast" and no_cast):
        raise GraphImportError(f"its node {node.name!r} ({node.op_type}) cannot be applied to classes")
    return before.astype(kind) if kind else before


@dataclass(frozen=True)
class _Sums:
    """Terms of leaves in sums, and what becomes of the sums.

    Parameters
    ----------
    trees, nodes, columns : ndarray of shape (n_weights,), int64
        The leaf and the sum of each weight.
    weights : ndarray of shape (n_weights,), float64
    base : ndarray of shape (n_sums,), float64
    is_mean : bool
    link : str
        One of `shine.trees.form.LINKS`.
    threshold : float
        Sums above it are of the second class, if there is one sum.
    """

    trees: Indices
    nodes: Indices
    columns: Indices
    weights: Floats
    base: Floats
    is_mean: bool = False
    link: str = "identity"
    threshold: float = 0.0


def _weights(attributes: _Attributes, kind: str, count: int) -> tuple[Indices, Indices, Indices, Floats]:
    names = [f"{kind}_{name}" for name in ("treeids", "nodeids", "ids")]
    trees, nodes, columns = (attributes.integers(name) for name in names)
    weights = attributes.numbers(f"{kind}_weights")
    attributes.same_lengths(**dict(zip(names, (trees, nodes, columns), strict=True)), **{f"{kind}_weights": weights})
    if len(columns) and not 0 <= columns.min() <= columns.max() < count:
        raise GraphImportError(f"its attribute {kind}_ids names another than the {count} that there are")
    return trees, nodes, columns, weights


def _base(attributes: _Attributes, count: int) -> Floats:
    base = attributes.numbers("base_values")
    if len(base) not in (0, count):
        raise GraphImportError(f"its attribute base_values has {len(base)} numbers, and not {count}")
    return base if len(base) else np.zeros(count)


def _regression(attributes: _Attributes, count: int) -> _Sums:
    aggregate, transform = attributes.value("aggregate_function", "SUM"), attributes.value("post_transform", "NONE")
    if aggregate not in ("SUM", "AVERAGE"):
        raise GraphImportError(f"its aggregate_function {aggregate} is not supported; SUM and AVERAGE are")
    if transform != "NONE":
        raise GraphImportError(f"the post_transform {transform} of a regressor is not supported; NONE is")
    return _Sums(*_weights(attributes, "target", count), _base(attributes, count), aggregate == "AVERAGE")


def _classification(attributes: _Attributes, count: int) -> _Sums:
    trees, nodes, columns, weights = _weights(attributes, "class", count)
    transform = attributes.value("post_transform", "NONE")
    links = {"NONE": "identity", "SOFTMAX": "softmax"}
    scored = len(np.unique(columns))
    if count == 2 and scored == 1:
        return _binary(attributes, trees, nodes, weights, transform)
    if count == 2 or (scored < count and weights.min(initial=0) < 0):
        # ONNX does not say which class it is then, and its readers differ.
        raise GraphImportError(f"its weights score {scored} of {count} classes; all of three or more, or one of two")
    if transform not in links:
        raise GraphImportError(
            f"the post_transform {transform} of {count} scores is not supported; NONE and SOFTMAX are"
        )
    return _Sums(trees, nodes, columns, weights, _base(attributes, count), link=links[transform])


def _binary(attributes: _Attributes, trees: Indices, nodes: Indices, weights: Floats, transform: str) -> _Sums:
    """One score for two classes."""
    base = float(_base(attributes, 1)[0])
    if transform == "LOGISTIC":
        threshold = 0.5 if weights.min() >= 0 else 0.0
        return _Sums(trees, nodes, np.zeros_like(trees), weights, np.full(1, base), link="expit", threshold=threshold)
    if transform != "NONE":
        raise GraphImportError(f"the post_transform {transform} of one score is not supported; NONE and LOGISTIC are")
    # Positive weights are probabilities; others are scores, above 0 for the second class.
    first = 1.0 - base if weights.min() >= 0 else -base
    columns = np.repeat(np.arange(2), len(trees))
    both = np.concatenate([-weights, weights])
    return _Sums(np.tile(trees, 2), np.tile(nodes, 2), columns, both, np.array([first, base]))


def _trees(attributes: _Attributes, sums: _Sums, rounding: str) -> Iterator[Tree]:
    """The trees in the order of their first nodes."""
    names = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    table = {f"nodes_{name}": attributes.integers(f"nodes_{name}") for name in names}
    modes = np.array(attributes.listed("nodes_modes", str), np.str_)
    thresholds = attributes.numbers("nodes_values")
    tracks = attributes.integers("nodes_missing_value_tracks_true")
    tracks = tracks if len(tracks) else np.zeros(len(modes), np.int64)
    attributes.same_lengths(**table, nodes_modes=modes, nodes_values=thresholds, nodes_missing_value_tracks_true=tracks)
    unknown = sorted(set(np.unique(modes).tolist()) - {"LEAF", *_MODES})
    if unknown:
        raise GraphImportError(f"nodes of mode {unknown[0][:40]!r} are not supported; LEAF, {', '.join(_MODES)} are")
    columns = [*table.values()]
    columns[2] = np.where(modes == "LEAF", -1, columns[2])
    if columns[2][modes != "LEAF"].min(initial=0) < 0:
        raise GraphImportError("its attribute nodes_featureids has a negative feature")
    ids, first = np.unique(columns[0], return_index=True)
    ids = ids[np.argsort(first)]
    of_nodes, of_weights = _grouped(columns[0], ids, "nodes"), _grouped(sums.trees, ids, "weights")
    left = max(MOST_VALUES, 8 * len(sums.weights))
    swaps, before = (np.isin(modes, [mode for mode, facts in _MODES.items() if facts[k]]) for k in (1, 0))
    thresholds = _thresholds(thresholds, before, rounding)
    for chosen, weighed in zip(of_nodes, of_weights, strict=True):
        feature = columns[2][chosen]
        count, order = len(chosen), np.argsort(columns[1][chosen], kind="stable")
        named = columns[1][chosen][order]
        if (named[1:] == named[:-1]).any():
            raise GraphImportError("a tree has two nodes of one number in its attribute nodes_nodeids")
        inner = np.flatnonzero(feature >= 0)
        ways = [np.zeros(count, np.int64), np.zeros(count, np.int64)]
        for way, wanted in zip(ways, columns[3:], strict=True):
            way[inner] = order[_places(named, wanted[chosen][inner])]
        roots = np.setdiff1d(np.arange(count), np.concatenate([way[inner] for way in ways]))
        if len(roots) != 1:
            raise GraphImportError(f"a tree has {len(roots)} roots, and not one")
        swap = swaps[chosen]
        # Node 0 is the root.
        moved = np.concatenate([roots, np.delete(np.arange(count), roots)])
        place = np.argsort(moved)
        column = sums.columns[weighed]
        lowest = int(column.min(initial=len(sums.base) - 1))
        width = int(column.max(initial=lowest)) - lowest + 1
        left -= width * count
        if left < 0:
            raise GraphImportError("its leaves have too few weights for so many targets or classes")
        values = np.zeros((count, width))
        np.add.at(values, (place[order[_places(named, sums.nodes[weighed])]], column - lowest), sums.weights[weighed])
        lower, upper = (np.where(swap, ways[1 - k], ways[k]) for k in (0, 1))
        yield Tree(
            feature[moved],
            thresholds[chosen][moved],
            place[lower][moved],
            place[upper][moved],
            ((tracks[chosen] != 0) != swap)[moved],
            np.full(count, -1),
            values,
            lowest,
        )


def _grouped(of: Indices, ids: Indices, what: str) -> list[Indices]:
    """Places of each number among others, in the order of `ids`."""
    order = np.argsort(ids)
    groups = order[_places(ids[order], of, f"its {what} name a tree that has no nodes")]
    counts = np.bincount(groups, minlength=len(ids))
    return np.split(np.argsort(groups, kind="stable"), np.cumsum(counts)[:-1]) if len(ids) else []


def _places(
    known: Indices, wanted: Indices, problem: str = "its nodes or weights name a node that a tree lacks"
) -> Indices:
    """Places of numbers among sorted ones."""
    places = np.searchsorted(known, wanted)
    if len(wanted) and (not len(known) or (known[np.minimum(places, len(known) - 1)] != wanted).any()):
        raise GraphImportError(problem)
    return places


def _thresholds(thresholds: Floats, before: Any, rounding: str) -> Floats:
    """Thresholds to compare with by ``<=``: numbers below the others' in the type of the features."""
    if np.isneginf(thresholds[before]).any():
        raise GraphImportError("a node of its trees compares with the number below -inf")
    typed = thresholds.astype(rounding)
    return np.where(before, np.nextafter(typed, np.array(-np.inf, rounding)), typed).astype(np.float64)
