"""Rows of constant matrices begin at a vector, so that no vector lies across two lines of the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from shine.compiler.processor import Machine
from shine.tensor.form.module import Value
from shine.tensor.loops.placement import Placement, is_uniform

MOST_PADDING = 8
"""Rows are padded by at most this part of them."""


def row_length(machine: Machine, placed: Placement, value: Value) -> int:
    """Elements from row to row of a value in memory; more than a row has if the value is a matrix of a product.

    Only constants that nothing but products read, on the right, have such rows: they can be stored so at compile time.
    """
    length = value.type.shape[-1] if value.type.rank else 1
    lanes = machine.lanes(value.type.numpy.itemsize)
    padded = -(-length // lanes) * lanes
    if value.type.rank < 2 or padded == length or (padded - length) * MOST_PADDING > length:
        return length
    maker, function = placed.makers.get(value), placed.function
    if maker is None or maker.operation != "constant" or value in function.results:
        return length
    reads = all(user.operation == "dot" and user.operands[0] != value for user in placed.users.get(value, ()))
    return padded if reads and not is_uniform(maker) else length


def in_rows(array: np.ndarray, length: int) -> np.ndarray:
    """An array whose rows are as long, by zeros at their ends."""
    if not array.ndim or array.shape[-1] == length:
        return array
    around: Any = [(0, 0)] * (array.ndim - 1) + [(0, length - array.shape[-1])]
    return np.pad(array, around)
