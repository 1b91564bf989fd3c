"""The check that evaluators compute the same losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import AnyArray, Floats, Indices, Mask
from shine.compiler.codegen.vecmath.functions import FUNCTIONS
from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.reference_tier import ReferenceEvaluator
from shine.lang.interpret import REFERENCE
from shine.lang.population import Population

TOLERANCE = {"float64": 1e-9, "float32": 1e-3}
"""Relative difference that two losses may have."""


@dataclass(frozen=True)
class Expected:
    """Losses of the reference tier.

    Parameters
    ----------
    losses : ndarray of shape (n_individuals,)
    comparable : ndarray of shape (n_individuals,), bool
        False where changes of two ulp in the columns, the constants and the results of functions move the loss by half
        the tolerance or more, as in ``sin(exp(30*x))`` or ``cos(x) < 1``: no two libraries agree on such losses.
    tolerance : float
    """

    losses: Floats
    comparable: Mask
    tolerance: float


@dataclass(frozen=True)
class Agreement:
    """The result of comparing the losses of an evaluator with the expected ones.

    Parameters
    ----------
    compared, infinite, sensitive : int
        Individuals compared, those among them with infinite losses, and those left out as not comparable.
    worst : float
        Largest relative difference.
    tolerance : float
    wrong : int
        Individuals whose losses differ by more, or are infinite in only one of the two.
    excuse : str
        Why a few wrong individuals are not an error; empty if they are.
    """

    compared: int
    infinite: int
    sensitive: int
    worst: float
    tolerance: float
    wrong: int
    excuse: str = ""

    @property
    def holds(self) -> bool:
        """Whether no loss is wrong, or with an excuse only few are."""
        return self.wrong <= (max(self.compared // 100, 1) if self.excuse else 0)


def expected_losses(population: Population, dataset: Dataset, dtype: str) -> Expected:
    """Losses of the reference tier, and which of them can be compared."""
    tolerance = TOLERANCE[dtype]
    losses = _reference(population, dataset, dtype)
    rng = np.random.default_rng(0)
    comparable = np.ones(len(population), bool)
    for _ in range(3):  # number of disturbances of results: some turn a comparison round only in one direction
        moved = replace(population, values=_moved(population.values, dtype, rng))
        there = replace(dataset, columns=_moved(dataset.columns, dtype, rng))
        functions = REFERENCE | {name: _inexact(REFERENCE[name], dtype, rng) for name in FUNCTIONS.keys() & REFERENCE}
        comparable &= difference(losses, _reference(moved, there, dtype, functions)) < tolerance / 2
    return Expected(losses, comparable, tolerance)


def _inexact(function: Callable[..., AnyArray], dtype: str, rng: np.random.Generator) -> Callable[..., AnyArray]:
    """A function whose results are those of another library."""
    return lambda *arguments: _moved(function(*arguments), dtype, rng).astype(dtype)


def compare(expected: Expected, losses: Floats, which: Indices, excuse: str = "") -> Agreement:
    """Compare losses with the expected ones of the individuals at some positions."""
    comparable, wanted = expected.comparable[which], expected.losses[which]
    apart = np.where(comparable, difference(wanted, losses), 0.0)
    return Agreement(
        compared=int(comparable.sum()),
        infinite=int((comparable & np.isinf(wanted)).sum()),
        sensitive=int((~comparable).sum()),
        worst=float(apart.max(initial=0.0)),
        tolerance=expected.tolerance,
        wrong=int((apart > expected.tolerance).sum()),
        excuse=excuse,
    )


def difference(wanted: Floats, losses: Floats) -> Floats:
    """Relative difference; 0 where both are infinite, inf where one is, or a loss is NaN."""
    with np.errstate(all="ignore"):
        apart = np.abs(losses - wanted) / np.maximum(np.abs(wanted), np.finfo(np.float64).tiny)
    apart = np.where(np.isfinite(wanted) & np.isfinite(losses), apart, np.inf)
    return np.where(np.isposinf(wanted) & np.isposinf(losses), 0.0, apart)


def _reference(
    population: Population, dataset: Dataset, dtype: str, functions: Mapping[str, Callable[..., AnyArray]] = REFERENCE
) -> Floats:
    return ReferenceEvaluator(dataset, "mse", False, dtype, functions=functions).score(population).losses


def _moved(values: AnyArray, dtype: str, rng: np.random.Generator) -> Floats:
    return values * (1 + 2 * float(np.finfo(dtype).eps) * rng.uniform(-1, 1, values.shape))
