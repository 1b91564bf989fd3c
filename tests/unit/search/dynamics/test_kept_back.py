"""The choice among near systems by readings that the fit did not see."""

from dataclasses import replace

import numpy as np
import pytest

from shine.data.trajectories import Trajectories, Trajectory
from shine.lang.parse import parse
from shine.search.dynamics.equations import Equation
from shine.search.dynamics.forms import form_of
from shine.search.dynamics.kept_back import confirmed, kept_back_error
from shine.search.dynamics.result import distinct, front_of
from shine.search.dynamics.run import fitted
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.models.model import Model

NOISE = 0.02


def growth(count, runs):
    """Logistic growth n' = 0.8*n*(1 - n/5) with noise."""
    rng, found = np.random.default_rng(4), []
    for start in np.linspace(0.2, 1.5, runs):
        times = np.linspace(0, 8, count)
        states = 5 / (1 + (5 / start - 1) * np.exp(-0.8 * times)) + NOISE * rng.standard_normal(count)
        found.append(Trajectory(times, states[:, None], np.empty((count, 0))))
    return form_of(Trajectories(tuple(found), ("n",)), DynamicsSettings())


def never():
    return False


def system(form, text, nats):
    model = Model(parse(text, ("n",)), 1.0, 0.0)
    return replace(fitted([Equation(model)], form, never), nats=nats)


@pytest.mark.parametrize("runs", [1, 4])
def test_a_law_foretells_what_was_kept_back(runs):
    form = growth(60, runs)
    law, line = (system(form, text, -50.0) for text in ("0.7*n - 0.15*n**2", "1.5 - 0.2*n"))
    # Some of the readings are where growth has ended, and tell little.
    assert kept_back_error(law, form) < 0.01
    assert kept_back_error(line, form) > 2 * kept_back_error(law, form)


def test_a_description_that_is_hardly_longer_wins_by_readings_kept_back():
    form = growth(60, 4)
    law, line = system(form, "0.7*n - 0.15*n**2", -50.0), system(form, "1.5 - 0.2*n", -52.0)
    assert confirmed([law, line], form, never) is law
    assert (
        "the least error on readings kept back; its description needs 2.0 nats more"
        in front_of([law, line], law).reason
    )
    assert confirmed([law, line], form, lambda: True) is line
    clearly = replace(line, nats=-60.0)
    assert confirmed([law, clearly], form, never) is clearly


def test_a_near_rival_replaces_nothing():
    form = growth(60, 4)
    law, same = system(form, "0.7*n - 0.15*n**2", -50.0), system(form, "n*(0.8 - 0.16*n)", -51.0)
    assert confirmed([law, same], form, never) is same


def test_a_few_readings_are_not_divided():
    form = growth(12, 1)
    assert kept_back_error(system(form, "0.7*n - 0.15*n**2", 0.0), form) == np.inf


def test_systems_that_read_alike_count_once():
    form = growth(30, 1)
    law = system(form, "0.7*n - 0.15*n**2", -50.0)
    assert distinct([law, replace(law, nats=-49.0)]) == [law]
