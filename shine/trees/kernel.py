"""Native code of an ensemble in this process, and its call with arrays."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from shine.base.lazy import cached_property
from shine.base.typing import AnyArray, Floats
from shine.compiler.codegen.blocks import I64, POINTER, declare, load
from shine.compiler.codegen.numbers import source_digest
from shine.compiler.llvm import Engine
from shine.compiler.llvm.object_layout import is_readable
from shine.compiler.processor import machine_of
from shine.compiler.threads import Workers, processors
from shine.trees.core import arena_bytes, emit_core
from shine.trees.form import Ensemble
from shine.trees.layout import COUNTS, DOUBLE, I1, I32, REALS, TABLES, Layout, Plan, Shape, layout, number
from shine.trees.objects import of_rows, row_words

CHUNK_ROWS = 1024
"""Rows that a thread takes at once: much more work than taking them."""

_LINE = 64
_NAME = "rows"


class TreeKernel:
    """Code of an ensemble for this processor; threads may call it at the same time.

    The code depends only on the ensemble's shape and is cached; the trees are data.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self._features = ensemble.n_features
        self.layout = layout(ensemble)
        self.plan = plan_of(self.layout.shape, machine_of().vector_bytes)
        self._function = _compiled(self.plan)
        self._tables = table_words(self.layout)
        self._address = self._tables.ctypes.data
        self._width = self.layout.n_results
        base = self.layout.tables.base
        self._arena_bytes = arena_bytes(self.plan, len(self.layout.tables.features), len(base), self.layout.n_results)
        self._arenas = threading.local()
        self._words: dict[int, Any] = {}

    def of_array(self, X: Any, forbidden: int) -> Floats | None:
        """Results of some rows in a NumPy array; None if `__call__` is needed to read them, or to tell what is wrong.

        Parameters
        ----------
        X : object
        forbidden : int
            What `shine.trees.core.emit_core` must not find.
        """
        if not is_readable():
            return None
        try:
            words = self._words[forbidden]
        except KeyError:
            words = row_words(self._function, self._features, self._width, self._address, forbidden)
            self._words[forbidden] = words
        found: Floats | None = of_rows()(words, X, self._arena())
        return found

    def __call__(self, X: AnyArray, threads: int | None = None) -> tuple[Floats, int]:
        """Results of rows, shape (n_rows, n_results), and what `shine.trees.core.emit_core` found in them.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64 or float32
            Aligned, with strides that are multiples of the size of a number.
        threads : int, optional
            By default as many as there are processors, for rows enough.
        """
        rows, size, strides = len(X), X.itemsize, X.strides
        out = np.empty((rows, self._width))
        row_stride, column_stride = strides[0] // size, strides[1] // size
        source, made, single = X.ctypes.data, out.ctypes.data, size == 4
        chunks_in_all = -(-rows // CHUNK_ROWS)
        count = 1 if chunks_in_all <= 1 else min(threads or processors(), chunks_in_all)
        if count == 1:
            arena = self._arena().ctypes.data
            return out, self._function(source, rows, row_stride, column_stride, made, arena, self._address, single)
        chunks, found, ended = itertools.count(), [0], threading.Event()

        def work(thread: int) -> None:
            arena = self._arena().ctypes.data
            while not ended.is_set():
                start = next(chunks) * CHUNK_ROWS
                if start >= rows:
                    return
                own = source + start * X.strides[0], min(CHUNK_ROWS, rows - start), row_stride, column_stride
                to = made + start * out.strides[0]
                found.append(self._function(*own, to, arena, self._address, single))

        _workers(count).run(work, ended.set)
        return out, int(np.bitwise_or.reduce(found))

    @cached_property
    def ir(self) -> str:
        """LLVM IR before LLVM's own passes."""
        return _text(self.plan)

    def _arena(self) -> Any:
        """Scratch memory of this thread."""
        try:
            return self._arenas.memory
        except AttributeError:
            memory = np.empty(self._arena_bytes + _LINE, np.uint8)
            self._arenas.memory = memory[-memory.ctypes.data % _LINE :]
            return self._arenas.memory


def plan_of(shape: Shape, vector_bytes: int) -> Plan:
    """The plan of a shape on a processor with vectors of some size: a register of features."""
    return Plan(shape, max(2, vector_bytes // (8 if REALS[shape.real] == DOUBLE else 4)))


def table_words(layout: Layout) -> Any:
    """Arguments of the function: the sizes, the divisor and the addresses of the tables, each in 8 bytes."""
    tables = layout.tables
    sizes = [len(tables.features), layout.numeric, len(tables.trees), len(tables.base)]
    divisor = int(np.float64(layout.divisor).view(np.int64))
    return np.array([*sizes, divisor, *(array.ctypes.data for array in tables.arrays.values())], np.int64)


@cache
def _workers(threads: int) -> Workers:
    return Workers(threads)


@cache
def _compiled(plan: Plan) -> Callable[..., int]:
    """The function ``(X, n_rows, row_stride, column_stride, y, arena, tables, is_single)``."""
    engine = Engine.kept([_NAME], ("trees", repr(plan), source_digest("trees")), lambda: _text(plan))
    kinds = [ctypes.c_void_p, *[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 3, ctypes.c_bool]
    function: Callable[..., int] = engine.function(_NAME, ctypes.c_int32, *kinds)
    return function


def _text(plan: Plan) -> str:
    module = ir.Module(name="trees")
    core = emit_core(module, plan)
    labels = ("X", "n_rows", "row_stride", "column_stride", "y", "arena", "tables", "is_single")
    function = declare(module, _NAME, I32, [POINTER, I64, I64, I64, *[POINTER] * 3, ir.IntType(8)], labels)
    build = ir.IRBuilder(function.append_basic_block("entry"))
    *given, tables, single = function.args
    kinds = [*[I64] * len(COUNTS), DOUBLE, *[POINTER] * len(TABLES)]
    read = [load(build, tables, number(place), I64, kind, 8) for place, kind in enumerate(kinds)]
    build.ret(build.call(core, [*given, build.trunc(single, I1), *read]))
    return str(module)
