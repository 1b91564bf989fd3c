"""The native tier: individuals lowered by AstJit, compiled together with the loop over the rows."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir

from shine.base.typing import AnyArray, Floats, Indices
from shine.compiler.codegen.moments import CHUNK
from shine.compiler.codegen.native.loops import STATE, emit_fitness, emit_predict
from shine.compiler.llvm import Engine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import Loss, RowLoss, loss_of
from shine.evaluate.losses.row_errors import errors_code
from shine.evaluate.losses.rows import loss_columns_of, loss_rows
from shine.evaluate.protocols import PickledByArguments
from shine.evaluate.scores import Scores, score
from shine.evaluate.tiers.rows import Rows, columns_from, lane_sums, target_of
from shine.lang.forms.tree import Tree
from shine.lang.population import Population

BATCH = 64
"""Individuals compiled as one module: a module costs LLVM as much as several individuals."""


class NativeFitness:
    """Compiled fitness of trees with the same parameters.

    Parameters
    ----------
    trees : sequence of Tree
    dtype : {"float64", "float32", "int64", "int32"}
    level : int or str
        Optimization pipeline.
    selection : int, optional
        Effort of instruction selection (see `shine.compiler.llvm.Engine`).
    """

    def __init__(self, trees: Sequence[Tree], dtype: str, level: int | str, selection: int | None = None) -> None:
        module = ir.Module(name="fitness")
        emit_fitness(module, trees, "fitness", dtype)
        self.dtype = dtype
        self.ir = str(module)
        self._engine = Engine(self.ir, level, selection)
        self._function = self._engine.function(
            "fitness", ctypes.c_uint8, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64,
            *[ctypes.c_void_p] * 4, ctypes.c_int64, *[ctypes.c_void_p] * 3,
        )  # fmt: skip

    def over(self, rows: Rows) -> NativeMeasure:
        """The measure of the trees over a data set."""
        return NativeMeasure(self._function, rows)

    def close(self) -> None:
        """Free the machine code."""
        self._engine.close()


class NativeMeasure:
    """Compiled fitness over a data set (see `shine.evaluate.scores.Measure`)."""

    def __init__(self, function: Callable[..., int], rows: Rows) -> None:
        self._function, self._rows, self.dtype = function, rows, rows.dtype

    def errors(self, which: Indices, kind: RowLoss, slopes: Floats, intercepts: Floats) -> Floats:
        """Weighted sums of the errors of ``intercept + slope * p``."""
        code = errors_code(kind, self.dtype)
        sums = lane_sums(self._run(which, code.address, np.column_stack([slopes, intercepts])))
        return sums + kind.least_sum(self._rows.weight)

    def moments(self, which: Indices, scales: Floats | None = None) -> Floats:
        """Moments for linear scaling."""
        factors = np.ones(len(which)) if scales is None else scales
        return self._run(which, 0, np.column_stack([factors, factors]))

    def _run(self, which: Indices, errors: int, lines: Floats) -> Floats:
        states = np.zeros((len(which), STATE))
        failed = 0
        for part in self._rows.parts(len(which)):
            block, loss_columns = part.block, columns_from(part.loss_columns, 0)
            failed |= self._function(
                which.ctypes.data,
                len(which),
                errors,
                self._rows.weighted,
                block.pointers.ctypes.data,
                part.target.ctypes.data,
                part.weights.ctypes.data,
                loss_columns.ctypes.data,
                block.stop - block.start,
                lines.ctypes.data,
                self._rows.known[block.start // CHUNK :].ctypes.data,
                states.ctypes.data,
            )
        if failed:
            raise ZeroDivisionError("integer division by zero in a row of the data")
        return states


class NativeEvaluator(PickledByArguments):
    """Scores populations by compiling every individual."""

    def __init__(self, dataset: Dataset, loss: str | Loss, linear_scaling: bool, dtype: str, threads: int = 1) -> None:
        self._loss, self._linear_scaling, self._dtype = loss_of(loss), linear_scaling, dtype
        loss_columns = loss_columns_of(dataset, self._loss.kind)
        dataset = loss_rows(dataset, self._loss.kind)
        self._rows = Rows(dataset, dtype, loss_columns)
        self._target = target_of(dataset, dtype)

    def score(self, population: Population, threshold: float | Floats = np.inf) -> Scores:
        """Loss and scaling of each individual; losses above the threshold become inf."""
        parts = [self._score_batch(population, start) for start in range(0, len(population), BATCH)]
        return Scores.concatenate(parts).within(threshold)

    def predict(self, population: Population) -> AnyArray:
        """Predictions, shape (n_individuals, n_rows)."""
        out = np.empty((len(population), self._rows.count), dtype=self._dtype)
        for i in range(len(population)):
            out[i] = self._predict(population.tree(i))
        return out

    def _predict(self, tree: Tree) -> AnyArray:
        module = ir.Module(name="predict")
        emit_predict(module, tree, "predict", self._dtype)
        out = np.empty(self._rows.count, dtype=self._dtype)
        with Engine(str(module), "O0", selection=1) as engine:
            function = engine.function("predict", ctypes.c_uint8, *[ctypes.c_void_p] * 2, ctypes.c_int64)
            for part in self._rows.parts(1):
                block = part.block
                function(block.pointers.ctypes.data, out[block.start :].ctypes.data, block.stop - block.start)
        return out

    def _score_batch(self, population: Population, start: int) -> Scores:
        stop = min(start + BATCH, len(population))
        # AstJit emits straight vector code: passes would take longer than they save if an individual runs once.
        compiled = NativeFitness([population.tree(i) for i in range(start, stop)], self._dtype, "O0", selection=1)
        try:
            return score(compiled.over(self._rows), stop - start, self._target, self._loss, self._linear_scaling)
        finally:
            compiled.close()
