"""Losses of users on every tier, against plain Python row by row."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from helpers.own_losses import TEXTS, errors_in_python, own_loss, random_text

from shine.base.errors import DataError
from shine.data.datasets.dataset import Dataset
from shine.evaluate.kernels.jit import jit
from shine.evaluate.losses.form import LOSSES, Loss
from shine.evaluate.tiers import machine_rows
from shine.evaluate.tiers.evaluator import Evaluator, evaluator_of
from shine.lang.population import Population
from shine.losses import loss_from

TIERS = ("machine", "native", "reference")
SOURCES = ("a*b + 0.5", "a", "exp(a)", "log(a - 1.0)", "0.3*a*a - b", "2.5", "sin(3.0*a) + b", "b/(a - 0.25)")
POPULATION = Population.from_sources(SOURCES, ("a", "b"))


def dataset_of(rows: int, weighted: bool = False, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 2, (rows, 2))
    weights = np.append(rng.choice([0.0, 0.5, 3.0], rows - 1), 1.5) if weighted else None
    target = X[:, 0] * X[:, 1] + rng.normal(size=rows)
    loss_columns = {
        "high": target + rng.random(rows),
        "sigma": rng.uniform(0.5, 2, rows),
        "w": rng.uniform(0.5, 2, rows),
    }
    return Dataset.from_arrays(X, target, sample_weight=weights, features=("a", "b"), loss_columns=loss_columns)


def columns_of(dataset: Dataset, loss: Loss) -> list[np.ndarray]:
    known = {**dataset.loss_columns, "weight": dataset.row_weights, "a": dataset.columns[0], "b": dataset.columns[1]}
    return [known[name] for name in loss.kind.columns]


def expected(dataset: Dataset, text: str, loss: Loss, predictions: np.ndarray) -> np.ndarray:
    """Mean errors, by Python's own sums; inf where they are not finite."""
    weights = np.ones(dataset.n_rows) if "weight" in loss.kind.columns else dataset.row_weights
    found = [
        np.average(errors_in_python(text, p, dataset.target, *columns_of(dataset, loss)), weights=weights)
        for p in predictions.astype(np.float64)
    ]
    return np.where(np.isfinite(found), found, np.inf)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "float64") for name in TEXTS), *((name, "float32") for name in list(TEXTS)[::5])]
)
def test_a_loss_is_the_mean_of_its_errors(name, dtype):
    # Errors are float64, whatever the type of the predictions.
    dataset, loss = dataset_of(267, weighted=dtype == "float64"), own_loss(TEXTS[name])
    machine, native = (evaluator_of(dataset, loss, False, dtype, tier) for tier in ("machine", "native"))
    found = machine.score(POPULATION).losses
    assert found == pytest.approx(expected(dataset, TEXTS[name], loss, machine.predict(POPULATION)), rel=1e-11)
    assert np.isinf(found[3])
    assert found.tobytes() == native.score(POPULATION).losses.tobytes()
    if dtype == "float64":
        reference = evaluator_of(dataset, loss, False, dtype, "reference").score(POPULATION).losses
        assert reference == pytest.approx(found, rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_random_losses_of_random_formulas_are_the_same_on_every_tier(seed):
    rng = np.random.default_rng(seed)
    text, rows = random_text(rng), int(rng.choice([1, 7, 64, 257, 1031]))
    loss = own_loss(text, least=None)
    dataset = dataset_of(rows, bool(seed % 2), seed)
    loss_columns = {"a": rng.normal(size=rows), "b": dataset.loss_columns["w"]}
    dataset = Dataset.from_arrays(
        dataset.columns.T, dataset.target, sample_weight=dataset.weights, features=("a", "b"), loss_columns=loss_columns
    )
    population = Population.random(12, ["add", "sub", "mul", "div", "exp", "sin"], ("a", "b"), 15, rng)
    scores = {tier: evaluator_of(dataset, loss, False, "float64", tier).score(population).losses for tier in TIERS}
    assert scores["machine"].tobytes() == scores["native"].tobytes()
    predictions = evaluator_of(dataset, "mse", False, "float64", "reference").predict(population)
    columns = dataset.target, dataset.loss_columns["a"], dataset.loss_columns["b"]
    for found, reference, p in zip(scores["machine"], scores["reference"], predictions, strict=True):
        errors = errors_in_python(text, p, *columns)
        exact = float(np.sum(dataset.row_weights * errors) / dataset.weight)
        if np.isfinite(exact) and np.isfinite(found) and np.abs(p).max() < 1e6:
            size = float(np.sum(dataset.row_weights * np.abs(errors)) / dataset.weight)
            assert found == pytest.approx(exact, rel=1e-7, abs=1e-7 * size)
            assert reference == pytest.approx(exact, rel=1e-7, abs=1e-7 * size)
        elif not np.isfinite(p[dataset.row_weights > 0]).all():
            assert np.isinf(found)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_threads_and_row_blocks_change_no_bit(dtype, monkeypatch):
    dataset, loss = dataset_of(20_011, weighted=True), own_loss(TEXTS["interval"])
    whole = evaluator_of(dataset, loss, False, dtype, "machine").score(POPULATION).losses
    native = evaluator_of(dataset, loss, False, dtype, "native").score(POPULATION).losses
    monkeypatch.setattr(machine_rows, "SHARED_WORK", 1)
    threads = evaluator_of(dataset, loss, False, dtype, "machine", 2).score(POPULATION).losses
    # Large data are read in place, but for the rows after the last full tile.
    monkeypatch.setattr(machine_rows, "LARGE_ROWS", 1)
    blocks = evaluator_of(dataset, loss, False, dtype, "machine", 2).score(POPULATION).losses
    assert whole.tobytes() == native.tobytes() == threads.tobytes() == blocks.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", list(TEXTS)[::5])
def test_a_threshold_hides_only_losses_above_it(name):
    evaluator = evaluator_of(dataset_of(3000), own_loss(TEXTS[name]), False, "float64", "machine")
    whole = evaluator.score(POPULATION).losses
    for threshold in np.sort(whole)[:6].tolist():
        found = evaluator.score(POPULATION, threshold).losses
        assert found.tolist() == np.where(whole <= threshold, whole, np.inf).tolist()


SHIFTED = "def shifted(p, y):\n    return (p - y)*(p - y) - 3"
"""Errors of at least -3; most of the formulas' losses are negative."""


@pytest.mark.parametrize("least", [None, -3.0, -5.0])
def test_thresholds_hold_for_losses_that_may_be_negative(least):
    dataset = dataset_of(3000)
    evaluator = evaluator_of(dataset, own_loss(SHIFTED, least=least), False, "float64", "machine")
    whole = evaluator.score(POPULATION).losses
    assert (whole < 0).any()
    assert whole == pytest.approx(
        evaluator_of(dataset, "mse", False, "float64", "machine").score(POPULATION).losses - 3
    )
    for threshold in np.sort(whole)[:6].tolist():
        found = evaluator.score(POPULATION, threshold).losses
        assert found == pytest.approx(np.where(whole <= threshold, whole, np.inf), rel=1e-12)


@pytest.mark.slow
def test_a_bounded_error_of_a_prediction_that_is_not_finite_is_no_loss():
    dataset = Dataset.from_arrays([[1.0], [0.0], [2.0]], [1.0, 2.0, 3.0], features=("a",))
    population = Population.from_sources(["1/a", "log(a - 5.0)", "a"], ("a",))
    for text in ("def own(p, y):\n    return 1 - exp(-(p - y)**2)", "def own(p, y):\n    return 1 if p > y else 0"):
        for tier in TIERS:
            losses = evaluator_of(dataset, own_loss(text), False, "float64", tier).score(population).losses
            assert np.isinf(losses[:2]).all()
            assert np.isfinite(losses[2])


def test_a_column_that_the_data_lack_is_named():
    dataset = Dataset.from_arrays([[1.0], [2.0]], [1.0, 2.0], loss_columns={"low": [1, 2]})
    loss = own_loss("def own(p, y, censored):\n    return (p - y)*censored")
    message = (
        "loss 'own' reads column 'censored', which the data do not have beside the features; there they have: 'low'"
    )
    with pytest.raises(DataError, match=message):
        evaluator_of(dataset, loss, False, "float64", "machine")


def test_standard_deviations_and_weights_can_be_read():
    columns = {"sample_weight": [1.0, 2.0, 0.5], "sigma": [0.1, 0.2, 0.4]}
    dataset = Dataset.from_arrays([[1.0], [2.0], [4.0]], [1.5, 2.0, 3.0], features=("a",), **columns)
    population = Population.from_sources(["a", "a*a"], ("a",))
    weighing = own_loss("def own(p, y, weight, sigma):\n    return weight*((p - y)/sigma)**2")
    own = evaluator_of(dataset, weighing, False, "float64", "machine").score(population).losses
    known = evaluator_of(dataset, "mse", False, "float64", "machine").score(population).losses
    # Deviations have a common factor, and the weight of the rows is not theirs.
    assert own[1] / own[0] == pytest.approx(known[1] / known[0])


def test_an_evaluator_takes_columns_and_survives_a_copy():
    X, y = [[1.0], [2.0]], [1.0, 4.0]
    evaluator = Evaluator(X, y, loss=own_loss(TEXTS["gaussian"]), loss_columns={"sigma": [0.5, 1.0]})
    population = Population.from_sources(["x0"])
    assert evaluator(population).tolist() == [2.0]
    assert pickle.loads(pickle.dumps(evaluator))(population).tolist() == [2.0]


def test_kernels_measure_losses_too():
    loss = own_loss(TEXTS["huber"])
    assert jit("2*x").fitness([[1.0], [2.0]], [2.0, 9.0], loss=loss) == pytest.approx((3 * 5 - 2.25) / 2)
    assert jit("2*x").fitness([[1.0], [2.0]], [2.0, 9.0], loss=LOSSES["mae"]) == 2.5


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-13), ("float32", 1e-5)])
def test_log_losses_neither_overflow_nor_cancel(dtype, tolerance):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 301))
    share, weights = rng.choice([0.0, 0.03, 0.97, 1.0], 301), rng.uniform(0.5, 2, 301)
    formulas = {"2.0*a + 0.5": 2 * a + 0.5, "800.0*a": 800 * a, "0.0*a": 0 * a, "-1000.0*b": -1000 * b}
    dataset = Dataset.from_arrays(np.column_stack([a, b]), share, sample_weight=weights, features=("a", "b"))
    population = Population.from_sources([*formulas, "log(a)"], ("a", "b"))
    losses = evaluator_of(dataset, loss_from("binomial"), False, dtype, "machine").score(population).losses
    textbook = [np.average(np.logaddexp(0, s) - share * s, weights=weights) for s in formulas.values()]
    assert losses[:-1] == pytest.approx(textbook, rel=tolerance)
    assert losses[-1] == np.inf


def test_a_certain_score_costs_nothing_if_right_and_its_size_if_wrong():
    formula, loss = Population.from_sources(["a"], ("a",)), loss_from("binomial")
    for share, expected_loss in (([1.0, 0.0], 0.0), ([0.0, 1.0], 2500.0)):
        data = Dataset.from_arrays([[2000.0], [-3000.0]], share, features=("a",))
        assert evaluator_of(data, loss, False, "float64", "machine").score(formula).losses[0] == expected_loss
