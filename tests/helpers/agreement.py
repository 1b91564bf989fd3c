"""Do all tiers agree? A population is compiled once, and compared over as many data sets as there are.

Five statements are checked, and each disagreement is a line of text:

1. A whole formula in native code has the bits of its primitives applied one by one, by the reference tier; there, the
   inexact primitives are kernels of one primitive each.
2. The machine's predictions have the bits of native code, whatever the number of threads.
3. So have the values that the gradient machine computes on its way to derivatives, unless a formula has constants and
   elementary functions: of constants, it computes these with fused multiply-adds.
4. So have losses, slopes and intercepts, with and without weights, linear scaling and a threshold.
5. Losses are within rounding of the textbook's.

`primitive_disagreements` checks each inexact primitive alone: it is within 2 ulp of NumPy, whose own error is about 1
ulp. Together they say that the compiled tiers differ from the reference by at most 2 ulp a primitive, and do not differ
among themselves at all, without a guess of how errors grow in a formula.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import numpy as np
from helpers.equality import same_bits, ulps
from helpers.formulas import APPROXIMATE, FEATURES
from helpers.oracles.losses import expected_loss
from helpers.rows import random_rows
from numpy.typing import NDArray

from shine.compiler.codegen.numbers import is_elementary
from shine.data.datasets.dataset import Dataset
from shine.evaluate.kernels.jit import jit
from shine.evaluate.kernels.kernel import Kernel
from shine.evaluate.losses.form import LOSSES
from shine.evaluate.machine.interpreter import tile_rows
from shine.evaluate.scores import Scores, score
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.evaluate.tiers.native_tier import NativeFitness
from shine.evaluate.tiers.rows import Rows, target_of
from shine.lang.forms.library import STANDARD
from shine.lang.interpret import REFERENCE, evaluate_tape
from shine.lang.population import Population

Array = NDArray[np.floating]

ASKED = tuple((loss, scaling) for loss in LOSSES for scaling in (False, True))
"""Every loss, without and with linear scaling."""

GRADIENT_ROWS = 3
"""Rows that the gradient machine evaluates, one at a time because it adds up several."""

SHOWN = 3
"""Most disagreements of one kind that are reported."""


@cache
def _alone(dtype: str) -> dict[str, Callable[..., Array]]:
    """A kernel of each inexact primitive."""
    arguments = {name: ("x", "y")[: STANDARD[name].arity] for name in APPROXIMATE}
    return {name: jit(f"{name}({', '.join(names)})", params=names, dtype=dtype) for name, names in arguments.items()}


@contextmanager
def primitives_compiled_alone(dtype: str) -> Iterator[None]:
    """Within the context, the reference tier takes the inexact primitives from kernels of one primitive each."""
    original = dict(REFERENCE)
    REFERENCE.update(_alone(dtype))
    try:
        yield
    finally:
        REFERENCE.update(original)


def reference_predictions(population: Population, columns: Sequence[Array], dtype: str) -> Array:
    """Predictions of the reference tier, with the bits of the inexact primitives compiled alone."""
    with primitives_compiled_alone(dtype), np.errstate(all="ignore"):
        tapes = [population.tape(i) for i in range(len(population))]
        return np.array([evaluate_tape(t.codes, t.values, population.primitives, list(columns)) for t in tapes])


def gradient_values(population: Population, row: Sequence[float]) -> Array:
    """Absolute values of the individuals in one row, as the gradient machine has them; inf if they are not finite."""
    dataset = Dataset(np.array(row)[:, None], np.zeros(1), None, FEATURES)
    one = np.ones(len(population))
    with np.errstate(all="ignore"):
        # With the target 0, the sum of absolute errors of one row is the absolute prediction.
        return MachineLinearizer(dataset, "mae").normal_equations(population, one, 0 * one, np.inf * one).errors


class Tiers:
    """A population in native code, to compare the other tiers with.

    Parameters
    ----------
    population : Population
    dtype : {"float64", "float32"}
    level : str
        Optimization of the kernels that predict.
    """

    def __init__(self, population: Population, dtype: str, level: str = "O1") -> None:
        self.population, self.dtype = population, dtype
        self.trees = [population.tree(i) for i in range(len(population))]
        self._kernels = [Kernel(tree, dtype, level) for tree in self.trees]
        self._fitness = NativeFitness(self.trees, dtype, "O0", selection=1)

    def predictions(self, columns: Sequence[Array]) -> Array:
        """Predictions of native code, shape (n_individuals, n_rows)."""
        return np.array([np.broadcast_to(kernel(*columns), len(columns[0])) for kernel in self._kernels])

    def scores(self, dataset: Dataset, loss: str, scaling: bool) -> Scores:
        """Scores of native code."""
        measure, target = self._fitness.over(Rows(dataset, self.dtype)), target_of(dataset, self.dtype)
        return score(measure, len(self.trees), target, loss, scaling)

    def disagreements(self, dataset: Dataset, asked: Sequence[tuple[str, bool]] = ASKED, threads: int = 1) -> list[str]:
        """The disagreements over a data set, for some losses and scalings."""
        with np.errstate(all="ignore"):
            columns = [column.astype(self.dtype) for column in dataset.columns]
            native = self.predictions(columns)
            # Some losses divide by the target's variance.
            asked = [each for each in asked if each[0] not in ("nmse", "r2") or dataset.target_square > 0]
            return [
                *self._wrong_predictions(native, columns, dataset, threads),
                *self._wrong_gradients(native, columns),
                *(
                    line
                    for loss, scaling in asked
                    for line in self._wrong_scores(native, dataset, loss, scaling, threads)
                ),
            ]

    def _wrong_predictions(
        self, native: Array, columns: Sequence[Array], dataset: Dataset, threads: int
    ) -> Iterator[str]:
        others = {
            "reference": reference_predictions(self.population, columns, self.dtype),
            "machine": evaluator_of(dataset, "mse", False, self.dtype, "machine", threads).predict(self.population),
        }
        for name, found in others.items():
            for index, row in np.argwhere(~same_bits(native, found))[:SHOWN]:
                at = [float(column[row]) for column in columns]
                pair = f"native {native[index, row]!r}, {name} {found[index, row]!r}"
                yield f"{self._named(dataset, index)} at {at}: {pair}"

    def _wrong_gradients(self, native: Array, columns: Sequence[Array]) -> Iterator[str]:
        if self.dtype != "float64":
            return
        slow = [is_elementary(function) for function in self.population.primitives.functions]
        codes, first = self.population.codes, self.population.primitives.first_function
        may_be_fused = np.isin(codes, first + np.flatnonzero(slow))
        rounded_alike = ~(may_be_fused.any(axis=1) & self.population.constants.any(axis=1))
        for row in range(min(GRADIENT_ROWS, native.shape[1])):
            at = [float(column[row]) for column in columns]
            found, expected = gradient_values(self.population, at), np.abs(native[:, row])
            expected = np.where(np.isfinite(expected), expected, np.inf)
            for index in np.flatnonzero(~same_bits(found, expected) & rounded_alike)[:SHOWN]:
                yield f"{str(self.trees[index])[:300]} at {at}: native {expected[index]!r}, gradient {found[index]!r}"

    def _wrong_scores(self, native: Array, dataset: Dataset, loss: str, scaling: bool, threads: int) -> Iterator[str]:
        evaluator = evaluator_of(dataset, loss, scaling, self.dtype, "machine", threads)
        expected, found = self.scores(dataset, loss, scaling), evaluator.score(self.population)
        threshold = float(np.median(expected.losses))
        pairs = {name: (getattr(expected, name), getattr(found, name)) for name in ("losses", "slopes", "intercepts")}
        below = expected.within(threshold).losses, evaluator.score(self.population, threshold).losses
        for name, (first, second) in {**pairs, f"losses up to {threshold}": below}.items():
            for index in np.flatnonzero(~same_bits(first, second))[:SHOWN]:
                pair = f"native {first[index]!r}, machine {second[index]!r}"
                yield f"{self._named(dataset, index)}: {loss}, scaled {scaling}, {name}: {pair}"
        if not scaling:
            yield from self._far_from_the_textbook(native, dataset, loss, expected.losses)

    def _far_from_the_textbook(self, native: Array, dataset: Dataset, loss: str, losses: Array) -> Iterator[str]:
        weights = np.ones(dataset.n_rows) if dataset.weights is None else dataset.weights
        for index, predicted in enumerate(native):
            textbook = expected_loss(predicted.astype(np.float64), dataset.target, weights, loss)
            textbook = textbook if np.isfinite(predicted).all() and np.isfinite(textbook) else np.inf
            # Near the ends of the range, sums in another order overflow or lose digits.
            ordinary = min(textbook, losses[index]) > 1e-290 and max(textbook, losses[index]) < 1e290
            if ordinary and not np.isclose(losses[index], textbook, rtol=1e-10, atol=0):
                yield f"{self._named(dataset, index)}: {loss} {losses[index]!r}, by the textbook {textbook!r}"

    def _named(self, dataset: Dataset, index: int) -> str:
        return f"{self.dtype}, {dataset.n_rows} rows: {str(self.trees[index])[:300]}"


def random_dataset(rng: np.random.Generator, rows: int, dtype: str, special: bool, weighted: bool) -> Dataset:
    """Rows with or without special values; made without the check that all values are finite."""
    columns = random_rows(rng, rows, dtype) if special else rng.normal(size=(len(FEATURES), rows)) * 2
    weights = rng.choice([0.0, 0.5, 1.0, 3.7], rows) if weighted else None
    if weights is not None:
        weights[rng.integers(rows)] = 2.5
    return Dataset(np.array(columns, np.float64), rng.normal(size=rows), weights, FEATURES)


def row_counts(dtype: str) -> list[int]:
    """Numbers of rows around the sizes of vectors, tiles and chunks of sums."""
    tile = tile_rows(dtype)
    return [1, 63, 64, 65, tile - 1, tile, tile + 1, 2 * tile + 1, 10_007]


def primitive_disagreements(rng: np.random.Generator, rows: int, dtype: str, limit: float = 2.0) -> list[str]:
    """Rows in which an inexact primitive is further from NumPy than a limit in ulp."""
    found = []
    for name in APPROXIMATE:
        columns = random_rows(rng, rows, dtype)[: STANDARD[name].arity]
        parameters = FEATURES[: len(columns)]
        native = jit(f"{name}({', '.join(parameters)})", params=parameters, dtype=dtype)(*columns)
        with np.errstate(all="ignore"):
            # In float32, NumPy's own functions are up to 4 ulp off: round the float64 value instead.
            expected = REFERENCE[name](*(column.astype(np.float64) for column in columns)).astype(dtype)
        off = ulps(native, expected)
        for row in np.flatnonzero(off > limit)[:SHOWN]:
            at = [float(column[row]) for column in columns]
            pair = f"native {native[row]!r}, reference {expected[row]!r}"
            found.append(f"{dtype}: {name} at {at}: {pair}: {off[row]} ulp")
    return found
