"""Tapes under composition: joined one after the other, and put in the place of arguments, many at once.

Everything here works on whole populations of tapes; no loop runs over individuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.typing import AnyArray, Codes, Floats, Indices, Mask
from shine.lang.forms.primitives import CONSTANT

LONGEST = 4000
"""Most nodes of a composed formula. Formulas of derivatives can become longer; such individuals have no value."""


@dataclass(frozen=True, eq=False)
class Tapes:
    """Parts of tapes in postfix order, one for each individual.

    Each array but the last has shape (n_individuals, width).

    Parameters
    ----------
    codes : ndarray, int16
        Codes of the composed formulas; -1, -2, ... are the arguments of an unknown function.
    values : ndarray, float64
    sources : ndarray, int64
        Position of each constant on the individual's own tape; -1 if it is not there.
    grouped : ndarray, bool
        Whether that is the first leaf of a parameter by group.
    sizes : ndarray of shape (n_individuals,), int64
    """

    codes: Codes
    values: Floats
    sources: Indices
    grouped: Mask
    sizes: Indices

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def inside(self) -> Mask:
        """Mask of the cells in use."""
        return np.asarray(np.arange(self.codes.shape[1]) < self.sizes[:, None])

    @property
    def cells(self) -> tuple[AnyArray, ...]:
        """The arrays with one entry for each node."""
        return self.codes, self.values, self.sources, self.grouped

    @classmethod
    def of_cells(cls, cells: Sequence[AnyArray], sizes: Indices) -> Tapes:
        """Tapes of given sizes from their nodes, one tape after the other.

        Tapes of more than `LONGEST` nodes become NaN.
        """
        kept = sizes <= LONGEST
        if not kept.all():
            nodes = np.repeat(kept, sizes)
            nothing = (np.array([CONSTANT]), np.array([np.nan]), np.array([-1]), np.array([False]))
            at = np.cumsum(np.where(kept, sizes, 0))[~kept]
            cells = [np.insert(a[nodes], at, np.repeat(b, len(at))) for a, b in zip(cells, nothing, strict=True)]
            sizes = np.where(kept, sizes, 1)
        n, width = len(sizes), int(sizes.max(initial=1))
        inside = np.arange(width) < sizes[:, None]
        codes, values = np.zeros((n, width), np.int16), np.zeros((n, width))
        sources, grouped = np.full((n, width), -1, np.int64), np.zeros((n, width), np.bool_)
        tables: tuple[AnyArray, ...] = (codes, values, sources, grouped)
        for table, own in zip(tables, cells, strict=True):
            table[inside] = own
        return cls(codes, values, sources, grouped, sizes.astype(np.int64))

    @classmethod
    def constant(cls, n: int, value: float) -> Tapes:
        """Tapes of one number that nothing fits."""
        nodes = np.zeros(n, np.int16), np.full(n, value), np.full(n, -1, np.int64), np.zeros(n, np.bool_)
        return cls.of_cells(nodes, np.ones(n, np.int64))


def joined(parts: Sequence[Tapes]) -> Tapes:
    """The parts of each individual, one after the other."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.array([part.sizes for part in parts])
    total = sizes.sum(axis=0)
    starts = np.cumsum(total) - total + np.cumsum(sizes, axis=0) - sizes
    count = int(total.sum())
    cells = [np.empty(count, array.dtype) for array in parts[0].cells]
    for part, start in zip(parts, starts, strict=True):
        inside = part.inside
        at = (start[:, None] + np.arange(part.codes.shape[1]))[inside]
        for whole, own in zip(cells, part.cells, strict=True):
            whole[at] = own[inside]
    return Tapes.of_cells(cells, total)


def substituted(formulas: Tapes, arguments: Sequence[Tapes]) -> Tapes:
    """The formulas of an unknown function with other tapes in the place of its arguments."""
    inside = formulas.inside
    rows = np.nonzero(inside)[0]
    codes = formulas.codes[inside].astype(np.int64)
    cells = [array[inside] for array in formulas.cells]
    # Nodes of the formulas and of the arguments in one row, to take each result from.
    lengths = np.ones(len(codes), np.int64)
    first = np.arange(len(codes))
    sources = [cells]
    count = len(codes)
    for k, argument in enumerate(arguments):
        own = argument.inside
        starts = count + np.cumsum(argument.sizes) - argument.sizes
        used = codes == -1 - k
        lengths[used], first[used] = argument.sizes[rows[used]], starts[rows[used]]
        sources.append([array[own] for array in argument.cells])
        count += int(argument.sizes.sum())
    every = [np.concatenate(arrays) for arrays in zip(*sources, strict=True)]
    at = ranges(first, lengths)
    sizes = np.bincount(rows, weights=lengths, minlength=len(formulas)).astype(np.int64)
    return Tapes.of_cells([array[at] for array in every], sizes)


def ranges(first: Indices, lengths: Indices) -> Indices:
    """The numbers first, first + 1, ... of several ranges, one range after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    found: Indices = np.arange(total) + np.repeat(first - (ends - lengths), lengths)
    return found


def subtree_sizes(codes: Codes, inside: Mask, arities: Indices) -> Indices:
    """Nodes of the subtree that ends at each position, 1 beyond the end; arguments, of negative codes, are leaves."""
    n, width = codes.shape
    found = np.where(inside & (codes > 0), arities[np.maximum(codes, 0)], 0)
    sizes = np.ones((n, width), np.int64)
    everyone = np.arange(n)
    for position in range(1, width):
        end = np.full(n, position - 1)
        for argument in range(int(found[:, position].max(initial=0))):
            has = found[:, position] > argument
            size = sizes[everyone, np.maximum(end, 0)]
            sizes[has, position] += size[has]
            end = np.where(has, end - size, end)
    return sizes
