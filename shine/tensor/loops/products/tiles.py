"""Tiles of matrix products, from the registers and caches of a machine.

The register tile and the blocks for the caches are those of K. Goto, R. van de Geijn, "Anatomy of high-performance
matrix multiplication", ACM TOMS 34, 2008; how they follow from the machine, of T. M. Low et al., "Analytical modeling
is enough for high-performance BLIS", ACM TOMS 43, 2016.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from shine.compiler.processor import Machine
from shine.tensor.form.module import Value
from shine.tensor.loops.placement import Placement, is_uniform

LATENCY = 4
"""Cycles of a multiply-add on today's processors; two start in each."""

MOST_VECTORS = 4
"""Vectors of a row of the tile; more only for products of few rows."""

PACKED_VECTORS = 2
"""Vectors of a row of the tile of a large product. A narrow panel that fills the first cache is deep: then unfinished
sums, which wait beyond that cache, are written and read few times."""


@dataclass(frozen=True)
class Tiles:
    """The tiles and blocks of a product.

    Parameters
    ----------
    width : int
        Lanes of a vector.
    rows, vectors : int
        Of the register tile.
    chains : int
        Sums that each element of the tile is split into, to have enough in flight.
    depth : int
        Terms of a sum that are added before the next block of rows comes.
    columns : int
        Of a packed block; 0 if the right operand is read where it is.
    terms : int
        Terms that are added to all sums of a row before the next ones come; 0 if each sum is finished at once.
    high : int
        Rows of a packed block of the left operand; 0 if it is read where it is.
    """

    width: int
    rows: int
    vectors: int
    chains: int
    depth: int
    columns: int
    terms: int = 0
    high: int = 0

    @property
    def stride(self) -> int:
        """Elements from row to row of the packed left block, so that rows do not meet in one set of a cache."""
        return self.depth + self.width

    def __str__(self) -> str:
        packed = f", packed {self.depth} x {self.columns}" if self.columns else ""
        packed += f" and {self.high} x {self.depth}" if self.high else ""
        split = f", {self.chains} sums each" if self.chains > 1 else ""
        streamed = f", {self.terms} terms at a time" if self.terms else ""
        return f"{self.rows} x {self.vectors} vectors of {self.width}{split}{packed}{streamed}"


@cache
def tiles_of(machine: Machine, itemsize: int, m: int, k: int, n: int, contiguous: bool, may_pack: bool = True) -> Tiles:
    """Tiles for an m x k matrix times a k x n one.

    Parameters
    ----------
    machine : Machine
    itemsize : int
    m, k, n : int
    contiguous : bool
        Whether rows of the right operand are; if not, it is packed.
    may_pack : bool
        Whether it may be packed for the caches.
    """
    full = machine.lanes(itemsize)
    width = min(full, 1 << max(n - 1, 0).bit_length())
    rows, vectors = _register_tile(machine.registers, max(m, 1), max(1, -(-n // width)))
    first, second, third = machine.caches
    is_large = may_pack and k * n * itemsize > second // 2
    packs = not contiguous or (is_large and m >= 4 * rows)
    most = _most_rows(machine.registers, PACKED_VECTORS)
    packs_left = is_large and n >= 4 * PACKED_VECTORS * width and m >= 8 * most
    if packs_left:
        rows, vectors = most, PACKED_VECTORS
    chains = 1
    while may_pack and rows * vectors * chains < 2 * LATENCY and 2 * chains <= max(k, 1):
        chains *= 2
    step = vectors * width * itemsize
    # The packed panel of the right operand takes two thirds of the first cache.
    depth = max(64, first * 2 // 3 // step // 8 * 8)
    if depth >= k or k <= depth * 3 // 2:
        depth = k
    block = max(1, third // 4 // (depth * step)) * vectors * width if depth else 0
    columns = min(block, -(-n // (vectors * width)) * vectors * width) if packs else 0
    if may_pack and rows == 1 and not packs and k * n * itemsize > first:
        return streaming_tiles(machine, width, k, n)
    if not packs:
        return Tiles(width, rows, vectors, chains, k, 0)
    tiles = Tiles(width, rows, vectors, chains, depth, columns)
    if not packs_left:
        return tiles
    # A block of the left operand takes half of the second cache, and is read once for each panel.
    high = max(1, second // 2 // (tiles.stride * itemsize) // rows)
    return replace(tiles, high=min(high, -(-m // rows)) * rows)


def streaming_tiles(machine: Machine, width: int, k: int, n: int) -> Tiles:
    """Tiles for a row times a matrix that is read from beyond the first cache.

    The matrix is read in the order in which it is in memory, because caches fetch ahead then: some of its rows at once,
    whose elements on the left take half of the registers. Sums wait in the first cache.
    """
    vectors = min(max(1, machine.registers // 8), max(1, -(-n // width)))
    return Tiles(width, 1, vectors, 1, k, 0, min(k, machine.registers // 2))


def _register_tile(registers: int, m: int, columns: int) -> tuple[int, int]:
    """Rows and vectors with the fewest cycles a term of the sums, and few loads among those."""
    best: tuple[float, int, int] | None = None
    for vectors in range(1, min(columns, MOST_VECTORS if m > 1 else 2 * MOST_VECTORS) + 1):
        for rows in range(1, min(m, _most_rows(registers, vectors)) + 1):
            cycles = sum(
                times * _cycles(height, wide)
                for height, by in ((rows, m // rows), (m % rows, 1))
                for wide, across in ((vectors, columns // vectors), (columns % vectors, 1))
                for times in (by * across,)
                if height and wide
            )
            uneven = (m % rows > 0) + (columns % vectors > 0)
            loads = (rows + vectors) / (rows * vectors)
            found = (cycles * (1 + 0.1 * loads + 0.01 * uneven), rows, vectors)
            best = found if best is None else min(best, found, key=lambda tile: tile[0])
    assert best is not None
    return best[1], best[2]


def _most_rows(registers: int, vectors: int) -> int:
    """Number of rows that registers suffice for.

    Besides the accumulators there are a vector of each column, and one or two elements of the left operand.
    """
    return max(1, (registers - vectors - (2 if registers > 16 else 1)) // vectors)


def _cycles(rows: int, vectors: int) -> float:
    """Cycles a term: two multiply-adds, or two loads, start in each; a chain waits for itself."""
    return max(rows * vectors / 2, (rows + vectors) / 2, min(LATENCY, rows * vectors) / 2)


def row_length(machine: Machine, placed: Placement, value: Value) -> int:
    """Elements from row to row of a value in memory; more than a row has if the value is a matrix of a product.

    Only constants that nothing but products read, on the right, have such rows: they can be stored so at compile time.
    """
    length = value.type.shape[-1] if value.type.rank else 1
    lanes = machine.lanes(value.type.numpy.itemsize)
    padded = -(-length // lanes) * lanes
    # Rows are padded by at most an eighth of them.
    if value.type.rank < 2 or padded == length or (padded - length) * 8 > length:
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
