"""The memory of losses: a 64-bit hash of each individual, and a table of losses by hash."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from shine.base.typing import Floats, Hashes, Indices, Mask
from shine.compiler.tapes import find_distinct, find_keys, hash_tapes, insert_keys
from shine.lang.population import Population

CAPACITY = 1 << 20
"""Latest individuals that a `Memory` always recalls; it holds at most twice as many."""

_SMALLEST_TABLE = 1 << 12


def hashes(population: Population) -> Hashes:
    """Hash of each individual, made of the codes and positions of its nodes and the bits of its constants.

    The bits have the sign of -0.0: 1 / -0.0 differs from 1 / 0.0.

    Returns
    -------
    ndarray of shape (n_individuals,), uint64
        Never 0. Two different tapes have the same hash with probability 2^-64; among a million individuals, there is
        such a pair with probability 3e-8.

    Notes
    -----
    The hash is the sum of one pseudorandom number for each node (Zobrist 1970).
    """
    return _hashed(population, whole=True)


def symbols(population: Population) -> Hashes:
    """Hash of the symbols of each individual, in any order, without the values of constants (see `hashes`)."""
    return _hashed(population, whole=False)


def _hashed(population: Population, whole: bool) -> Hashes:
    found = np.empty(len(population), np.uint64)
    tapes = population.codes, population.values.view(np.uint64), population.sizes
    hash_tapes(len(population), population.width, whole, *tapes, found)
    return found


def distinct(keys: Hashes) -> tuple[Indices, Indices]:
    """Positions of the distinct keys, in the order of their arrival, and the place of each key among them."""
    n, slots = len(keys), 1 << (4 * len(keys)).bit_length()
    first, places, count = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(1, np.int64)
    find_distinct(n, slots, keys, np.zeros(slots, np.int32), first, places, count)
    return first[: count[0]], places


@dataclass(frozen=True, eq=False)
class Known:
    """The contents of a `Memory`, in the order of their arrival.

    Parameters
    ----------
    younger_keys, elder_keys : ndarray of shape (n_younger,) or (n_elder,), uint64
    younger_losses, elder_losses : ndarray of shape (n_younger,) or (n_elder,), float64
    """

    younger_keys: Hashes
    younger_losses: Floats
    elder_keys: Hashes
    elder_losses: Floats

    @classmethod
    def nobody(cls) -> Self:
        """An empty memory's contents."""
        keys, losses = np.zeros(0, np.uint64), np.zeros(0)
        return cls(keys, losses, keys, losses)


class Memory:
    """Losses of individuals by their hash.

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
            self._younger.insert(known.younger_keys, known.younger_losses)
            self._elder = self._elder.with_room_for(len(known.elder_keys))
            self._elder.insert(known.elder_keys, known.elder_losses)

    def __len__(self) -> int:
        return self._younger.count + self._elder.count

    @property
    def known(self) -> Known:
        """The current contents. They share the memory's arrays, but never change: a memory only appends."""
        return Known(*self._younger.entries, *self._elder.entries)

    def recall(self, keys: Hashes) -> tuple[Mask, Floats]:
        """Whether each individual is known, shape (n,), and the losses of all, NaN if unknown."""
        losses = self._younger.find(keys)
        if self._elder.count:
            missing = np.flatnonzero(np.isnan(losses))
            losses[missing] = self._elder.find(keys[missing])
        return ~np.isnan(losses), losses

    def store(self, keys: Hashes, losses: Floats) -> None:
        """Add the losses of individuals that are unknown and distinct."""
        while len(keys):
            if self._younger.count >= self._capacity:
                self._elder, self._younger = self._younger, _Table(_SMALLEST_TABLE)
            fit = self._capacity - self._younger.count
            self._younger = self._younger.with_room_for(len(keys[:fit]))
            self._younger.insert(keys[:fit], losses[:fit])
            keys, losses = keys[fit:], losses[fit:]


class _Table:
    """A hash table with linear probing.

    The slots hold positions in a list of entries, which keeps the order of arrival. Position 0 stands for a free slot:
    the list begins with the key 0, which no individual has.
    """

    def __init__(self, slots: int) -> None:
        self.count = 0
        self._positions = np.zeros(slots, np.int32)
        self._keys = np.zeros(1 + slots // 4, np.uint64)
        self._losses = np.full(1 + slots // 4, np.nan)

    @property
    def entries(self) -> tuple[Hashes, Floats]:
        """Keys and losses, in the order of arrival."""
        return self._keys[1 : self.count + 1], self._losses[1 : self.count + 1]

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
        """The loss of each key, shape (n,); NaN if unknown."""
        found = np.empty(len(keys), np.int32)
        find_keys(len(keys), len(self._positions), keys, self._positions, self._keys, found)
        return self._losses[found]

    def insert(self, keys: Hashes, losses: Floats) -> None:
        """Add distinct new keys; the table must have room for them."""
        new = slice(self.count + 1, self.count + 1 + len(keys))
        self._keys[new], self._losses[new] = keys, losses
        insert_keys(len(keys), len(self._positions), new.start, keys, self._positions)
        self.count += len(keys)
