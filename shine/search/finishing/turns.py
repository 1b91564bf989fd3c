"""Number of turns of a formula within the range of the data.

A formula with many maxima and minima fits anything: a fast sine meets every row, whatever the row says. It is as
flexible as a polynomial with as many roots, so each turn counts like a part of the formula that had to be chosen.
"""

from __future__ import annotations

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate

PLACES = 16
"""Rows through which one feature after the other is swept."""

POINTS = 400
"""Points of a sweep: a sine of more than 200 periods within the data has as many turns as it can be seen to have."""

FLAT = 1e-9
"""Steps smaller than this share of a sweep's range are rounding, not turns."""


def turns(tree: Tree, dataset: Dataset) -> float:
    """Mean number of maxima and minima along lines through rows of the data, added up over the features.

    Parameters
    ----------
    tree : Tree
        Its parameters are the features of the data set.
    dataset : Dataset
    """
    places = dataset.sampled(PLACES, np.random.default_rng(0)).columns
    total = 0.0
    for index, name in enumerate(dataset.features):
        low, high = float(dataset.columns[index].min()), float(dataset.columns[index].max())
        if name not in tree.used_parameters or not low < high:
            continue
        sweep = np.linspace(low, high, POINTS)
        columns = [np.repeat(column, POINTS) for column in places]
        columns[index] = np.tile(sweep, places.shape[1])
        with np.errstate(all="ignore"):
            values = evaluate(tree, columns, np.float64, COMPILED).reshape(-1, POINTS)
            steps = np.diff(values, axis=1)
            range_of = values.max(axis=1, keepdims=True) - values.min(axis=1, keepdims=True)
            signs = np.where(np.abs(steps) > FLAT * range_of, np.sign(steps), 0.0)
        total += sum(map(_changes, np.nan_to_num(signs))) / len(values)
    return total


def _changes(signs: Floats) -> int:
    """Number of changes of sign, zeros left out."""
    moving = signs[signs != 0]
    return int(np.count_nonzero(moving[1:] != moving[:-1]))
