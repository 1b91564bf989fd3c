"""Searches for rates at the same time, in other threads and processes: the systems are those of one after the other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shine.base.parallel import Pool, opened
from shine.data.trajectories import Trajectories
from shine.data.trajectory_tables import trajectories
from shine.search.dynamics import rate_search
from shine.search.dynamics.result import DynamicsResult
from shine.search.dynamics.run import find_dynamics
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.evolution.observers import Observers, Progress, ignore
from shine.search.problem.settings import SearchSettings

TIMES = np.linspace(0, 6, 40)
NOISE = 0.02 * np.random.default_rng(0).standard_normal((40, 3))
READ: Trajectories = trajectories(np.column_stack([np.cos(TIMES), -np.sin(TIMES), np.exp(-TIMES)]) + NOISE, TIMES)


def found(pool: Pool | None, report: Callable[[Progress], object] = ignore, **limits: Any) -> DynamicsResult:
    """What a short search for three states finds; by default its clock ends nothing."""
    search = SearchSettings()
    evolution = replace(search.evolution, population=50, seeding=0, max_size=7)
    primitives = limits.pop("primitives", search.primitives)
    stop = replace(search.stop, **({"generations": 2, "seconds": None} | limits))
    return find_dynamics(
        READ,
        DynamicsSettings(replace(search, primitives=primitives, evolution=evolution, stop=stop)),
        Observers(report, pool=pool),
    )


def told(result: DynamicsResult) -> list[Any]:
    return [(each.lines("exact"), each.losses.tolist(), each.nats) for each in result.front]


class Broken(Executor):
    """Takes no tasks."""

    def submit(self, *arguments: Any, **options: Any) -> Future[Any]:
        raise RuntimeError("no room")


class Silent(Executor):
    """Never answers."""

    def submit(self, *arguments: Any, **options: Any) -> Future[Any]:
        return Future()


@pytest.mark.slow
def test_workers_find_the_same() -> None:
    progress = list[Progress]()
    with ThreadPoolExecutor(2) as executor, opened(executor) as pool:
        result = found(pool, progress.append)
    assert told(result) == told(found(None))
    assert {each.search for each in progress} == {"x0'", "x1'", "x2'", "x2' again"}
    last = progress[-1]
    assert (last.before + last.generation, result.stopped_by) == (4 * 3 - 1, "generations")  # with first populations


@pytest.mark.slow
def test_processes_find_the_same_also_with_functions_of_this_file() -> None:
    own = {"primitives": ("add", "mul", lambda x: x / (1 + x * x))}
    with opened(2) as pool:
        assert told(found(pool, **own)) == told(found(None, **own))


@pytest.mark.slow
def test_an_executor_that_takes_no_tasks_is_told_and_changes_nothing() -> None:
    with pytest.warns(RuntimeWarning, match="the executor lost a task"):
        assert told(found(Pool(Broken))) == told(found(None))


@pytest.mark.slow
def test_workers_that_never_answer_leave_their_searches_to_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_search, "SECONDS_TO_RETURN", 0.2)
    result = found(Pool(Silent), generations=None, seconds=2.0)
    assert np.isfinite(result.chosen.nats)
    assert set(result.equations) == {"x0", "x1", "x2"}


@pytest.mark.slow
def test_whoever_stops_a_search_stops_those_of_the_workers() -> None:
    with ThreadPoolExecutor(2) as executor, opened(executor) as pool:
        result = found(pool, lambda progress: True, generations=10**6)
    assert result.stopped_by == "callback"
    assert np.isfinite(result.chosen.nats)


@pytest.mark.slow
def test_workers_that_have_not_begun_when_the_user_stops_begin_nothing() -> None:
    with opened(2) as pool:
        result = found(pool, lambda progress: True, generations=10**6)
    assert result.stopped_by == "callback"
    assert set(result.equations) == {"x0", "x1", "x2"}


@pytest.mark.slow
def test_ctrl_c_while_workers_are_waited_for_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(rate_search.Elsewhere, "results", interrupted)
    with ThreadPoolExecutor(2) as executor, opened(executor) as pool:
        result = found(pool)
    assert result.stopped_by == "interrupted"
    assert np.isfinite(result.chosen.nats)
