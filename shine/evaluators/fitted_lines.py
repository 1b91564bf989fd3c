"""Linear scaling by any loss: slope and intercept of each individual minimize the loss, not squared errors."""

from __future__ import annotations

import ctypes
from collections import deque
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from shine.codegen.gradient.line_fitting import FACTS, FORMS, FOUND
from shine.codegen.moments import LANES
from shine.data.dataset import Dataset
from shine.evaluators.loss_code import lines_code, scales_of
from shine.evaluators.loss_rows import loss_columns, loss_rows
from shine.evaluators.machine_tier import MachineEvaluator
from shine.evaluators.remade import Remade
from shine.evaluators.rows import columns_from
from shine.evaluators.workers import Workers
from shine.fitness.losses import Loss, loss_of
from shine.fitness.scores import Scores
from shine.lang.population import Population
from shine.typing import AnyArray, Floats

STEPS = 12
"""Most steps of a line."""

TOLERANCE = 1e-4
"""Share of the error below which a step's promise ends the fit."""

PROMISING = 8.0
"""Multiple of the error of an individual's line up to which simpler lines are fitted and measured too."""

AT_ONCE = 1 << 19
"""Predictions of the rows for fitting that are kept at a time."""

SHARED = 1 << 15
"""Predictions that a thread fits lines to before it takes the next ones."""


@dataclass(frozen=True)
class _Lines:
    """Lines of one form, and their sums of errors above the least over the rows for fitting, each of shape
    (n_individuals,)."""

    slopes: Floats
    intercepts: Floats
    errors: Floats


class FittedLines(Remade):
    """Losses of individuals with the lines of least loss (see `shine.fitness.protocols.PopulationEvaluator`).

    Lines are fitted to some of the rows, then measured on all of them.

    Parameters
    ----------
    dataset : Dataset
    fitting : Dataset
        The rows that lines are fitted to: the same or some of them.
    loss : str or Loss
    dtype : {"float64", "float32"}
    threads : int
    """

    def __init__(
        self, dataset: Dataset, fitting: Dataset, loss: str | Loss, dtype: str = "float64", threads: int = 1
    ) -> None:
        self._loss = loss_of(loss)
        self._measured = MachineEvaluator(dataset, self._loss, False, dtype, threads)
        self._fitter = _LineFitter(fitting, self._loss, dtype, threads)

    def score(self, population: Population, threshold: float = np.inf) -> Scores:
        """Losses and lines; see `PopulationEvaluator`."""
        forms = [self._measure(population, lines, threshold) for lines in self._fitter.fit(population)]
        *simpler, whole = forms
        return Scores(whole.losses, whole.slopes, whole.intercepts, tuple(reversed(simpler)))

    def predict(self, population: Population) -> AnyArray:
        """Predictions without lines."""
        return self._measured.predict(population)

    def _measure(self, population: Population, lines: _Lines, threshold: float) -> Scores:
        """The losses of lines of one form over all rows."""
        n = len(population)
        losses, slopes, intercepts = np.full(n, np.inf), np.ones(n), np.zeros(n)
        which = np.flatnonzero(np.isfinite(lines.errors) & np.isfinite(lines.slopes) & np.isfinite(lines.intercepts))
        if len(which):
            own = lines.slopes[which], lines.intercepts[which]
            found = self._measured.losses_with(population.take(which), *own, threshold)
            losses[which] = np.where(np.isfinite(found), found, np.inf)
            slopes[which], intercepts[which] = own
        return Scores(losses, slopes, intercepts)


class _LineFitter:
    """Fits lines to the predictions of some rows."""

    def __init__(self, dataset: Dataset, loss: Loss, dtype: str, threads: int) -> None:
        kind = loss.kind
        beside, dataset = loss_columns(dataset, kind), loss_rows(dataset, kind)
        self._values = MachineEvaluator(dataset, "mse", False, dtype, threads)
        self._workers = Workers(threads)
        self._code = lines_code(kind, dtype)
        self._function = ctypes.CFUNCTYPE(
            None, ctypes.c_void_p, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 5, ctypes.c_int64, ctypes.c_void_p
        )(int(self._code.addresses[0]))
        self._rows, self._padding = dataset.n_rows, -dataset.n_rows % LANES
        self._target = np.pad(dataset.target, (0, self._padding), mode="edge")
        self._weights = np.pad(dataset.row_weights, (0, self._padding))
        self._beside = [np.pad(column, (0, self._padding), mode="edge") for column in beside]
        self._scales = scales_of(dataset)
        self._facts = np.array([dataset.weight, dataset.target_mean, np.inf, PROMISING, TOLERANCE])
        # The line of a constant without steps is the target's mean.
        self._facts[FACTS.index("constant")] = self._lines(np.zeros((1, self._rows), dtype), 0)[0, -1, -1]

    def fit(self, population: Population) -> list[_Lines]:
        """The lines of each of `FORMS`."""
        step = max(AT_ONCE // self._rows, 1)
        everyone = np.arange(len(population))
        parts = [self._found(population.take(everyone[at : at + step])) for at in range(0, len(population), step)]
        found = np.concatenate([np.empty((0, len(FORMS), len(FOUND))), *parts])
        return [_Lines(*found[:, form].T) for form in range(len(FORMS))]

    def _found(self, population: Population) -> Floats:
        """`FOUND` of each individual and form."""
        return self._lines(self._values.predict(population), STEPS)

    def _lines(self, predictions: AnyArray, steps: int) -> Floats:
        if self._padding:
            predictions = np.pad(predictions, ((0, 0), (0, self._padding)), mode="edge")
        out = np.empty((len(predictions), len(FORMS), len(FOUND)))
        beside = columns_from(self._beside, 0)
        rows = self._rows + self._padding
        size = max(SHARED // rows, 1)
        waiting = deque(range(0, len(predictions), size))

        def work(_: int) -> None:
            with suppress(IndexError):
                while True:
                    first = waiting.popleft()
                    count = min(size, len(predictions) - first)
                    self._function(
                        predictions[first:].ctypes.data, count, rows, self._target.ctypes.data,
                        self._weights.ctypes.data, beside.ctypes.data, self._scales.ctypes.data,
                        self._facts.ctypes.data, steps, out[first:].ctypes.data,
                    )  # fmt: skip

        self._workers.run(work, waiting.clear)
        return out
