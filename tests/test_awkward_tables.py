"""A fit never fails: an awkward table gives a formula with values on fresh rows, or an error that says what to do."""

import logging

import numpy as np
import pytest
from helpers.awkward_tables import case
from helpers.fits import outcome
from helpers.markers import mostly_slow

from shine.base.errors import DataError
from shine.estimators import SymbolicClassifier, SymbolicRegressor

RNG = np.random.default_rng(0)
ONE, TWO, NOISE = RNG.uniform(1, 5, 100), RNG.uniform(1, 5, 100), RNG.standard_normal(100)
FLAG = RNG.integers(0, 2, 100).astype(float)


@pytest.fixture
def skipped(caplog):
    """Searches of the seeding that failed during the test."""
    with caplog.at_level(logging.DEBUG, logger="shine.search.seeding"):
        yield lambda: [record.getMessage() for record in caplog.records if "skipped" in record.getMessage()]


def fitted(X, y, weights=None, kind=SymbolicRegressor, **options):
    settings = {
        "max_time": 0.5,
        "max_size": 15,
        "generations": 2,
        "population_size": 50,
        "random_state": 0,
        "n_jobs": 1,
    }
    settings["settings"] = {"seeding_members": 200}
    model = kind(**{**settings, **options})
    return model.fit(X, y, sample_weight=weights)


TO_THE_END = {"max_time": 60, "max_size": 9, "primitives": ["add", "mul"], "settings": {"seeding_members": 100}}
"""Options of fits that must find something, which a busy machine does not cut short."""

ORDINARY = {
    "a flag alone": ([[0], [1]] * 20, np.tile([0.0, 1.0], 20) + 0.1 * NOISE[:40]),
    "a flag beside numbers": (np.column_stack([ONE, TWO, FLAG]), 2.5 * ONE * TWO + 40 * FLAG + NOISE),
    "one-hot columns": (np.eye(4)[RNG.integers(0, 4, 100)], NOISE),
    "all but constant": (np.column_stack([1e3 + 1e-9 * NOISE, ONE]), ONE + NOISE),
    "the same column twice": (np.column_stack([ONE, ONE]), np.sin(ONE) + NOISE),
    "constant columns": (np.ones((100, 3)), NOISE),
    "a constant target": (np.column_stack([ONE, TWO]), np.full(100, 3.0)),
    "a target far from zero": (ONE[:, None], 1e9 + 1e-3 * NOISE),
    "timestamps": (np.floor(1.6e18 + 1e15 * ONE)[:, None], np.sin(ONE) + NOISE),
    "masses of stars": ((ONE * 1e30)[:, None], np.sin(ONE) + NOISE),
    "mostly zeros": (np.where(FLAG > 0, ONE, 0.0)[:, None], NOISE),
    "two rows": ([[1.0], [2.0]], [1.0, 3.0]),
    "more columns than rows": (RNG.standard_normal((10, 60)), NOISE[:10]),
}
EXTREME = {
    "columns of 1e160": (np.column_stack([ONE, TWO]) * 1e160, ONE * TWO + NOISE),
    "a target of 1e153": (ONE[:, None], np.sin(ONE) * 1e153),
    "a target of 1e-200": (ONE[:, None], np.sin(ONE) * 1e-200),
    "a target of 1e200": (ONE[:, None], (ONE + NOISE) * 1e200),
    "the smallest numbers": (np.arange(30.0)[:, None] * 5e-324, NOISE[:30]),
    "the whole range": (np.column_stack([ONE * 1e300, TWO * 1e-300]), ONE * TWO),
    "the largest numbers": (np.where(FLAG > 0, 1.7e308, -1.7e308)[:, None], FLAG * 1.7e308),
}


FAST = [
    "a flag beside numbers", "a constant target", "timestamps", "two rows", "more columns than rows",
    "columns of 1e160", "the smallest numbers", "the whole range",
]  # fmt: skip
"""Tables that are fitted by default; the others are slow."""


@pytest.mark.slow
@pytest.mark.parametrize("table", mostly_slow([*ORDINARY, *EXTREME], FAST))
def test_an_awkward_table_is_fitted(table, skipped, capfd):
    X, y = {**ORDINARY, **EXTREME}[table]
    model = fitted(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert not skipped()
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["mse", "mae"])
@pytest.mark.parametrize("spread", mostly_slow([0, 300], fast=[300]))
def test_weights_of_any_size_are_weights(loss, spread, skipped):
    weights = 10.0 ** (RNG.uniform(-spread, spread, 100) + (250 if spread == 0 else 0))
    model = fitted(ONE[:, None], 2 * ONE + 1 + 0.01 * NOISE, weights, loss=loss, **TO_THE_END)
    assert np.isfinite(model.predict(ONE[:, None])).all()
    assert not skipped()
    if spread == 0:
        assert model.best_.r2 > 0.99


@pytest.mark.slow
def test_a_scale_of_the_weights_changes_nothing_but_last_digits():
    weights = RNG.uniform(0.1, 2, 100)
    X, y = np.column_stack([ONE, TWO]), np.sin(ONE) * TWO + 0.1 * NOISE
    model = SymbolicRegressor(
        primitives=["mul", "sin"], max_time=None, generations=2, population_size=50, n_jobs=1, random_state=0,
        max_size=12, settings={"seeding_members": 200},
    )  # fmt: skip
    expected = [formula.loss for formula in model.fit(X, y, weights).front_]
    assert [formula.loss for formula in model.fit(X, y, weights * 2.0**400).front_] == pytest.approx(expected)


def test_a_class_that_weighs_nothing_is_an_error():
    with pytest.raises(DataError, match="the weights of one class vanish"):
        fitted(ONE[:, None], FLAG, np.where(FLAG > 0, 1e20, 1e-20), kind=SymbolicClassifier)
    # Beside others, the smallest weights are 0.
    with pytest.raises(ValueError, match="one class"):
        fitted(ONE[:, None], FLAG, np.where(FLAG > 0, 1e300, 1e-300), kind=SymbolicClassifier)


@pytest.mark.parametrize("number", mostly_slow(range(6), fast=range(3)))
def test_a_table_drawn_at_random_is_fitted_or_refused(number, skipped):
    kind, text = outcome(case(number, largest=500))
    assert kind in ("ok", "error"), text
    assert not skipped()


@pytest.mark.slow
@pytest.mark.parametrize("weight", mostly_slow([1e-300, 1.0, 8e27, 1.7e308], fast=[1.7e308]))
def test_classes_of_rows_of_any_weight_have_odds(weight):
    model = fitted(ONE[:, None], (ONE > 3).astype(int), np.full(100, weight), kind=SymbolicClassifier, **TO_THE_END)
    assert model.score(ONE[:, None], ONE > 3) > 0.9


def test_errors_of_values_name_the_row_as_it_was_given():
    target = ONE.astype(object)
    target[41] = None
    with pytest.raises(DataError, match="row 41"):
        fitted(TWO[:, None], target)
    with pytest.raises(DataError, match="X has masked values"):
        fitted(np.ma.masked_array(ONE[:, None], ONE[:, None] > 3), TWO)
    huge = ONE[:, None].astype(object)
    huge[3, 0] = 10**400
    with pytest.raises(DataError, match=r"beyond 1\.8e308"):
        fitted(huge, TWO)
