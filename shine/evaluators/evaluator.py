"""One evaluator in front of the tiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike, NDArray

from shine.data import Dataset
from shine.errors import DataError
from shine.evaluators.machine import MachineEvaluator
from shine.evaluators.native import NativeEvaluator
from shine.evaluators.reference import ReferenceEvaluator
from shine.fitness import LOSSES, PopulationEvaluator, Scores
from shine.lang.population import Population

TIERS: dict[str, Callable[[Dataset, str, bool, str], PopulationEvaluator]] = {
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
    loss : {"mse", "rmse", "mae", "nmse", "r2"}
    sample_weight : array-like of shape (n_rows,), optional
    linear_scaling : bool
        Whether each individual is measured with its best slope and intercept.
    dtype : {"float64", "float32"}
        Number type of the predictions; sums are float64 always.
    tier : {"auto", "machine", "native", "reference"}
        How individuals are evaluated; "auto" is the machine, which compiles nothing an individual.

    Raises
    ------
    DataError
        If the data cannot be used, or the target is constant and the loss divides by its variance.
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        loss: str = "mse",
        sample_weight: ArrayLike | None = None,
        linear_scaling: bool = False,
        dtype: str = "float64",
        tier: str = "auto",
    ) -> None:
        self._evaluator = evaluator_of(Dataset.from_arrays(X, y, sample_weight), loss, linear_scaling, dtype, tier)

    def __call__(self, population: Population) -> NDArray[Any]:
        """Losses, shape (n_individuals,), float64; inf where a prediction is not finite."""
        return self._evaluator.score(population).losses

    def score(self, population: Population) -> Scores:
        """Losses together with the slopes and intercepts of linear scaling."""
        return self._evaluator.score(population)


def evaluator_of(dataset: Dataset, loss: str, linear_scaling: bool, dtype: str, tier: str) -> PopulationEvaluator:
    """The evaluator of a tier over a data set (see `Evaluator`)."""
    for what, value, allowed in (("loss", loss, LOSSES), ("dtype", dtype, ("float64", "float32"))):
        if value not in allowed:
            raise ValueError(f"unknown {what} {value!r}; use one of {', '.join(allowed)}")
    if tier not in ("auto", *TIERS):
        raise ValueError(f"unknown tier {tier!r}; use one of auto, {', '.join(TIERS)}")
    if loss in ("nmse", "r2") and not dataset.target_square > 0:
        raise DataError(f"the target is constant, so loss {loss!r} would divide by zero; use mse or mae")
    if tier == "auto":
        tier = "machine"
    return TIERS[tier](dataset, loss, linear_scaling, dtype)
