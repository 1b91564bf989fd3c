import itertools

import numpy as np
import pytest

from shine.data.datasets.dataset import Dataset
from shine.data.trajectory_tables import trajectories
from shine.lang.parse import parse
from shine.search.dynamics.joining import Candidate, best_first, model_of, values_of, with_terms_of_others
from shine.search.dynamics.readings import Readings
from shine.search.dynamics.rows import RateRows
from shine.search.dynamics.smoothing.smoothing import smoothed


def test_combinations_come_by_rising_sums_and_each_once():
    rng = np.random.default_rng(0)
    lists = [[Candidate(None, nats) for nats in sorted(rng.uniform(0, 9, count))] for count in (4, 3, 5)]
    found = list(best_first(lists))
    sums = [sum(each.nats for each in joined) for joined in found]
    assert sums == sorted(sums)
    assert {tuple(map(id, joined)) for joined in found} == {tuple(map(id, each)) for each in itertools.product(*lists)}
    assert len(found) == 60


def test_a_state_whose_rate_is_read_is_known_by_the_integral_although_noise_hides_its_rate():
    rng, runs = np.random.default_rng(0), []
    for start in (0.0, 1.0, 4.0):
        times = np.sort(rng.uniform(0, 15, 40))
        angle = start + 2.3 * times + 0.2 * np.sin(2.5 * times)
        states = np.stack([angle, 2.3 + 0.5 * np.cos(2.5 * times)], axis=1)
        states += rng.standard_normal(states.shape) * [0.4, 0.05]
        states[rng.random(states.shape) < 0.1] = np.nan
        runs.append((states, times))
    given = trajectories([states for states, _ in runs], [times for _, times in runs])
    assert Readings(given, smoothed(given)).integrals == [(0, 1)]


LAWS = {
    "two eat one": (
        "2.5 - 0.4*s - 1.1*s*x/(0.6 + s) - 0.8*s*y/(0.3 + s)",
        "x*(s - 0.4)/(0.6 + s)",
        "y*s/(0.3 + s) - y",
    ),
    "a ring": ("3/(1 + y**3) - 0.9*s", "3/(1 + s**3) - 0.9*x", "3/(1 + x**3) - 0.9*y"),
    "drag": ("-0.07*s*sqrt(s**2 + x**2)", "-9.8 - 0.07*x*sqrt(s**2 + x**2)", "s"),
}
"""Rates of s, x and y."""


@pytest.mark.parametrize(("law", "unknown"), [("two eat one", 0), ("a ring", 0), ("a ring", 2), ("drag", 1)])
def test_terms_that_explain_other_states_are_tried_for_a_clean_rate_as_they_are_and_exchanged(law, unknown):
    names, states = ("s", "x", "y"), np.random.default_rng(0).uniform(0.5, 3, (100, 3))
    trees = [parse(text, names) for text in LAWS[law]]
    rows = [
        RateRows.of(Dataset.from_arrays(states, values_of(tree, states.T), features=names), np.full(100, 1e-9), 100.0)
        for tree in trees
    ]
    known = [
        [Candidate(model_of(parse("1.0 + s", names) if place == unknown else tree, own), 0.0)]
        for place, (tree, own) in enumerate(zip(trees, rows, strict=True))
    ]
    best = with_terms_of_others(known, rows, names, 60)[unknown][0]
    assert best.nats < 0
    asked = np.random.default_rng(1).uniform(0.1, 5, (3, 20))
    np.testing.assert_allclose(values_of(best.model.tree, asked), values_of(trees[unknown], asked), rtol=1e-6)
