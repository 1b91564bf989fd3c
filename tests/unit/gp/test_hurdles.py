"""Who gets no further steps: those that cannot come near the ones that survive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.data import Dataset
from shine.evaluators.gradients import MachineLinearizer
from shine.fitness import Scores
from shine.gp.archive import Archive
from shine.gp.constants import REACH, fit_constants
from shine.gp.scoring import Scorer
from shine.gp.survival import hurdles
from shine.lang.population import Population

ROWS = np.random.default_rng(0).uniform(0.5, 3.0, (1, 60))
DATA = Dataset(ROWS, 3.0 * np.sin(1.3 * ROWS[0]), None, ("x",))
START = Population.from_sources(["2.9*sin(1.25*x)", "2.0*sin(1.0*x)", "9.0*exp(1.5*x)"], ("x",))


def fitted(goals=None, steps=20):
    n = len(START)
    return fit_constants(
        START, np.ones(n), np.zeros(n), MachineLinearizer(DATA, "mse"), steps, scaled=False, goals=goals
    )


@given(
    st.lists(st.tuples(st.floats(0, 9), st.integers(1, 6)), min_size=1, max_size=20),
    st.lists(st.integers(1, 8), max_size=9),
)
def test_a_hurdle_is_the_largest_loss_of_those_at_least_as_complex(group, newcomers):
    losses, complexities = (np.array(part) for part in zip(*group, strict=True))
    found = hurdles(losses, complexities, np.array(newcomers, np.int64))
    expected = [max((loss for loss, other in group if other >= own), default=np.inf) for own in newcomers]
    assert found.tolist() == expected


def test_goals_within_reach_change_nothing():
    goals = np.full(len(START), 1 / REACH)
    assert fitted(goals).population.values.tobytes() == fitted().population.values.tobytes()


def test_an_individual_out_of_reach_of_its_goal_keeps_its_constants_and_the_others_do_not_notice():
    everyone, found = fitted(), fitted(np.array([1.0, 1e-9, 1.0]))
    assert (found.population.values[1] == START.values[1]).all()
    assert found.errors[1] == fitted(steps=0).errors[1]
    for others in (0, 2):
        assert found.population.values[others].tobytes() == everyone.population.values[others].tobytes()


def test_a_goal_that_comes_within_reach_only_by_later_steps_is_given_up():
    first, last = fitted(steps=0).errors[1], fitted().errors[1]
    assert last < 1e-12 * first
    goals = np.array([1.0, 0.9 / REACH, 1.0])
    assert fitted(goals).errors[1] == first


@pytest.mark.parametrize("slices", [1, 3])
def test_a_fitter_is_told_the_shares_of_the_losses_that_are_the_hurdles(slices):
    told = []

    def fitter(population, scores, goals):
        told.extend(zip(scores.losses.tolist(), goals.tolist(), strict=True))
        return population

    class Sizes:
        def score(self, population, threshold=np.inf):
            return Scores(population.sizes.astype(float), np.ones(len(population)), np.zeros(len(population)))

    scorer = Scorer(Sizes(), Archive.empty(START.primitives, START.width), lambda: 0.0, np.inf, fitter)
    scorer._slice = slices
    scorer.scored(START, np.array([7.0, 8.0, 9.0]))
    assert sorted(goal * loss for loss, goal in told) == pytest.approx([7.0, 8.0, 9.0])
