"""The reference tier: individuals interpreted by NumPy, one array operation per node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from shine.base.typing import AnyArray, Floats, Indices
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import Loss, RowLoss, loss_of
from shine.evaluate.losses.rows import loss_columns_of, loss_rows
from shine.evaluate.scores import Scores, score
from shine.evaluate.tiers.rows import target_of
from shine.lang.interpret import evaluate_tape
from shine.lang.population import Population

CHUNK = 16_384
"""Rows interpreted at a time, so that the arrays in use stay in the cache."""


class ReferenceEvaluator:
    """Scores populations by interpreting every individual, with functions of NumPy unless others are given."""

    def __init__(
        self,
        dataset: Dataset,
        loss: str | Loss,
        linear_scaling: bool,
        dtype: str,
        threads: int = 1,
        functions: Mapping[str, Callable[..., AnyArray]] | None = None,
    ) -> None:
        self._functions = functions
        self._loss, self._linear_scaling = loss_of(loss), linear_scaling
        self._loss_columns = loss_columns_of(dataset, self._loss.kind)
        self._dataset = dataset = loss_rows(dataset, self._loss.kind)
        self._target = target_of(dataset, dtype)
        with np.errstate(over="ignore"):
            self._columns = dataset.columns.astype(dtype, copy=False)

    def predict(self, population: Population) -> AnyArray:
        """Predictions, shape (n_individuals, n_rows)."""
        out = np.empty((len(population), self._dataset.n_rows), dtype=self._columns.dtype)
        for i in range(len(population)):
            out[i] = self.predict_one(population, i)
        return out

    def predict_one(self, population: Population, index: int) -> AnyArray:
        """Predictions of one individual for all rows, shape (n_rows,)."""
        tape = population.tape(index)
        rows = self._dataset.n_rows
        parts = [
            evaluate_tape(tape.codes, tape.values, population.primitives, columns, self._functions)
            for columns in (list(self._columns[:, start : start + CHUNK]) for start in range(0, rows, CHUNK))
        ]
        return np.concatenate(parts)

    def score(self, population: Population, threshold: float | Floats = np.inf) -> Scores:
        """Loss and scaling of each individual; losses above the threshold become inf."""

        def predictions(which: Indices) -> Iterator[Floats]:
            return (self.predict_one(population, int(index)).astype(np.float64) for index in which)

        measure = ReferenceMeasure(predictions, self._dataset, self._loss_columns, self._columns.dtype.name)
        scores = score(measure, len(population), self._target, self._loss, self._linear_scaling)
        return scores.within(threshold)


class ReferenceMeasure:
    """Sums over predictions in NumPy (see `shine.evaluate.scores.Measure`)."""

    def __init__(
        self,
        predictions: Callable[[Indices], Iterable[Floats]],
        dataset: Dataset,
        loss_columns: Sequence[Floats] = (),
        dtype: str = "float64",
    ) -> None:
        self._predictions, self._dataset, self._loss_columns = predictions, dataset, loss_columns
        self.dtype = dtype

    def errors(self, which: Indices, kind: RowLoss, slopes: Floats, intercepts: Floats) -> Floats:
        """Weighted sums of the errors of ``intercept + slope * p``."""
        weights, target = self._dataset.row_weights, self._dataset.target
        lines = zip(self._predictions(which), slopes, intercepts, strict=True)
        models = (intercept + slope * p for p, slope, intercept in lines)
        return np.array([weights @ kind.errors(model, target, self._loss_columns) for model in models])

    def moments(self, which: Indices, scales: Floats | None = None) -> Floats:
        """Moments for linear scaling."""
        weights, target = self._dataset.row_weights, self._dataset.target - self._dataset.target_mean
        moments = np.zeros((len(which), 3))
        factors = np.ones(len(which)) if scales is None else scales
        for i, (p, factor) in enumerate(zip(self._predictions(which), factors, strict=True)):
            mean = weights @ (factor * p) / self._dataset.weight
            deviation = factor * p - mean
            moments[i] = mean, weights @ deviation**2, (weights * deviation) @ target
        return moments
