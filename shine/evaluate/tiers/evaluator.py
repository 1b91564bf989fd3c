"""One evaluator in front of the tiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import DataError
from shine.base.typing import AnyArray, Floats
from shine.compiler.threads import processors
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses import LossSource, loss_for
from shine.evaluate.losses.form import Loss, loss_of
from shine.evaluate.protocols import PopulationEvaluator
from shine.evaluate.scores import Scores
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.evaluate.tiers.native_tier import NativeEvaluator
from shine.evaluate.tiers.reference_tier import ReferenceEvaluator
from shine.evaluate.validation import EvaluatorOptions
from shine.lang.forms.names import value_text
from shine.lang.forms.synonyms import keywords_checked
from shine.lang.population import Population

TIERS: dict[str, Callable[[Dataset, str | Loss, bool, str, int], PopulationEvaluator]] = {
    "reference": ReferenceEvaluator,
    "machine": MachineEvaluator,
    "native": NativeEvaluator,
}
"""The tiers by name."""


class Evaluator:
    """Loss of each individual of a population over a data set.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    loss : str, function or Loss
        As in `shine.evolve`; see `shine.losses`. A function that is negative is shifted: a perfect prediction has 0.
    dtype : {"float64", "float32"}
        Number type of the predictions; sums are always float64.
    tier : {"machine", "native", "reference"}
        Way of evaluation: the tile machine, each formula compiled, or NumPy.
    threads : int, optional
        Threads of the machine that share the individuals if there is enough work; all processors if None. Their number
        changes no bit of the result.
    sample_weight : array-like of shape (n_rows,), optional
    linear_scaling : bool
        Whether each individual is measured with its best slope and intercept.
    loss_columns : mapping of str to array-like of shape (n_rows,), optional
        Columns that are no features and that the loss reads, by name.

    Raises
    ------
    DataError
        If the data cannot be used, or the target is constant and the loss divides by its variance.
    ValueError
        If an option is unknown.

    Examples
    --------
    >>> import shine
    >>> population = shine.Population.from_sources(["x0*x0", "x0 + 1"])
    >>> shine.Evaluator([[1.0], [2.0]], [1.0, 4.0])(population).tolist()
    [0.0, 1.0]
    """

    @keywords_checked
    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        loss: LossSource = "mse",
        dtype: str = "float64",
        tier: str = "machine",
        threads: int | None = 1,
        sample_weight: ArrayLike | None = None,
        linear_scaling: bool = False,
        loss_columns: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        options = EvaluatorOptions.checked(linear_scaling=linear_scaling, dtype=dtype, tier=tier, threads=threads)
        self._dataset = Dataset.from_arrays(X, y, sample_weight=sample_weight, loss_columns=loss_columns)
        loss = loss if isinstance(loss, Loss) else loss_for(loss, self._dataset)
        self._options = loss, options.linear_scaling, options.dtype, options.tier, options.threads
        self._evaluator = evaluator_of(self._dataset, *self._options)

    def __getstate__(self) -> dict[str, Any]:
        # Compiled code and addresses of data mean nothing to another process, nor to a copy.
        return {name: value for name, value in self.__dict__.items() if name != "_evaluator"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._evaluator = evaluator_of(self._dataset, *self._options)

    def __call__(self, population: Population, threshold: float = np.inf) -> AnyArray:
        """Losses, shape (n_individuals,), float64; inf where a prediction is not finite.

        Parameters
        ----------
        population : Population
        threshold : float
            Losses above it become inf; all others are exactly the same as without it. The machine stops
            evaluating an individual as soon as the rows seen prove that its loss exceeds the threshold: an individual
            far above it costs one tile of rows, not all rows.

        Raises
        ------
        TypeError
            If it is no population.
        ValueError
            If X has not one column for each feature of the population, or a tape is invalid. All methods raise both.

        Examples
        --------
        >>> import shine
        >>> population = shine.Population.from_sources(["x0*x0", "x0 + 1"])
        >>> shine.Evaluator([[1.0], [2.0]], [1.0, 4.0])(population, threshold=0.5).tolist()
        [0.0, inf]
        """
        return self.score(population, threshold).losses

    def score(self, population: Population, threshold: float = np.inf) -> Scores:
        """Losses together with the slopes and intercepts of linear scaling; `threshold` as in a call.

        With linear scaling, the error of the best line through the rows seen proves that the loss is too large.
        """
        self._check(population)
        return self._evaluator.score(population, threshold)

    def predict(self, population: Population) -> AnyArray:
        """Predictions of each individual for each row, shape (n_individuals, n_rows), in `dtype`."""
        self._check(population)
        return self._evaluator.predict(population)

    def row_errors(self, population: Population) -> Floats:
        """Absolute error of each individual in each row, for lexicase selection, shape (n_individuals, n_rows),
        float64.

        inf where a prediction is not finite. Never linearly scaled, even if the evaluator scales.
        """
        with np.errstate(all="ignore"):
            errors = np.abs(self.predict(population) - self._dataset.target)
        return np.where(np.isfinite(errors), errors, np.inf)

    def _check(self, population: Population) -> None:
        if not isinstance(population, Population):
            made = "make one with shine.Population.from_sources(['x0*x1', 'x0 + 1'])"
            raise TypeError(f"an evaluator takes a shine.Population, is {value_text(population)}; {made}")
        needed, given = len(population.primitives.features), len(self._dataset.features)
        if needed != given:
            raise ValueError(f"the population has {needed} features, but X has {given} columns")
        if not population.is_valid:
            raise ValueError("the population holds a tape that is no formula in postfix order; see shine.Population")


def evaluator_of(
    dataset: Dataset, loss: str | Loss, linear_scaling: bool, dtype: str, tier: str, threads: int | None = 1
) -> PopulationEvaluator:
    """The evaluator of a tier over a data set (see `Evaluator`)."""
    loss = loss_of(loss)
    if loss.needs_variance and not dataset.target_square > 0:
        raise DataError(f"the target is constant, so loss {loss.name!r} would divide by zero; use mse or mae")
    return TIERS[tier](dataset, loss, linear_scaling, dtype, processors() if threads is None else threads)
