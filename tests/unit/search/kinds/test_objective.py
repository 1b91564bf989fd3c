"""Objectives of the user's: functions of the predictions of many formulas."""

from __future__ import annotations

import functools
import pickle
import time

import numpy as np
import pytest

import shine
from shine.base.errors import DataError
from shine.data.datasets.dataset import Dataset
from shine.faces.keywords import settings_from
from shine.search.kinds.objective import ObjectiveProblem
from shine.search.kinds.objective_function import Objective
from shine.search.run import search

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 3, (80, 2))
Y = X[:, 0] * X[:, 1]
QUICK = {"primitives": ["add", "mul"], "generations": 1, "population": 40, "seconds": None, "threads": 1}


def cubes(predictions):
    return np.mean(np.abs(predictions - Y) ** 3, axis=1)


@pytest.mark.slow
def test_targets_near_the_end_of_the_range_have_a_front():
    size = 1e300
    front = shine.evolve(X, Y * size, objective=lambda many: np.abs(many / size - Y).max(axis=1), **QUICK).front
    assert all(np.isfinite(model.loss) for model in front)


@pytest.mark.slow
def test_the_objective_is_the_loss_of_the_front():
    front = shine.evolve(X, Y + 0.1 * RNG.normal(size=80), objective=cubes, **QUICK).front
    for model in front:
        assert model.loss == pytest.approx(cubes(model.predict(X)[None])[0])
    assert front.best.expression == "x0*x1"


@pytest.mark.parametrize(
    ("objective", "word"),
    [(lambda predictions, target: 0, "target"), (lambda y_true, y_pred: 0, "y_pred"), (lambda p, y: 0, "y")],
)
def test_a_function_of_a_target_is_no_objective(objective, word):
    with pytest.raises(TypeError, match=f"and no '{word}'; read y where it is defined, or give a function of one row"):
        shine.evolve(X, Y, objective=objective, **QUICK)


def test_a_second_argument_gets_the_formulas():
    seen = []

    def short(predictions, formulas):
        seen.extend(formulas)
        return np.mean((predictions - Y) ** 2, axis=1) + [100 * ("x1" in str(formula)) for formula in formulas]

    best = shine.evolve(X, Y, objective=short, **QUICK).best
    assert seen and "x1" not in best.expression


def test_constants_are_moved_for_the_objective():
    def above(predictions):  # the line of least squares is not the best
        return np.mean(np.maximum(Y - predictions, 0), axis=1) * 9 + np.mean(np.maximum(predictions - Y, 0), axis=1)

    found = shine.evolve(X, Y, objective=above, **{**QUICK, "primitives": ["add"], "generations": 0}).front
    lines = shine.evolve(X, Y, **{**QUICK, "primitives": ["add"], "generations": 0}).front
    assert found[-1].loss < 0.8 * above(lines[-1].predict(X)[None])[0]


def test_the_front_keeps_what_is_good_in_further_objectives():
    def both(predictions, formulas):
        uses = [str(formula).count("x") for formula in formulas]
        return np.column_stack([np.mean((predictions - Y) ** 2, axis=1), uses])

    front = shine.evolve(X, Y, objective=both, **QUICK).front
    values = [(model.complexity, model.loss, *model.objectives) for model in front]
    for own in values:
        assert not any(other != own and all(a <= b for a, b in zip(other, own, strict=True)) for other in values)
    assert {model.objectives for model in front} >= {(0.0,), (1.0,), (2.0,)}
    assert pickle.loads(pickle.dumps(front[-1])).objectives == front[-1].objectives
    assert repr(front)


@pytest.mark.slow
def test_constraints_hold():
    front = shine.evolve(X, Y, objective=cubes, constraints={"forbidden": ["x1"]}, **QUICK).front
    assert all("x1" not in model.expression for model in front)


def test_a_wrong_direction_has_its_price_at_the_end_too():
    options = {"constraints": {"monotonic": {"x0": "decreasing"}, "penalty": 1e6}, "guesses": ["x0*x1"]}
    found = shine.evolve(X, Y, objective=lambda many: 1 + np.abs(many - Y).max(axis=1), **QUICK | options).front
    plain = shine.evolve(X, Y, objective=lambda many: 1 + np.abs(many - Y).max(axis=1), **QUICK).front
    assert plain.best.expression == "x0*x1"
    assert "x0*x1" not in [model.expression for model in found]


def test_formulas_of_an_earlier_part_of_the_run_compete():
    settings = settings_from(generations=0, population=5, seeding=0.0, noise="absolute")
    earlier = [shine.Model(shine.parse("x0*x1", ["x0", "x1"]), 0.0, 1.0)]
    kind = functools.partial(ObjectiveProblem, Objective(lambda many: np.abs(many - Y).max(axis=1)))
    found = search(Dataset.from_arrays(X, Y), settings, earlier=earlier, kind=kind)
    assert found.best.expression == "x0*x1"


def test_formulas_that_are_not_finite_are_not_shown():
    predictions = np.array([[1.0, np.nan], [1.0, 2.0]])
    assert Objective(lambda own: own.sum(axis=1))(predictions, lambda index: None)[:, 0].tolist() == [np.inf, 3.0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"objective": lambda p: -np.ones(len(p))}, ValueError, "objective returned -1; losses must be at least 0"),
        ({"objective": lambda p: 1.0}, ValueError, r"objective returned an array of shape \(\) for 1 formulas"),
        ({"objective": lambda p: "good"}, ValueError, "objective must return losses, it returned 'good'"),
        ({"objective": "mse"}, TypeError, "objective must be a function of the predictions; it is 'mse'"),
        ({"objective": lambda p: np.full(len(p), np.nan)}, DataError, "no formula has a finite objective"),
        ({"objective": cubes, "validation": "random"}, ValueError, "leave validation and groups out"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(options, error, message):
    with pytest.raises(error, match=message):
        shine.evolve(X, Y, **QUICK, **options)


@pytest.mark.parametrize("kind", [np.asarray, list])
def test_complex_losses_are_rejected(kind):
    with pytest.raises(ValueError, match="objective returned complex numbers; losses are real"):
        Objective(lambda predictions: kind(np.ones(len(predictions), complex)))(np.ones((2, 3)), Y.item)


def test_the_number_of_objectives_must_not_change():
    objective = Objective(lambda predictions: np.ones((len(predictions), len(predictions))))
    objective(np.ones((2, 3)), Y.item)
    with pytest.raises(ValueError, match="objective returned 3 losses for each formula, but 2 in its first call"):
        objective(np.ones((3, 3)), Y.item)


@pytest.mark.slow
def test_a_slow_objective_keeps_to_the_time():
    noisy = 2 * X[:, 0] ** 2 + X[:, 1] + RNG.normal(0, 0.05, 80)

    def slow(predictions):
        time.sleep(0.02 * len(predictions))
        return np.mean((predictions - noisy) ** 2, axis=1)

    began = time.monotonic()
    shine.evolve(X, noisy, objective=slow, **{**QUICK, "population": 100, "generations": None, "seconds": 3})
    assert time.monotonic() - began < 5


@pytest.mark.slow
def test_an_objective_that_reaches_zero_needs_no_least_loss():
    front = shine.evolve(X, Y, objective=lambda many: np.abs(many - Y).max(axis=1), **QUICK, stop_loss=0).front
    assert front.best.expression == "x0*x1"
    zeros = shine.evolve(X, Y, objective=lambda many: np.zeros(len(many)), **QUICK, stop_loss=0).front
    assert zeros.best.loss == 0
