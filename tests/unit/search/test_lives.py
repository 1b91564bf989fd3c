"""Searches without a limit of stagnation: they begin anew, and hand over the best of all their lives."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shine
from shine.base.parallel import opened
from shine.data.datasets.dataset import Dataset
from shine.faces.keywords import settings_from
from shine.lang.vocabulary import primitive_table
from shine.search import lives
from shine.search.evolution.observers import Observers, Progress
from shine.search.evolution.run_state import State
from shine.search.evolution.settings import StopSettings
from shine.search.models.result import Result
from shine.search.run import search

PRIMITIVES = ["add", "mul", "div", "sin"]


@pytest.fixture(autouse=True)
def _short_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StopSettings, "stagnation", 3)


def rows(count: int = 60) -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 5, (count, 2))
    return Dataset.from_arrays(X, X[:, 0] / X[:, 1] + np.sin(3 * X[:, 1]) + rng.normal(0, 0.3, count))


def found(state: State | None = None, pool: Any = None, **options: Any) -> tuple[Result, list[State], list[Progress]]:
    """A search, its states and what it reported."""
    states: list[State] = []
    told: list[Progress] = []
    given = {"generations": 60, "stagnation": None, "population": 30, "seeding": 0.0, "max_size": 12, **options}
    settings = settings_from(primitives=PRIMITIVES, seconds=None, stop_loss=0.0, **given)
    result = search(rows(), settings, Observers(told.append, state=state, save=states.append, pool=pool))
    return result, states, told


def front(result: Result) -> list[tuple[str, float]]:
    return [(model.expression, model.loss) for model in result.front]


def read_again(state: State) -> State:
    """The state as a checkpoint gives it back."""
    table, _ = primitive_table(PRIMITIVES)
    return State.from_arrays(state.header(), state.to_arrays(), table)


@pytest.mark.slow
def test_a_search_begins_anew_counts_on_and_never_becomes_worse():
    result, states, told = found()
    assert [progress.generation for progress in told] == list(range(len(told)))
    assert [state.generation for state in states] == list(range(len(told)))
    assert sorted({progress.life for progress in told}) == list(range(told[-1].life + 1))
    assert told[-1].life >= 2
    losses, evaluations = ([getattr(each, name) for each in told] for name in ("best_loss", "evaluations"))
    assert losses == sorted(losses, reverse=True)
    assert evaluations == sorted(evaluations)
    assert (result.generations, result.evaluations) == (told[-1].generation, evaluations[-1])


def test_what_is_told_is_the_best_of_all_lives():
    _, states, told = found()
    alone = [state.archive.best_loss for state in states]
    assert [progress.best_loss for progress in told] == np.minimum.accumulate(alone).tolist()
    assert alone != sorted(alone, reverse=True)


def test_a_limit_of_stagnation_ends_the_search_in_its_first_life():
    whole, _, told = found(generations=None, stagnation=3)
    assert whole.stopped_by == "stagnation"
    assert {progress.life for progress in told} == {0}


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"islands": 2, "migration_interval": 2}])
def test_a_search_that_is_cut_short_in_any_life_goes_on_to_the_same_end(options: dict[str, Any]):
    whole, states, _ = found(**options)
    assert states[-1].past.lives >= 2
    begins = [at for at, state in enumerate(states) if at and state.past.lives > states[at - 1].past.lives]
    for at in (begins[0] - 1, begins[0], begins[1] - 1, begins[1] + 1):
        resumed, _, told = found(read_again(states[at]), **options)
        assert (front(resumed), resumed.evaluations) == (front(whole), whole.evaluations)
        assert told[0].generation == states[at].generation


def test_a_state_without_the_formulas_of_former_lives_is_refused():
    _, states, _ = found()
    state, table = states[-1], primitive_table(PRIMITIVES)[0]
    first = states[0].to_arrays()
    arrays = {name: first[name] if name.startswith("past") else each for name, each in state.to_arrays().items()}
    with pytest.raises(ValueError, match="the archive has 0 rows"):
        State.from_arrays(state.header(), arrays, table)


@pytest.mark.slow
def test_a_higher_limit_of_generations_goes_on_to_the_end_of_a_longer_search():
    whole, states, _ = found()
    end = next(at for at, state in enumerate(states) if state.past.lives == 1)
    for limit in (end - 1, end, end + 1, end + 2):
        part, kept, _ = found(generations=limit)
        assert part.stopped_by == "generations"
        assert part.generations in (limit, limit - 1)
        assert front(found(read_again(kept[-1]))[0]) == front(whole)


@pytest.mark.slow
def test_threads_and_workers_change_nothing():
    options = {"islands": 2, "migration_interval": 2, "generations": 30}
    alone = found(threads=1, **options)[0]
    with opened(workers=2) as pool:
        shared = found(pool=pool, **options)[0]
    assert front(alone) == front(found(threads=2, **options)[0]) == front(shared)


@pytest.mark.slow
def test_an_interrupt_in_a_later_life_hands_over_what_all_lives_found():
    _, _, told = found()
    best = min(progress.best_loss for progress in told if progress.life == 0)

    def interrupt(progress: Progress) -> None:
        if progress.life == 2:
            raise KeyboardInterrupt

    settings = settings_from(primitives=PRIMITIVES, seconds=None, stop_loss=0.0, stagnation=None, population=30,
                             seeding=0.0, max_size=12)  # fmt: skip
    result = search(rows(), settings, Observers(interrupt))
    assert result.stopped_by == "interrupted"
    assert result.generations > next(progress.generation for progress in told if progress.life == 1)
    assert result.front[-1].loss <= best * (1 + 1e-9)


@pytest.mark.slow
def test_a_callback_ends_the_search_where_a_life_ends():
    _, states, told = found()
    end = next(progress.generation for progress in told if progress.life == 1) - 1
    assert states[end].past.lives == 0
    settings = settings_from(primitives=PRIMITIVES, seconds=None, stop_loss=0.0, stagnation=None, population=30,
                             seeding=0.0, max_size=12)  # fmt: skip
    result = search(rows(), settings, Observers(lambda progress: progress.generation == end))
    assert (result.stopped_by, result.generations) == ("callback", end)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["template", "objective", "classes"])
def test_all_kinds_of_problems_live_again(kind: str):
    told: list[Progress] = []
    X, y = rows().columns.T, rows().target
    options: dict[str, Any] = {"generations": 40, "seconds": None, "stagnation": None, "population": 20, "seeding": 0.0}
    if kind == "template":
        shine.evolve(X, y, template="f(x0) + a*x1", report=told.append, stop_loss=0.0, **options)
    elif kind == "objective":
        shine.evolve(X, y, objective=lambda p: np.abs(p - y).mean(axis=1), report=told.append, stop_loss=0.0, **options)
    else:
        limits = {"generations": 40, "max_time": None, "stop_loss": 0.0, "population_size": 20}
        settings = {"stagnation": None, "seeding": 0.0}
        shine.SymbolicClassifier(callbacks=[told.append], settings=settings, **limits).fit(X, y > 1)
    assert told[-1].life >= 1


# Lives on workers: an executor of threads, which is slow, but begins at once.


def shared(
    until: Callable[[Progress], object], executor: Any = None, state: State | None = None, **options: Any
) -> Any:
    """A search without end, its states and what it reported, with the lives of an executor of threads."""
    states: list[State] = []
    told: list[Progress] = []

    def report(progress: Progress) -> object:
        told.append(progress)
        time.sleep(0.02)  # so that workers come further
        return until(progress)

    given = {"population": 20, "seeding": 0.0, "max_size": 12, "stop_loss": 0.0, "stagnation": None, **options}
    settings = settings_from(primitives=PRIMITIVES, **{"seconds": None, **given})
    with executor or ThreadPoolExecutor(1) as threads, opened(threads) as pool:
        result = search(rows(), settings, Observers(report, state=state, save=states.append, pool=pool))
    return result, states, told


def test_lives_of_workers_count_and_what_they_find_stays():
    result, states, told = shared(lambda progress: progress.life >= 4)
    assert told[-1].generation > len(told)  # those of other processes count, which are not told one by one
    best = [progress.best_loss for progress in told]
    assert best == sorted(best, reverse=True)
    past = states[-1].past.archive
    assert past is not None
    assert best[-1] == min(past.best_loss, states[-1].archive.best_loss)
    assert result.evaluations >= told[-1].evaluations
    assert result.stopped_by == "callback"


@pytest.mark.slow
def test_a_life_of_a_worker_that_finds_what_is_good_enough_ends_the_search():
    enough = found(population=20)[0].front[-1].loss / 5
    # The life of this process takes half a second a generation.
    result, states, _ = shared(lambda progress: time.sleep(0.5), stop_loss=enough)
    assert result.stopped_by == "loss"
    assert states[-1].archive.best_loss > enough * np.var(rows().target)


def test_a_run_with_workers_goes_on_with_what_their_lives_found():
    _, states, told = shared(lambda progress: progress.life >= 3)
    result, _, later = shared(lambda progress: progress.life >= 5, state=read_again(states[-1]))
    assert later[0].generation == states[-1].generation
    assert later[0].best_loss == told[-1].best_loss
    assert result.evaluations > states[-1].evaluations


def test_an_interrupt_keeps_what_workers_found():
    def interrupt(progress: Progress) -> None:
        if progress.life >= 2:
            seen.append(progress.best_loss)
            raise KeyboardInterrupt

    seen: list[float] = []
    result, states, _ = shared(interrupt)
    assert result.stopped_by == "interrupted"
    assert result.evaluations >= states[-1].evaluations
    assert result.front[-1].loss <= seen[-1] * (1 + 1e-9)


class Lost(ThreadPoolExecutor):
    """An executor whose tasks are all lost."""

    def submit(self, *task: Any, **options: Any) -> Any:
        future: Future[Any] = Future()
        future.set_exception(OSError("the cable was cut"))
        return future


def test_a_search_goes_on_alone_if_all_workers_are_lost():
    with pytest.warns(RuntimeWarning, match="workers were lost 10 times .OSError: the cable was cut.; this process"):
        result, _, told = shared(lambda progress: progress.life >= 2, Lost(1))
    assert (result.stopped_by, told[-1].life) == ("callback", 2)


@pytest.mark.slow
def test_the_time_ends_lives_of_workers_too():
    began = time.monotonic()
    result, _, told = shared(lambda progress: None, seconds=3.0)
    assert result.stopped_by == "seconds"
    assert told[-1].life >= 1
    assert time.monotonic() - began < 9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["constraints", "template", "classes", "own loss"])
def test_lives_of_all_kinds_of_problems_are_sent_to_processes(kind: str):
    told: list[Progress] = []
    X, y = rows().columns.T, rows().target

    def report(progress: Progress) -> bool:
        told.append(progress)
        return progress.life >= 4

    options: dict[str, Any] = {"seconds": 60, "stagnation": None, "population": 20, "seeding": 0.0, "stop_loss": 0.0}
    own = {
        "constraints": {"constraints": {"monotonic": {"x0": "increasing"}}},
        "template": {"template": "f(x0) + a*x1"},
        "own loss": {"loss": lambda prediction, target: abs(prediction - target) ** 1.5},
    }
    if kind == "classes":
        settings = {"stagnation": None, "seeding": 0.0}
        shine.SymbolicClassifier(
            callbacks=[report], settings=settings, max_time=60, stop_loss=0.0, population_size=20, executor=1
        ).fit(X, y > 1)
    else:
        shine.evolve(X, y, report=report, workers=1, **options, **own[kind])
    assert told[-1].life >= 4


@pytest.mark.slow
def test_lives_of_streamed_rows_are_sent_with_the_rows_in_memory(tmp_path: Path):
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    data, told = rows(60_000), list[Progress]()
    path = tmp_path / "rows.parquet"
    parquet.write_table(arrow.table({"a": data.columns[0], "b": data.columns[1], "y": data.target}), path)

    def report(progress: Progress) -> bool:
        told.append(progress)
        return progress.life >= 2

    opened_rows = shine.data.open_dataset(path, stream=True)
    limits: dict[str, Any] = {"seconds": 60, "stagnation": None, "population": 20, "seeding": 0.0, "stop_loss": 0.0}
    result = shine.evolve(opened_rows, "y", report=report, workers=1, rows=1000, **limits)
    assert told[-1].life >= 2
    assert np.isfinite(result.best.loss)


def test_a_worker_that_is_to_stop_while_its_sample_is_renewed_hands_over_what_it_found(monkeypatch: pytest.MonkeyPatch):
    renewals, renew = list[Any](), lives._renewed

    def renewed(*given: Any) -> State:
        renewals.append(given)
        return renew(*given)

    def alive(problem: Any, *_: Any) -> Any:
        task = (1, 2, 3), time.time() + 100
        return lives._lived_in_worker(problem.alone(), task, lambda: len(renewals) > 1)

    monkeypatch.setattr(lives, "_renewed", renewed)
    kept = list[Any]()
    monkeypatch.setattr(
        "shine.search.run.evolved", lambda problem, rng: kept.append(alive(problem)) or real(problem, rng)
    )
    real = lives.evolved
    settings = settings_from(
        primitives=PRIMITIVES, seconds=None, stop_loss=0.0, generations=30, stagnation=None, population=30,
        seeding=0.0, max_size=12, rows=40, renewal=1,
    )  # fmt: skip
    search(rows(), settings)
    assert len(renewals) > 1
    assert kept[0].stopped_by == "seconds"
    assert 1 <= kept[0].generations <= 2
