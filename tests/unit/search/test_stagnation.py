"""When explaining has stopped: by description lengths and generations, whatever the time that they take."""

from __future__ import annotations

import numpy as np
import pytest
from unit.search.evolution.oracles import NodeCounter, evolve, primitive_set

from shine.search.description import DescriptionLength, Stagnation
from shine.search.evolution.settings import EvolutionSettings, StopSettings

PRIMITIVES = primitive_set()
SETTINGS = EvolutionSettings(population=50, max_size=12, max_depth=6)
ENDLESS = StopSettings(generations=None, seconds=None, loss=0.0, stagnation=20)
ROWS = 100.0


def squared(rows=ROWS):
    """Description lengths under squared errors."""
    return DescriptionLength(rows, lambda losses, constants: rows / 2 * np.log(losses))


def run(stop=ENDLESS, description=None, **options):
    evaluator = NodeCounter(PRIMITIVES.function_codes["neg"], 50)
    description = description or squared()
    return evolve(evaluator, PRIMITIVES, SETTINGS, stop, np.random.default_rng(0), description=description, **options)


@pytest.mark.parametrize(("fell", "least", "share", "last"), [(0, 20, 0.1, 20), (50, 20, 0.1, 100), (0, 20, 0.9, 200)])
def test_a_search_waits_as_long_as_it_took_and_longer_without_noise(fell, least, share, last):
    stagnation = Stagnation(-5.0, fell)
    assert not stagnation.is_over(last - 1, least, share)
    assert stagnation.is_over(last, least, share)


def test_a_run_without_limits_ends_when_nothing_improves():
    outcome = run()
    assert outcome.stopped_by == "stagnation"


@pytest.mark.slow
def test_a_run_without_stagnation_goes_on():
    stop = StopSettings(generations=400, seconds=None, loss=0.0, stagnation=None)
    assert run(stop).stopped_by == "generations"


def test_the_clock_has_no_part_in_it():
    class Clock:
        now = 0.0

        def __call__(self):
            self.now += 7.0
            return self.now

    assert run(clock=Clock()).generations == run(clock=lambda: 0.0).generations


def test_a_resumed_run_ends_in_the_same_generation():
    states = []
    whole = run(save=states.append)
    for state in (states[0], states[len(states) // 2], states[-1]):
        resumed = run(state=state)
        assert (resumed.generations, resumed.stopped_by) == (whole.generations, "stagnation")
