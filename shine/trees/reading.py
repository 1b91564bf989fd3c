"""From an estimator of scikit-learn to an ensemble and what its methods mean. Nothing of scikit-learn is imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shine.base.typing import AnyArray, Floats, Indices, Mask
from shine.trees.form import CODES, Ensemble, Tree, no_sets


@dataclass(frozen=True, eq=False)
class Reading:
    """An estimator as it is compiled.

    Parameters
    ----------
    name : str
        Class of the estimator.
    ensemble : Ensemble
        Its link is that of `predict` for regressors, of `predict_proba` for classifiers.
    classes : tuple of ndarray
        Classes of each target; empty for regressors.
    threshold : float
        Sums above it are of the second class, if there is one sum for two classes.
    is_boosted : bool
        Whether the sums are a decision function.
    n_targets : int
    allows_nan, allows_infinite : bool
        What the estimator accepts.
    feature_names : tuple of str
        Columns of the frame that it was fitted to; empty if that was an array.
    categories : dict of int to ndarray
        Categories of columns in the order of their codes.
    """

    name: str
    ensemble: Ensemble
    classes: tuple[AnyArray, ...]
    threshold: float
    is_boosted: bool
    n_targets: int
    allows_nan: bool
    allows_infinite: bool
    feature_names: tuple[str, ...]
    categories: dict[int, AnyArray]


def read(model: Any) -> Reading:
    """The reading of a fitted estimator.

    Raises
    ------
    TypeError
        If it is not one of `READERS`.
    ValueError
        If it is not fitted, or begins from another model.
    """
    for kind in type(model).__mro__:
        if kind.__module__.partition(".")[0] == "sklearn" and kind.__name__ in READERS:
            fitted, reader = READERS[kind.__name__]
            if not hasattr(model, fitted):
                raise ValueError(f"the {type(model).__name__} is not fitted; call its fit first")
            return reader(model)
    what = model.__name__ if isinstance(model, type) else type(model).__name__
    raise TypeError(f"{what} cannot be compiled{_hint(model)}; there are {', '.join(READERS)}")


_FOREIGN = ("xgboost", "lightgbm", "catboost")


def _hint(model: Any) -> str:
    if isinstance(model, type):
        return ": give a fitted estimator, not its class"
    package = type(model).__module__.partition(".")[0]
    if package in _FOREIGN:
        return f": models of {package} are not read; fit a HistGradientBoosting estimator of scikit-learn instead"
    if hasattr(model, "best_estimator_"):
        return ": compile its best_estimator_"
    if hasattr(model, "named_steps"):
        return ": compile its last step, model[-1], and apply model[:-1].transform before"
    return ""


def _single_tree(model: Any) -> Reading:
    # -0.0 + x has the bits of x, also if x is -0.0.
    return _of_trees(model, [model], base=-0.0)


def _forest(model: Any) -> Reading:
    return _of_trees(model, model.estimators_, base=0.0)


def _of_trees(model: Any, estimators: Sequence[Any], base: float) -> Reading:
    """Means of the values of trees: of targets, or of the shares of their classes."""
    classes = _listed(model.classes_, model.n_outputs_) if hasattr(model, "classes_") else ()
    widths = [len(each) for each in classes] or [1] * model.n_outputs_

    def values(tree: Any) -> Floats:
        return np.concatenate([tree.value[:, target, :width] for target, width in enumerate(widths)], axis=1)

    trees = tuple(_tree(each.tree_, values(each.tree_)) for each in estimators)
    ensemble = Ensemble(trees, model.n_features_in_, np.full(sum(widths), base), float(len(trees)), "float32")
    return Reading(
        name=type(model).__name__,
        ensemble=ensemble,
        classes=classes,
        threshold=0.0,
        is_boosted=False,
        n_targets=model.n_outputs_,
        allows_nan=_allows_nan(estimators[0]),
        allows_infinite=False,
        feature_names=_names(model),
        categories={},
    )


def _gradient_boosting(model: Any) -> Reading:
    # scikit-learn's default is a Dummy estimator: a constant.
    if model.init_ != "zero" and not type(model.init_).__name__.startswith("Dummy"):
        first = type(model.init_).__name__
        raise ValueError(
            f"the {type(model).__name__} begins from a {first} (init), which is not read; fit without init"
        )
    start = model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))
    trees = tuple(
        replace(_tree(each.tree_, model.learning_rate * each.tree_.value[:, :, 0]), output=output)
        for stage in model.estimators_
        for output, each in enumerate(stage)
    )
    link = "identity"
    if hasattr(model, "classes_"):
        binary = "expit2" if model.loss == "exponential" else "expit"
        link = binary if len(model.classes_) == 2 else "softmax"
    ensemble = Ensemble(trees, model.n_features_in_, start[0].astype(np.float64), 1.0, "float32", link)
    # Sums of 0 are of the second class here, other than with histograms.
    return _boosted(model, ensemble, np.nextafter(0.0, -1.0), allows_nan=False, categories={})


def _hist_gradient_boosting(model: Any) -> Reading:
    encoded = model.is_categorical_ if model.is_categorical_ is not None else np.zeros(model.n_features_in_, np.bool_)
    # The estimator puts columns with categories first.
    columns = np.concatenate([np.flatnonzero(encoded), np.flatnonzero(~encoded)])
    known = np.zeros((0, CODES), np.bool_)
    categories = {}
    if encoded.any():
        known = _bits(model._bin_mapper.make_known_categories_bitsets()[0])
        found = model._preprocessor.named_transformers_["encoder"].categories_
        categories = dict(zip(np.flatnonzero(encoded).tolist(), found, strict=True))
    trees, sets, count = [], [no_sets()], 0
    for stage in model._predictors:
        for output, predictor in enumerate(stage):
            nodes, first = predictor.nodes, count
            inner = nodes["is_leaf"] == 0
            by_set = inner & (nodes["is_categorical"] > 0)
            places = np.full(len(nodes), -1)
            if by_set.any():
                chosen = nodes[by_set]
                sets.append(_sets(chosen, _bits(predictor.raw_left_cat_bitsets), known))
                places[by_set] = first + np.arange(len(chosen))
                count += len(chosen)
            trees.append(
                Tree(
                    np.where(inner, columns[nodes["feature_idx"]], -1),
                    nodes["num_threshold"].astype(np.float64),
                    nodes["left"].astype(np.int64),
                    nodes["right"].astype(np.int64),
                    nodes["missing_go_to_left"] > 0,
                    places,
                    nodes["value"].astype(np.float64).reshape(-1, 1),
                    output,
                )
            )
    kind = type(model._loss.link).__name__
    links = {"IdentityLink": "identity", "LogLink": "exp", "LogitLink": "expit", "MultinomialLogit": "softmax"}
    if kind not in links:
        raise ValueError(f"the {type(model).__name__} has a {kind}, which is not known here")
    ensemble = Ensemble(
        tuple(trees),
        model.n_features_in_,
        np.asarray(model._baseline_prediction, np.float64).reshape(-1),
        link=links[kind],
        sets=np.concatenate(sets),
        categorical=frozenset(categories),
    )
    return _boosted(model, ensemble, 0.0, allows_nan=True, categories=categories)


def _boosted(
    model: Any, ensemble: Ensemble, threshold: float, *, allows_nan: bool, categories: dict[int, AnyArray]
) -> Reading:
    return Reading(
        name=type(model).__name__,
        ensemble=ensemble,
        classes=(np.asarray(model.classes_),) if hasattr(model, "classes_") else (),
        threshold=threshold,
        is_boosted=True,
        n_targets=1,
        allows_nan=allows_nan,
        allows_infinite=allows_nan,
        feature_names=_names(model),
        categories=categories,
    )


def _sets(nodes: AnyArray, left: Mask, known: Mask) -> Mask:
    """Sets of the nodes of a tree: unknown codes go where NaN goes."""
    missing = nodes["missing_go_to_left"][:, None] > 0
    codes = left[nodes["bitset_idx"]] | (~known[nodes["feature_idx"]] & missing)
    return np.concatenate([codes, missing], axis=1)


def _bits(words: AnyArray) -> Mask:
    """Bits of rows of words of 32 bits, the lowest first."""
    shifts = np.arange(32, dtype=np.uint32)
    bits = (np.asarray(words, np.uint32)[:, :, None] >> shifts) & np.uint32(1)
    found: Mask = bits.reshape(len(words), -1) > 0
    return found


def _tree(tree: Any, values: Floats) -> Tree:
    nodes = tree.__getstate__()["nodes"]
    left: Indices = nodes["left_child"].astype(np.int64)
    is_leaf = left < 0
    return Tree(
        np.where(is_leaf, -1, nodes["feature"].astype(np.int64)),
        nodes["threshold"].astype(np.float64),
        left,
        nodes["right_child"].astype(np.int64),
        nodes["missing_go_to_left"] > 0,
        np.full(len(left), -1),
        np.ascontiguousarray(values, np.float64),
    )


def _listed(classes: Any, targets: int) -> tuple[AnyArray, ...]:
    return tuple(np.asarray(each) for each in (classes if targets > 1 else [classes]))


def _names(model: Any) -> tuple[str, ...]:
    return tuple(getattr(model, "feature_names_in_", ()))


def _allows_nan(estimator: Any) -> bool:
    tags = getattr(estimator, "__sklearn_tags__", None)
    return bool(tags().input_tags.allow_nan if tags else estimator._get_tags()["allow_nan"])


READERS: dict[str, tuple[str, Callable[[Any], Reading]]] = {
    "DecisionTreeRegressor": ("tree_", _single_tree),
    "DecisionTreeClassifier": ("tree_", _single_tree),
    "RandomForestRegressor": ("estimators_", _forest),
    "RandomForestClassifier": ("estimators_", _forest),
    "ExtraTreesRegressor": ("estimators_", _forest),
    "ExtraTreesClassifier": ("estimators_", _forest),
    "GradientBoostingRegressor": ("estimators_", _gradient_boosting),
    "GradientBoostingClassifier": ("estimators_", _gradient_boosting),
    "HistGradientBoostingRegressor": ("_predictors", _hist_gradient_boosting),
    "HistGradientBoostingClassifier": ("_predictors", _hist_gradient_boosting),
}
"""Estimators by name: the attribute that fitted ones have, and how they are read. Subclasses are read alike."""
