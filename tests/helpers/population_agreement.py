"""Agreement of the tiers on whole populations: random tapes of every shape and size over random rows.

Three statements are checked:

1. Predictions of the machine have the bits of the native tier's.
2. So have losses, slopes and intercepts, with and without weights and linear scaling.
3. Where all functions are exact, predictions have the bits of the reference, and losses are within rounding of its.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from helpers.equality import same_bits
from helpers.formulas import FEATURES
from helpers.populations import EXACT_CODES, PRIMITIVES, random_population
from helpers.rows import random_rows
from numpy.typing import NDArray

from shine.codegen.machine.machine import tile_rows
from shine.data.dataset import Dataset
from shine.evaluators.machine import MachineEvaluator
from shine.evaluators.native import NativeEvaluator, NativeFitness
from shine.evaluators.reference import ReferenceEvaluator
from shine.evaluators.rows import Rows, target_of
from shine.fitness import LOSSES, Scores, score
from shine.lang.population import Population


def random_dataset(rng: np.random.Generator, rows: int, dtype: str, special: bool, weighted: bool) -> Dataset:
    """Rows with or without special values; made without the check that all values are finite."""
    columns = random_rows(rng, rows, dtype) if special else rng.normal(size=(len(FEATURES), rows)) * 2
    weights = rng.choice([0.0, 0.5, 1.0, 3.7], rows) if weighted else None
    if weights is not None:
        weights[rng.integers(rows)] = 2.5
    return Dataset(np.array(columns, np.float64), rng.normal(size=rows), weights, FEATURES)


def exact_individuals(population: Population) -> NDArray[np.bool_]:
    """Which individuals have only functions that are exact."""
    codes = np.array(sorted(EXACT_CODES), np.int16)
    return (np.isin(population.codes, codes) | (population.codes < PRIMITIVES.first_function)).all(axis=1)


def native_scores(population: Population, dataset: Dataset, dtype: str, asked: list[tuple[str, bool]]) -> list[Scores]:
    """Scores of the native tier for several losses, compiled once."""
    trees = [population.tree(i) for i in range(len(population))]
    compiled = NativeFitness(trees, dtype, "O0", selection=1)
    try:
        measure, target = compiled.over(Rows(dataset, dtype)), target_of(dataset, dtype)
        return [score(measure, len(trees), target, loss, scaling) for loss, scaling in asked]
    finally:
        compiled.close()


def disagreements(
    population: Population, dataset: Dataset, dtype: str, asked: list[tuple[str, bool]], counts: Counter[str]
) -> list[str]:
    """What contradicts the three statements for one population and data set."""
    found = []

    def report(what: str, which: NDArray[np.bool_], first: NDArray, second: NDArray) -> None:
        for index in np.flatnonzero(which)[:3]:
            text = str(population.tree(int(index)))[:200]
            pair = np.atleast_1d(first[index])[:3], np.atleast_1d(second[index])[:3]
            found.append(f"{dtype}, {dataset.n_rows} rows, {what}: {text}: {pair[0]} and {pair[1]}")

    def different(first: NDArray, second: NDArray) -> NDArray[np.bool_]:
        same = same_bits(first, second)
        return ~(same.all(axis=1) if same.ndim == 2 else same)

    exact = exact_individuals(population)
    predictions = MachineEvaluator(dataset, "mse", False, dtype).predict(population)
    native = NativeEvaluator(dataset, "mse", False, dtype).predict(population)
    reference = ReferenceEvaluator(dataset, "mse", False, dtype).predict(population)
    report("prediction of machine and native", different(predictions, native), predictions, native)
    report("prediction of machine and reference", different(predictions, reference) & exact, predictions, reference)
    counts["predictions"] += predictions.size
    counts["finite predictions"] += int(np.isfinite(predictions).sum())
    counts["predictions compared with the reference"] += int(exact.sum()) * dataset.n_rows
    for (loss, scaling), compiled in zip(asked, native_scores(population, dataset, dtype, asked), strict=True):
        scores = MachineEvaluator(dataset, loss, scaling, dtype).score(population)
        for name in ("losses", "slopes", "intercepts"):
            first, second = getattr(scores, name), getattr(compiled, name)
            report(f"{loss}, scaled {scaling}, {name} of machine and native", different(first, second), first, second)
        expected = ReferenceEvaluator(dataset, loss, False, dtype).score(population).losses
        with np.errstate(all="ignore"):
            close = np.isclose(scores.losses, expected, rtol=1e-10, atol=0) | (scores.losses == expected)
        # Where squares come near the largest number, sums in another order may overflow; scaled losses are compared
        # in the tests of losses.
        ordinary = exact & (np.maximum(scores.losses, expected) < 1e300)
        if not scaling:
            report(f"{loss} of machine and reference", ~close & ordinary, scores.losses, expected)
        counts["losses"] += len(population)
        counts["finite losses"] += int(np.isfinite(scores.losses).sum())
    return found


def row_counts(dtype: str) -> list[int]:
    """Rows around the sizes at which the machine does something else."""
    tile = tile_rows(dtype)
    return [1, 63, 64, 65, tile - 1, tile, tile + 1, 2 * tile + 1, 10_007]


def batch(rng: np.random.Generator, count: int, largest: int, dtype: str, rows: int, counts: Counter[str]) -> list[str]:
    """What a random population over random rows disagrees in."""
    population, shapes = random_population(rng, count, largest)
    dataset = random_dataset(rng, rows, dtype, bool(rng.random() < 0.5), bool(rng.random() < 0.5))
    losses = list(LOSSES)
    asked = [(str(rng.choice(losses)), scaling) for scaling in (False, True)]
    counts.update({f"trees of shape {shape}": shapes.count(shape) for shape in set(shapes)})
    counts["trees"] += count
    counts["nodes"] += int(population.sizes.sum())
    counts["largest tree"] = max(counts["largest tree"], int(population.sizes.max()))
    with np.errstate(all="ignore"):
        return disagreements(population, dataset, dtype, asked, counts)
