"""The memory of scores: a 64-bit hash of each individual, and a table of scores by hash."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from shine.base.typing import Floats, Hashes, Indices, Mask
from shine.evaluate.scores import Scores
from shine.lang.forms.primitives import CONSTANT
from shine.lang.population import Population

CAPACITY = 1 << 20
"""Latest individuals that a `Memory` always recalls; it holds at most twice as many."""

_SMALLEST_TABLE = 1 << 12


def hashes(population: Population) -> Hashes:
    """Hash of each individual, made of the codes and positions of its nodes and the bits of its constants.

    Returns
    -------
    ndarray of shape (n_individuals,), uint64
        Never 0. Two different tapes have the same hash with probability 2^-64; among a million individuals, there is
        such a pair with probability 3e-8.

    Notes
    -----
    The hash is the sum of one pseudorandom number for each node (Zobrist 1970).
    """
    inside, cells = _cells(population)
    at = np.flatnonzero(inside & (population.codes == CONSTANT))
    # Hash the bits of a constant, with the sign of -0.0: 1 / -0.0 differs from 1 / 0.0.
    cells.put(at, _mixed(cells.take(at) ^ population.values.take(at).view(np.uint64)))
    return _added(cells, inside)


def symbols(population: Population) -> Hashes:
    """Hash of the symbols of each individual, in any order, without the values of constants (see `hashes`)."""
    inside, _ = _cells(population)
    numbers = _numbers(population.width, len(population.primitives.arities))
    return _added(numbers.take(population.codes, mode="clip"), inside)


def _cells(population: Population) -> tuple[Mask, Hashes]:
    """Cells in use, and a pseudorandom number for each code and position."""
    width, known = population.width, len(population.primitives.arities)
    positions = np.arange(width)
    inside = positions < population.sizes[:, None]
    # Cells beyond the end of a tape may hold any code.
    return inside, _numbers(width, known).take(population.codes + known * positions, mode="clip")


def _added(cells: Hashes, inside: Mask) -> Hashes:
    """The sum of the cells in use, never 0."""
    cells *= inside
    total: Hashes = np.add.reduce(cells, axis=1, dtype=np.uint64)
    return np.maximum(total, np.uint64(1))


@lru_cache(maxsize=4)
def _numbers(width: int, codes: int) -> Hashes:
    """A pseudorandom number for each code at each position, in the order of positions."""
    positions: Hashes = np.arange(width, dtype=np.uint64)
    first: Hashes = np.arange(1, codes + 1, dtype=np.uint64)
    return _mixed(np.add.outer(positions << np.uint64(16), first)).ravel()


def _mixed(x: Hashes) -> Hashes:
    """A bijection that turns similar numbers into unrelated ones: splitmix64 (Steele et al. 2014)."""
    x = x * np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


@dataclass(frozen=True, eq=False)
class Known:
    """The contents of a `Memory`, in the order of their arrival.

    Parameters
    ----------
    younger_keys, elder_keys : ndarray of shape (n_younger,) or (n_elder,), uint64
    younger_rows, elder_rows : ndarray of shape (n_younger, 3) or (n_elder, 3), float64
        Loss, slope and intercept of each.
    """

    younger_keys: Hashes
    younger_rows: Floats
    elder_keys: Hashes
    elder_rows: Floats

    @classmethod
    def nobody(cls) -> Self:
        """An empty memory's contents."""
        keys, rows = np.zeros(0, np.uint64), np.zeros((0, 3))
        return cls(keys, rows, keys, rows)


class Memory:
    """Scores of individuals by their hash.

    There are two tables. New entries go to the younger one; when it is full, it replaces the elder one.

    Parameters
    ----------
    capacity : int
    known : Known, optional
        The contents to begin with.
    """

    def __init__(self, capacity: int = CAPACITY, known: Known | None = None) -> None:
        self._capacity = capacity
        self._younger, self._elder = _Table(_SMALLEST_TABLE), _Table(_SMALLEST_TABLE)
        if known is not None:
            self._younger = self._younger.with_room_for(len(known.younger_keys))
            self._younger.insert(known.younger_keys, known.younger_rows)
            self._elder = self._elder.with_room_for(len(known.elder_keys))
            self._elder.insert(known.elder_keys, known.elder_rows)

    def __len__(self) -> int:
        return self._younger.count + self._elder.count

    @property
    def known(self) -> Known:
        """The current contents. They share the memory's arrays, but never change: a memory only appends."""
        return Known(*self._younger.entries, *self._elder.entries)

    def recall(self, keys: Hashes) -> tuple[Mask, Scores]:
        """Whether each individual is known, shape (n,), and the scores of all, NaN if unknown."""
        scores = self._younger.find(keys)
        if self._elder.count:
            missing = np.flatnonzero(np.isnan(scores[:, 0]))
            scores[missing] = self._elder.find(keys[missing])
        return ~np.isnan(scores[:, 0]), Scores(scores[:, 0].copy(), scores[:, 1].copy(), scores[:, 2].copy())

    def store(self, keys: Hashes, scores: Scores) -> None:
        """Add the scores of individuals that are unknown and distinct."""
        rows = np.column_stack((scores.losses, scores.slopes, scores.intercepts))
        while len(keys):
            if self._younger.count >= self._capacity:
                self._elder, self._younger = self._younger, _Table(_SMALLEST_TABLE)
            fit = self._capacity - self._younger.count
            self._younger = self._younger.with_room_for(len(keys[:fit]))
            self._younger.insert(keys[:fit], rows[:fit])
            keys, rows = keys[fit:], rows[fit:]


class _Table:
    """A hash table with linear probing (Knuth, TAOCP 3, 6.4); all keys take each probe together.

    The slots hold positions in a list of entries, which keeps the order of arrival. Position 0 stands for a free slot:
    the list begins with the key 0, which no individual has.
    """

    def __init__(self, slots: int) -> None:
        self.count = 0
        self._positions = np.zeros(slots, np.int32)
        self._keys = np.zeros(1 + slots // 4, np.uint64)
        self._rows = np.full((1 + slots // 4, 3), np.nan)

    @property
    def entries(self) -> tuple[Hashes, Floats]:
        """Keys and rows, in the order of arrival."""
        return self._keys[1 : self.count + 1], self._rows[1 : self.count + 1]

    def with_room_for(self, more: int) -> _Table:
        """This table, or a larger copy of it if it would be more than a quarter full: probes then end soon."""
        slots = len(self._positions)
        while 4 * (self.count + more) > slots:
            slots *= 2
        if slots == len(self._positions):
            return self
        larger = _Table(slots)
        larger.insert(*self.entries)
        return larger

    def find(self, keys: Hashes) -> Floats:
        """The row of each key, shape (n, 3); NaN if unknown."""
        found = np.zeros(len(keys), np.int32)
        pending, slots = np.arange(len(keys)), self._first_slots(keys)
        while len(pending):
            positions = self._positions[slots]
            there = self._keys[positions] == keys[pending]
            found[pending[there]] = positions[there]
            searching = ~there & (positions != 0)
            pending, slots = pending[searching], self._next_slots(slots[searching])
        return self._rows[found]

    def insert(self, keys: Hashes, rows: Floats) -> None:
        """Add distinct new keys; the table must have room for them."""
        positions = np.arange(self.count + 1, self.count + 1 + len(keys), dtype=np.int32)
        self._keys[positions], self._rows[positions] = keys, rows
        pending, slots = np.arange(len(keys)), self._first_slots(keys)
        while len(pending):
            free = self._positions[slots] == 0
            # If several keys take one free slot, the last one written stays; the others see it and move on.
            self._positions[slots[free]] = positions[pending[free]]
            placed = self._positions[slots] == positions[pending]
            pending, slots = pending[~placed], self._next_slots(slots[~placed])
        self.count += len(keys)

    def _first_slots(self, keys: Hashes) -> Indices:
        return (keys & np.uint64(len(self._positions) - 1)).astype(np.int64)

    def _next_slots(self, slots: Indices) -> Indices:
        return (slots + 1) & (len(self._positions) - 1)
