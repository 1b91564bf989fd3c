"""The seeding finds the same guesses wherever its searches look, and whatever happens to the workers."""

from __future__ import annotations

import os
import pickle
import signal
import tempfile
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from helpers.deadly import deadly
from unit.base.parallel.executors import Unreliable
from unit.base.parallel.test_pool import Elsewhere
from unit.search.seeding.banks import bank

import shine
from shine import Evaluator, PrimitiveSet
from shine.base.errors import WorkerError
from shine.base.parallel import opened
from shine.base.parallel.shipment import Shipment
from shine.lang.forms.primitives import select
from shine.lang.vocabulary import primitive_table
from shine.search.problem.preparation import linearizer_of
from shine.search.seeding import SeedingSettings, SeedingTask, find_guesses, search_runner, search_table
from shine.search.seeding.bank.coordinates import Coordinates
from shine.search.seeding.bank.formula_writer import Writer
from shine.search.seeding.effort import Deadline, Effort
from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.skeletons import Rows
from shine.search.seeding.search_runner import LightScreen, NextSearch, RoundEnd, SearchRunner, run_search
from shine.search.seeding.search_table import SEARCHES, Search

LAWS = (
    lambda x: x[0] * np.sin(x[1]) + 0.3 * x[2],
    lambda x: np.exp(-0.4 * x[0]) + x[1] / (1 + x[2]),
    lambda x: x[0] * x[1] / (x[2] + x[0]),
    lambda x: np.sin(x[0] * x[1]) - np.sqrt(x[2]),
)
SMALL = SeedingSettings(members=150, rows=40, coordinates=1)


@pytest.fixture
def at_once(monkeypatch):
    """Workers take part from the beginning."""
    monkeypatch.setattr(SearchRunner, "_workers_are_there", lambda self: self._pool is not None)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The folder of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def drawn(number):
    """Columns and a target: a law with or without noise, of few or many rows."""
    rng = np.random.default_rng(number)
    columns = rng.uniform(1, 3, (3, int(rng.choice([60, 200]))))
    target = LAWS[number % len(LAWS)](columns)
    return columns, target + rng.choice([0.0, 0.05]) * rng.standard_normal(len(target))


def guesses(problem, pool=None, settings=SMALL, work=15_000, **options):
    """Everything that a stage leaves behind: its guesses, and the generator."""
    columns, target = problem
    table, names = primitive_table(["add", "mul", "div", "sin"])
    primitives = PrimitiveSet(select(table, names), ("a", "b", "c")[: len(columns)])
    rng = np.random.default_rng(5)
    task = SeedingTask(
        Rows(columns, target, np.ones(len(target))),
        primitives,
        Evaluator(columns.T, target).predict,
        partial(linearizer_of, primitives.features, 1),
        settings=settings,
        pool=pool,
    )
    found = find_guesses(task, rng, Effort(work, **options))
    arrays = (found.candidates.codes, found.candidates.values, found.unexplained, found.parts.codes, found.scores)
    return (
        [array.tobytes() for array in arrays],
        (found.kinds, found.exact, found.interrupted, found.failures),
        rng.bit_generator.state,
    )


class Counting(ThreadPoolExecutor):
    """Counts the tasks."""

    tasks = 0

    def submit(self, *task):
        self.tasks += 1
        return super().submit(*task)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "workers", "work"),
    [(1, 2, 15_000), *((number, workers, 60_000) for number, workers in ((0, 1), (3, 2), (5, 2), (6, 4)))],
)
def test_workers_change_no_guess(at_once, number, workers, work):
    with Counting(workers) as executor, opened(executor) as pool:
        assert guesses(drawn(number), pool, work=work) == guesses(drawn(number), work=work)
        assert executor.tasks > 10


@pytest.mark.slow
def test_lost_looks_change_no_guess(at_once):
    executor = Unreliable(0.3, 0)
    with opened(executor) as pool:
        assert guesses(drawn(3), pool) == guesses(drawn(3))
    assert executor.faults


@pytest.mark.slow
def test_processes_change_no_guess():
    settings = SeedingSettings(members=4000)
    problem = drawn(9)
    with opened(2) as pool:
        pool.submit(search_runner._arrive).result()
        assert guesses(problem, pool, settings, np.inf) == guesses(problem, None, settings, np.inf)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_killed_workers_change_no_guess(at_once, monkeypatch, tmp_path):
    for number in range(5):
        (tmp_path / str(number)).touch()
    lethal = Search(partial(deadly, folder=str(tmp_path), test=os.getpid()))
    monkeypatch.setattr(search_table, "SEARCHES", (*SEARCHES[:4], lethal, *SEARCHES[4:]))
    with opened(2) as pool:
        assert guesses(drawn(5), pool, work=60_000) == guesses(drawn(5), work=60_000)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_dask_cluster_changes_no_guess(at_once):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        opened(client) as pool,
    ):
        assert guesses(drawn(5), pool, work=60_000) == guesses(drawn(5), work=60_000)


@pytest.mark.slow
def test_workers_without_the_files_change_no_guess(at_once):
    with Elsewhere(1) as executor, opened(executor) as pool:
        assert guesses(drawn(1), pool, work=60_000) == guesses(drawn(1), work=60_000)
        assert any(executor.sent)


@pytest.mark.slow
def test_an_exact_formula_ends_the_stage_the_same_way_everywhere(at_once, folder):
    rng = np.random.default_rng(0)
    columns = rng.uniform(1, 3, (2, 200))
    problem = columns, columns[0] * columns[1] + 0.7 * np.sin(columns[0])
    alone = guesses(problem, work=np.inf)
    assert alone[1][1]
    with Counting(2) as executor, opened(executor) as pool:
        assert guesses(problem, pool, work=np.inf) == alone
    assert not list(folder.iterdir())


class Deaf(Executor):
    """Takes tasks and never does them."""

    def submit(self, function, /, *arguments, **options):
        return Future()


def test_the_deadline_ends_the_stage_though_no_worker_answers(at_once, folder, monkeypatch):
    monkeypatch.setattr(search_runner, "SECONDS_TO_RETURN", 0.0)
    with opened(Deaf()) as pool:
        found = guesses(drawn(1), pool, deadline=Deadline(at=time.monotonic() + 0.2))
    assert found[1][0] == ("constant",)
    assert not list(folder.iterdir())


# It may come while joblib opens a file, which is then closed with its object.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")
def test_an_interrupt_ends_the_stage(at_once, folder, monkeypatch):
    def interrupting(screen):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        yield from ()

    monkeypatch.setattr(search_table, "SEARCHES", (*SEARCHES[:3], Search(partial(interrupting)), *SEARCHES[3:]))
    with ThreadPoolExecutor(1) as executor, opened(executor) as pool:
        pool.submit(bool).result()
        found = guesses(drawn(1), pool)
    assert found[1][2]
    assert not list(folder.iterdir())


def test_an_interrupt_while_files_are_written_leaves_none(at_once, folder, monkeypatch):
    written = []

    class Interrupted(Shipment):
        def __init__(self, *values):
            if written:
                raise KeyboardInterrupt
            super().__init__(*values)
            written.append(1)

    monkeypatch.setattr(search_runner, "Shipment", Interrupted)
    with opened(Deaf()) as pool:
        found = guesses(drawn(1), pool)
    assert found[1][2]
    assert written and not list(folder.iterdir())


def failing(screen):
    raise ValueError("no")
    yield


@pytest.mark.slow
def test_a_search_that_fails_is_skipped_everywhere(at_once, monkeypatch):
    monkeypatch.setattr(search_table, "SEARCHES", (Search(partial(failing)), *SEARCHES[:3]))
    with ThreadPoolExecutor(2) as executor, opened(executor) as pool:
        found = guesses(drawn(2), pool, work=8_000)
    assert found == guesses(drawn(2), work=8_000)
    assert set(found[1][3]) == {"failing"}


@pytest.mark.slow
def test_without_room_this_process_looks_itself(at_once, monkeypatch):
    def full(screen, light):
        raise OSError("No space left on device")

    alone = guesses(drawn(1))
    monkeypatch.setattr(search_runner, "Shipment", full)
    with opened(Deaf()) as pool, pytest.warns(RuntimeWarning, match="there is no room for a bank"):
        assert guesses(drawn(1), pool) == alone


class Broken(Executor):
    def submit(self, function, /, *arguments, **options):
        future: Future = Future()
        future.set_exception(BrokenExecutor("killed"))
        return future


def test_a_task_that_kills_all_workers_ends_the_search(at_once):
    with opened(Broken()) as pool, pytest.raises(WorkerError, match="more memory"):
        guesses(drawn(1), pool)


def found_within(search, **limits):
    """Estimates that a search is asked for, as a step of a plan under an effort with limits."""
    asked = []

    def find(screen, count):
        for _ in range(count):
            asked.append(count)
            yield Estimate(0.5, 3, lambda: None)

    named = partial(find, count=100), partial(find, count=30)
    step = NextSearch(replace(search, find=named[0], hurried=named[1], work=1000), screen(rounds=1), 0)
    runner = SearchRunner(None, Effort(work=1000.0, **limits), np.random.default_rng(0))
    for _, see in runner(iter([step, RoundEnd()])):
        see()
        break
    return asked


def test_a_search_ends_where_the_stage_pauses_by_the_clock():
    assert found_within(SEARCHES[-1]) == [100] * 100
    assert len(found_within(SEARCHES[-1], pause_deadline=Deadline(lambda: 1.0, 0.0))) == 1
    assert len(found_within(SEARCHES[-1], deadline=Deadline(lambda: 1.0, 0.0))) == 1


def screen(functions=("add", "mul", "div", "exp", "sin"), capacity=300, rounds=2):
    """A screen over a bank."""
    members, columns = bank(functions, capacity=capacity, rounds=rounds)
    nodes = [((i + 1, 0.0),) for i in range(2)]
    target = 1.3 * np.exp(columns[0]) + columns[1] / columns[0]
    coordinates = Coordinates(tuple(nodes), columns, (), np.ones(40))
    weights = np.full(40, 1 / 40)
    return Screen(
        members, coordinates, list(zip(nodes, columns, strict=True)), target, weights, Writer(members.primitives)
    )


@pytest.mark.parametrize("wrapped", [lambda screen: screen, LightScreen.of], ids=["whole", "light"])
def test_a_screen_shows_the_same_after_a_journey(wrapped):
    there = screen()
    back = pickle.loads(pickle.dumps(wrapped(there)))
    assert back.values.tobytes() == there.values.tobytes()
    for search in SEARCHES[1:7]:
        one, other = (run_search(search, each, lambda: False) for each in (there, back))
        assert one.error is None and other.error is None
        assert (one.exact, one.others) == (other.exact, other.others)


def test_values_of_a_large_bank_are_made_again():
    functions = ("add", "sub", "mul", "div", "exp", "log", "sin", "sqrt", "cos", "neg")
    there = screen(functions, capacity=3000, rounds=4)
    light = pickle.dumps(LightScreen.of(there))
    assert pickle.loads(light).values.tobytes() == there.values.tobytes()
    assert len(light) < len(pickle.dumps(there)) / 5


@pytest.mark.slow
def test_a_whole_search_has_the_same_front():
    rng = np.random.default_rng(7)
    X = rng.uniform(0.5, 3.0, (150, 2))
    y = 1.7 * np.exp(-0.6 * X[:, 0]) + np.sin(X[:, 1] * X[:, 0]) / 3 + 0.05 * rng.standard_normal(150)
    for template in (None, "f(a, b) + k*b"):
        settings = {"islands": 2, "population": 30, "seeding": 0.95, "seeding_members": 500, "template": template}
        one, other = (
            shine.evolve(X, y, features=["a", "b"], generations=10, seconds=None, workers=workers, **settings)
            for workers in (None, 2)
        )
        assert [(m.expression, m.loss) for m in one.front] == [(m.expression, m.loss) for m in other.front]
