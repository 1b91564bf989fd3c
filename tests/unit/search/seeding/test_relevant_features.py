"""The features that a target depends on are among the chosen ones."""

import numpy as np

from shine.search.seeding.guesses import relevant_features

RNG = np.random.default_rng(0)


def test_features_that_matter_alone_or_together_are_chosen():
    x = RNG.uniform(-1, 1, (60, 500))
    x[8] = 4.0
    target = x[12] * x[40] + 0.8 * np.abs(x[51]) + 0.01 * RNG.standard_normal(500)
    found = relevant_features(x, target, np.full(500, 1 / 500), 6)
    assert {12, 40, 51} <= set(found.tolist())
    assert len(found) == 6
    assert relevant_features(x[5:10], target, np.full(500, 1 / 500), 6).tolist() == [0, 1, 2, 4]
