"""Rows of losses, and of the rows of data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from promises.faces import EXACT, LAW, X, Y, calculated, estimator, occurrences, search
from promises.table import CONSTANT, FITTED, PYTHON, REGRESSORS, WEIGHTS, row

import shine


@row("loss", faces=REGRESSORS)
def the_loss_of_the_front_is_that_of_its_predictions(face: str) -> None:
    spread = np.mean((Y - Y.mean()) ** 2)
    means: dict[str, Callable[[np.ndarray], Any]] = {
        "mse": lambda error: np.mean(error**2),
        "rmse": lambda error: np.sqrt(np.mean(error**2)),
        "mae": lambda error: np.mean(abs(error)),
        "nmse": lambda error: np.mean(error**2) / spread,
        "r2": lambda error: np.mean(error**2) / spread,
        "quantile(0.9)": lambda error: np.mean(np.maximum(0.9 * error, -0.1 * error)),
        "def own(prediction, target): return (prediction - target)**2": lambda error: np.mean(error**2),
    }
    for loss, mean in means.items():
        found = search(face, loss=loss)
        for text, given in found.front:
            np.testing.assert_allclose(given, mean(Y - calculated(text, X)), rtol=1e-9, err_msg=loss)


@row("noise", faces=REGRESSORS)
def noise_that_grows_with_the_target_weighs_small_values_more(face: str) -> None:
    rows = {"y": np.exp(X[:, 0]), "primitives": ["mul"], "max_size": 5}
    kinds = ("absolute", "counts", "relative", "log", "auto")
    # The constant of the front is the weighted mean.
    mean = {noise: float(search(face, **rows, noise=noise).expressions[0]) for noise in kinds}
    np.testing.assert_allclose(mean["absolute"], rows["y"].mean(), rtol=1e-6)
    assert mean["absolute"] > mean["counts"] > mean["relative"]
    assert mean["log"] < mean["counts"]


@row("sample_weight", faces=REGRESSORS)
def the_constant_is_the_weighted_mean(face: str) -> None:
    found = search(face, sample_weight=WEIGHTS, **CONSTANT)
    np.testing.assert_allclose(float(found.expressions[0]), np.average(Y, weights=WEIGHTS))


@row("sample_weight", faces=FITTED)
def a_whole_weight_is_a_repeated_row(face: str) -> None:
    times = WEIGHTS.astype(int)
    weighted = search(face, sample_weight=times, y=_target(face))
    repeated = search(face, np.repeat(X, times, axis=0), np.repeat(_target(face), times))
    assert weighted.expressions == repeated.expressions
    np.testing.assert_allclose(weighted.losses, repeated.losses, rtol=1e-9)


def _target(face: str) -> np.ndarray:
    return Y > 8 if face == "SymbolicClassifier" else Y


@row("sigma", faces=REGRESSORS)
def the_constant_is_the_mean_weighted_by_known_noise(face: str) -> None:
    found = search(face, sigma=WEIGHTS, **CONSTANT)
    np.testing.assert_allclose(float(found.expressions[0]), np.average(Y, weights=WEIGHTS**-2.0))


@row("loss_columns", faces=REGRESSORS)
def a_loss_reads_its_columns(face: str) -> None:
    own = "def own(prediction, target, price): return price*(prediction - target)**2"
    found = search(face, loss=own, loss_columns={"price": WEIGHTS})
    for text, loss in found.front:
        np.testing.assert_allclose(loss, np.mean(WEIGHTS * (Y - calculated(text, X)) ** 2), rtol=1e-9)


def _judged(face: str, **words: Any) -> list[np.ndarray]:
    """The predictions that an objective was shown."""
    shown = []

    def objective(predictions: np.ndarray) -> np.ndarray:
        shown.append(predictions)
        return predictions.var(axis=1)

    search(face, objective=objective, **words)
    return shown


@row("objective", faces=PYTHON[:2])
def an_objective_judges_in_place_of_the_loss(face: str) -> None:
    def far(predictions: np.ndarray) -> np.ndarray:
        return np.abs(predictions - 100).mean(axis=1)

    found = search(face, objective=far, linear_scaling=False)
    for text, loss in found.front:
        np.testing.assert_allclose(loss, abs(calculated(text, X) - 100).mean(), rtol=1e-9)
    front = found.fitted.front_ if face == "SymbolicRegressor" else found.fitted.front
    with pytest.raises(shine.DataError, match="an objective judged it"):
        front[-1].summary()


@row("validation", "validation_fraction", "groups", faces=REGRESSORS)
def validation_changes_what_a_search_sees(face: str) -> None:
    words = {"y": Y + np.random.default_rng(1).normal(0, 3, 40), "max_size": 15, "generations": 5}
    groups = np.arange(40) % 8
    plain = search(face, **words).front
    halves = [search(face, **words, validation="random", validation_fraction=part).front for part in (0.25, 0.6)]
    whole = [search(face, **words, groups=groups, validation=kind).front for kind in (None, "groups")]
    assert halves[0] != halves[1]
    assert plain not in [*halves, *whole, search(face, **words, validation="time").front]
    assert whole[0] == whole[1]


@row("times", faces=REGRESSORS, slow=True)
def rows_follow_one_another_in_their_order_or_by_their_times(face: str) -> None:
    rng = np.random.default_rng(4)
    slow = rng.normal(size=(150, 3))
    for at in range(1, len(slow)):
        slow[at] = 0.9 * slow[at - 1] + 0.44 * slow[at]
    table, target, words = slow[:, :2], slow[:, 0] + slow[:, 2], {"generations": 1, "primitives": ["add"]}
    others = rng.permutation(len(slow))
    note = "errors of neighbouring rows correlate by 0."
    assert note in search(face, table, target, **words).reason
    assert note not in search(face, table[others], target[others], **words).reason
    for when in (others - 7.5, np.datetime64("2024-01-01") + others):
        assert note in search(face, table[others], target[others], times=when, **words).reason
    words = {"y": Y + rng.normal(0, 3, 40), "max_size": 15, "generations": 5, "validation": "time"}
    last, latest, first = (search(face, **words, times=when).front for when in (None, np.arange(40), -np.arange(40)))
    assert last == latest != first


@row("times", faces=("SymbolicTransformer",), slow=True)
def components_are_not_fitted_to_errors_that_follow_one_another(face: str) -> None:
    rng = np.random.default_rng(2)
    slow = rng.normal(size=(400, 9))
    for at in range(1, len(slow)):
        slow[at] = 0.95 * slow[at - 1] + 0.31 * slow[at]
    table, target = slow[:, :8], slow[:, 0] * slow[:, 1] + 0.5 * slow[:, 8]
    others = rng.permutation(len(slow))
    words = {"generations": 20, "max_size": 15, "n_components": 1, "population": 100}

    def found(**times: Any) -> list[str]:
        rows = others if times else np.arange(len(slow))
        return [model.expression for model in estimator(face, **words).fit(table[rows], target[rows], **times).best_]

    ordered = found()
    assert occurrences(ordered, "x") == occurrences(ordered, "x0") + occurrences(ordered, "x1") > 0
    for when in (others - 7.5, np.datetime64("2024-01-01") + others):
        assert found(times=when) == ordered
    assert found(times=np.arange(len(slow))) != ordered


@row("outliers", faces=("evolve", "config"))
def rows_that_no_neighbour_expects_take_no_part_unless_they_are_kept(face: str) -> None:
    spoiled = 3 * X[:, 0] + np.where(np.arange(40) == 7, 1e6, 0.0)
    words = {"y": spoiled, "primitives": ["mul"], "max_size": 3}
    losses = [search(face, **words, outliers=outliers).losses[-1] for outliers in ("auto", "keep")]
    assert losses[0] < 1e-6 < 1e6 < losses[1]


@row("evidence", faces=("evolve", "config"))
def fewer_independent_rows_leave_constants_less_certain(face: str) -> None:
    noisy = 3 * X[:, 0] + np.random.default_rng(1).normal(0, 1, 40)
    words = {"y": noisy, "primitives": ["mul"], "max_size": 1}
    errors = [
        list(search(face, **words, evidence=rows).fitted.front[-1].standard_errors().values()) for rows in (None, 10)
    ]
    assert errors[0]
    assert (np.array(errors[1]) > 1.5 * np.array(errors[0])).all(), errors


@row("linear_scaling", faces=REGRESSORS)
def a_line_is_part_of_a_formula_with_linear_scaling_only(face: str) -> None:
    words = {"primitives": ["add"], "max_size": 5, "y": 3 * X[:, 0] + 1, "constant_steps": 0, "constant_share": 0.0}
    assert search(face, **words).losses[-1] < 1e-20
    assert search(face, **words, linear_scaling=False).losses[-1] > 1e-3


@row("dtype")
def a_law_is_exact_to_the_digits_of_the_number_type(face: str) -> None:
    rows = {"y": EXACT, "guesses": [LAW], "generations": 0, "max_size": 15}
    for dtype, most in (("float32", 1e-9), ("float64", 1e-25)):
        losses: list[float] = []
        if face == "config":
            losses.append(search(face, **rows, dtype=dtype).losses[-1])
        else:
            search(face, **rows, dtype=dtype, report=lambda progress, seen=losses: seen.append(progress.best_loss))
        if face != "SymbolicClassifier":
            assert losses[0] < most, dtype
    with pytest.raises((Exception, AssertionError), match="float32"):
        search(face, dtype="float16")


@row("tier", faces=("evolve", "config"), slow=True)
def every_tier_finds_the_same(face: str) -> None:
    best = {tier: search(face, tier=tier) for tier in ("machine", "native", "reference")}
    for found in best.values():
        np.testing.assert_allclose(found.losses[-1], best["reference"].losses[-1], rtol=1e-6)


@row("features", faces=("evolve",))
def features_name_the_columns(face: str) -> None:
    found = search(face, features=["unit price", "b"], guesses=["unit_price*b"])
    assert any("unit_price" in text for text in found.expressions)
    assert occurrences(found.expressions, "x0") == 0


@row("X", "y", faces=PYTHON)
def rows_may_be_arrays_lists_and_frames(face: str) -> None:
    y = _target(face)
    plain = search(face, X, y).front
    frame = pd.DataFrame(X, columns=["x0", "x1"])
    for columns, target in ((X.tolist(), y.tolist()), (frame, y), (frame, pd.Series(y)), (np.asfortranarray(X), y)):
        assert search(face, columns, target).front == plain
    assert "cat_mass_g" in str(search(face, frame.rename(columns={"x0": "cat. mass / g"}), y).expressions)
