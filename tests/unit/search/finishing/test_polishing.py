"""The digits that data support: more rows and less noise support more of them."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.rounding import ALL_DIGITS
from shine.search.finishing.polishing import FEWEST, by_odds, with_supported_digits
from shine.search.models.model import Model

RNG = np.random.default_rng(0)


def digits(text: str, noise: float, rows: int = 100, scale: float = 1.0, weighing=None) -> int:
    X = RNG.uniform(1, 2, (rows, 2))
    model = Model(shine.parse(text, ("a", "b")), 0.0, 0.0)
    y = model.predict(X) + noise * RNG.normal(size=rows)
    data = Dataset.from_arrays(X, scale * y, features=["a", "b"])
    return with_supported_digits([model], data, weighing)[0].digits


@pytest.mark.parametrize("noise", [1e-1, 1e-3, 1e-6])
def test_a_standard_error_decides(noise):
    # The standard error of the only constant is about noise/sqrt(100)/1.5.
    error = noise / 15
    found = digits("2.345678912345*a", noise)
    rounded = float(f"{2.345678912345:.{found - 1}e}")
    assert abs(rounded - 2.345678912345) < error / 2
    assert 10.0 ** (1 - found) > error / 30


def test_exact_data_support_all_digits_that_there_are():
    assert digits("2.5*a + 0.123456789*b", 0.0) == 9
    assert digits("2.345678912345678*a", 0.0) >= 15


def test_constants_that_nearly_cancel_keep_their_digits():
    assert digits("1234567.0*a - 1234565.0*a", 0.1) >= 7


def test_predictions_that_are_not_finite_do_not_count():
    X = np.array([[-1.0], [1.0], [2.0], [3.0]])
    model = Model(shine.parse("2.3456789*log(a)", ("a",)), 0.0, 0.0)
    data = Dataset.from_arrays(X, [0.0, 0.1, 1.5, 2.4], features=["a"])
    assert with_supported_digits([model], data)[0].digits < 5


def test_data_near_the_ends_of_float64_are_no_trouble():
    X = np.array([[1.0], [2.0], [3.0], [4.0]])
    for scale in (1e-300, 1e300):
        model = Model(shine.parse(f"{2.5 * scale!r}*a", ("a",)), 0.0, 0.0)
        data = Dataset.from_arrays(X, 2.5 * scale * X[:, 0], features=["a"])
        assert FEWEST <= with_supported_digits([model], data)[0].digits <= ALL_DIGITS


def test_odds_are_known_as_well_as_their_classes_tell():
    few, many = (digits("2.345678912345*a - 3.456789123456*b", 0.0, rows, weighing=by_odds) for rows in (20, 100_000))
    assert FEWEST <= few < many < 6
