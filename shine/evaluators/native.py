"""The native tier: individuals lowered by AstJit, compiled together with the loop over the rows."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from shine.codegen.loops import emit_fitness
from shine.codegen.moments import FIELDS, LANES
from shine.data import Dataset
from shine.fitness import Measure, Moments, Scores, score
from shine.lang.population import Population
from shine.lang.tree import Tree
from shine.llvm import Engine

Array = NDArray[np.float64]

BATCH = 64
"""Individuals compiled as one module: LLVM's cost a module is that of several individuals."""


class NativeFitness:
    """Compiled fitness of some trees with the same parameters.

    Parameters
    ----------
    trees : sequence of Tree
    dtype : {"float64", "float32", "int64", "int32"}
    level : int or str
        Optimization pipeline.
    selection : int, optional
        Effort of instruction selection (see `shine.llvm.Engine`).
    """

    def __init__(self, trees: Sequence[Tree], dtype: str, level: int | str, selection: int | None = None) -> None:
        module = ir.Module(name="fitness")
        emit_fitness(module, trees, "fitness", dtype)
        self.dtype = dtype
        self.ir = str(module)
        self._engine = Engine(self.ir, level, selection)
        self._function = self._engine.function(
            "fitness", ctypes.c_uint8, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64,
            *[ctypes.c_void_p] * 2,
        )  # fmt: skip

    def over(self, rows: NativeRows) -> Measure:
        """What measures the trees on a data set."""
        return partial(rows.measure, self._function)

    def close(self) -> None:
        """Free the machine code."""
        self._engine.close()


class NativeRows:
    """A data set laid out for compiled code: columns of its number type, target and weights filled up."""

    def __init__(self, dataset: Dataset, dtype: str) -> None:
        self.dataset = dataset
        self.epsilon = float(np.finfo(dtype).eps) if dtype.startswith("float") else 0.0
        with np.errstate(over="ignore"):
            self._columns = np.ascontiguousarray(dataset.columns, dtype=dtype)
        self._pointers = np.array([column.ctypes.data for column in self._columns], dtype=np.uintp)
        self._target = self._filled(dataset.target)
        self._weights = self._filled(dataset.row_weights)

    @staticmethod
    def _filled(values: Array) -> Array:
        filled = np.zeros(-(-len(values) // LANES) * LANES)
        filled[: len(values)] = values
        return filled

    def measure(
        self, function: Callable[..., int], which: NDArray[np.int64], slopes: Array, intercepts: Array
    ) -> Moments:
        """Moments of the individuals at some positions of a compiled fitness."""
        parameters = np.column_stack([slopes, intercepts, np.full(len(which), self.dataset.target_mean)])
        states = np.zeros((len(which), len(FIELDS)))
        failed = function(
            which.ctypes.data,
            len(which),
            self._pointers.ctypes.data,
            self._target.ctypes.data,
            self._weights.ctypes.data,
            self.dataset.n_rows,
            parameters.ctypes.data,
            states.ctypes.data,
        )
        if failed:
            raise ZeroDivisionError("integer division by zero in a row of the data")
        state = dict(zip(FIELDS, states.T, strict=True))
        return Moments(
            weight=float(self.dataset.row_weights.sum()),
            target_mean=self.dataset.target_mean,
            target_square=self.dataset.target_square,
            squared_error=state["squared_error"],
            absolute_error=state["absolute_error"],
            mean=state["mean"],
            square=state["square"],
            product=state["product"],
            epsilon=self.epsilon,
        )


class NativeEvaluator:
    """Scores populations by compiling every individual."""

    def __init__(self, dataset: Dataset, loss: str, linear_scaling: bool, dtype: str) -> None:
        self._rows = NativeRows(dataset, dtype)
        self._loss, self._linear_scaling, self._dtype = loss, linear_scaling, dtype

    def score(self, population: Population) -> Scores:
        """Loss and scaling of each individual."""
        parts = [self._score_batch(population, start) for start in range(0, len(population), BATCH)]
        return Scores.concatenate(parts)

    def _score_batch(self, population: Population, start: int) -> Scores:
        stop = min(start + BATCH, len(population))
        # AstJit emits straight vector code: the passes would cost more than they gain an individual that runs once.
        compiled = NativeFitness([population.tree(i) for i in range(start, stop)], self._dtype, "O0", selection=1)
        try:
            return score(compiled.over(self._rows), stop - start, self._loss, self._linear_scaling)
        finally:
            compiled.close()
