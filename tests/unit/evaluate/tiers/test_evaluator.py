"""The public evaluator: options, shapes, errors of rows, and the choice of the tier."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import shine
from shine.evaluate.losses.form import LOSSES
from shine.evaluate.tiers.evaluator import TIERS, Evaluator

X = np.array([[1.0, 2.0], [0.0, 4.0], [3.0, -1.0]])
Y = np.array([1.0, 2.0, 3.0])
POPULATION = shine.Population.from_sources(["x0 + x1", "1/x0", "x1*2"], ("x0", "x1"))

each_tier = pytest.mark.parametrize("tier", TIERS)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("loss", "unknown loss 'best'; use one of mse, rmse, mae, nmse, r2"),
        ("dtype", "dtype must be one of float64, float32, is 'best'"),
        ("tier", "tier must be one of machine, native, reference, is 'best'"),
        ("linear_scaling", "linear_scaling must be true or false, is 'best'"),
        ("threads", "threads must be a whole number, is 'best'"),
    ],
)
def test_an_unknown_option_is_rejected_as_by_evolve(option, message):
    for call in (Evaluator, shine.evolve):
        with pytest.raises(ValueError, match=message):
            call(X, Y, **{option: "best"})


@pytest.mark.parametrize("threads", [0, -1])
def test_an_invalid_number_of_threads_is_rejected(threads):
    with pytest.raises(ValueError, match=f"threads must be at least 1, is {threads}"):
        Evaluator(X, Y, threads=threads)


@pytest.mark.parametrize("other", [["x0*x0"], "x0*x0", None, 3])
def test_an_evaluator_takes_populations(other):
    evaluator = Evaluator([[1.0], [2.0]], [1.0, 4.0])
    for call in (evaluator, evaluator.score, evaluator.predict, evaluator.row_errors):
        with pytest.raises(TypeError, match=r"takes a shine\.Population, is .*from_sources"):
            call(other)


@each_tier
@pytest.mark.parametrize("method", ["__call__", "score", "predict", "row_errors"])
def test_a_wrong_number_of_features_is_rejected_before_anything_runs(method, tier):
    population = shine.Population.from_sources(["x0 + x2"], ("x0", "x1", "x2"))
    with pytest.raises(ValueError, match="the population has 3 features, but X has 2 columns"):
        getattr(Evaluator(X, Y, tier=tier), method)(population)


@pytest.mark.slow
@each_tier
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_predictions_have_a_row_for_each_individual(dtype, tier):
    predicted = Evaluator(X, Y, dtype=dtype, tier=tier).predict(POPULATION)
    assert predicted.shape == (3, 3)
    assert predicted.dtype == dtype
    assert predicted.tolist() == [[3.0, 4.0, 2.0], [1.0, np.inf, np.dtype(dtype).type(1 / 3)], [4.0, 8.0, -2.0]]


@pytest.mark.slow
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


@pytest.mark.slow
@each_tier
@pytest.mark.parametrize("loss", LOSSES)
def test_a_threshold_keeps_the_losses_up_to_it(tier, loss):
    evaluator = Evaluator(X, Y, loss, tier=tier)
    first, _, third = evaluator(POPULATION).tolist()
    assert first < third
    assert evaluator(POPULATION, first).tolist() == [first, np.inf, np.inf]
    assert evaluator(POPULATION, third).tolist() == [first, np.inf, third]
    assert np.isinf(evaluator(POPULATION, np.nextafter(first, 0))).all()


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


def steep(prediction, target):
    return abs(prediction - target) ** 1.5


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["reference", "machine", "native"])
@pytest.mark.parametrize("loss", [steep, "lambda prediction, target: abs(prediction - target)**1.5"])
def test_the_loss_may_be_a_function_of_the_users(tier, loss):
    population = shine.Population.from_sources(["x0*x0", "x0 + 1"])
    evaluator = pickle.loads(pickle.dumps(shine.Evaluator([[1.0], [2.0]], [1.0, 5.0], loss=loss, tier=tier)))
    assert evaluator(population) == pytest.approx([0.5, (1 + 2**1.5) / 2])


def test_the_loss_may_be_a_built_in_one_and_read_columns_beside_the_data():
    population = shine.Population.from_sources(["x0"])
    assert shine.Evaluator([[1.0], [2.0]], [2.0, 2.0], loss="quantile(0.9)")(population) == pytest.approx([0.45])
    loss_columns = {"limit": [3.0, 0.0]}
    loss = "lambda prediction, target, limit: limit*(prediction - target)**2"
    assert shine.Evaluator([[1.0], [2.0]], [2.0, 2.0], loss=loss, loss_columns=loss_columns)(
        population
    ) == pytest.approx([1.5])
