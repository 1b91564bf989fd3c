"""Sums of many terms that fit exactly may be longer than other formulas, unless the user limits all of them."""

import numpy as np
import pytest

from shine.data.datasets.dataset import Dataset
from shine.search.evolution.observers import Observers
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.problem.settings import SearchSettings
from shine.search.run import search

RNG = np.random.default_rng(0)
X = RNG.uniform([0, 0.5], [15, 9], (400, 2))
T, P = X.T
TERMS = P * np.sin(T), np.sqrt(P), P**3, np.log(1 + P), np.exp(-P), P ** (2 / 3)
Y = sum(c * term for c, term in zip((0.131, -1.54, 0.00239, -0.46, -0.972, -0.151), TERMS, strict=True))


def searched(state=None, states=None, **settings):
    every = SearchSettings(
        evolution=EvolutionSettings(**settings), stop=StopSettings(generations=2, seconds=None), seed=0
    )
    save = (lambda state: None) if states is None else states.append
    return search(Dataset.from_arrays(X, Y, features=["t", "P"]), every, Observers(state=state, save=save))


@pytest.mark.parametrize(
    ("settings", "longest"),
    [({}, 60), ({"max_size": 20}, 20), ({"max_size": 20, "max_exact_size": 40}, 40), ({"max_exact_size": 10}, 30)],
)
def test_the_longest_exact_formula(settings, longest):
    assert EvolutionSettings(**settings).longest == longest


@pytest.mark.slow
def test_an_exact_sum_of_six_terms_is_found_and_ends_the_search():
    found = searched()
    assert found.stopped_by == "loss"
    assert 30 < found.best.tree.size <= 60
    assert found.best.loss < 1e-20


@pytest.mark.slow
def test_a_limit_of_the_user_holds_for_exact_formulas():
    assert all(model.tree.size <= 20 for model in searched(max_size=20).front)


@pytest.mark.slow
def test_a_run_with_a_long_formula_goes_on_with_it():
    states = []
    first = searched(states=states)
    assert searched(state=states[-1]).best.expression == first.best.expression


@pytest.mark.slow
def test_along_a_curve_a_fraction_of_many_constants_does_not_hide_a_sum_of_few_terms():
    def rate(state):
        return 4.57 * np.exp(-state) + 4.19 * state * np.exp(-0.687 * state)

    t, state = np.linspace(0, 15, 1000), [6.566]
    for step in np.diff(t):
        middle = state[-1] + step / 2 * rate(state[-1])
        state.append(state[-1] + step * rate(middle))
    P = np.array(state)
    found = search(
        Dataset.from_arrays(np.column_stack([t, P]), rate(P), features=["t", "P"]),
        SearchSettings(stop=StopSettings(seconds=90), seed=0), Observers(),
    )  # fmt: skip
    assert found.best.loss < 1e-20
    assert found.best.tree.size <= 14
