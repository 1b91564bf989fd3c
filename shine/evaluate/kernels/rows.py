"""A program over arrays: compiled once, then run over a block of rows at a time, by several threads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import count
from math import prod
from typing import Any

import numpy as np
from llvmlite import ir

from shine.base.lazy import cached_property
from shine.base.typing import AnyArray
from shine.compiler.codegen.native.programs import emit_program_rows, vector_bytes
from shine.compiler.llvm import Engine
from shine.compiler.llvm.target import register_bytes
from shine.compiler.threads import Workers, processors
from shine.lang.program.interpret import Shape
from shine.lang.program.program import Program
from shine.lang.program.trees import Stage, stages

OPTIMIZED_NODES, PLAIN_NODES = 2_000, 20_000
"""Most nodes of one function with and without optimization (`shine.lang.program.trees.stages`): LLVM's passes are not
linear in its size, and all its values are on the stack."""

BLOCK_ROWS = 64, 1 << 16
"""Fewest and most rows of a block, if blocks are copied or shared by threads."""

BLOCK_BYTES = 1 << 20
"""Bytes of a thread for columns of a block that are copied to be contiguous, and for values that stages pass to later
ones: about the size of its cache."""

SHARED_NODES = 1 << 22
"""Least work for several threads, in nodes times rows: about a millisecond, enough to make up for starting
them."""

INTERRUPT_NODES = 1 << 29
"""Nodes times rows after which a thread looks for an interrupt: some hundredths of a second."""

_Place = tuple[tuple[Any, ...], int, int]


def rows_ir(program: Program, opt_level: int, vector: int | None) -> str:
    """LLVM IR of the functions of a program's stages, see `shine.compiler.codegen.native.programs.emit_program_rows`.

    Parameters
    ----------
    program : Program
    opt_level : int
    vector : int or None
        Bytes of a vector of rows; if None, the number that suits each stage.
    """
    module = ir.Module(name=f"{program.name}.rows")
    for number, stage in enumerate(_stages(program, opt_level)):
        emit_program_rows(module, stage.program, _name(number), vector or vector_bytes(stage.program, register_bytes()))
    return str(module)


def _stages(program: Program, opt_level: int) -> tuple[Stage, ...]:
    return stages(program, OPTIMIZED_NODES if opt_level else PLAIN_NODES)


def _name(number: int) -> str:
    return f"rows.{number}"


class ProgramRows:
    """A program whose outputs have one shape.

    Parameters
    ----------
    program : Program
    opt_level : int
    threads : int or None
        Threads that share the rows of large arrays; all processors if None.
    vector : int or None
        Bytes of a vector of rows, as for `rows_ir`.
    """

    def __init__(self, program: Program, opt_level: int, threads: int | None, vector: int | None) -> None:
        self.program = program
        self._opt_level, self._threads, self._vector = opt_level, threads, vector
        self._nodes = max(program.size, 1)

    @cached_property
    def _functions(self) -> list[tuple[Stage, Any]]:
        kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
        engine = Engine(rows_ir(self.program, self._opt_level, self._vector), self._opt_level)
        parts = enumerate(_stages(self.program, self._opt_level))
        return [(stage, engine.function(_name(number), ctypes.c_uint8, *kinds)) for number, stage in parts]

    def run(self, arrays: Sequence[AnyArray], shape: Shape) -> list[AnyArray]:
        """Compute the outputs, each an array of the shape.

        Parameters
        ----------
        arrays : sequence of ndarray
            One for each parameter, of its storage type; they broadcast to the shape.
        shape : tuple of int

        Raises
        ------
        ZeroDivisionError
            If an integer division has a zero divisor in any row; without a message.
        """
        outs = [np.empty(shape, output.dtype) for output in self.program.outputs]
        rows = prod(shape)
        if rows == 0:
            return outs
        if len(self._functions) == 1 and self._fits_in_one_call(arrays, shape, rows):
            failed = self._run_at_once(arrays, shape, outs, rows)
        else:
            failed = self._run_in_blocks(arrays, shape, outs, rows)
        if failed:
            raise ZeroDivisionError
        return outs

    def _fits_in_one_call(self, arrays: Sequence[AnyArray], shape: Shape, rows: int) -> bool:
        """Whether blocks would gain nothing: few rows, or one thread that reads the arrays in place."""
        work = rows * self._nodes
        if rows <= BLOCK_ROWS[1] and work < SHARED_NODES:
            return True
        return self._threads == 1 and work <= INTERRUPT_NODES and all(_is_direct(array, shape) for array in arrays)

    def _run_at_once(self, arrays: Sequence[AnyArray], shape: Shape, outs: Sequence[AnyArray], rows: int) -> bool:
        """Fill the outputs by one call; whether an integer division failed."""
        columns = [_contiguous(array, shape) for array in arrays]
        ((_, function),) = self._functions
        return bool(function(_addresses(columns), _addresses(outs), rows))

    def _run_in_blocks(self, arrays: Sequence[AnyArray], shape: Shape, outs: Sequence[AnyArray], rows: int) -> bool:
        """Fill the outputs, by several threads if that pays; whether an integer division failed."""
        parameters = [parameter.name for parameter in self.program.parameters]
        columns = {name: _Column(array, shape) for name, array in zip(parameters, arrays, strict=True)}
        functions = self._functions
        between = {
            output.name: np.dtype(output.dtype)
            for stage, _ in functions
            for target, output in zip(stage.targets, stage.program.outputs, strict=True)
            if isinstance(target, str)
        }
        copied = sum(column.copied_bytes for column in columns.values()) + sum(d.itemsize for d in between.values())
        threads = (self._threads or processors()) if rows * self._nodes >= SHARED_NODES else 1
        fewest, most = BLOCK_ROWS if threads > 1 or copied else (BLOCK_ROWS[0], rows)
        most = max(fewest, min(most, INTERRUPT_NODES // self._nodes, BLOCK_BYTES // copied if copied else rows))
        blocks, begun = _Blocks(shape, most), count()
        stopped: list[bool] = []
        failed: list[int] = []

        def work(thread: int) -> None:
            readers = {name: column.reader(blocks.most) for name, column in columns.items()}
            buffers = {name: np.empty(blocks.most, dtype) for name, dtype in between.items()}
            addresses: dict[str | int, int] = {name: buffer.ctypes.data for name, buffer in buffers.items()}
            # A block that is taken is computed: `stopped` is also set when another thread finds none left to take.
            while not (stopped or failed) and (number := next(begun)) < blocks.count:
                place = blocks.place(number)
                _, first, size = place
                addresses.update((name, read(place)) for name, read in readers.items())
                addresses.update((i, out.ctypes.data + first * out.itemsize) for i, out in enumerate(outs))
                for stage, function in functions:
                    sources = np.array([addresses[each.name] for each in stage.program.parameters], np.uintp)
                    targets = np.array([addresses[target] for target in stage.targets], np.uintp)
                    if function(sources.ctypes.data, targets.ctypes.data, size):
                        failed.append(thread)

        Workers(min(threads, blocks.count)).run(work, lambda: stopped.append(True))
        return bool(failed)


def _addresses(arrays: Sequence[AnyArray]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])


def _is_direct(array: AnyArray, shape: Shape) -> bool:
    """Whether an array has a shape, and its elements lie as compiled code reads them."""
    return array.shape == shape and array.flags.c_contiguous and array.flags.aligned


def _contiguous(array: AnyArray, shape: Shape) -> AnyArray:
    """An array broadcast to a shape, contiguous and aligned; copied only if necessary."""
    if _is_direct(array, shape):
        return array
    copy = np.empty(shape, array.dtype)
    copy[...] = array
    return copy


class _Blocks:
    """The elements of a shape in C order, split into blocks of at most `most`.

    A block is a range along one axis and spans all later axes: NumPy copies arrays that are not contiguous a block at a
    time, and can only copy boxes.
    """

    def __init__(self, shape: Shape, most: int) -> None:
        shape = shape or (1,)
        axis, inner = len(shape) - 1, 1
        while axis > 0 and inner * shape[axis] <= most:
            inner *= shape[axis]
            axis -= 1
        self._outer, self._length, self._inner = shape[:axis], shape[axis], inner
        self._step = min(most // inner, self._length)
        self._pieces = -(-self._length // self._step)
        self.count = prod(self._outer) * self._pieces
        self.most = self._step * inner

    def place(self, number: int) -> _Place:
        """A block's index into an array of the shape, the position of its first element, and its number of elements."""
        outer, piece = divmod(number, self._pieces)
        start = piece * self._step
        stop = min(start + self._step, self._length)
        index = *(int(i) for i in np.unravel_index(outer, self._outer)), slice(start, stop)
        return index, (outer * self._length + start) * self._inner, (stop - start) * self._inner


class _Column:
    """An array broadcast to a shape; its blocks are read in place if they are contiguous, else copied."""

    def __init__(self, array: AnyArray, shape: Shape) -> None:
        self._view = np.broadcast_to(array, shape or (1,))
        self._is_contiguous = self._view.flags.c_contiguous and self._view.flags.aligned
        self._is_constant = not any(self._view.strides)
        self.copied_bytes = 0 if self._is_contiguous else array.itemsize
        """Bytes to copy for each element."""

    def reader(self, most: int) -> Callable[[_Place], int]:
        """A function from a block of at most `most` elements to the address of its contiguous elements."""
        view = self._view
        if self._is_contiguous:
            address = view.ctypes.data
            return lambda place: address + place[1] * view.itemsize
        buffer = np.empty(most, view.dtype)
        if self._is_constant:
            buffer[...] = view.flat[0]
            return lambda place: buffer.ctypes.data

        def copy(place: _Place) -> int:
            block = view[place[0]]
            buffer[: place[2]].reshape(block.shape)[...] = block
            return buffer.ctypes.data

        return copy
