"""Bands of predictions, beside the textbook's for a line, and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from unit.evaluate.inference.cases import inference, line

from shine.base.errors import DataError
from shine.evaluate.inference.bands import Bands
from shine.evaluate.inference.constants import form_of, with_values
from shine.evaluate.losses import poisson


def bands(found):
    """Bands around the most likely constants."""
    again = type(found)(form_of(with_values(found.form, found.optimum.constants)), found.basis, kind=found._kind)
    return Bands(again.form, again.uncertainty)


def test_of_a_line_they_are_the_textbooks():
    x, y = line(rows=15)
    found = bands(inference("2.31*x + 1.37", {"x": x}, y, kind="model"))
    new = np.array([-1.0, 2.0, 9.0])
    slope, intercept = np.polyfit(x, y, 1)
    variance = ((y - slope * x - intercept) ** 2).sum() / 13
    leverage = 1 / 15 + (new - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum()
    values, errors = found.of_mean([new])
    assert values == pytest.approx(slope * new + intercept)
    assert errors == pytest.approx(np.sqrt(variance * leverage), rel=1e-5)
    assert found.deviations([new])[1] == pytest.approx(np.sqrt(variance * (1 + leverage)), rel=1e-5)
    for kind, more in (("mean", 0), ("prediction", 1)):
        low, high = found.interval([new], 0.9, kind)
        assert (high - low) / 2 == pytest.approx(
            stats.t.ppf(0.95, 13) * np.sqrt(variance * (leverage + more)), rel=1e-5
        )


@pytest.mark.parametrize(("noise", "power"), [("relative", 1.0), ("log", 1.0), ("counts", 0.5)])
def test_noise_that_grows_has_bands_that_grow(noise, power):
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 100, 2000)
    mean = 3.1 * x
    y = mean + rng.normal(0, 0.1, 2000) * mean**power
    found = inference("3.1*x", {"x": x}, y, sigma=mean**power, noise=noise)
    _, deviations = bands(found).deviations([np.array([2.0, 50.0])])
    assert deviations == pytest.approx(0.1 * (3.1 * np.array([2.0, 50.0])) ** power, rel=0.05)


def test_counts_have_bands_of_whole_numbers():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 5, 200)
    found = bands(inference("4.7*x", {"x": x}, rng.poisson(4.7 * x).astype(float), poisson().kind))
    low, high = found.interval([np.array([2.0])], 0.95, "prediction")
    assert (low[0], high[0]) == pytest.approx((4, 16), abs=1)


def test_where_the_distribution_is_not_known_the_residuals_tell():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 5, 3000)
    found = bands(inference("4.7*x", {"x": x}, 4.7 * x + rng.exponential(1.0, 3000) - np.log(2), "mae"))
    low, high = found.interval([np.array([2.0])], 0.9, "prediction")
    expected = 9.4 - np.log(2) + stats.expon.ppf([0.05, 0.95])
    assert [low[0], high[0]] == pytest.approx(expected, abs=0.15)


def test_a_direction_that_the_rows_do_not_determine_matters_only_where_it_shows():
    x, y = line()
    z = 2 * x
    found = inference("1.31*x + 0.53*z + 1.37", {"x": x, "z": z}, y)
    _, errors = Bands(found.form, found.uncertainty).of_mean([np.array([1.0, 1.0]), np.array([2.0, 5.0])])
    assert np.isfinite(errors[0]) and np.isinf(errors[1])


def test_without_constants_only_the_noise_is_left():
    x, y = line()
    found = inference("2*x + 1", {"x": x}, y, exact=(1.0, 2.0))
    known = Bands(found.form, found.uncertainty)
    assert known.of_mean([x])[1].tolist() == [0.0] * 30
    assert known.deviations([x])[1] == pytest.approx([found.uncertainty.scale] * 30)


def test_shorter_numbers_than_the_most_likely_ones_are_part_of_the_standard_errors():
    x, y = line()
    found = inference("2*x + 1", {"x": x}, y)
    known, at = Bands(found.form, found.uncertainty), np.array([0.0, 2.0])
    slope, intercept = np.polyfit(x, y, 1)
    likely = intercept + slope * at
    values, errors = known.of_mean([at])
    low, high = known.interval([at], 0.95, "mean")
    half = (high - low) / 2 / stats.t.ppf(0.975, 28)
    assert (low + high) / 2 == pytest.approx(likely)
    assert values.tolist() == [1.0, 5.0] and errors == pytest.approx(np.hypot(half, values - likely), rel=1e-4)


def test_as_many_constants_as_rows_say_nothing():
    found = inference("2.31*x + 1.37", {"x": np.array([1.0, 2.0])}, np.array([3.7, 6.1]))
    known = Bands(found.form, found.uncertainty)
    assert np.isinf(known.interval([np.array([1.5])], 0.95, "mean")).all()
    assert np.isinf(known.of_mean([np.array([1.5])])[1]).all()


def test_rows_where_the_formula_has_no_value_have_no_band():
    x = np.linspace(1, 4, 30)
    y = 3.3 * np.log(x) + np.random.default_rng(0).normal(0, 0.1, 30)
    found = inference("3.3*log(x)", {"x": x}, y)
    values, errors = Bands(found.form, found.uncertainty).of_mean([np.array([-1.0, 2.0])])
    assert np.isnan([values[0], errors[0]]).all() and np.isfinite([values[1], errors[1]]).all()


@pytest.mark.parametrize(
    ("loss", "deviation"),
    [
        ("gamma", lambda mean: 0.05 * mean),
        ("relative", lambda mean: 0.05 * mean),
        ("logarithmic", lambda mean: 0.05 * mean),
        ("negative_binomial(0.0025)", lambda mean: np.sqrt(mean + 0.0025 * mean**2)),
    ],
)
def test_new_readings_scatter_as_the_loss_says(loss, deviation):
    rng = np.random.default_rng(3)
    x = rng.uniform(1, 20, 4000)
    y = 9 * x * rng.gamma(400, 1 / 400, len(x))
    y = rng.poisson(y) if "binomial" in loss else y
    found, new = bands(inference("8.91*x", {"x": x}, y, loss)), np.array([1.0, 20.0])
    values, deviations = found.deviations([new])
    assert deviations == pytest.approx(deviation(values), rel=0.06)


@pytest.mark.parametrize("loss", ["binomial", "hinge"])
def test_readings_that_are_not_in_the_units_of_the_formula_have_only_bands_of_the_mean(loss):
    x, _ = line(rows=200)
    hit = np.random.default_rng(7).uniform(size=200) < 0.3 + 0.1 * x
    found = bands(inference("0.41*x - 0.83", {"x": x}, hit * 1.0 if loss == "binomial" else 2.0 * hit - 1, loss))
    assert np.isfinite(found.interval([x], 0.9, "mean")).all()
    for ask in (lambda: found.deviations([x]), lambda: found.interval([x], 0.9, "prediction")):
        with pytest.raises(DataError, match="kind='mean'"):
            ask()
