"""Samples of the rows that are renewed at fixed generations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shine.data.datasets.dataset import Dataset
from shine.faces.keywords import settings_from
from shine.search.evolution.observers import Observers
from shine.search.evolution.run_state import State
from shine.search.models.result import Result
from shine.search.run import search


def rows() -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 5, (2000, 2))
    return Dataset.from_arrays(X, X[:, 0] / X[:, 1] + rng.normal(0, 0.3, 2000))


def found(renewal: int | None, state: State | None = None, **options: Any) -> tuple[Result, list[State], list[int]]:
    """A search over samples of 50 rows, its states and its reported generations."""
    states: list[State] = []
    told: list[int] = []
    given = {"generations": 9, "rows": 50, "population": 40, "seeding": 0.0, "renewal": renewal, **options}
    settings = settings_from(primitives=["add", "mul", "div"], seconds=None, **given)
    result = search(rows(), settings, Observers(lambda p: told.append(p.generation), state=state, save=states.append))
    return result, states, told


def front(result: Result) -> list[str]:
    return [model.expression for model in result.front]


@pytest.mark.slow
def test_a_sample_that_lasts_longer_than_the_run_changes_nothing():
    never, later = found(None), found(100)
    assert front(never[0]) == front(later[0]) == front(found(0)[0])
    assert never[0].evaluations == later[0].evaluations


@pytest.mark.slow
@pytest.mark.parametrize("generation", [3, 4])
def test_a_resumed_run_sees_the_same_samples(generation):
    whole, states, _ = found(3)
    resumed, _, told = found(3, states[generation])
    assert told == list(range(generation, 10))
    assert (front(resumed), resumed.evaluations) == (front(whole), whole.evaluations)
    _, ended, _ = found(3, generations=generation)
    assert front(found(3, ended[-1])[0]) == front(whole)


def test_a_callback_ends_the_run_also_where_a_sample_ends():
    settings = settings_from(primitives=["add"], seconds=None, generations=9, rows=50, population=20, renewal=3)
    result = search(rows(), settings, Observers(lambda progress: progress.generation == 3))
    assert (result.stopped_by, result.generations) == ("callback", 3)


@pytest.mark.slow
def test_the_limit_of_generations_may_fall_on_the_end_of_a_sample():
    result, _, told = found(3, generations=6)
    assert (result.stopped_by, told[-1]) == ("generations", 6)
