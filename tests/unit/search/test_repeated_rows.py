"""A whole weight of `shine.evolve` is the row as often."""

from __future__ import annotations

import numpy as np
import pytest

import shine


@pytest.mark.slow
@pytest.mark.parametrize("beside", [[], ["sigma", "groups"]])
def test_whole_weights_and_repeated_rows_have_one_front(beside: list[str]) -> None:
    rng = np.random.default_rng(0)
    X, weights = rng.uniform(1, 5, (40, 2)), rng.integers(0, 4, 40)
    y = X[:, 0] * np.sqrt(X[:, 1]) + 0.1 * rng.normal(size=40)
    columns = {"sigma": rng.uniform(0.5, 2, 40), "groups": np.arange(40) % 5}
    fronts = [
        shine.evolve(
            np.repeat(X, count, axis=0), np.repeat(y, count), generations=3, seconds=None, population=40, **given,
            **{name: np.repeat(columns[name], count) for name in beside},
        ).front
        for given, count in (({"sample_weight": weights}, 1), ({}, weights))
    ]  # fmt: skip
    first, second = ([(model.expression, model.loss) for model in front] for front in fronts)
    assert first == second


def test_whole_weights_of_many_rows_and_repeated_rows_have_the_same_intervals() -> None:
    rng = np.random.default_rng(42)
    x = rng.uniform(1, 3, (12_000, 1))
    y = 2 * x[:, 0] ** 2 + 3 + (1 + 0.02 * x[:, 0]) * rng.normal(size=12_000)
    model = shine.Model(shine.parse("2.0*square(x0) + 3.0", ["x0"]), 0.0, 1.0)
    repeated = model.with_data(np.tile(x, (2, 1)), np.tile(y, 2)).conf_int()
    assert model.with_data(x, y, sample_weight=np.full(12_000, 2)).conf_int() == repeated
