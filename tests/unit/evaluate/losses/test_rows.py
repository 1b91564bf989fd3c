"""A loss over the rows of a data set: what is refused, and what the values of a user's loss say."""

from __future__ import annotations

import numpy as np
import pytest

from shine.base.errors import DataError
from shine.data.datasets.dataset import Dataset
from shine.losses import loss_for

X = np.arange(6.0).reshape(-1, 1)


def rows(target, sigma=None, **loss_columns):
    return Dataset.from_arrays(X, target, sigma=sigma, loss_columns=loss_columns)


POSITIVE = np.arange(1.0, 7.0)


@pytest.mark.parametrize(
    ("loss", "dataset", "message"),
    [
        ("poisson", rows(POSITIVE - 3), "the loss poisson: the target must be at least 0; it is -2 in row 0"),
        ("gamma", rows(POSITIVE - 1), "the target must be above 0; it is 0 in row 0"),
        ("binomial", rows(POSITIVE), "the target must be between 0 and 1; it is 2 in row 1"),
        ("hinge", rows(POSITIVE), "the target must be -1 or 1; it is 2 in row 1"),
        ("relative", rows(POSITIVE - 2), "the target must be other than 0; it is 0 in row 1"),
        ("gaussian", rows(POSITIVE), "the loss gaussian reads a column 'sigma' beside the data; loss_columns"),
        ("gaussian", rows(POSITIVE, y_err=POSITIVE), "reads a column 'sigma' beside the data; there they have y_err"),
        ("censored", rows(POSITIVE, censored=POSITIVE), "censored must be -1 .* it is 2 in row 1"),
        (
            "interval",
            rows(POSITIVE, lower=POSITIVE, upper=POSITIVE - 1),
            "lower is above upper in 6 rows, first in row 0",
        ),
        ("mse", rows(POSITIVE, extra=POSITIVE), "the loss mse does not read the column 'extra' beside the data"),
        (
            "poisson",
            rows(POSITIVE, sigma=POSITIVE),
            "does not read the column 'sigma' beside the data; use a loss that",
        ),
        (
            "def f(prediction, target, w): return w*abs(prediction - target)",
            rows(POSITIVE),
            "reads a column 'w' beside the data; w is called weight in losses",
        ),
        (
            "def f(prediction, target): return target - prediction",
            rows(POSITIVE),
            "the loss f is negative, .*; errors must be at least 0",
        ),
        (
            "def f(prediction, target): return log(-1 - prediction*prediction)",
            rows(POSITIVE),
            "the loss f is not a finite number in any row",
        ),
    ],
)
def test_data_that_do_not_fit_are_told_in_a_line(loss, dataset, message):
    with pytest.raises(DataError, match=message) as caught:
        loss_for(loss, dataset)
    assert "\n" not in str(caught.value)


def test_an_error_that_vanishes_for_perfect_predictions_has_an_estimated_scale():
    kind = loss_for("def f(prediction, target): return abs(prediction - target)**3", rows(POSITIVE)).kind
    assert (kind.least, kind.log_likelihood) == (0.0, None)


def test_any_other_function_is_a_likelihood():
    kind = loss_for("def f(prediction, target): return 1 + (prediction - target)**2", rows(POSITIVE)).kind
    assert (kind.least, kind.log_likelihood) == (0.0, 1.0)


def test_a_negative_log_likelihood_is_shifted():
    text = "def f(prediction, target): return prediction - target*log(prediction) if prediction > 0 else 1000000"
    kind = loss_for(text, rows(POSITIVE)).kind
    expected = 2.0 - POSITIVE * np.log(2.0) - (POSITIVE - POSITIVE * np.log(POSITIVE))
    np.testing.assert_allclose(kind.errors(np.full(6, 2.0), POSITIVE), expected, atol=1e-12)


def test_sigma_is_read_as_it_was_given():
    dataset = rows(POSITIVE, sigma=10 * POSITIVE)
    assert loss_for("gaussian", dataset).kind.columns == ("sigma",)
    assert dataset.loss_columns["sigma"].tolist() == (10 * POSITIVE).tolist()


def test_sigma_cannot_be_given_twice():
    with pytest.raises(DataError, match="sigma is given twice"):
        Dataset.from_arrays(X, POSITIVE, sigma=POSITIVE, loss_columns={"sigma": POSITIVE})
