"""Losses and predictions of populations over a data set, of as many losses as a script asks for."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine.base.errors import DataError
from shine.base.typing import AnyArray, Floats
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import Loss, RowLoss, loss_of
from shine.evaluate.protocols import PopulationEvaluator
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.rows import target_of
from shine.lang.population import Population


class Measurement:
    """Measures populations; losses that add up the same errors share one pass over the rows.

    Parameters
    ----------
    dataset : Dataset
    losses : sequence of str
        May be empty.
    linear_scaling : bool
        Whether losses and predictions are those of each individual's best line.
    dtype, tier, threads
        See `shine.Evaluator`.
    exact_sums : bool
        Whether sums of errors are rounded once.

    Raises
    ------
    DataError
        If the target is constant and a loss divides by its variance.
    ValueError
        If an option is unknown.
    """

    def __init__(
        self,
        dataset: Dataset,
        losses: Sequence[str],
        *,
        linear_scaling: bool,
        dtype: str,
        tier: str,
        threads: int | None,
        exact_sums: bool,
    ) -> None:
        self._dataset, self._scaled, self._exact = dataset, linear_scaling, exact_sums
        self._dtype, self._tier, self._threads = dtype, tier, threads
        self._groups: dict[str, list[str]] = {}
        for name in dict.fromkeys(losses):
            self._groups.setdefault(loss_of(name).kind.name, []).append(name)
            if loss_of(name).needs_variance and not dataset.target_square > 0:
                raise DataError(f"the target is constant, so loss {name!r} would divide by zero; use mse or mae")
        self._target = target_of(dataset, dtype)
        self._evaluators = self._compiled()

    def __getstate__(self) -> dict[str, Any]:
        # Compiled code and addresses of data mean nothing to another process, nor to a copy.
        return {name: value for name, value in self.__dict__.items() if name != "_evaluators"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._evaluators = self._compiled()

    @property
    def dataset(self) -> Dataset:
        """The rows."""
        return self._dataset

    @property
    def from_predictions(self) -> bool:
        """Whether losses are computed from predictions, which need memory for all rows of an individual."""
        return self._exact and bool(self._groups)

    def predictions(self, population: Population) -> AnyArray:
        """Predictions, shape (n_individuals, n_rows), in the number type; with linear scaling, of the best lines."""
        evaluator = self._evaluators[0]
        predictions = evaluator.predict(population)
        if self._scaled:
            scores = evaluator.score(population)
            with np.errstate(all="ignore"):
                lines = scores.intercepts[:, None] + scores.slopes[:, None] * predictions
                predictions = lines.astype(self._dtype)
        return predictions

    def losses(self, population: Population, predictions: AnyArray | None = None) -> dict[str, Floats]:
        """Each loss by name, shape (n_individuals,), float64; inf where a prediction is not finite.

        Parameters
        ----------
        population : Population
        predictions : ndarray of shape (n_individuals, n_rows), optional
            Those of the population, if they are known already.
        """
        if self.from_predictions:
            known = self.predictions(population) if predictions is None else predictions
            return self._exact_losses(known)
        found: dict[str, Floats] = {}
        for evaluator, names in zip(self._evaluators, self._groups.values(), strict=False):
            own, first = evaluator.score(population).losses, loss_of(names[0])
            found[names[0]] = own
            if len(names) > 1:
                sums = [first.sum_of(loss, self._target.weight, self._target.square) for loss in own.tolist()]
                found |= {name: self._of_sums(loss_of(name), np.array(sums)) for name in names[1:]}
        return found

    def of_column(self, column: AnyArray) -> Measurement:
        """The same for data with one column, shape (n_rows,), whose values need not be finite."""
        dataset = replace(self._dataset, columns=column.astype(np.float64)[None], features=("prediction",), headings={})
        made = copy.copy(self)
        made.__setstate__({"_dataset": dataset})
        return made

    def _compiled(self) -> list[PopulationEvaluator]:
        """An evaluator for the first loss of each kind; one for predictions if there is no loss."""
        firsts = [names[0] for names in self._groups.values()] or ["mse"]
        options = self._scaled, self._dtype, self._tier, self._threads
        return [evaluator_of(self._dataset, name, *options) for name in firsts]

    def _exact_losses(self, predictions: AnyArray) -> dict[str, Floats]:
        found: dict[str, Floats] = {}
        for names in self._groups.values():
            sums = sums_of_errors(predictions, self._dataset.target, loss_of(names[0]).kind)
            found |= {name: self._of_sums(loss_of(name), sums) for name in names}
        return found

    def _of_sums(self, loss: Loss, sums: Floats) -> Floats:
        with np.errstate(all="ignore"):
            losses = loss.of_sum(sums, self._target.weight, self._target.square)
        return np.where(np.isfinite(losses), losses, np.inf)


BLOCK = 2048
"""Rows that are added up at a time."""

_CELLS = 1 << 15
"""Numbers summed at a time: few enough for the cache, enough to hide the cost of calling NumPy."""


def sums_of_errors(predictions: NDArray[np.floating], target: Floats, kind: RowLoss) -> Floats:
    """Sum over the rows of the errors of each individual.

    Parameters
    ----------
    predictions : ndarray of shape (n_individuals, n_rows)
    target : ndarray of shape (n_rows,)
    kind : RowLoss

    Returns
    -------
    ndarray of shape (n_individuals,), float64
        The exact sum of the errors, each rounded to float64, to the nearest float64 (except within about 1e-21 of a
        tie, relative to the sum); inf or NaN where an error is.
    """
    individuals, rows = predictions.shape
    starts = range(0, rows, BLOCK)
    parts = np.empty((individuals, 2 * len(starts)))
    group = max(_CELLS // min(rows, BLOCK), 1)
    memory = np.empty((2, group, min(rows, BLOCK)))
    with np.errstate(all="ignore"):
        for first in range(0, individuals, group):
            chosen = slice(first, first + group)
            for block, start in enumerate(starts):
                span = slice(start, start + BLOCK)
                some = predictions[chosen, span]
                errors, rest = memory[:, : some.shape[0], : some.shape[1]]
                errors[...] = kind.errors(some, target[span])
                parts[chosen, 2 * block], parts[chosen, 2 * block + 1] = _halves(errors, rest)
        plain = parts.sum(axis=1)
    sure = np.isfinite(plain) & (plain < 2.0**960)  # largest number that can be split; larger ones are added unsplit
    plain[sure] = [math.fsum(row) for row in parts[sure].tolist()]
    return plain


def _halves(values: Floats, memory: Floats) -> tuple[Floats, Floats]:
    """Two sums over each row of non-negative numbers: an exact one of their leading bits, and one of the rest.

    Adding and subtracting a power of two that exceeds the sum leaves multiples of its last bit, whose sums are exact in
    any order (Rump, Ogita, Oishi, Accurate floating-point summation, 2008). `memory` has the shape of the values.
    """
    bits = values.shape[1].bit_length() + 1
    exponents = np.frexp(values.max(axis=1))[1]
    power = np.ldexp(1.0, np.minimum(exponents + bits, 1023))[:, None]
    np.add(values, power, out=memory)
    np.subtract(memory, power, out=memory)
    total = memory.sum(axis=1)
    np.subtract(values, memory, out=memory)
    return total, memory.sum(axis=1)
