"""A loss follows from the sum of its rows' errors, and survives a copy to another process."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from shine.evaluate.losses.form import LOSSES, SQUARED, Loss, RowLoss, loss_of
from shine.lang.forms.functions import with_definitions
from shine.lang.forms.library import STANDARD

QUARTIC = RowLoss(
    "quartic", with_definitions(STANDARD, "def quartic(p, y, w):\n    return w*(p - y)**4")["quartic"], ("weight",)
)


def test_sum_of_is_the_inverse_of_of_sum():
    for loss in LOSSES.values():
        assert loss.sum_of(float(loss.of_sum(np.float64(6.0), 4.0, 3.0)), 4.0, 3.0) == pytest.approx(6.0)


def test_the_exponent_of_a_loss_is_its_power_of_the_sum():
    for loss in LOSSES.values():
        grown, once = (float(loss.of_sum(np.float64(total), 4.0, 3.0)) for total in (10.0, 1.0))
        assert grown / once == pytest.approx(10.0**loss.exponent)
    assert [LOSSES[name].log_likelihood for name in ("mse", "rmse", "mae")] == [0.5, 1.0, 1.0]


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="unknown loss 'huber'; use one of mse"):
        loss_of("huber")


def test_losses_survive_a_copy():
    for loss in (*LOSSES.values(), Loss("quartic", QUARTIC)):
        copy = pickle.loads(pickle.dumps(loss))
        assert copy == loss
        assert copy.kind.follows_from_moments == loss.kind.follows_from_moments


def test_errors_are_those_of_the_function():
    predictions, target, weights = np.array([[1.0, 5.0], [2.0, 2.0]]), np.array([3.0, 2.0]), np.array([1.0, 0.5])
    assert SQUARED.errors(predictions, target).tolist() == [[4.0, 9.0], [1.0, 0.0]]
    assert QUARTIC.errors(predictions, target, [weights]).tolist() == [[16.0, 40.5], [1.0, 0.0]]


def test_the_columns_are_the_functions_further_arguments():
    with pytest.raises(ValueError, match="the error of a row needs a definition with the arguments"):
        RowLoss("quartic", QUARTIC.function)
