import itertools

import numpy as np

from shine.search.dynamics.joining import Candidate, best_first


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
