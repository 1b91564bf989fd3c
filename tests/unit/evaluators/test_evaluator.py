"""The public evaluator: options, shapes, errors of rows, and the choice of the tier."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.evaluators import costs
from shine.evaluators.costs import SMALLEST, Costs, native_pays
from shine.evaluators.evaluator import TIERS, Evaluator
from shine.evaluators.machine import MachineEvaluator
from shine.evaluators.native import NativeEvaluator
from shine.fitness import LOSSES

X = np.array([[1.0, 2.0], [0.0, 4.0], [3.0, -1.0]])
Y = np.array([1.0, 2.0, 3.0])
POPULATION = shine.Population.from_sources(["x0 + x1", "1/x0", "x1*2"], ("x0", "x1"))

each_tier = pytest.mark.parametrize("tier", TIERS)


@pytest.mark.parametrize(
    ("option", "allowed"),
    [
        ("loss", "mse, rmse, mae, nmse, r2"),
        ("dtype", "float64, float32"),
        ("tier", "auto, reference, machine, native"),
    ],
)
def test_an_unknown_option_is_rejected_with_the_list_of_known_ones(option, allowed):
    with pytest.raises(ValueError, match=f"unknown {option} 'best'; use one of {allowed}$"):
        Evaluator(X, Y, **{option: "best"})


@pytest.mark.parametrize("threads", [0, -1])
def test_no_thread_is_no_number_of_threads(threads):
    with pytest.raises(
        ValueError, match=f"threads must be an integer of at least 1, or None for all processors, is {threads}"
    ):
        Evaluator(X, Y, threads=threads)


@each_tier
@pytest.mark.parametrize("method", ["__call__", "score", "predict", "row_errors"])
def test_another_number_of_features_is_rejected_before_anything_runs(method, tier):
    population = shine.Population.from_sources(["x0 + x2"], ("x0", "x1", "x2"))
    with pytest.raises(ValueError, match="the population has 3 features, but X has 2 columns"):
        getattr(Evaluator(X, Y, tier=tier), method)(population)


@each_tier
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_predictions_have_a_row_for_each_individual(dtype, tier):
    predicted = Evaluator(X, Y, dtype=dtype, tier=tier).predict(POPULATION)
    assert predicted.shape == (3, 3)
    assert predicted.dtype == dtype
    assert predicted.tolist() == [[3.0, 4.0, 2.0], [1.0, np.inf, np.dtype(dtype).type(1 / 3)], [4.0, 8.0, -2.0]]


@each_tier
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_losses_are_float64_whatever_the_predictions_are(dtype, tier):
    losses = Evaluator(X, Y, dtype=dtype, tier=tier)(POPULATION)
    assert losses.dtype == np.float64
    assert losses.tolist() == pytest.approx([(4 + 4 + 1) / 3, np.inf, (9 + 36 + 25) / 3])


@each_tier
@pytest.mark.parametrize("scaling", [False, True])
def test_row_errors_are_absolute_and_unscaled(tier, scaling):
    errors = Evaluator(X, Y, tier=tier, linear_scaling=scaling).row_errors(POPULATION)
    assert errors.dtype == np.float64
    assert errors.tolist() == [[2, 2, 1], [0, np.inf, 3 - 1 / 3], [3, 6, 5]]


@each_tier
@pytest.mark.parametrize("loss", LOSSES)
def test_a_threshold_keeps_the_losses_up_to_it(tier, loss):
    evaluator = Evaluator(X, Y, loss, tier=tier)
    first, _, third = evaluator(POPULATION).tolist()
    assert first < third
    assert evaluator(POPULATION, first).tolist() == [first, np.inf, np.inf]
    assert evaluator(POPULATION, third).tolist() == [first, np.inf, third]
    assert np.isinf(evaluator(POPULATION, np.nextafter(first, 0))).all()


def test_the_sum_of_a_loss_is_what_the_loss_follows_from():
    for loss in LOSSES.values():
        assert loss.sum_of(float(loss.of_sum(np.float64(6.0), 4.0, 3.0)), 4.0, 3.0) == pytest.approx(6.0)


@each_tier
def test_an_empty_population_has_no_losses_and_no_predictions(tier):
    evaluator, nobody = Evaluator(X, Y, tier=tier), POPULATION.take(np.array([], dtype=np.int64))
    assert evaluator(nobody).shape == (0,)
    assert evaluator.predict(nobody).shape == (0, 3)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_layout_of_the_arrays_does_not_matter(order):
    strided = np.repeat(X, 2, axis=0)[::2]
    expected = Evaluator(X, Y)(POPULATION).tolist()
    assert Evaluator(np.array(X, order=order), Y)(POPULATION).tolist() == expected
    assert Evaluator(strided, np.repeat(Y, 2)[::2])(POPULATION).tolist() == expected
    assert Evaluator(X.tolist(), Y.tolist())(POPULATION).tolist() == expected


def test_changing_the_population_later_changes_its_losses_only():
    evaluator, population = Evaluator(X, Y, tier="machine"), shine.Population.from_sources(["x0 + 1"], ("x0", "x1"))
    before = evaluator(population).tolist()
    population.values[:] = 2.0
    assert evaluator(population).tolist() != before


# The choice of the tier


@pytest.mark.parametrize(
    ("compiling", "machine", "native", "nodes", "rows"),
    [
        (1.0, 3.0, 1.0, 5.0, 0.1),
        (2e-3, 5e-11, 3e-11, 25.0, 4e6),
        (1.0, 1.0, 1.0, 5.0, np.inf),
        (1.0, 1.0, 2.0, 5.0, np.inf),
    ],
)
def test_native_pays_from_the_rows_on_where_its_gain_exceeds_the_compilation(compiling, machine, native, nodes, rows):
    assert Costs(compiling, machine, native, nodes).break_even_rows == pytest.approx(rows)


@pytest.fixture
def host(monkeypatch):
    """A host with known costs, on which native pays from 200 000 rows on; its measurements are counted."""
    asked = []

    def known(dtype):
        asked.append(dtype)
        return Costs(compile=1.0, machine=3e-6, native=1e-6, nodes=2.5)

    monkeypatch.setattr(costs, "host_costs", known)
    return asked


def test_little_data_need_no_measurement(host):
    assert not native_pays(SMALLEST - 1, "float64")
    assert isinstance(Evaluator(X, Y)._evaluator, MachineEvaluator)
    assert host == []


@pytest.mark.parametrize(("rows", "pays"), [(SMALLEST, False), (199_000, False), (201_000, True)])
def test_much_data_are_measured_and_compiled_if_that_pays(host, rows, pays):
    evaluator = Evaluator(np.ones((rows, 1)), np.arange(rows), dtype="float32")
    assert isinstance(evaluator._evaluator, NativeEvaluator if pays else MachineEvaluator)
    assert host == ["float32"]


def test_a_tier_that_is_asked_for_is_taken_unmeasured(host):
    Evaluator(np.ones((300_000, 1)), np.arange(300_000), tier="machine")
    assert host == []


def test_measured_costs_are_positive():
    measured = costs.measured_costs("float64")
    assert min(measured.compile, measured.machine, measured.native) > 0
    assert 10 < measured.nodes < 50


def test_costs_are_measured_once_a_host(monkeypatch, tmp_path):
    monkeypatch.setenv("SHINE_CACHE_DIR", str(tmp_path))
    measured = []

    def measure(dtype):
        measured.append(dtype)
        return Costs(1.0, 2.0, 0.1, 25.0)

    monkeypatch.setattr(costs, "measured_costs", measure)
    for _ in range(2):
        costs.host_costs.cache_clear()
        assert costs.host_costs("float64") == Costs(1.0, 2.0, 0.1, 25.0)
    costs.host_costs.cache_clear()
    assert measured == ["float64"]
