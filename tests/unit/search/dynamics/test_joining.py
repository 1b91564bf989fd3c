import itertools

import numpy as np

from shine.data.trajectory_tables import trajectories
from shine.search.dynamics.joining import Candidate, best_first
from shine.search.dynamics.readings import Readings
from shine.search.dynamics.smoothing.smoothing import smoothed


def test_combinations_come_by_rising_sums_and_each_once():
    rng = np.random.default_rng(0)
    lists = [[Candidate(None, nats) for nats in sorted(rng.uniform(0, 9, count))] for count in (4, 3, 5)]
    found = list(best_first(lists))
    sums = [sum(each.nats for each in joined) for joined in found]
    assert sums == sorted(sums)
    assert {tuple(map(id, joined)) for joined in found} == {tuple(map(id, each)) for each in itertools.product(*lists)}
    assert len(found) == 60


def test_a_state_without_equations_leaves_no_system():
    assert list(best_first([[Candidate(None, 0.0)], []])) == []


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
