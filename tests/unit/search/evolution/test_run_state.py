"""The state of a run: it survives writing and reading, and a run continues from it as if it had never stopped."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from unit.search.evolution.oracles import NodeCounter, assert_same, evolve, population_of, primitive_set

from shine.search.evolution.run_state import State
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.seeding import Guesses, slices

PRIMITIVES = primitive_set()
NEG = PRIMITIVES.function_codes["neg"]
STOP = StopSettings(generations=9, seconds=None, loss=0.0)
SETTINGS = EvolutionSettings(population=60, max_size=16, max_depth=8)
KINDS = {
    "plain": SETTINGS,
    "islands": replace(SETTINGS, islands=3, migration_interval=2, patience=3, population=30),
    "age": replace(SETTINGS, complexity={"neg": 2}),
}


def seeding(rng, effort):
    """Guesses and useful parts, as seeding finds them: more in each slice, by the generator."""
    texts = ["x y add", "x neg"]
    while True:
        population = population_of(texts, PRIMITIVES, 16)
        yield Guesses(population, np.zeros(len(texts)), ("a",) * len(texts), population, np.zeros(len(texts)), False)
        effort.work = effort.pause
        texts.append(["x x add", "y neg", "y x mul", "x y mul neg", "x x mul neg neg"][rng.integers(5)])


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    """A slice of the seeding about every second generation of forty individuals."""
    monkeypatch.setattr(slices, "FIRST_SLICE", 100)
    monkeypatch.setattr(slices, "SLICE", 80)


def run(settings, stop=STOP, seed=0, **options):
    evaluator = NodeCounter(NEG, 50)
    states, reports = [], []
    outcome = evolve(
        evaluator, PRIMITIVES, settings, stop, np.random.default_rng(seed), seeding=seeding,
        report=lambda progress: reports.append((progress.generation, progress.evaluations, progress.best_loss)),
        save=states.append, **options,
    )  # fmt: skip
    return outcome, states, reports, evaluator


def again(state):
    """A state after writing and reading."""
    arrays = {name: array.copy() for name, array in state.to_arrays().items()}
    return State.from_arrays(json.loads(json.dumps(state.header())), arrays, PRIMITIVES.table)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_survives_writing_and_reading(kind):
    for state in run(KINDS[kind])[1]:
        state = replace(state, noise="relative")
        copy = again(state)
        assert copy.header() == state.header()
        arrays, others = state.to_arrays(), copy.to_arrays()
        assert arrays.keys() == others.keys()
        for name, array in arrays.items():
            assert (array.dtype, array.shape, array.tobytes()) == (
                others[name].dtype,
                others[name].shape,
                others[name].tobytes(),
            )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_continues_from_any_generation_as_if_it_had_never_stopped(kind):
    outcome, states, reports, _ = run(KINDS[kind])
    # Several islands stop for their migrations only; the last epoch is cut short, and would be passed again.
    assert [state.generation for state in states] == ([0, 2, 4, 6, 8] if kind == "islands" else list(range(10)))
    for number in {0, 1, 4, len(states) - 1}:
        resumed, _, rest, other = run(KINDS[kind], seed=99, state=again(states[number]))
        assert_same(resumed.front, outcome.front)
        assert resumed.scores.losses.tobytes() == outcome.scores.losses.tobytes()
        assert (resumed.evaluations, resumed.generations) == (outcome.evaluations, outcome.generations)
        assert rest == reports[number:]
        assert sum(map(len, other.seen)) == outcome.evaluations - states[number].evaluations


def test_a_state_does_not_change_while_the_run_continues():
    _, states, _, _ = run(SETTINGS, replace(STOP, generations=30))
    written = [
        {name: array.tobytes() for name, array in state.to_arrays().items()} for state in run(SETTINGS)[1]
    ]  # the same states, taken apart after a third of the generations
    assert [{name: array.tobytes() for name, array in state.to_arrays().items()} for state in states[:10]] == written


def test_after_an_interrupt_the_last_state_is_of_the_last_complete_generation():
    _, expected, _, _ = run(SETTINGS)

    class Interrupted(NodeCounter):
        def score(self, population):
            if len(self.seen) == 6:
                raise KeyboardInterrupt
            return super().score(population)

    states = []
    stopped = evolve(
        Interrupted(NEG, 50), PRIMITIVES, SETTINGS, STOP, np.random.default_rng(0), seeding=seeding, save=states.append
    )
    assert stopped.stopped_by == "interrupted"
    assert states[-1].generation == stopped.generations < 9
    last = expected[stopped.generations].to_arrays()
    assert all(array.tobytes() == last[name].tobytes() for name, array in states[-1].to_arrays().items())


def test_the_time_of_earlier_parts_counts():
    class Clock:
        now = 0.0

        def __call__(self):
            self.now += 0.25
            return self.now

    stop = StopSettings(generations=10_000, seconds=50.0, loss=0.0)
    _, states, _, _ = run(SETTINGS, stop, clock=Clock())
    state, clock = states[len(states) // 2], Clock()
    resumed, _, _, _ = run(SETTINGS, stop, clock=clock, state=again(state))
    assert resumed.stopped_by == "seconds"
    assert 50 <= resumed.seconds < 52
    assert resumed.generations > state.generation
    assert state.seconds > 5 and clock.now < 52 - state.seconds


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (replace(SETTINGS, max_size=17), "another max_size"),
        (replace(SETTINGS, islands=2), "number of islands"),
        (replace(SETTINGS, complexity={"neg": 3}), "another max_size, complexity"),
    ],
)
def test_a_state_of_other_settings_is_refused(settings, message):
    _, states, _, _ = run(SETTINGS)
    with pytest.raises(ValueError, match=message):
        run(settings, state=states[-1])


def test_a_state_of_other_primitives_is_refused():
    _, states, _, _ = run(SETTINGS)
    other = primitive_set("neg add")
    with pytest.raises(ValueError, match="another primitive set"):
        evolve(NodeCounter(NEG, 50), other, SETTINGS, STOP, np.random.default_rng(0), state=states[-1])


@pytest.mark.parametrize("lacking", ["islands.codes", "archive.scores", "known.elder_keys", "parts.sizes"])
def test_a_state_that_lacks_an_array_is_refused(lacking):
    state = run(SETTINGS)[1][-1]
    arrays = {name: array for name, array in state.to_arrays().items() if name != lacking}
    with pytest.raises(ValueError, match=f"the state of the run lacks the array '{lacking}'"):
        State.from_arrays(state.header(), arrays, PRIMITIVES.table)


@pytest.mark.parametrize("code", [-1, 99, NEG])
def test_a_state_whose_individuals_are_not_formulas_is_refused(code):
    state = run(SETTINGS)[1][-1]
    arrays = state.to_arrays()
    arrays["islands.codes"] = np.full_like(arrays["islands.codes"], code)
    with pytest.raises(ValueError, match="the individuals of 'islands' are not formulas"):
        State.from_arrays(state.header(), arrays, PRIMITIVES.table)
