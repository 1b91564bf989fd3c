"""Tiles: how many rows a machine works on at a time, and the loop over the places where the rows lie."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from llvmlite import ir

from shine.compiler.codegen.blocks import Variables, counted, number
from shine.compiler.codegen.moments import TILE_BYTES
from shine.evaluate.machine.job import Job

ROW_GROUP = 64
"""Columns are padded to a multiple of this many rows, which the width of every vector divides."""

CACHE_BYTES = 24 * 1024
"""Bytes that the live tiles of an individual may take together; an individual with more tiles gets shorter ones."""

COLUMN_OPERAND, TILE_OPERAND, CONSTANT_OPERAND = 0, 1, 2
"""Kinds of operands: a column of the data, a tile of the stack, a constant."""

OPERAND_BYTES = 24
"""Size of an operand on the stack: its kind, then its two words in an instruction."""


def tile_rows(dtype: str) -> int:
    """Rows of a tile."""
    return TILE_BYTES // np.dtype(dtype).itemsize


def tile_length(tiles: int, shortest: int) -> int:
    """Bytes of a tile: `TILE_BYTES`, halved until all `tiles` fit into the cache, but at least `shortest`; a kernel."""
    length = TILE_BYTES
    while length > shortest and tiles * length > CACHE_BYTES:
        length = length >> 1
    return length


def padded_rows(rows: int) -> int:
    """A number of rows, padded to a multiple of `ROW_GROUP`; a kernel."""
    return (rows + (ROW_GROUP - 1)) & -ROW_GROUP


@contextmanager
def over_parts(build: ir.IRBuilder, job: Job, wanted: Variables) -> Iterator[tuple[Job, ir.Value, ir.Value]]:
    """A loop over the two parts of the rows, those in place and the tail, as long as ``wanted["further"]`` is not 0.

    Yields
    ------
    job : Job
        With the addresses of the part.
    begin, end : ir.Value
        Its first row, and the row after its last.
    """
    with counted(build, number(0), number(2)) as part:
        tail = build.icmp_unsigned("==", part.index, number(1))
        here = job | {
            field: build.select(tail, job[f"tail_{field}"], job[field])
            for field in ("columns", "target", "weights", "loss_columns")
        }
        begin = build.select(tail, job["full"], number(0))
        end = build.select(tail, job["rows"], job["full"])
        exists = build.icmp_unsigned("<", begin, end)
        with build.if_then(build.and_(exists, build.icmp_unsigned("!=", wanted["further"], number(0)))):
            yield here, begin, end
