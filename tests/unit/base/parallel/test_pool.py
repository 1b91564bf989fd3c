"""Results come in the order of the tasks, whatever an executor does."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial

import cloudpickle
import pytest
from unit.base.parallel.executors import Unreliable, results

from shine.base.errors import WorkerError
from shine.base.parallel import Pool, Round, Shipment, Stream, opened

# Processes need not find this file: where others have installed a package `tests`, they would find that.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def square(number: int) -> int:
    return number * number


def slowly(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def failing(number: int) -> int:
    raise KeyError(number)


def plus(shared: list[int], number: int, stopped: Callable[[], bool]) -> int:
    return sum(shared) + number


def dies_once(path: str) -> str:
    """Kill this process the first time."""
    if not os.path.exists(path):
        open(path, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return path


class Forgetful(Executor):
    """Never does the first task of two."""

    def __init__(self) -> None:
        self.count = 0

    def submit(self, function, /, *arguments, **options):
        future: Future = Future()
        self.count += 1
        if self.count != 2:
            future.set_result(function(*arguments, **options))
        return future


class Elsewhere(ThreadPoolExecutor):
    """Threads that see no files of this process."""

    def submit(self, function, /, *arguments, **options):
        task, ticket, *rest = arguments
        self.sent = [*getattr(self, "sent", []), ticket.content is not None]
        hidden = type(ticket)(ticket.key, "/nowhere", ticket.content)
        return super().submit(function, task, hidden, *rest, **options)


def test_results_keep_the_order_of_the_tasks():
    with ThreadPoolExecutor(2) as executor, opened(executor) as pool:
        assert results(pool, slowly, [0.02, 0.0, 0.01]) == [0.02, 0.0, 0.01]


def test_an_error_of_the_task_is_raised_and_not_tried_again():
    with ThreadPoolExecutor(2) as executor, opened(executor) as pool, pytest.raises(KeyError, match="3"):
        results(pool, failing, [3, 4])


def test_tasks_that_an_executor_loses_are_done_again():
    executor = Unreliable(0.3, 0)
    with opened(executor) as pool:
        assert results(pool, square, range(20)) == [n * n for n in range(20)]
    assert executor.faults


def test_this_process_does_what_no_worker_does():
    with opened(Unreliable(1.0)) as pool, pytest.warns(RuntimeWarning, match="lost a task 10 times.*itself"):
        assert results(pool, square, [3]) == [9]


@pytest.mark.slow
def test_a_task_that_never_ends_is_given_away_again():
    executor = Forgetful()
    assert results(Pool(lambda: executor, least_wait=0.0), square, [1, 2, 3]) == [1, 4, 9]
    assert executor.count == 4


@pytest.mark.slow
def test_killed_processes_are_replaced(tmp_path):
    with opened(workers=2) as pool:
        paths = [str(tmp_path / name) for name in "abc"]
        assert results(pool, dies_once, paths) == paths


def always_dies(path: str) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return path


@pytest.mark.slow
def test_a_task_that_kills_its_workers_does_not_kill_this_process():
    with opened(workers=1) as pool, pytest.raises(WorkerError, match="workers died 10 times over one task"):
        results(pool, always_dies, ["a"])


def test_a_shipment_is_shared_by_all_tasks():
    with ThreadPoolExecutor(2) as executor, opened(executor) as pool, Shipment([1, 2]) as shipment:
        assert list(Round(pool, plus, [10, 20], shipment).results()) == [13, 23]


def test_workers_without_the_file_get_the_value_with_the_task():
    with Elsewhere(1) as executor, opened(executor) as pool, Shipment([1, 2]) as shipment:
        assert list(Round(pool, plus, [10, 20, 30], shipment).results()) == [13, 23, 33]
        # The first task finds no value; the second is on its way by then; whoever has the value needs it no more.
        assert executor.sent.count(True) <= 3
        assert list(Round(pool, plus, [40], shipment).results()) == [43]
        assert not executor.sent[-1]


def test_a_lighter_form_travels_in_place_of_a_value():
    with Elsewhere(1) as executor, opened(executor) as pool, Shipment([1, 2], light=[1, 2, 4]) as shipment:
        assert list(Round(pool, plus, [10], shipment).results()) == [17]


@pytest.mark.slow
def test_functions_without_a_name_travel():
    with opened(workers=2) as pool, Shipment(lambda: 7) as shipment:
        assert list(Round(pool, lambda shared, task, stopped: shared() + task, [1], shipment).results()) == [8]


def drained(stream: Stream[int, int], count: int) -> list[int]:
    """The first results of a stream, in any order."""
    found: list[int] = []
    while len(found) < count:
        found += stream.ready()
        time.sleep(0.001)
    return found


@pytest.mark.parametrize(
    "made",
    [
        partial(ThreadPoolExecutor, 2),
        partial(Elsewhere, 2),
        pytest.param(partial(Unreliable, 0.3), marks=pytest.mark.slow),
        pytest.param(partial(Unreliable, 0.6, 1), marks=pytest.mark.slow),
    ],
    ids=["threads", "elsewhere", "unreliable", "very unreliable"],
)
def test_a_stream_has_the_results_of_tasks_that_are_not_lost(made):
    with made() as executor, opened(executor) as pool, Shipment([1, 2]) as shipment:
        stream = Stream(pool, plus, itertools.count(), shipment)
        found = drained(stream, 300)
        assert len(set(found)) == len(found)
        assert min(found) >= 3
        stream.cancel()
        assert set(stream.finished(5.0)).isdisjoint(found)


def test_an_error_of_a_task_of_a_stream_is_raised():
    with ThreadPoolExecutor(2) as executor, opened(executor) as pool, Shipment(None) as shipment:
        stream = Stream(pool, lambda shared, task, stopped: failing(task), itertools.count(), shipment)
        with pytest.raises(KeyError):
            drained(stream, 1)
        stream.cancel()


def test_a_stream_whose_workers_are_all_lost_says_so_once():
    with opened(Unreliable(1.0)) as pool, Shipment(None) as shipment:
        stream = Stream(pool, plus, itertools.count(), shipment)
        with pytest.warns(RuntimeWarning, match="workers were lost 10 times .*this process goes on alone"):
            assert [stream.ready() for _ in range(20)] == [[]] * 20


def test_what_cannot_travel_is_rejected():
    with pytest.raises(ValueError, match=r"the search cannot be sent to other processes: .*generator"):
        Shipment(number for number in "abc")


def test_the_file_of_a_shipment_is_removed():
    with Shipment([1]) as shipment:
        assert not shipment.ticket.recalled()
    assert shipment.ticket.recalled()


def test_nothing_given_is_this_process():
    with opened() as pool:
        assert pool is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": 0}, "workers must be a whole number of at least 1, is 0"),
        ({"workers": 2.5}, "workers must be a whole number of at least 1, is 2.5"),
        ({"executor": True}, "executor must be a whole number of at least 1, is True"),
        ({"workers": 2, "executor": 2}, "give executor or workers, not both"),
        ({"executor": object()}, "executor must be an executor of concurrent.futures, .* is object"),
    ],
)
def test_other_executors_are_rejected(given, message):
    with pytest.raises((ValueError, TypeError), match=message), opened(**given):
        pass
