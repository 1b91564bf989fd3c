"""A data set laid out for compiled code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shine.base.lazy import cached_property
from shine.base.typing import AnyArray, Floats, Indices
from shine.compiler.codegen.moments import CHUNK, CHUNK_FIELDS, LANES
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.scores import Target
from shine.lang.population import Population

BLOCK_BYTES = 1 << 21
"""Bytes of a block of rows: a share of a cache, so that it stays there while a population is evaluated."""

SHORTEST_BLOCK = 1 << 13
"""Least rows of a block, which has a multiple of them: enough to hide the cost of assembling tapes for the block."""

HELD_BYTES = 1 << 25
"""Columns of at most this many bytes are converted once; larger ones block by block, each time they are read."""

ENOUGH_WORK = 1 << 22
"""Least individuals times rows of a block that needs no conversion: enough to hide the cost of a call."""

_AT_ONCE = 1 << 10
"""Rows converted at a time: with more, cache lines would be evicted before all their numbers are used."""


def target_of(dataset: Dataset, dtype: str) -> Target:
    """The numbers that losses need of a data set's target, for predictions of a number type."""
    facts = np.finfo(dtype) if dtype.startswith("float") else None
    rounding = (float(facts.eps), float(facts.tiny)) if facts is not None else (0.0, 0.0)
    return Target(dataset.weight, dataset.target_mean, dataset.target_square, *rounding)


@dataclass(frozen=True)
class Block:
    """Columns of a block of rows.

    Parameters
    ----------
    start, stop : int
        The first row, and the one after the last.
    pointers : ndarray of shape (n_features,), uintp
        Address of each column.
    memory : ndarray
        The memory of the columns.
    """

    start: int
    stop: int
    pointers: NDArray[np.uintp]
    memory: AnyArray


@dataclass(frozen=True)
class Part:
    """A block of rows as native code takes it: padded to whole chunks.

    Parameters
    ----------
    block : Block
    target, weights : ndarray of shape (whole chunks,), float64
        Padding rows have weight 0.
    loss_columns : list of ndarray of shape (whole chunks,), float64
        Columns that the errors read besides.
    """

    block: Block
    target: Floats
    weights: Floats
    loss_columns: list[Floats]


class Rows:
    """A data set laid out for native code.

    Parameters
    ----------
    dataset : Dataset
    dtype : {"float64", "float32", "int64", "int32"}
    loss_columns : sequence of ndarray of shape (n_rows,), float64
        Columns that the errors read besides.
    """

    def __init__(self, dataset: Dataset, dtype: str, loss_columns: Sequence[Floats] = ()) -> None:
        self.count, self.dtype, self._loss_columns = dataset.n_rows, dtype, loss_columns
        self._columns = Columns(dataset.columns, dtype)
        self._dataset = dataset

    def parts(self, individuals: int) -> Iterator[Part]:
        """The rows in order, a block at a time; a block is valid until the next one is asked for."""
        dataset = self._dataset
        for block in self._columns.blocks(individuals):
            rows = slice(block.start, block.stop)
            weights = np.ones(block.stop - block.start) if dataset.weights is None else dataset.weights[rows]
            loss_columns = [filled(column[rows], "edge") for column in self._loss_columns]
            yield Part(block, filled(dataset.target[rows], "edge"), filled(weights), loss_columns)

    @property
    def weighted(self) -> bool:
        """Whether any weight is not 1."""
        return self._dataset.weights is not None

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return self._dataset.weight

    @cached_property
    def known(self) -> Floats:
        """`CHUNK_FIELDS` of each chunk, shape (n_chunks, n_fields)."""
        return known_chunks(self._dataset)


class Columns:
    """Columns of a number type, read by compiled code a block of rows at a time.

    Columns of the right type and order are read in place. Others are converted: small ones once, large ones block by
    block each time they are read, because a whole copy may not fit into memory, and converting takes little time
    compared with evaluating a population.

    Parameters
    ----------
    columns : ndarray of shape (n_features, n_rows)
    dtype : {"float64", "float32", "int64", "int32"}
    """

    def __init__(self, columns: Floats, dtype: str) -> None:
        self._columns: AnyArray = columns
        self._dtype = np.dtype(dtype)
        ready = columns.dtype == dtype and columns.strides[1] == columns.itemsize and columns.flags.aligned
        self._held = ready or columns.size * self._dtype.itemsize <= HELD_BYTES
        if self._held and not ready:
            self._columns = converted(columns, dtype)

    def blocks(self, individuals: int, used: Indices | None = None) -> Iterator[Block]:
        """The blocks in order; a block is valid until the next one is asked for.

        Parameters
        ----------
        individuals : int
            Number of individuals evaluated over a block.
        used : ndarray of shape (n_used,), optional
            The columns that individuals read, all by default; the others may hold anything.

        Yields
        ------
        Block
        """
        count, rows = self._columns.shape
        size = count * self._dtype.itemsize + 8
        step = max(BLOCK_BYTES // size // SHORTEST_BLOCK, 1) * SHORTEST_BLOCK
        if self._held:
            enough = ENOUGH_WORK // max(individuals, 1) // SHORTEST_BLOCK * SHORTEST_BLOCK
            first = addresses(self._columns)
            step = max(step, enough)
            for start in range(0, rows, step):
                pointers = first + np.uintp(start * self._dtype.itemsize)
                yield Block(start, min(start + step, rows), pointers, self._columns)
            return
        memory = np.empty((count, min(step, rows)), self._dtype)
        pointers = addresses(memory)
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            _convert(self._columns[:, start:stop], memory, np.arange(count) if used is None else used)
            yield Block(start, stop, pointers, memory)


def used_features(population: Population) -> Indices:
    """Positions of the columns that individuals read, in order."""
    seen = np.zeros(population.primitives.first_function, np.bool_)
    seen[population.codes[population.codes < len(seen)]] = True
    return np.flatnonzero(seen[1:])


def _convert(columns: Floats, block: AnyArray, used: Indices) -> None:
    """Copy the used columns to the beginning of a block's columns."""
    rows = columns.shape[1]
    with np.errstate(over="ignore"):
        if 2 * len(used) < len(columns):
            for column in used.tolist():
                block[column, :rows] = columns[column]
            return
        for start in range(0, rows, _AT_ONCE):
            stop = min(start + _AT_ONCE, rows)
            block[:, start:stop] = columns[:, start:stop]


def converted(columns: Floats, dtype: str) -> AnyArray:
    """Columns in a number type; numbers too large for it become infinite."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(columns, dtype=dtype)


def addresses(columns: AnyArray) -> NDArray[np.uintp]:
    """Address of each row of a matrix."""
    return np.array(columns.ctypes.data + columns.strides[0] * np.arange(len(columns)), dtype=np.uintp)


def columns_from(columns: Sequence[Floats], row: int) -> NDArray[np.uintp]:
    """Address of a row of each column, also of rows before the first or after the last one."""
    return np.array([column.ctypes.data + 8 * row for column in columns], dtype=np.uintp)


def known_chunks(dataset: Dataset) -> Floats:
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


def _chunk_moments(target: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and sum of squared deviations of the target in each chunk."""
    rows, weighed = filled(target).reshape(-1, CHUNK), filled(weights).reshape(-1, CHUNK)
    weight = stable_sum(weighed)
    mean = np.divide(stable_sum(weighed * rows), weight, out=np.zeros_like(weight), where=weight > 0)
    return weight, mean, stable_sum(weighed * (rows - mean[:, None]) ** 2)


def filled(values: Floats, mode: Literal["zeros", "edge"] = "zeros") -> Floats:
    """Values padded to whole chunks, by zeros or by copies of the last value.

    Padding rows repeat the last row and its target, so that their errors are finite if the last row's is.
    """
    if len(values) % CHUNK == 0:
        return np.ascontiguousarray(values)
    last = values[-1] if mode == "edge" else 0.0
    whole = np.full(-(-len(values) // CHUNK) * CHUNK, last)
    whole[: len(values)] = values
    return whole


def lane_sums(states: Floats) -> Floats:
    """Sum of the lanes of each state, halves first, so that it has the same bits everywhere."""
    lanes = np.ascontiguousarray(states[:, :LANES].T)
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    return lanes[0]
