"""Rows that a regressor keeps back."""

from __future__ import annotations

import numpy as np
import pytest

from shine.base.errors import DataError
from shine.estimators import SymbolicRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (80, 2))
Y = X[:, 0] * X[:, 1] + 0.1 * RNG.standard_normal(80)
LABELS = [f"day {number}" for number in np.arange(80) // 8]


def quick(**parameters):
    few = {
        "population_size": 60,
        "generations": 3,
        "max_time": None,
        "primitives": ("add", "mul"),
        "n_jobs": 1,
        "noise": "absolute",
    }
    return SymbolicRegressor(**few | {"random_state": 0, "settings": {"seeding": 0.0}} | parameters)


@pytest.mark.slow
def test_groups_are_kept_back():
    model = quick().fit(X, Y, groups=LABELS)
    assert "24 rows of groups" in model.front_.reason
    assert model.score(X, Y) > 0.9


@pytest.mark.slow
def test_the_order_of_the_rows_tells_the_time():
    y = Y.copy()
    y[60:] = 100.0
    early = quick(validation="time").fit(X, y)
    late = quick(validation="time").fit(X[::-1], y[::-1])
    assert early.front_.reason == late.front_.reason.partition("; errors of neighbouring rows")[0]
    assert [m.expression for m in early.front_] != [m.expression for m in late.front_]


def test_other_selections_are_of_the_front():
    model = quick(validation="random", model_selection="accuracy").fit(X, Y)
    assert model.front_.best_index == len(model.front_) - 1


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], r"groups has shape \(2,\); X has 80 rows"),
        ([None, *LABELS[1:]], "groups has no label in row 0"),
        ([np.nan] * 80, "groups has no label in row 0"),
        (["one"] * 80, "there are too few"),
    ],
)
def test_impossible_groups_are_refused(groups, message):
    with pytest.raises(DataError, match=message):
        quick().fit(X, Y, groups=groups)


def test_a_wrong_validation_is_refused():
    with pytest.raises(ValueError, match="validation must be one of random, groups, time, is 'last'"):
        quick(validation="last").fit(X, Y)
