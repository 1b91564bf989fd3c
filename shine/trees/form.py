"""An ensemble of trees as plain arrays: what is read from a library, checked, and compiled."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from shine.base.errors import FormError
from shine.base.typing import AnyArray, Floats, Indices, Mask

LINKS = ("identity", "exp", "expit", "expit2", "softmax")
"""Function of the sums: none, e**s, 1/(1 + e**-s) as two classes, the same of 2 s, or softmax."""

CODES = 256
"""Codes that a category may have; larger, negative and missing ones count as one more, the unknown."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A binary tree of decisions; node 0 is the root.

    A number ``x <= threshold`` goes left. A category goes left if its set has it. NaN goes where the node says.

    Parameters
    ----------
    feature : ndarray of shape (n_nodes,), int64
        Column that a node decides on; -1 at leaves.
    threshold : ndarray of shape (n_nodes,), float64
    left, right : ndarray of shape (n_nodes,), int64
        Children; not used at leaves.
    missing_left : ndarray of shape (n_nodes,), bool
        Whether NaN goes left.
    categories : ndarray of shape (n_nodes,), int64
        Row of the ensemble's `sets`; -1 at nodes that compare numbers.
    values : ndarray of shape (n_nodes, width), float64
        What leaves add to `width` outputs.
    output : int
        First of these outputs.
    """

    feature: Indices
    threshold: Floats
    left: Indices
    right: Indices
    missing_left: Mask
    categories: Indices
    values: Floats
    output: int = 0

    @property
    def leaves(self) -> Mask:
        """Mask of leaves."""
        is_leaf: Mask = self.feature < 0
        return is_leaf


def no_sets() -> Mask:
    """The sets of an ensemble without categories."""
    return np.zeros((0, CODES + 1), np.bool_)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees that are added up.

    Output k of a row is ``link((base[k] + tree 0 + tree 1 + ...) / divisor)``, added in this order.

    Parameters
    ----------
    trees : tuple of Tree
    n_features : int
    base : ndarray of shape (n_outputs,), float64
    divisor : float
    rounding : {"float64", "float32"}
        Type that features are rounded to before they are compared.
    link : str
        One of `LINKS`.
    sets : ndarray of shape (n_sets, 257), bool
        Which codes go left; the last column is for unknown codes and NaN.
    categorical : frozenset of int
        Columns that hold codes of categories.
    """

    trees: tuple[Tree, ...]
    n_features: int
    base: Floats
    divisor: float = 1.0
    rounding: str = "float64"
    link: str = "identity"
    sets: Mask = field(default_factory=no_sets)
    categorical: frozenset[int] = frozenset()

    @property
    def n_outputs(self) -> int:
        """Number of sums."""
        return len(self.base)

    @property
    def n_results(self) -> int:
        """Numbers that a row gets: the sums, or both classes of one sum."""
        return 2 if self.link.startswith("expit") else self.n_outputs

    @property
    def n_leaves(self) -> int:
        """Leaves of all trees."""
        return sum(int(tree.leaves.sum()) for tree in self.trees)


def levels(tree: Tree) -> list[Indices]:
    """Nodes of each level, siblings side by side, left ones first.

    A `FormError` if a child is missing, or a node has two parents or none.
    """
    count = len(tree.feature)
    found, level, seen = [], np.zeros(1, np.int64), 0
    while len(level):
        seen += len(level)
        if seen > count:
            raise FormError("a tree has a node with two parents")
        found.append(level)
        inner = level[tree.feature[level] >= 0]
        level = np.stack([tree.left[inner], tree.right[inner]], axis=1).reshape(-1)
        if len(level) and (level.min() < 0 or level.max() >= count):
            raise FormError(f"a tree has a child outside its {count} nodes")
    if len(np.unique(np.concatenate(found))) != seen:
        raise FormError("a tree has a node with two parents")
    return found


def check(ensemble: Ensemble) -> None:
    """Raise unless an ensemble means something; `levels` checks how nodes hang together.

    Raises
    ------
    FormError
        If arrays differ in length, or a feature, a set, an output or a threshold is not possible.
    """
    if ensemble.link not in LINKS:
        raise FormError(f"there is no link {ensemble.link!r}; use one of {', '.join(LINKS)}")
    if ensemble.rounding not in ("float64", "float32"):
        raise FormError(f"features are rounded to float64 or float32, not to {ensemble.rounding!r}")
    if ensemble.link.startswith("expit") and ensemble.n_outputs != 1:
        raise FormError(f"{ensemble.link} is for one output, not for {ensemble.n_outputs}")
    for position, tree in enumerate(ensemble.trees):
        problem = _problem(tree, ensemble)
        if problem:
            raise FormError(f"tree {position} {problem}")


def _problem(tree: Tree, ensemble: Ensemble) -> str:
    parts: list[AnyArray] = [tree.threshold, tree.left, tree.right, tree.missing_left, tree.categories, tree.values]
    if not len(tree.feature) or any(len(part) != len(tree.feature) for part in parts):
        return "has arrays of different lengths, or no nodes"
    if tree.feature.max() >= ensemble.n_features:
        return f"compares feature {tree.feature.max()}; there are {ensemble.n_features}"
    if tree.output < 0 or tree.output + tree.values.shape[1] > ensemble.n_outputs:
        return f"adds to output {tree.output + tree.values.shape[1] - 1}; there are {ensemble.n_outputs}"
    inner = ~tree.leaves
    if tree.categories[inner].max(initial=-1) >= len(ensemble.sets):
        return f"has a set of categories that is not among the {len(ensemble.sets)}"
    by_set = tree.categories[inner] >= 0
    if set(tree.feature[inner][by_set].tolist()) - ensemble.categorical:
        return "compares categories of a feature that has numbers"
    if set(tree.feature[inner][~by_set].tolist()) & ensemble.categorical:
        return "compares numbers of a feature that has categories"
    return "has a threshold that is NaN" if np.isnan(tree.threshold[inner][~by_set]).any() else ""
