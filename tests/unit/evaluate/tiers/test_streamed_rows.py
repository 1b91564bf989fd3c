"""Sums over rows that are read block by block have the bits of the same rows in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pytest

from shine.data.datasets.dataset import AllRows, Dataset
from shine.data.streams.streams import BLOCK_ROWS
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.population import Population

FEATURES = ("a", "b")


def rows_and_whole(count: int) -> tuple[Dataset, AllRows]:
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 5, (count, 2))
    weights = rng.integers(1, 4, count).astype(float)
    rows = Dataset.from_arrays(X, X[:, 0] / X[:, 1] + rng.normal(size=count), sample_weight=weights, features=FEATURES)

    def read(names: Collection[str]) -> Iterator[Dataset]:
        for start in range(0, count, BLOCK_ROWS):
            yield rows.take(np.arange(start, min(start + BLOCK_ROWS, count)))

    moments = rows.weight, rows.effective_rows, rows.target_mean, rows.target_square
    return rows, AllRows(count, *moments, ranges={}, checksum=0, read=read)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1000, BLOCK_ROWS, 2 * BLOCK_ROWS + 77])
@pytest.mark.parametrize("loss", ["mse", "mae"])
def test_errors_equations_and_fits_have_the_bits_in_memory(count, loss):
    rows, all_rows = rows_and_whole(count)
    population = Population.from_sources(["0.9*a/b", "1.1*a + 0.2", "b"], FEATURES)
    ones, limits = np.ones(3), np.full(3, np.inf)
    here, there = MachineLinearizer(rows, loss, 1), MachineLinearizer(all_rows, loss, 2, FEATURES)
    np.testing.assert_array_equal(here.errors(population), there.errors(population))
    own, other = (each.normal_equations(population, ones, 0 * ones, limits) for each in (here, there))
    np.testing.assert_array_equal(own.errors, other.errors)
    np.testing.assert_array_equal(own.matrices, other.matrices)
    fits = [each.fit(population, 3, tolerance=1e-9) for each in (here, there)]
    np.testing.assert_array_equal(fits[0].population.values, fits[1].population.values)
    np.testing.assert_array_equal(fits[0].errors, fits[1].errors)
