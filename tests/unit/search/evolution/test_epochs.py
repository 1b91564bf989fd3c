"""Epochs have the same bits wherever they pass, and whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
from unit.base.parallel.executors import Unreliable
from unit.search.evolution.oracles import Mortal, NodeCounter, assert_same, evolve, primitive_set
from unit.search.evolution.test_run_state import again, seeding, small_slices  # noqa: F401

import shine
from shine.base.parallel import opened
from shine.search.evolution.settings import EvolutionSettings, IslandSettings, StopSettings
from shine.search.seeding import slices

PRIMITIVES = primitive_set()
NEG = PRIMITIVES.function_codes["neg"]
STOP = StopSettings(generations=17, seconds=None, loss=0.0)
SETTINGS = EvolutionSettings(population=40, max_size=16, max_depth=8, islands=4, migration_interval=3, patience=4)


def run(executor=None, settings=SETTINGS, stop=STOP, evaluator=None, **options):
    states = []
    evaluator = evaluator or NodeCounter(NEG, 50)
    with opened(executor) as pool:
        outcome = evolve(
            evaluator, PRIMITIVES, settings, stop, np.random.default_rng(3), seeding=seeding,
            save=states.append, pool=pool, **options,
        )  # fmt: skip
    return outcome, states


def assert_equal(one, other):
    (one, states), (other, others) = one, other
    assert_same(one.front, other.front)
    assert one.scores.losses.tobytes() == other.scores.losses.tobytes()
    assert (one.evaluations, one.generations, one.stopped_by) == (
        other.evaluations,
        other.generations,
        other.stopped_by,
    )
    for state, same in zip(states, others, strict=True):
        assert {**state.header(), "seconds": 0} == {**same.header(), "seconds": 0}
        assert all(array.tobytes() == same.to_arrays()[name].tobytes() for name, array in state.to_arrays().items())


@pytest.mark.slow
def test_threads_of_an_executor_change_no_bit():
    with ThreadPoolExecutor(2) as executor:
        assert_equal(run(executor), run())


@pytest.mark.slow
def test_processes_change_no_bit():
    assert_equal(run(2), run())


def test_lost_epochs_change_no_bit():
    executor = Unreliable(0.3, 1)
    assert_equal(run(executor), run())
    assert executor.faults


@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_workers():
    whole, states = run()
    with ThreadPoolExecutor(3) as executor:
        resumed, rest = run(executor, state=again(states[2]))
    assert_equal((resumed, rest), (whole, states[2:]))


@pytest.mark.slow
def test_a_higher_limit_makes_the_same_run():
    settings = replace(SETTINGS, patience=3, migration_interval=5)
    whole, _ = run(settings=settings)
    _, states = run(settings=settings, stop=replace(STOP, generations=8))
    rest, _ = run(settings=settings, state=again(states[-1]))
    assert_same(rest.front, whole.front)
    assert (rest.evaluations, rest.scores.losses.tobytes()) == (whole.evaluations, whole.scores.losses.tobytes())


def test_a_higher_limit_makes_the_same_run_where_an_island_finds_a_solution():
    # Within an epoch the islands after the finder stand still: an epoch cut in two would end with other formulas.
    settings = replace(SETTINGS, migration_interval=5, patience=100)
    evaluator = NodeCounter(NEG, 8)
    whole, _ = run(settings=settings, evaluator=evaluator)
    _, states = run(settings=settings, stop=replace(STOP, generations=1), evaluator=evaluator)
    rest, _ = run(settings=settings, state=again(states[-1]), evaluator=evaluator)
    assert whole.stopped_by == rest.stopped_by == "loss"
    assert_same(rest.front, whole.front)
    assert (rest.evaluations, rest.generations) == (whole.evaluations, whole.generations)


@pytest.mark.slow
def test_islands_of_other_settings_change_no_bit_either():
    own = (IslandSettings(), IslandSettings(tournament=7, parsimony=0.0), IslandSettings(population=20))
    settings = replace(SETTINGS, island_settings=own)
    here = run(settings=settings)
    assert [len(island.parents) for island in here[1][-1].islands] == [40, 40, 20, 40]
    with ThreadPoolExecutor(2) as executor:
        assert_equal(run(executor, settings), here)


def test_a_solution_ends_the_run_the_same_way_everywhere():
    here = run(evaluator=NodeCounter(NEG, 8))
    assert here[0].stopped_by == "loss"
    with ThreadPoolExecutor(2) as executor:
        assert_equal(run(executor, evaluator=NodeCounter(NEG, 8)), here)


@pytest.mark.slow
def test_time_ends_epochs_elsewhere():
    with ThreadPoolExecutor(2) as executor:
        outcome, _ = run(executor, replace(SETTINGS, population=400), StopSettings(seconds=1.5, loss=0.0))
    assert (outcome.stopped_by, len(outcome.front) > 2) == ("seconds", True)


class Interrupting(NodeCounter):
    """Interrupts the main thread while it waits for workers, which have copies."""

    calls = 0

    def score(self, population):
        Interrupting.calls += 1
        if Interrupting.calls == 30:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
        return super().score(population)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")
def test_an_interrupt_keeps_what_workers_have_found():
    with ThreadPoolExecutor(1) as executor:
        outcome, _ = run(executor, stop=replace(STOP, generations=1000), evaluator=Interrupting(NEG, 50))
    assert (outcome.stopped_by, len(outcome.front) > 2) == ("interrupted", True)


class Wrong(NodeCounter):
    def score(self, population):
        raise ArithmeticError("the evaluator is wrong")


def test_an_error_of_the_evaluator_is_raised_as_it_is():
    with ThreadPoolExecutor(1) as executor, pytest.raises(ArithmeticError, match="the evaluator is wrong"):
        run(executor, evaluator=Wrong(NEG, 50))


def front_of(executor=None, template=None, **settings):
    rng = np.random.default_rng(7)
    X = rng.uniform(0.5, 3.0, (150, 2))
    y = 1.7 * np.exp(-0.6 * X[:, 0]) + np.sin(X[:, 1]) / 3
    given = {"generations": 7, "population": 60, "islands": 3, "migration_interval": 3, "max_size": 15, "seeding": 0}
    found = shine.evolve(
        X, y, features=["a", "b"], seconds=None, seed=1, executor=executor, template=template, **given | settings
    )
    return [(model.expression, model.loss, model.r2) for model in found.front], found.evaluations


TRAVELLERS = [
    {"loss": "mae", "constraints": {"monotonic": {"a": "decreasing"}}},
    {"template": "f(a) + k*sin(b)"},
    {"loss": "def own(prediction, target): return abs(prediction - target)**1.5"},
]


@pytest.mark.parametrize("settings", TRAVELLERS, ids=str)
@pytest.mark.slow
def test_whole_searches_travel(settings):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        assert front_of(executor, **settings) == front_of(**settings)


@pytest.mark.slow
def test_workers_search_for_guesses_beside_a_single_island(monkeypatch):
    monkeypatch.setattr(slices, "AN_INDIVIDUAL", 400.0)
    settings = {"islands": 1, "seeding": 0.5, "primitives": ["add", "mul", "exp", "sin", "sqrt"], "stop_loss": 0.0}
    assert front_of(2, **settings) == front_of(**settings)


@pytest.mark.slow
def test_a_dask_cluster_changes_no_bit():
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        assert front_of(client) == front_of()
        assert front_of(cluster.scheduler_address, seeding=0.5) == front_of(seeding=0.5)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_killed_workers_change_no_bit(tmp_path):
    for number in range(20):
        (tmp_path / str(number)).touch()
    stop = replace(STOP, generations=120)
    assert_equal(run(2, stop=stop, evaluator=Mortal(NEG, tmp_path)), run(stop=stop))
    assert not list(tmp_path.iterdir())
