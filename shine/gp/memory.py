"""Recognizing individuals: a 64-bit hash of their tapes, and the memory of scores by hash."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shine.fitness import Scores
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT
from shine.typing import Floats, Hashes, Indices, Mask

CAPACITY = 1 << 20
"""Individuals that a `Memory` recalls for certain; it forgets all but the latest one to two times as many."""

_SMALLEST_TABLE = 1 << 12


def hashes(population: Population) -> Hashes:
    """Hash of each individual's nodes: codes, positions, and the bits of the constants.

    Returns
    -------
    ndarray of shape (n_individuals,), uint64
        Never 0. Two different tapes share a hash with probability 2^-64, so that among a million individuals
        there is such a pair with probability 3e-8.

    Notes
    -----
    A sum of one well-mixed number for each node (Zobrist 1970).
    """
    width, known = population.width, len(population.primitives.arities)
    positions = np.arange(width)
    inside = positions < population.sizes[:, None]
    # Behind the end of a tape there may be anything.
    cells: Hashes = _numbers(width, known).take(population.codes + known * positions, mode="clip")
    at = np.nonzero(inside & (population.codes == CONSTANT))
    # Adding -0.0 would lose its sign; its bits are hashed as they are, for 1 / -0.0 differs from 1 / 0.0.
    cells[at] = _mixed(cells[at] ^ population.values[at].view(np.uint64))
    cells *= inside
    total: Hashes = np.add.reduce(cells, axis=1, dtype=np.uint64)
    return np.maximum(total, np.uint64(1))


@lru_cache(maxsize=4)
def _numbers(width: int, codes: int) -> Hashes:
    """One number for each code at each position, the codes of the first position first."""
    positions: Hashes = np.arange(width, dtype=np.uint64)
    first: Hashes = np.arange(1, codes + 1, dtype=np.uint64)
    return _mixed(np.add.outer(positions << np.uint64(16), first)).ravel()


def _mixed(x: Hashes) -> Hashes:
    """A bijection under which similar numbers become unrelated ones: splitmix64 (Steele et al. 2014)."""
    x = x * np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


@dataclass(frozen=True, eq=False)
class Known:
    """What a `Memory` holds, in the order in which it came.

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


class Memory:
    """Scores of individuals by their hash.

    Two tables, the younger of which is filled; when it is full it becomes the elder, and the elder is forgotten.

    Parameters
    ----------
    capacity : int
    known : Known, optional
        What to recall from the beginning.
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
        """What is known now. It costs nothing, for it shares the memory's arrays, and stays what it is: a memory only
        ever adds to them."""
        return Known(*self._younger.entries, *self._elder.entries)

    def recall(self, keys: Hashes) -> tuple[Mask, Scores]:
        """Which individuals are known, shape (n,), and the scores of all of them, NaN where unknown."""
        scores = self._younger.find(keys)
        if self._elder.count:
            missing = np.flatnonzero(np.isnan(scores[:, 0]))
            scores[missing] = self._elder.find(keys[missing])
        return ~np.isnan(scores[:, 0]), Scores(scores[:, 0].copy(), scores[:, 1].copy(), scores[:, 2].copy())

    def store(self, keys: Hashes, scores: Scores) -> None:
        """Remember the scores of unknown individuals, each once."""
        rows = np.column_stack((scores.losses, scores.slopes, scores.intercepts))
        while len(keys):
            if self._younger.count >= self._capacity:
                self._elder, self._younger = self._younger, _Table(_SMALLEST_TABLE)
            fit = self._capacity - self._younger.count
            self._younger = self._younger.with_room_for(len(keys[:fit]))
            self._younger.insert(keys[:fit], rows[:fit])
            keys, rows = keys[fit:], rows[fit:]


class _Table:
    """A hash table with linear probing (Knuth, TAOCP 3, 6.4), every probe a step of all keys.

    The slots hold positions in a list of the entries, which are in the order in which they came. Position 0 is taken by
    a key 0, which no individual has: it is that of a free slot.
    """

    def __init__(self, slots: int) -> None:
        self.count = 0
        self._positions = np.zeros(slots, np.int32)
        self._keys = np.zeros(1 + slots // 2, np.uint64)
        self._rows = np.full((1 + slots // 2, 3), np.nan)

    @property
    def entries(self) -> tuple[Hashes, Floats]:
        """Keys and rows, in the order in which they came."""
        return self._keys[1 : self.count + 1], self._rows[1 : self.count + 1]

    def with_room_for(self, more: int) -> _Table:
        """This table, or a larger copy of it if it would be more than half full."""
        slots = len(self._positions)
        while 2 * (self.count + more) > slots:
            slots *= 2
        if slots == len(self._positions):
            return self
        larger = _Table(slots)
        larger.insert(*self.entries)
        return larger

    def find(self, keys: Hashes) -> Floats:
        """The row of each key, shape (n, 3); NaN for an unknown one."""
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
        """Add distinct keys that are not in the table, which has room for them."""
        positions = np.arange(self.count + 1, self.count + 1 + len(keys), dtype=np.int32)
        self._keys[positions], self._rows[positions] = keys, rows
        pending, slots = np.arange(len(keys)), self._first_slots(keys)
        while len(pending):
            free = self._positions[slots] == 0
            # Of several keys on one free slot the last written stays; the others see it and move on.
            self._positions[slots[free]] = positions[pending[free]]
            placed = self._positions[slots] == positions[pending]
            pending, slots = pending[~placed], self._next_slots(slots[~placed])
        self.count += len(keys)

    def _first_slots(self, keys: Hashes) -> Indices:
        return (keys & np.uint64(len(self._positions) - 1)).astype(np.int64)

    def _next_slots(self, slots: Indices) -> Indices:
        return (slots + 1) & (len(self._positions) - 1)
