"""Errors of a row and their derivatives, beside differences."""

from __future__ import annotations

import numpy as np
import pytest
from unit.evaluate.inference.cases import inference, line

from shine.base.errors import DataError
from shine.evaluate.inference.likelihood import derivatives_of, row_error
from shine.evaluate.losses import poisson, student_t
from shine.evaluate.losses.form import ABSOLUTE, SQUARED, RowLoss
from shine.lang.forms.tree import Primitive
from shine.lang.parse import parse
from shine.lang.vocabulary import primitive_table

PREDICTIONS = np.array([0.7, 1.3, 2.9, 11.0])
TARGETS = np.array([1.0, 0.0, 5.0, 10.0])


@pytest.mark.parametrize(
    "error", [SQUARED, ABSOLUTE, poisson().kind, student_t(4.0, 0.7).kind], ids=lambda error: error.name
)
def test_derivatives_are_those_of_the_errors(error):
    found, step = derivatives_of(error), 1e-5
    at = found.slopes([PREDICTIONS, TARGETS])
    above, below = (found.slopes([PREDICTIONS + sign * step, TARGETS]) for sign in (1, -1))
    assert at.first == pytest.approx((above.errors - below.errors) / (2 * step), abs=1e-6)
    assert at.second == pytest.approx((above.first - below.first) / (2 * step), abs=1e-6)


def test_the_deviance_of_counts_is_that_of_poissons_likelihood():
    from scipy.stats import poisson as distribution

    found = derivatives_of(poisson().kind).errors([PREDICTIONS, TARGETS])
    best = distribution.logpmf(TARGETS, np.maximum(TARGETS, 1e-300))
    assert found == pytest.approx(2 * (best - distribution.logpmf(TARGETS, PREDICTIONS)))


def test_student_t_is_twice_the_negative_log_likelihood():
    from scipy.stats import t

    found = derivatives_of(student_t(4.0, 0.7).kind).errors([PREDICTIONS, TARGETS])
    densities = t.logpdf(TARGETS - PREDICTIONS, 4.0, scale=0.7)
    assert found == pytest.approx(2 * (t.logpdf(0.0, 4.0, scale=0.7) - densities))


def own_error(text, *columns):
    tree = parse(text, ["prediction", "target", *columns])
    return RowLoss("own", Primitive("own", 2 + len(columns), tree), columns, 0.0)


@pytest.mark.parametrize(("name", "error"), [("mse", "squared"), ("rmse", "squared"), ("r2", "squared"),
                                             ("mae", "absolute")])  # fmt: skip
def test_losses_by_name(name, error):
    assert row_error(name).name == error


def test_an_unknown_loss_is_a_value_error():
    with pytest.raises(ValueError, match="unknown loss 'nothing'"):
        row_error("nothing")


def test_a_function_may_weigh_and_scale_its_errors_itself():
    x, y = line()
    weights, sigma = np.arange(30) % 2 + 1.0, 0.1 + 0.05 * x
    text = "weight*((target - prediction)/sigma)**2"
    own = own_error(text, "weight", "sigma")
    found = inference("2.31*x + 1.37", {"x": x}, y, own, weights, sigma).uncertainty
    plain = inference("2.31*x + 1.37", {"x": x}, y, "mse", weights, sigma).uncertainty
    assert found.best == pytest.approx(plain.best, rel=1e-6)


def test_a_column_that_is_missing_is_a_data_error():
    x, y = line()
    own = own_error("censored*(target - prediction)**2", "censored")
    with pytest.raises(DataError, match="the loss reads the column 'censored'"):
        _ = inference("2.31*x + 1.37", {"x": x}, y, own).uncertainty


@pytest.mark.parametrize(("definition", "expected"), [("def g(a): return a*a", 9.0), ("def g(a): return a + 1", 4.0)])
def test_a_name_that_is_defined_again_has_its_own_errors(definition, expected):
    tree = parse("g(prediction - target)", ["prediction", "target"], primitive_table([definition])[0])
    error = RowLoss("own", Primitive("own", 2, tree), (), 0.0)
    assert derivatives_of(error).errors([np.array([5.0]), np.array([2.0])]).tolist() == [expected]
