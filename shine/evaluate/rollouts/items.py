"""Tables of rollouts for the native code, and the call that rolls them out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shine.base.typing import AnyArray, Indices
from shine.compiler.threads import Workers
from shine.evaluate.rollouts.memory import WIDTH
from shine.evaluate.rollouts.native import JOB, functions
from shine.evaluate.rollouts.work import ITEM

LEAST_TOLERANCE = 1e-13

_AT_ONCE = 64
"""Rollouts after which a thread looks for an interrupt."""


Word = AnyArray | int | float


def item_table(count: int, words: Mapping[str, Word]) -> AnyArray:
    """The words of some rollouts, shape (count, n_words); those that are not given are 0.

    An array gives each rollout its own word; a float is stored as a double.
    """
    items = np.zeros((count, len(ITEM)), np.int64)
    for name, value in words.items():
        table = items.view(np.float64) if isinstance(value, float) else items
        table[:, ITEM.index(name)] = value
    return items


def places(array: AnyArray) -> Indices:
    """Address of each entry along the first axis."""
    addresses: Indices = array.ctypes.data + array.strides[0] * np.arange(len(array))
    return addresses


def run_items(items: AnyArray, doubles: int, workers: Workers) -> None:
    """Roll out the items of a table, by threads that take one after the other.

    Parameters
    ----------
    items : ndarray of shape (n_items, n_words), int64
    doubles : int
        Memory of a thread.
    workers : Workers
    """
    entry, worker_loop = functions()
    memory = np.zeros((workers.threads, -(-doubles // WIDTH) * WIDTH))
    jobs = np.zeros((workers.threads, 8), np.int64)
    begun, count = np.zeros(8, np.int64), len(items)
    jobs[:, JOB.index("items")] = items.ctypes.data
    jobs[:, JOB.index("memory")] = places(memory)
    addresses, range_ = places(jobs), 8 * JOB.index("first")

    def work(thread: int) -> None:
        own = int(addresses[thread])
        while begun[0] < count:
            worker_loop(entry, own, own + range_, begun.ctypes.data, count, 1, _AT_ONCE)

    workers.run(work, lambda: begun.fill(count))
