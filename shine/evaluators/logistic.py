"""Log-loss on the machines that add up errors: the loss of a row becomes part of the formula.

The value of a formula is the logarithm of the odds that a row belongs to a class. With ``logistic_error`` applied to
it, its absolute error against 0 is the log-loss; with ``logistic_root``, its squared error is. So the same code that
measures errors and fits constants by least squares does it for log-loss.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shine.data.dataset import Dataset
from shine.evaluators.gradients import MachineLinearizer
from shine.evaluators.machine_tier import MachineEvaluator
from shine.fitness.protocols import Fit, NormalEquations
from shine.lang.parse import parse
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet
from shine.lang.tree import Primitive
from shine.lang.vocabulary import primitive_table
from shine.typing import Floats, Mask

SHARE = "__share"
"""Name of the target's column, the share of each row that belongs to the class; no user's feature has this name."""

_ERROR = """
def logistic_error(score, share):
    # exp of a number that is not positive does not overflow. At 0 both sides have the same derivative.
    size = score if score > 0 else -score
    linear = score - share * score if score > 0 else -share * score
    return linear + log1p(exp(-size))
"""

_ROOT = """
def logistic_root(score, share):
    # The summand keeps the derivative of the root finite where the error vanishes.
    return sqrt(logistic_error(score, share) + 1e-300)
"""


def _functions() -> tuple[Primitive, Primitive]:
    table, _ = primitive_table(())
    for text in (_ERROR, _ROOT):
        definition = parse(text, primitives=table)
        table[definition.name] = Primitive(definition.name, len(definition.parameters), definition)
    return table["logistic_error"], table["logistic_root"]


ERROR, ROOT = _functions()
"""Log-loss of a row, and its square root, given the formula's value and the share."""


class LogisticRows:
    """A data set whose target is the share of each row that belongs to a class, as the machines see it.

    Parameters
    ----------
    dataset : Dataset
        Its target is between 0 and 1.
    """

    def __init__(self, dataset: Dataset) -> None:
        columns = np.ascontiguousarray(np.vstack([dataset.columns, dataset.target]))
        nothing = np.zeros(dataset.n_rows)
        self.dataset = Dataset(columns, nothing, dataset.weights, (*dataset.features, SHARE))
        self._latest: tuple[PrimitiveSet, PrimitiveSet] | None = None

    def judged(self, population: Population, function: Primitive) -> Population:
        """The individuals with `ERROR` or `ROOT` applied to them and the share."""
        primitives = self._primitives(population.primitives)
        n, first = len(population), population.primitives.first_function
        codes, values = np.pad(population.codes, ((0, 0), (0, 2))), np.pad(population.values, ((0, 0), (0, 2)))
        # One more feature moves the codes of the functions up by one.
        codes[codes >= first] += 1
        everyone = np.arange(n)
        codes[everyone, population.sizes] = primitives.feature_codes[SHARE]
        codes[everyone, population.sizes + 1] = primitives.function_codes[function.name]
        return Population(codes, values, population.sizes + 2, primitives)

    def _primitives(self, primitives: PrimitiveSet) -> PrimitiveSet:
        latest = self._latest  # read once: another thread may replace it
        if latest is None or latest[0] is not primitives:
            extended = PrimitiveSet((*primitives.functions, ERROR, ROOT), (*primitives.features, SHARE))
            self._latest = latest = primitives, extended
        return latest[1]


class LogisticEvaluator:
    """Mean log-loss of populations whose values are logarithms of odds.

    Parameters
    ----------
    dataset : Dataset
        Its target is the share of each row that is of the class, between 0 and 1.
    dtype : {"float64", "float32"}
    threads : int
    """

    def __init__(self, dataset: Dataset, dtype: str = "float64", threads: int = 1) -> None:
        self._rows = LogisticRows(dataset)
        self._evaluator = MachineEvaluator(self._rows.dataset, "mae", False, dtype, threads)

    def losses(self, population: Population) -> Floats:
        """Weighted mean of the rows' log-losses, shape (n_individuals,), in nats; inf where it is not finite."""
        return self._evaluator.score(self._rows.judged(population, ERROR)).losses


class LogisticLinearizer:
    """Normal equations of the roots of the rows' log-losses (see `shine.fitness.protocols.Linearizer`).

    Their squares are log-losses, so least squares maximizes the likelihood. Linear scaling does not apply: slopes and
    intercepts have to be 1 and 0.

    Parameters
    ----------
    dataset : Dataset
        Its target is the share of each row that is of the class, between 0 and 1.
    threads : int
    """

    def __init__(self, dataset: Dataset, threads: int = 1) -> None:
        self._rows = LogisticRows(dataset)
        self._linearizer = MachineLinearizer(self._rows.dataset, "mse", threads)

    def normal_equations(
        self, population: Population, slopes: Floats, intercepts: Floats, limits: Floats
    ) -> NormalEquations:
        """Sums of log-losses, and the normal equations at the constants of the population."""
        judged = self._rows.judged(population, ROOT)
        return self._linearizer.normal_equations(judged, slopes, intercepts, limits)

    def fit(
        self,
        population: Population,
        slopes: Floats,
        intercepts: Floats,
        steps: int,
        *,
        tolerance: float,
        scaled: bool,
        fixed: Mask | None = None,
    ) -> Fit:
        """Fit the constants of each individual."""
        judged = self._rows.judged(population, ROOT)
        fit = self._linearizer.fit(judged, slopes, intercepts, steps, tolerance=tolerance, scaled=scaled, fixed=fixed)
        # The last two nodes are the share and `ROOT`.
        values = fit.population.values[:, : population.width]
        return replace(fit, population=replace(population, values=values))
