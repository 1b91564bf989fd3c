"""The automatic tier: chooses the machine or native code for each individual."""

from __future__ import annotations

import numpy as np

from shine.base.typing import AnyArray, Mask
from shine.data.datasets.dataset import Dataset
from shine.evaluate.fitness.protocols import PopulationEvaluator
from shine.evaluate.fitness.scores import Scores
from shine.evaluate.losses.form import Loss
from shine.evaluate.tiers.costs import SMALLEST, host_costs, nodes_by_kind
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.evaluate.tiers.native_tier import NativeEvaluator
from shine.evaluate.tiers.remade import Remade
from shine.lang.population import Population


class AutomaticEvaluator(Remade):
    """Scores populations on the machine, except individuals that are worth compiling.

    Both give the same bits: only time depends on the choice.
    """

    def __init__(self, dataset: Dataset, loss: str | Loss, linear_scaling: bool, dtype: str, threads: int = 1) -> None:
        self._options = dataset, loss, linear_scaling, dtype, threads
        self._machine: PopulationEvaluator = MachineEvaluator(*self._options)
        self._native: PopulationEvaluator | None = None

    def score(self, population: Population, threshold: float = np.inf) -> Scores:
        """Loss and scaling of each individual; losses above the threshold become inf."""
        # The machine stops early at a threshold, which saves more time than native code does.
        compiled = np.zeros(len(population), np.bool_) if threshold < np.inf else self._worth_compiling(population)
        if not compiled.any():
            return self._machine.score(population, threshold)
        if self._native is None:
            self._native = NativeEvaluator(*self._options)
        native = self._native.score(population.take(np.flatnonzero(compiled)), threshold)
        rest = self._machine.score(population.take(np.flatnonzero(~compiled)), threshold)
        order = np.concatenate([np.flatnonzero(compiled), np.flatnonzero(~compiled)])
        return Scores.concatenate([native, rest]).take(np.argsort(order))

    def predict(self, population: Population) -> AnyArray:
        """Predictions, shape (n_individuals, n_rows)."""
        return self._machine.predict(population)

    def _worth_compiling(self, population: Population) -> Mask:
        dataset, _, _, dtype, threads = self._options
        if dataset.n_rows < SMALLEST:
            return np.zeros(len(population), np.bool_)
        return host_costs(dtype).worth_compiling(nodes_by_kind(population), dataset.n_rows, threads)
