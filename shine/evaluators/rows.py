"""A data set laid out for compiled code."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shine.codegen.moments import CHUNK, CHUNK_FIELDS, LANES
from shine.data import Dataset, stable_sum
from shine.fitness import Target

Array = NDArray[np.float64]


def target_of(dataset: Dataset, dtype: str) -> Target:
    """What the losses need to know of a data set's target, for predictions of a number type."""
    epsilon = float(np.finfo(dtype).eps) if dtype.startswith("float") else 0.0
    return Target(dataset.weight, dataset.target_mean, dataset.target_square, epsilon)


class Rows:
    """Columns of one number type, target and weights filled up, and what is known of each chunk.

    Parameters
    ----------
    dataset : Dataset
    dtype : {"float64", "float32", "int64", "int32"}
    group : int
        Rows the columns are filled up to a multiple of, repeating the last one; the target and the weights are
        filled up with zeros to whole chunks.
    """

    def __init__(self, dataset: Dataset, dtype: str, group: int = 1) -> None:
        self.count = dataset.n_rows
        with np.errstate(over="ignore"):
            columns = np.ascontiguousarray(dataset.columns, dtype=dtype)
        missing = -self.count % group
        self.columns = np.pad(columns, ((0, 0), (0, missing)), mode="edge") if missing else columns
        self.pointers = np.array([column.ctypes.data for column in self.columns], dtype=np.uintp)
        self.target = _filled(dataset.target)
        self.weights = _filled(dataset.row_weights)

    @cached_property
    def known(self) -> Array:
        """`CHUNK_FIELDS` of each chunk, shape (n_chunks, n_fields)."""
        weights = self.weights.reshape(-1, CHUNK)
        target = self.target.reshape(-1, CHUNK)
        weight = stable_sum(weights)
        inverse = np.divide(1.0, weight, out=np.zeros_like(weight), where=weight > 0)
        mean = stable_sum(weights * target) * inverse
        square = stable_sum(weights * (target - mean[:, None]) ** 2)
        known = np.zeros((len(weight), len(CHUNK_FIELDS)))
        before, before_mean, before_square = 0.0, 0.0, 0.0
        for chunk, (own, own_mean) in enumerate(zip(weight.tolist(), mean.tolist(), strict=True)):
            if own > 0:
                share = own / (before + own)
                shift = own_mean - before_mean
                known[chunk, :5] = (inverse[chunk], own_mean, share, before * share, shift)
                before_square += float(square[chunk]) + shift * shift * before * share
                before_mean += shift * share
                before += own
            known[chunk, 5] = before_square
        return known

    def lines(self, slopes: Array, intercepts: Array) -> Array:
        """Slope and intercept of each individual, shape (n_individuals, 2)."""
        return np.column_stack([slopes, intercepts])


def _filled(values: Array) -> Array:
    filled = np.zeros(-(-len(values) // CHUNK) * CHUNK)
    filled[: len(values)] = values
    return filled


def lane_sums(states: Array) -> Array:
    """Sum of the lanes of each state, halves first: the same bits everywhere."""
    return stable_sum(states[:, :LANES])
