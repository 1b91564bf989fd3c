"""A data set laid out for compiled code."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

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
    """Columns of one number type; target and weights filled up to whole chunks, with rows that weigh nothing.

    Parameters
    ----------
    dataset : Dataset
    dtype : {"float64", "float32", "int64", "int32"}
    """

    def __init__(self, dataset: Dataset, dtype: str) -> None:
        self.count = dataset.n_rows
        self.columns = converted(dataset.columns, dtype)
        self.pointers = addresses(self.columns)
        self.target = filled(dataset.target, "edge")
        self.weights = filled(dataset.row_weights)
        self._dataset = dataset

    @cached_property
    def known(self) -> Array:
        """`CHUNK_FIELDS` of each chunk, shape (n_chunks, n_fields)."""
        return known_chunks(self._dataset)


def converted(columns: Array, dtype: str) -> NDArray[Any]:
    """Columns in a number type; numbers that it cannot hold become infinite."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(columns, dtype=dtype)


def addresses(columns: NDArray[Any]) -> NDArray[np.uintp]:
    """Where each column begins."""
    return np.array([column.ctypes.data for column in columns], dtype=np.uintp)


def known_chunks(dataset: Dataset) -> Array:
    """`CHUNK_FIELDS` of each chunk of a data set, shape (n_chunks, n_fields)."""
    parts = [_chunk_moments(target, weights) for target, weights in dataset.blocks(CHUNK * 1024)]
    weight, mean, square = (np.concatenate(part) for part in zip(*parts, strict=True))
    known = np.zeros((len(weight), len(CHUNK_FIELDS)))
    before, before_mean, before_square = 0.0, 0.0, 0.0
    for chunk, (own, own_mean, own_square) in enumerate(np.stack([weight, mean, square], axis=1).tolist()):
        if own > 0:
            share, shift = own / (before + own), own_mean - before_mean
            known[chunk, :5] = (1 / own, own_mean, share, before * share, shift)
            before_square += own_square + shift * shift * before * share
            before_mean += shift * share
            before += own
        known[chunk, 5:] = before_square, before
    return known


def _chunk_moments(target: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Weight, mean and sum of squared deviations of the target in each chunk of some rows."""
    rows, weighed = filled(target).reshape(-1, CHUNK), filled(weights).reshape(-1, CHUNK)
    weight = stable_sum(weighed)
    mean = np.divide(stable_sum(weighed * rows), weight, out=np.zeros_like(weight), where=weight > 0)
    return weight, mean, stable_sum(weighed * (rows - mean[:, None]) ** 2)


def filled(values: Array, mode: Literal["zeros", "edge"] = "zeros") -> Array:
    """Values up to whole chunks, followed by zeros or by copies of the last.

    The rows that fill up repeat the last one, target and all, so that their errors are finite when the last is.
    """
    last = values[-1] if mode == "edge" and len(values) else 0.0
    whole = np.full(-(-len(values) // CHUNK) * CHUNK, last)
    whole[: len(values)] = values
    return whole


def lane_sums(states: Array) -> Array:
    """Sum of the lanes of each state, halves first: the same bits everywhere."""
    return stable_sum(states[:, :LANES])
