"""Linear scaling by any loss: slope and intercept of each individual minimize the loss, not squared errors."""

from __future__ import annotations

import ctypes

import numpy as np

from shine.base.typing import AnyArray, Floats
from shine.compiler.codegen.moments import LINE_FIELDS, LINE_FORMS
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.gradient.line_fitting import FACTS, lines_code
from shine.evaluate.gradient.line_sums import DATA
from shine.evaluate.gradient.working_residuals import scales_of
from shine.evaluate.losses.form import Loss, loss_of
from shine.evaluate.losses.row_errors import WIDE, errors_code
from shine.evaluate.losses.rows import loss_columns_of, loss_rows
from shine.evaluate.machine.tiles import tile_rows
from shine.evaluate.protocols import PickledByArguments
from shine.evaluate.scores import Scores, scores_of
from shine.evaluate.tiers.machine_rows import MachineRows, is_large, machine_of
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.evaluate.tiers.rows import columns_from, lane_sums, target_of
from shine.lang.population import Population

STEPS = 12
"""Most steps of a line."""

TOLERANCE = 1e-3
"""Share of the error below which a step's promise ends the fit; lines from a few hundred rows are further off."""


class FittedLines(PickledByArguments):
    """Losses of individuals with the lines of least loss (see `shine.evaluate.protocols.PopulationEvaluator`).

    Lines are fitted to some of the rows, then measured on all of them. Formulas are evaluated once for both: the rows
    for fitting come first, in one tile of the machine.

    Parameters
    ----------
    dataset : Dataset
    fitting_rows : int
        Most rows that lines are fitted to, drawn at random; a tile of the machine is enough in any case.
    loss : str or Loss
    dtype : {"float64", "float32"}
    threads : int
    """

    def __init__(
        self, dataset: Dataset, fitting_rows: int, loss: str | Loss, dtype: str = "float64", threads: int = 1
    ) -> None:
        self._loss, self._dtype = loss_of(loss), dtype
        kind = self._loss.kind
        self._values = MachineEvaluator(dataset, self._loss, False, dtype, threads)
        some = _sample(dataset.n_rows, min(fitting_rows, tile_rows("float64")))
        fitting = dataset.take(some)
        # Large data are read where they lie, so the rows for fitting are evaluated apart.
        self._separate = is_large(dataset, dtype)
        if not self._separate:
            dataset = dataset.take(np.concatenate([some, np.setdiff1d(np.arange(dataset.n_rows), some)]))
        self._target = target_of(loss_rows(dataset, kind), dtype)
        self._rows = [
            MachineRows(loss_rows(each, kind), dtype, threads, loss_columns=loss_columns_of(each, kind))
            for each in ([fitting, dataset] if self._separate else [dataset])
        ]
        self._fitting = _Fitting(fitting, self._loss, dtype)
        self._code = errors_code(kind, dtype)

    def score(self, population: Population, threshold: float | Floats = np.inf) -> Scores:
        """Losses and lines; see `PopulationEvaluator`."""
        machine = machine_of(population.primitives.functions, self._dtype)
        lines = np.empty((len(population), len(LINE_FORMS), len(LINE_FIELDS)))
        fields = self._fitting.fields
        for rows in self._rows:
            states = rows.line_errors(machine, self._code, population, lines, fields)
            fields = {}
        return self._scores(lines, states).within(threshold)

    def _scores(self, lines: Floats, states: Floats) -> Scores:
        """The scores of lines and of the sums of their errors."""
        kind, target = self._loss.kind, self._target
        slopes, intercepts, errors = np.moveaxis(lines, 2, 0)
        with np.errstate(all="ignore"):
            sums = lane_sums(states).reshape(errors.shape) + kind.least_sum(target.weight)
            losses = self._loss.of_sum(sums, target.weight, target.square)
        found = np.where(np.isfinite(errors), losses, np.inf), slopes, intercepts
        return scores_of(*(np.ascontiguousarray(each.T) for each in found))

    def predict(self, population: Population) -> AnyArray:
        """Predictions without lines."""
        return self._values.predict(population)


def _sample(rows: int, most: int) -> AnyArray:
    """Rows drawn at random, whole vectors of them, or all rows if there are no more; the same in every run."""
    most += -most % WIDE
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


class _Fitting:
    """The rows that lines are fitted to, as native code takes them.

    Parameters
    ----------
    dataset : Dataset
    loss : Loss
    dtype : {"float64", "float32"}
    """

    def __init__(self, dataset: Dataset, loss: Loss, dtype: str) -> None:
        kind = loss.kind
        loss_columns, dataset = loss_columns_of(dataset, kind), loss_rows(dataset, kind)
        padding = (0, -dataset.n_rows % WIDE)
        target, *columns = (np.pad(column, padding, mode="edge") for column in (dataset.target, *loss_columns))
        weights, mean = np.pad(dataset.row_weights, padding), dataset.target_mean
        # Largest error of simpler lines that are fitted and measured too, as a multiple of that of the individual's
        # line.
        # Error of the best constant before it is fitted
        self._facts = np.array([dataset.weight, mean, mean, dataset.weight, 1e300, 0.0, 8.0, 0.0])
        self._curvatures, self._pulls = weights.copy(), weights * (target - mean)
        self._code = lines_code(kind, dtype)
        pointers = columns_from(columns, 0)
        self._scales = scales_of(dataset)
        arrays = (target, weights, pointers, self._scales, self._facts, self._curvatures, self._pulls)
        places = [array.ctypes.data for array in arrays]
        errors, weighted = errors_code(kind, dtype), bool((weights != 1).any())
        # Most steps of the best constant.
        self._data = np.array([len(target), *places[:5], 100, *places[5:], errors.address, weighted])
        self._kept = (*arrays, columns, errors)
        self._start_from_the_constant(np.zeros(len(target), dtype))
        self._data[DATA.index("steps")] = STEPS
        self._facts[FACTS.index("tolerance")] = TOLERANCE

    @property
    def fields(self) -> dict[str, int]:
        """Words of a job that fits lines."""
        return {"fit": int(self._code.addresses[0]), "fitting": self._data.ctypes.data}

    def _start_from_the_constant(self, zeros: AnyArray) -> None:
        """Fit the best constant, and let others start from there if it has a finite error."""
        fit, weigh = (
            ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(int(address))
            for count, address in zip((3, 2), self._code.addresses, strict=True)
        )
        found = np.empty((len(LINE_FORMS), len(LINE_FIELDS)))
        fit(zeros.ctypes.data, self._data.ctypes.data, found.ctypes.data)
        _, middle, error = line = found[LINE_FORMS.index("both")]
        if not np.isfinite(line).all():
            return
        shortest, typical = self._scales
        # Share of the target's deviation that errors with a kink count as away from it, at the best constant: it meets
        # some rows of the target exactly, which would hold each line there.
        self._scales[0] = 0.5 * typical
        weigh(line.ctypes.data, self._data.ctypes.data)
        self._scales[0] = shortest
        bend = float(stable_sum(self._curvatures))
        # At a kink the pulls of the best constant leave a rest.
        self._pulls -= self._curvatures * (stable_sum(self._pulls) / max(bend, float(np.finfo(np.float64).tiny)))
        # Share of the best constant's error that an individual must save for its line to be improved: for a few hundred
        # rows, what pure noise saves.
        self._facts[2:6] = middle, bend, error, 0.005 * abs(error)
