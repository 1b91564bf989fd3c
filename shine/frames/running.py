"""A query over the rows of a table: blocks of rows, taken by threads, and what they select or compute."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, count
from typing import Any

import numpy as np
from llvmlite import ir

from shine.base.typing import AnyArray, Hashes, Mask
from shine.compiler.codegen.numbers import source_digest
from shine.compiler.llvm import Engine
from shine.compiler.threads import Workers, check_threads, processors
from shine.frames.columns import GROUP, Column, Piece, Segment, segments
from shine.frames.kernels import COMPUTE, POSITIONS, SELECT, emit_positions, emit_query
from shine.frames.language.types import Code, Plan, Query

KEPT = 256
"""Most queries whose code stays in memory."""

_ADDRESS, _COUNT = ctypes.c_void_p, ctypes.c_int64


@lru_cache(maxsize=KEPT)
def selecting(plan: Plan) -> Any:
    """The function of a condition, see `shine.frames.kernels.emit_query`."""
    kinds = [_ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS, _COUNT]
    return _compiled(SELECT, repr(plan), lambda module: emit_query(module, plan, computes=False), kinds, plan)


@lru_cache(maxsize=KEPT)
def computing(plan: Plan) -> Any:
    """The function of values, see `shine.frames.kernels.emit_query`."""
    kinds = [_ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS, _COUNT, _ADDRESS]
    return _compiled(COMPUTE, repr(plan), lambda module: emit_query(module, plan, computes=True), kinds, plan)


@lru_cache(maxsize=2)
def positions(bits: int) -> Any:
    """The function from bits to indices, see `shine.frames.kernels.emit_positions`."""
    kinds = [_ADDRESS, _COUNT, _COUNT, _ADDRESS, _COUNT]
    return _compiled(POSITIONS, str(bits), lambda module: emit_positions(module, bits), kinds)


def _compiled(
    name: str, meaning: str, emit: Callable[[ir.Module], None], kinds: list[Any], plan: Plan | None = None
) -> Any:
    def emitted() -> ir.Module:
        module = ir.Module(name=f"queries.{name}")
        emit(module)
        return module

    # Steps from which a query is compiled without optimization, whose time is not linear.
    level = 0 if plan is not None and len(plan.steps) > 1_000 else 2
    engine = Engine.kept([name], ("queries", name, meaning, source_digest("frames")), emitted, level)
    return engine.function(name, ctypes.c_int64, *kinds)


BLOCK_ROWS = 1 << 18
"""Rows of a block that is read in place: threads share blocks, and an interrupt waits for one."""

COPIED_ROWS = 1 << 13
"""Rows of a block if a column must be copied to lie together: they fit into the cache."""

SHARED_ROWS = 1 << 20
"""Rows of a table from which several threads share them: about half a millisecond."""

LARGEST_INDEX = 2**32
"""Rows of a table up to which indices are uint32."""


@dataclass(frozen=True, eq=False)
class Selection:
    """Bits of the rows of a table, in words for each segment.

    Parameters
    ----------
    rows : int
    parts : list of (Segment, ndarray)
    counts : list of list of int
        Rows that are selected in each block of each segment.
    threads : int
    """

    rows: int
    parts: list[tuple[Segment, Hashes]]
    counts: list[list[int]]
    threads: int
    block: int

    @property
    def count(self) -> int:
        """Number of selected rows."""
        return sum(map(sum, self.counts))

    def indices(self) -> AnyArray:
        """Positions of the selected rows, in order."""
        dtype = np.dtype(np.uint32 if self.rows <= LARGEST_INDEX else np.uint64)
        out = np.empty(self.count, dtype)
        function = positions(dtype.itemsize * 8)
        words = self.block // GROUP
        blocks = [
            (bits[i * words : (i + 1) * words], segment.start + i * self.block, number)
            for (segment, bits), numbers in zip(self.parts, self.counts, strict=True)
            for i, number in enumerate(numbers)
        ]
        starts = [0, *accumulate(number for _, _, number in blocks)]

        def write(position: int) -> None:
            bits, first, number = blocks[position]
            address = out.ctypes.data + starts[position] * dtype.itemsize
            function(bits.ctypes.data, len(bits), first, address, number)

        _share(self.threads, len(blocks), lambda: write)
        return out

    def mask(self) -> Mask:
        """Whether each row is selected."""
        out = np.empty(self.rows, np.bool_)
        for segment, bits in self.parts:
            found = np.unpackbits(bits.view(np.uint8), count=segment.rows, bitorder="little")
            out[segment.start : segment.stop] = found.view(np.bool_)
        return out


@dataclass(frozen=True, eq=False)
class Computed:
    """Values of the rows of a table.

    Parameters
    ----------
    values : ndarray
    valid : ndarray of bool, optional
        Which rows have one; None if all have.
    is_nullable : bool
        Whether a column is of a type with missing values, or a value is missing.
    """

    values: AnyArray
    valid: Mask | None
    is_nullable: bool


def select(query: Query, columns: Sequence[Column], rows: int, threads: int | None) -> Selection:
    """The rows where a condition is true."""
    function = selecting(query.plan)
    run = _Run(query, columns, rows, threads)
    parts = [(segment, np.empty(-(-segment.rows // GROUP), np.uint64)) for segment in run.segments]
    counts = [[0] * len(range(0, segment.rows, run.block)) for segment in run.segments]

    def work() -> Callable[[int], None]:
        reader = _Reader(run)

        def do(position: int) -> None:
            number, start, stop = run.blocks[position]
            words = parts[number][1][start // GROUP : -(-stop // GROUP)]
            found = 0
            for piece_start, size in _pieces(start, stop):
                groups = words[(piece_start - start) // GROUP :]
                reader.read(run.segments[number], piece_start, size)
                found += function(*reader.arguments(number), groups.ctypes.data, -(-size // GROUP))
                if size % GROUP:
                    found -= _cut(groups, size)
            counts[number][start // run.block] = found

        return do

    _share(run.threads, len(run.blocks), work)
    return Selection(rows, parts, counts, run.threads, run.block)


def compute(query: Query, columns: Sequence[Column], rows: int, threads: int | None) -> Computed:
    """The values of all rows."""
    function = computing(query.plan)
    kind = query.plan.kind
    run = _Run(query, columns, rows, threads)
    out = np.empty(rows, kind)
    valid = np.ones(rows, np.bool_) if query.plan.can_miss else None
    missing: list[int] = []

    def work() -> Callable[[int], None]:
        reader = _Reader(run)
        words = np.empty(-(-run.block // GROUP), np.uint64)
        truths, rest = np.empty_like(words), np.empty(GROUP, kind)

        def do(position: int) -> None:
            number, start, stop = run.blocks[position]
            for first, size in _pieces(start, stop):
                row = run.segments[number].start + first
                reader.read(run.segments[number], first, size)
                target = truths if kind == "bool" else rest if size % GROUP else out[row : row + size]
                arguments = (*reader.arguments(number), words.ctypes.data, -(-size // GROUP), target.ctypes.data)
                found = function(*arguments) - (_cut(words, size) if size % GROUP else 0)
                if kind == "bool":
                    bits = np.unpackbits(truths.view(np.uint8), count=size, bitorder="little")
                    out[row : row + size] = bits.view(np.bool_)
                elif size % GROUP:
                    out[row : row + size] = rest[:size]
                if found < size and valid is not None:
                    missing.append(number)
                    bits = np.unpackbits(words.view(np.uint8), count=size, bitorder="little")
                    valid[row : row + size] = bits.view(np.bool_)

        return do

    _share(run.threads, len(run.blocks), work)
    is_nullable = bool(missing) or any(column.type.missing in ("bits", "bytes") for column in columns)
    return Computed(out, valid if missing else None, is_nullable)


def _pieces(start: int, stop: int) -> list[tuple[int, int]]:
    """First row and number of the whole groups of a block, and of the rows after them."""
    whole = (stop - start) // GROUP * GROUP
    pieces = [(start, whole), (start + whole, stop - start - whole)]
    return [piece for piece in pieces if piece[1]]


def _cut(words: Hashes, size: int) -> int:
    """Clear the bits of the last word that belong to no row; how many were set."""
    word = int(words[0])
    kept = word & ((1 << size) - 1)
    words[0] = kept
    return word.bit_count() - kept.bit_count()


def _share(threads: int, count_of: int, work: Callable[[], Callable[[int], None]]) -> None:
    """Do numbered pieces of work, each on the next thread that is free."""
    begun = count()
    stopped: list[bool] = []

    def take(thread: int) -> None:
        do = work()
        while not stopped and (number := next(begun)) < count_of:
            do(number)

    Workers(max(1, min(threads, count_of))).run(take, lambda: stopped.append(True))


class _Run:
    """State shared by the threads of a run."""

    def __init__(self, query: Query, columns: Sequence[Column], rows: int, threads: int | None) -> None:
        check_threads(threads)
        self.query, self.columns = query, columns
        self.segments = list(segments(columns, rows))
        is_copied = any(_is_copied(piece) for column in columns for piece in column.pieces)
        self.block = COPIED_ROWS if is_copied else BLOCK_ROWS
        self.threads = (threads or processors()) if rows >= SHARED_ROWS else 1
        self.blocks = [
            (number, start, min(start + self.block, segment.rows))
            for number, segment in enumerate(self.segments)
            for start in range(0, segment.rows, self.block)
        ]
        self.slots = [self._slots_of(segment) for segment in self.segments]

    def _slots_of(self, segment: Segment) -> AnyArray:
        """The numbers that are passed to the code, 8 bytes each."""
        slots = np.zeros(max(1, len(self.query.slots)), np.uint64)
        for position, (kind, value) in enumerate(zip(self.query.plan.slots, self.query.slots, strict=True)):
            if isinstance(value, Code):
                codes = self.columns[value.column].at(segment.start)[0].codes
                value = -1 if codes is None else codes.get(value.text, -1)
            slots[position : position + 1].view(kind)[0] = value
        return slots


def _is_copied(piece: Piece) -> bool:
    return not (piece.values.flags.c_contiguous and (piece.marks is None or piece.marks.flags.c_contiguous))


class _Reader:
    """Finds the addresses of rows, for one thread; copies those that do not lie together, and the last ones."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        count_of = max(1, 2 * len(run.columns))
        self._addresses, self._offsets = np.zeros(count_of, np.uint64), np.zeros(count_of, np.int64)
        self._kept: list[AnyArray] = []

    def arguments(self, number: int) -> tuple[int, int, int]:
        """The first arguments of the code."""
        return self._addresses.ctypes.data, self._offsets.ctypes.data, self._run.slots[number].ctypes.data

    def read(self, segment: Segment, start: int, size: int) -> None:
        """Set the addresses of some rows of a segment; fewer than a group are copied into one."""
        self._kept.clear()
        for position, column in enumerate(self._run.columns):
            piece, row = column.at(segment.start + start)
            values = piece.values, piece.first, column.type.storage == "bit"
            marks = piece.marks, piece.first_mark, column.type.missing == "bits"
            for place, (array, first, is_bitmap) in zip((2 * position, 2 * position + 1), (values, marks), strict=True):
                if array is not None:
                    self._set(place, array, first + row, size, is_bitmap)

    def _set(self, place: int, array: AnyArray, first: int, size: int, is_bitmap: bool) -> None:
        is_short = size % GROUP != 0
        self._offsets[place] = 0
        if is_bitmap:
            self._offsets[place] = first % 8
            stop = (first + size + 7) // 8
            part = array[first // 8 : stop]
            if is_short:
                part = self._copied(part, GROUP // 8 + 1)
        else:
            part = array[first : first + size]
            if is_short or not part.flags.c_contiguous:
                part = self._copied(part, GROUP if is_short else size)
        self._addresses[place] = part.ctypes.data

    def _copied(self, part: AnyArray, size: int) -> AnyArray:
        copy: Any = np.zeros(size, part.dtype)
        copy[: len(part)] = part
        self._kept.append(copy)
        return copy
