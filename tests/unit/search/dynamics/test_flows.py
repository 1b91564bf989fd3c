"""Polynomial rates by the flow from reading to reading: coarse chaotic readings, uneven steps, gaps, several runs."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import numpy as np
import pytest

from shine.data.trajectories import Trajectories, Trajectory
from shine.evaluate.rollouts.system import CompiledSystem
from shine.lang.parse import parse
from shine.search.dynamics.flows import flow_equations
from shine.search.dynamics.run import find_dynamics
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.evolution.observers import Observers
from shine.search.problem.settings import SearchSettings

NAMES = ("x", "y", "z")
LORENZ = ("10*(y - x)", "x*(28 - z) - y", "x*y - 2.5*z")


def run(times, start=(-8.0, 7.0, 27.0), rates=LORENZ):
    system = CompiledSystem([parse(rate, NAMES) for rate in rates], NAMES)
    states = system.rollout(np.array(start), np.asarray(times, float), tolerance=1e-13).states
    return Trajectory(np.asarray(times, float), states, np.zeros((len(times), 0)))


def found(*runs, late=lambda: False):
    given = Trajectories(runs, NAMES)
    spread = np.nanstd(np.concatenate([each.states for each in runs]), axis=0)
    return flow_equations(given, [NAMES] * 3, spread, late)


def assert_rates(trees, rates):
    states = np.random.default_rng(0).uniform(-3, 3, (40, 3))
    for tree, rate in zip(trees, rates, strict=True):
        system = CompiledSystem([tree, parse(rate, NAMES), parse("0.5", NAMES)], NAMES)
        values = system.rates(states)
        np.testing.assert_allclose(values[:, 0], values[:, 1], rtol=1e-7, atol=1e-7)


def test_uneven_steps_several_runs_and_gaps_are_allowed():
    rng = np.random.default_rng(1)
    first, second = (run(np.cumsum(rng.uniform(0.03, 0.09, 60)), start) for start in ((1.0, 3, 20), (-5.0, 2, 25)))
    first.states[10:13, 1] = np.nan
    assert_rates(found(first, second), LORENZ)


@pytest.mark.slow
def test_little_noise_leaves_the_terms_of_the_law_and_more_none():
    clean = run(0.1 * np.arange(101))
    errors = clean.states.std(axis=0) * np.random.default_rng(0).standard_normal(clean.states.shape)
    little, more = (Trajectory(clean.times, clean.states + size * errors, clean.controls) for size in (1e-3, 0.02))
    system = CompiledSystem(found(little), NAMES)
    assert len(system.constants) == 7
    truth = CompiledSystem([parse(rate, NAMES) for rate in LORENZ], NAMES)
    states = np.random.default_rng(0).uniform(-3, 3, (40, 3))
    np.testing.assert_allclose(system.rates(states), truth.rates(states), atol=0.1)
    assert found(more) is None


@pytest.mark.parametrize("count", [0, 1, 2, 12])
def test_too_few_readings_give_none(count):
    assert found(run(0.1 * np.arange(3)), run(0.1 * np.arange(max(count, 1)))) is None


def test_a_search_that_is_late_ends():
    assert found(run(0.1 * np.arange(101)), late=lambda: True) is None


@pytest.mark.slow
def test_a_known_equation_stays_where_readings_are_too_few_for_rates():
    search = SearchSettings()
    search = replace(search, stop=replace(search.stop, seconds=6.0))
    settings = DynamicsSettings(search, template="x' = k*(y - x)")
    observers = Observers(clock=time.process_time)
    result = find_dynamics(Trajectories((run(0.1 * np.arange(101)),), NAMES), settings, observers)
    assert re.fullmatch(r"x' = \S+\*\(y - x\)", result.chosen.lines()[0])


@pytest.mark.slow
def test_wild_readings_do_no_harm():
    rng = np.random.default_rng(0)
    wild = Trajectory(np.arange(80.0), 10 ** rng.uniform(-30, 30, (80, 3)), np.zeros((80, 0)))
    assert found(wild) is None or len(found(wild)) == 3
