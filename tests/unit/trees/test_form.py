"""Ensembles that mean nothing are refused before they are compiled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shine.base.errors import FormError
from shine.trees.form import Ensemble, Tree
from shine.trees.kernel import TreeKernel
from shine.trees.layout import layout


def stump(**changes: object) -> Tree:
    """A tree of one comparison."""
    parts = {
        "feature": np.array([1, -1, -1]),
        "threshold": np.array([0.5, 0.0, 0.0]),
        "left": np.array([1, -1, -1]),
        "right": np.array([2, -1, -1]),
        "missing_left": np.array([True, False, False]),
        "categories": np.full(3, -1),
        "values": np.array([[0.0], [10.0], [20.0]]),
    }
    return replace(Tree(**parts), **changes)  # type: ignore[arg-type]


def test_a_stump_decides():
    ensemble = Ensemble((stump(), stump()), 2, np.array([1.0]), 2.0)
    rows = np.array([[9.0, 0.5], [9.0, 0.6], [9.0, np.nan]])
    found, flags = TreeKernel(ensemble)(rows)
    assert found[:, 0].tolist() == [10.5, 20.5, 10.5] and flags == 1
    assert ensemble.n_leaves == 4 and layout(ensemble).tables.features.tolist() == [1]


def test_an_ensemble_without_trees_is_its_base():
    assert TreeKernel(Ensemble((), 2, np.array([1.0, 3.0])))(np.zeros((3, 2)))[0].tolist() == [[1.0, 3.0]] * 3


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (stump(feature=np.array([7, -1, -1])), "tree 0 compares feature 7; there are 2"),
        (stump(left=np.array([0, -1, -1])), "a tree has a node with two parents"),
        (stump(right=np.array([1, -1, -1])), "a tree has a node with two parents"),
        (stump(left=np.array([5, -1, -1])), "a tree has a child outside its 3 nodes"),
        (stump(threshold=np.zeros(2)), "tree 0 has arrays of different lengths"),
        (stump(threshold=np.full(3, np.nan)), "tree 0 has a threshold that is NaN"),
        (stump(output=1), "tree 0 adds to output 1; there are 1"),
        (stump(categories=np.zeros(3, int)), "tree 0 has a set of categories that is not among the 0"),
    ],
)
def test_trees_that_mean_nothing_are_refused(tree, message):
    with pytest.raises(FormError, match=message):
        layout(Ensemble((tree,), 2, np.zeros(1)))


def test_ensembles_that_mean_nothing_are_refused():
    for changes, message in [
        ({"link": "probit"}, "there is no link 'probit'; use one of identity"),
        ({"rounding": "float16"}, "features are rounded to float64 or float32, not to 'float16'"),
        ({"link": "expit", "base": np.zeros(2)}, "expit is for one output, not for 2"),
        ({"categorical": frozenset({1})}, "tree 0 compares numbers of a feature that has categories"),
    ]:
        with pytest.raises(FormError, match=message):
            layout(replace(Ensemble((stump(),), 2, np.zeros(1)), **changes))  # type: ignore[arg-type]
