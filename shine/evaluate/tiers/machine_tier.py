"""The machine tier: whole populations in one native call, on one thread or several."""

from __future__ import annotations

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import AnyArray, Floats, Indices
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import Loss, RowLoss, loss_of
from shine.evaluate.losses.row_errors import Table, errors_code
from shine.evaluate.losses.rows import loss_columns_of, loss_rows
from shine.evaluate.machine.interpreter import ERRORS, PRODUCTS
from shine.evaluate.protocols import PickledByArguments
from shine.evaluate.scores import Products, Scores, products_of, score
from shine.evaluate.tiers.machine_rows import Machine, MachineRows, machine_of
from shine.evaluate.tiers.rows import lane_sums, target_of
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.population import Population


class MachineEvaluator(PickledByArguments):
    """Scores populations on the tile machine."""

    def __init__(self, dataset: Dataset, loss: str | Loss, linear_scaling: bool, dtype: str, threads: int = 1) -> None:
        self._loss, self._linear_scaling, self._dtype = loss_of(loss), linear_scaling, dtype
        loss_columns = loss_columns_of(dataset, self._loss.kind)
        dataset = loss_rows(dataset, self._loss.kind)
        self._rows = MachineRows(dataset, dtype, threads, loss_columns=loss_columns)
        self._target = target_of(dataset, dtype)
        self._latest: tuple[PrimitiveSet, Machine] | None = None

    def score(self, population: Population, threshold: float | Floats = np.inf) -> Scores:
        """Loss and scaling of each individual.

        Parameters
        ----------
        population : Population
        threshold : float or ndarray of shape (n_individuals,)
            An individual gets the loss inf, and is not evaluated to the end, once its loss is sure to exceed this.
        """
        loss = self._loss
        limit = self._limit(threshold)
        # The squared error around the best line says nothing about a limit on other errors.
        line_limit = limit if loss.kind.follows_from_moments else np.inf
        machine = self._machine(population)
        measure = MachineMeasure(self._rows, machine, population, limit, line_limit, self._errors)
        scores = score(measure, len(population), self._target, self._loss, self._linear_scaling)
        return scores.within(threshold)

    def _limit(self, threshold: float | Floats) -> float | Floats:
        """The largest sum of errors above the least that a loss up to the threshold allows."""
        loss, target = self._loss, self._target
        with np.errstate(over="ignore"):
            return loss.kind.limit(loss.sum_of(threshold, target.weight, target.square), target.weight)

    def losses_with(self, population: Population, slopes: Floats, intercepts: Floats) -> Floats:
        """Losses with given lines; inf or NaN where a prediction or a line is not finite.

        Parameters
        ----------
        population : Population
        slopes, intercepts : ndarray of shape (n_individuals,)
        """
        loss = self._loss
        machine, limit = self._machine(population), self._limit(np.inf)
        measure = MachineMeasure(self._rows, machine, population, limit, code=self._errors)
        with np.errstate(all="ignore"):
            errors = measure.errors(np.arange(len(population)), loss.kind, slopes, intercepts)
            return loss.of_sum(errors, self._target.weight, self._target.square)

    def products(self, population: Population) -> Products:
        """Moments of each individual's predictions and the target."""
        return products_of(
            MachineMeasure(self._rows, self._machine(population), population), np.arange(len(population))
        )

    def predict(self, population: Population) -> AnyArray:
        """Predictions, shape (n_individuals, n_rows)."""
        return self._rows.predict(self._machine(population), population)

    @cached_property
    def _errors(self) -> Table:
        return errors_code(self._loss.kind, self._dtype)

    def _machine(self, population: Population) -> Machine:
        """The machine for a population; generations of one run share their primitive set."""
        latest = self._latest  # read once: another thread may replace it
        if latest is None or latest[0] is not population.primitives:
            self._latest = latest = population.primitives, machine_of(population.primitives.functions, self._dtype)
        return latest[1]


class MachineMeasure:
    """Sums over predictions on the machine (see `shine.evaluate.scores.Measure`); `code` is that of the errors,
    if it is known."""

    def __init__(
        self,
        rows: MachineRows,
        machine: Machine,
        population: Population,
        limit: float | Floats = np.inf,
        line_limit: float | Floats = np.inf,
        code: Table | None = None,
    ) -> None:
        self._rows, self._machine, self._population = rows, machine, population
        self._limit, self._line_limit = (np.broadcast_to(each, len(population)) for each in (limit, line_limit))
        self._code, self.dtype = code, machine.dtype

    def errors(self, which: Indices, kind: RowLoss, slopes: Floats, intercepts: Floats) -> Floats:
        """Weighted sums of the errors of ``intercept + slope * p``; inf where those above the least ones exceed the
        limit."""
        code, limits = self._code or errors_code(kind, self.dtype), self._limit.take(which)
        lines, scaled = np.column_stack([slopes, intercepts]), bool((slopes != 1).any() or (intercepts != 0).any())
        places = {"limits": limits.ctypes.data, "lines": lines.ctypes.data, "errors": code.address}
        sums = self._rows.sums(self._machine, ERRORS, self._chosen(which), places | {"scaled": int(scaled)})
        within = lane_sums(sums)
        return np.where(within <= limits, within, np.inf) + kind.least_sum(self._rows.weight)

    def moments(self, which: Indices, scales: Floats | None = None) -> Floats:
        """Moments for linear scaling, shape (n_individuals, LANES); NaN where the error of every line exceeds the
        limit."""
        limits = self._line_limit.take(which)
        fields = {"limits": limits.ctypes.data}
        if scales is not None:
            lines = np.column_stack([scales, scales])
            fields |= {"lines": lines.ctypes.data, "scaled": 1}
        return self._rows.sums(self._machine, PRODUCTS, self._chosen(which), fields)

    def _chosen(self, which: Indices) -> Population:
        everyone = len(which) == len(self._population)
        return self._population if everyone else self._population.take(which)


def losses_and_r2(
    population: Population, dataset: Dataset, loss: str | Loss, threads: int = 1
) -> tuple[Floats, Floats]:
    """Losses of complete formulas, and their coefficients of determination, each of shape (n_individuals,)."""
    losses = errors = MachineEvaluator(dataset, loss, False, "float64", threads).score(population).losses
    if loss_of(loss).name != "mse":
        errors = MachineEvaluator(dataset, "mse", False, "float64", threads).score(population).losses
    variance = dataset.target_square / dataset.weight
    with np.errstate(all="ignore"):
        # As in scikit-learn: a constant target is explained fully or not at all.
        r2 = 1 - errors / variance if variance > 0 else np.where(errors > 0, 0.0, 1.0)
    return losses, r2
