"""Callbacks that follow a search from its beginning to its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shine
from shine.faces.config import read_job
from shine.runs import run_job
from shine.search.run import Several

X = np.random.default_rng(0).uniform(1, 2, (30, 2))
Y = X[:, 0] * X[:, 1]
QUICK: dict[str, Any] = {"generations": 2, "population": 30, "seeding": 0, "tier": "reference"}
CONFIG = """
data: {generate: {rows: 20, features: {a: {uniform: {low: 1, high: 2}}}, target: a*a}}
evolution: {population: 30, max_size: 5, seeding: 0}
fitness: {tier: reference, noise: absolute}
stop: {generations: 2}
"""


class Diary:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def begin(self, settings: Any) -> None:
        self.told.append(("begin", settings.evolution.population))

    def __call__(self, progress: Any) -> None:
        self.told.append(progress.generation)

    def end(self, result: Any) -> None:
        self.told.append(("end", None if result is None else result.best.expression))


def by_evolve(diary: Any, folder: Path) -> None:
    shine.evolve(X, Y, report=diary, **QUICK)


def by_estimator(diary: Any, folder: Path) -> None:
    model = shine.SymbolicRegressor(generations=2, population_size=30, callbacks=[diary])
    model.fit(X, Y)


def by_run(diary: Any, folder: Path) -> None:
    (folder / "small.yaml").write_text(CONFIG)
    (folder / "run").mkdir()
    run_job(read_job(folder / "small.yaml"), folder / "run", diary)


@pytest.mark.parametrize("search", [by_evolve, by_estimator, by_run])
def test_it_is_told_the_settings_each_generation_and_the_result(search: Callable[[Any, Path], None], tmp_path: Path):
    diary = Diary()
    search(diary, tmp_path)
    first, *generations, last = diary.told
    assert first == ("begin", 30) and last[0] == "end" and last[1]
    assert generations == list(range(len(generations))) and generations


def test_each_search_for_a_rate_begins_and_ends():
    diary, times = Diary(), np.arange(20.0)
    model = shine.SymbolicDynamics(population_size=30, settings={"seeding": 0.0}, max_time=5, callbacks=[diary])
    model.fit(np.column_stack([np.exp(-0.1 * times), np.exp(-0.2 * times)]))
    told = [note[0] for note in diary.told if isinstance(note, tuple)]
    assert told == ["begin", "end"] * (len(told) // 2) and len(told) >= 4


def test_a_truth_of_numpy_ends_the_search():
    diary = Diary()
    ending = Several((diary, lambda progress: np.True_))
    for report in (lambda progress: np.True_, ending):
        assert shine.evolve(X, Y, report=report, **{**QUICK, "stop_loss": 0.0}).stopped_by == "callback"


def test_after_an_error_there_is_no_result():
    diary = Diary()
    with pytest.raises(ValueError, match="stop"):
        shine.evolve(X, Y, report=Several((diary, _stop)), **QUICK)
    assert diary.told[-1] == ("end", None)


def _stop(progress: Any) -> None:
    raise ValueError("stop")


def test_a_plain_function_needs_no_methods():
    seen: list[int] = []
    shine.evolve(X, Y, report=lambda progress: seen.append(progress.generation), **QUICK)
    assert seen


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"report": 3}, "report must be a function of the progress; it is 3"),
        ({"report": [print]}, "report must be a function of the progress; it is "),
        ({"features": 3}, "features must be a list of headings, such as .*, is 3"),
        ({"features": "a"}, "features must be a list of headings, such as .*, is 'a'"),
    ],
)
def test_reports_and_features_of_other_kinds_are_refused_in_a_line(options, message):
    with pytest.raises(TypeError, match=message):
        shine.evolve(np.ones((4, 2)), np.ones(4), **options)
