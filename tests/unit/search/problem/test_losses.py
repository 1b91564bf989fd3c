"""Searches under losses: built-in ones, users' functions, columns beside the data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import shine
from shine import losses
from shine.base.errors import DataError
from shine.evaluate.losses.library import LIBRARY

RNG = np.random.default_rng(0)
N = 120
X = RNG.uniform(0.5, 3, (N, 2))
LAW = 2 * X[:, 0] * X[:, 1] + 1.5
QUICK = {"primitives": ["add", "mul"], "generations": 2, "population": 60, "seconds": None, "threads": 1}
NOISE = RNG.normal(size=N)

CASES = {
    "gaussian": (LAW + X[:, 0] / 10 * NOISE, {"sigma": X[:, 0] / 10}),
    "poisson": (RNG.poisson(LAW), {}),
    "negative_binomial(0.2)": (RNG.poisson(LAW * RNG.gamma(5, 0.2, N)), {}),
    "binomial": (RNG.random(N) < 1 / (1 + np.exp(8 - LAW)), {}),
    "gamma": (LAW * RNG.gamma(50, 0.02, N), {}),
    "student_t(2, 0.1)": (LAW + 0.1 * RNG.standard_t(2, N), {}),
    "huber(0.2)": (LAW + 0.1 * RNG.standard_t(2, N), {}),
    "log_cosh": (LAW + 0.1 * NOISE, {"sigma": np.full(N, 0.1)}),
    "quantile(0.8)": (LAW - 0.3 * RNG.exponential(1, N), {}),
    "relative": (LAW * (1 + 0.05 * NOISE), {}),
    "logarithmic": (LAW * np.exp(0.05 * NOISE), {}),
    "hinge": (np.sign(LAW - 8 + NOISE), {}),
    "interval": (LAW, {"loss_columns": {"lower": np.floor(LAW), "upper": np.ceil(LAW)}}),
    "censored": (np.minimum(LAW, 10), {"loss_columns": {"censored": LAW > 10}}),
}
"""Targets and columns for each loss, of one law."""


def test_every_built_in_loss_is_tried():
    assert {name.split("(")[0] for name in CASES} == set(LIBRARY)


@pytest.mark.slow
@pytest.mark.parametrize("loss", CASES)
def test_a_search_under_each_loss_finds_the_product(loss):
    y, columns = CASES[loss]
    best = shine.evolve(X, y, loss=loss, **columns, **QUICK).best
    if loss != "binomial":  # which tells little, row by row
        assert best.complexity <= 7 and "x0*x1" in best.expression
    read = {name: columns.get(name, columns.get("loss_columns", {}).get(name)) for name in reads(loss, columns)}
    own = losses.errors(loss, best.predict(X), y, **read).mean()
    assert best.loss == pytest.approx(own, rel=1e-9)


def reads(loss, columns):
    return losses.loss_from(loss, ["sigma"] if "sigma" in columns else []).kind.columns


@pytest.mark.slow
def test_a_function_is_minimized():
    def one_sided(prediction, target):
        short = target - prediction
        return 9 * short if short > 0 else -short

    y = LAW + 0.3 * NOISE
    result = shine.evolve(X, y, loss=one_sided, **QUICK)
    above = np.mean(result.best.predict(X) > y)
    assert 0.84 < above < 0.96
    again = pickle.loads(pickle.dumps(result))
    assert again.best.loss == result.best.loss


@pytest.mark.slow
def test_the_loss_of_sample_weights_may_be_the_functions_own():
    weighing = "def weighing(prediction, target, weight): return weight*abs(prediction - target)"
    y = LAW + 0.3 * NOISE
    weight = RNG.uniform(0.5, 2, N)
    best = shine.evolve(X, y, loss=weighing, sample_weight=weight, **QUICK).best
    assert best.loss == pytest.approx(np.mean(weight * np.abs(best.predict(X) - y)), rel=1e-9)


@pytest.mark.slow
def test_all_else_works_with_a_loss():
    y, _ = CASES["poisson"]
    result = shine.evolve(
        X,
        y,
        features=["a", "b"],
        loss="poisson",
        constraints={"units": {"a": "m", "b": "1/m"}, "target_unit": "1", "monotonic": {"a": "increasing"}},
        validation="random",
        **QUICK,
    )
    assert "a*b" in result.best.expression
    assert "that the search did not see" in result.front.reason


def test_columns_of_a_data_frame_stand_beside():
    pandas = pytest.importorskip("pandas")
    y, columns = CASES["interval"]
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], **columns["loss_columns"]})
    best = shine.evolve(frame, y, loss="interval", loss_columns=["lower", "upper"], **QUICK).best
    assert "a*b" in best.expression and best.tree.parameters == ("a", "b")
    np.testing.assert_array_equal(best.predict(frame), best.predict(frame[["a", "b"]]))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"loss": "poisson", "noise": "counts"}, ValueError, "noise='counts' weights squared and absolute errors; the"),
        ({"loss": "poisson", "sigma": np.ones(N)}, DataError, "does not read the column 'sigma'"),
        ({"loss": "mse", "loss_columns": {"z": np.ones(N)}}, DataError, "does not read the column 'z' beside the data"),
        (
            {"loss": "interval", "loss_columns": ["lower"]},
            DataError,
            "loss_columns has 'lower', a heading, but X is of type",
        ),
        (
            {"loss": "interval", "loss_columns": "lower"},
            TypeError,
            "loss_columns must be a mapping of names to arrays, or a list",
        ),
        (
            {"loss": "censored", "loss_columns": {"censored": [1.0]}},
            DataError,
            "X has 120 rows, but column 'censored' has 1",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(options, error, message):
    with pytest.raises(error, match=message) as caught:
        shine.evolve(X, LAW, **{**QUICK, **options})
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "linear_scaling"),
    [
        ("lambda prediction, target: (prediction - 0.3)**2 - 0.01", True),
        ("lambda prediction, target: log(prediction - target)", False),
    ],
)
def test_a_loss_that_turns_out_to_be_negative_is_told(loss, linear_scaling):
    X = np.random.default_rng(0).uniform(1, 5, (30, 2))
    quick = {"generations": 1, "population": 30, "seeding": 0.0, "linear_scaling": linear_scaling}
    with pytest.raises(DataError, match=r"is negative, -.* for the formula .*; errors must be at least 0"):
        shine.evolve(X, np.zeros(30), loss=loss, **quick)
