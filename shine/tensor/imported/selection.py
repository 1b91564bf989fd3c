"""Choices of elements as other systems define them."""

from __future__ import annotations

import math

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.imported.building import Building, Operand


def from_the_end(b: Building, indices: Operand, size: int) -> Operand:
    """Indices of 64 bits; negative ones are counted from the end."""
    found = b.cast_to(indices, "int64")
    result: Operand = b.select(b.lt(found, b.like(found, 0)), b.add(found, b.like(found, size)), found)
    return result


def elements_along(b: Building, x: Operand, indices: Operand, axis: int) -> Operand:
    """For each place of the indices, the element of x that has the same place but on one axis.

    They are places of the flattened x, by arithmetic on the indices.
    """
    if indices.rank != x.rank:
        raise GraphImportError(f"its indices have {indices.rank} axes, and its input has {x.rank}")
    if not x.rank:
        return x
    strides = [math.prod(x.shape[i + 1 :]) for i in range(x.rank)]
    others = np.zeros(indices.shape, np.int64)
    for i, size in enumerate(indices.shape):
        if i != axis:
            others += (np.arange(size) * strides[i]).reshape([-1 if j == i else 1 for j in range(x.rank)])
    last = b.constant(max(x.shape[axis] - 1, 0), "int64")
    inside = b.max(b.min(indices, last), b.constant(0, "int64"))
    places = b.add(b.mul(inside, b.constant(strides[axis], "int64")), b.constant(others))
    found: Operand = b.gather(b.reshape(x, shape=(math.prod(x.shape),)), places, axis=0)
    return found
