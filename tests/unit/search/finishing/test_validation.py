"""The choice by rows that the search never saw."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import LOSSES
from shine.faces.keywords import settings_from
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.parse import parse
from shine.search.evolution.observers import Observers
from shine.search.finishing.kept_rows import KeptRows, chosen_by, least_error
from shine.search.models.model import Model
from shine.search.run import search

QUICK = {"seconds": None, "generations": 4, "population": 100, "threads": 1, "seeding": 0.0, "noise": "absolute"}
RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (80, 2))
Y = 3 * X[:, 0] ** 2 + 0.1 * RNG.standard_normal(80)


def found(y=Y, **options):
    return shine.evolve(X, y, **QUICK | {"primitives": ["add", "mul", "square"]} | options)


def errors_of(*means, rows=100):
    """Errors with the given means and the deviation 1."""
    return (np.array(means)[:, None] + np.random.default_rng(0).standard_normal((len(means), rows))) / rows


def test_of_errors_that_rows_do_not_tell_apart_the_shortest_description_is_chosen():
    lengths = np.array([0.0, 2.0, 1.0, 3.0])
    assert least_error(errors_of(9.0, 1.05, 1.06, 1.0), None, lengths, 0.0) == 2
    assert least_error(errors_of(9.0, 8.0, 7.0, 1.0), None, lengths, 0.0) == 3
    assert least_error(errors_of(9000.0, 1.0, 1.05, 1.05)[:, :1], None, lengths, 0.0) != 0


def test_rows_of_a_group_are_one_witness():
    # 100 rows tell the formulas apart, five groups do not.
    lengths, groups = np.array([0.0, 1.0]), np.repeat(np.arange(5), 20)
    behind = np.array([4.0, -1.0, 2.0, 1.0, -3.0])[groups]
    errors = np.stack([1 + 0.2 * behind, np.ones(100)]) / 100
    assert least_error(errors + np.array([[0.1], [0.0]]) / 100, None, lengths, 0.0) == 1
    assert least_error(errors + np.array([[0.1], [0.0]]) / 100, groups, lengths, 0.0) == 0


def test_of_exact_formulas_the_simplest_is_chosen():
    errors = np.array([[3.0], [2e-9], [1e-9], [1e-10]])
    assert least_error(errors, None, np.array([9.0, 8.0, 7.0, 6.0]), 1e-8) == 1


def test_formulas_that_are_undefined_are_not_chosen():
    lengths = np.array([0.0, 1.0, 2.0])
    assert least_error(np.array([[np.nan], [np.inf], [5.0]]), None, lengths, 0.0) == 2
    assert least_error(np.array([[np.nan], [np.inf]]), None, lengths[:2], 0.0) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"validation": "random"}, "that the search did not see, to within"),
        ({"validation": "time"}, "20 rows after those that the search saw"),
        ({"groups": np.repeat(np.arange(8), 10)}, "20 rows of groups that the search did not see"),
        ({"validation": "time", "validation_fraction": 0.01}, "1 row after"),
    ],
)
def test_the_reason_names_the_rows(options, reason):
    assert reason in found(**options).front.reason


@pytest.mark.slow
def test_rows_that_are_kept_back_do_not_change_what_is_searched():
    # The last quarter follows another law; a search that saw it could not find the first one.
    y = Y.copy()
    y[60:] = -7 * X[60:, 1]
    seen = shine.evolve(X[:60], Y[:60], primitives=["add", "mul", "square"], **QUICK).front
    hidden = found(y, validation="time").front
    assert {model.complexity for model in hidden} <= {model.complexity for model in seen}
    assert "square(x0)" in [str(model.tree) for model in hidden][-1]


@pytest.mark.slow
def test_the_formula_that_fresh_rows_agree_with_is_chosen():
    texts = ["3.0", "2.0*x0", "2.0*x0 + sin(x1)", "2.0*x0 + sin(x1)/(x1 - 2.5)"]
    front = [Model(parse(text, ("x0", "x1")), 1.0 - at / 10, 0.0, {}) for at, text in enumerate(texts)]
    kept = Dataset.from_arrays(X, 2 * X[:, 0] + 0.1 * RNG.standard_normal(80))
    primitives = PrimitiveSet(select(STANDARD, ("add", "mul")), ("x0", "x1"))
    lengths = np.array([9.0, 2.0, 1.0, 0.0])
    every, one = KeptRows(kept, "random"), KeptRows(kept.take([3]), "random")
    assert chosen_by(front, lengths, every, LOSSES["mse"], 1e-20, primitives, 1).index == 1
    # The variance of a single row is 0, so it is no unit of the errors.
    assert chosen_by(front, lengths, one, LOSSES["r2"], 1e-20, primitives, 1) is not None


def test_constants_are_fitted_to_all_rows():
    y = np.where(np.arange(80) < 60, 3.0, 3.4) * X[:, 0]
    best = found(y, validation="time", primitives=["mul"]).best
    expected = float(y @ X[:, 0] / (X[:, 0] @ X[:, 0]))
    assert best.predict([[1.0, 1.0]])[0] == pytest.approx(expected, rel=0.01)
    assert best.loss == pytest.approx(float(np.mean((y - best.predict(X)) ** 2)))


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "noise"), [("nmse", "log"), ("mae", "relative")])
def test_every_loss_and_noise_can_choose_by_fresh_rows(loss, noise):
    result = found(loss=loss, noise=noise, validation="random", generations=1)
    assert result.best.r2 > 0.9
    assert "did not see" in result.front.reason


def test_the_same_seed_keeps_the_same_rows_back():
    fronts = [found(validation="random", threads=threads).front for threads in (1, 2)]
    assert [str(model.tree) for model in fronts[0]] == [str(model.tree) for model in fronts[1]]


def test_an_interrupt_keeps_what_was_found():
    def interrupt(progress):
        if progress.generation == 2:
            raise KeyboardInterrupt

    result = found(validation="random", report=interrupt)
    assert result.stopped_by == "interrupted"
    assert np.isfinite(result.predict(X)).all()


@pytest.mark.slow
def test_a_resumed_search_keeps_the_same_rows_back():
    states, rows = [], Dataset.from_arrays(X, Y)
    settings = settings_from(**QUICK | {"primitives": ["add", "mul", "square"], "validation": "random"})
    whole = search(rows, settings, Observers(save=states.append)).front
    resumed = search(rows, settings, Observers(state=states[1])).front
    assert [str(model.tree) for model in resumed] == [str(model.tree) for model in whole]
    assert resumed.reason == whole.reason
