"""A whole weight of `shine.evolve` is the row as often."""

from __future__ import annotations

import numpy as np
import pytest

import shine


@pytest.mark.parametrize("beside", [(), ("sigma",), ("groups",), ("sigma", "groups")])
def test_whole_weights_and_repeated_rows_have_one_front(beside: tuple[str, ...]) -> None:
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
