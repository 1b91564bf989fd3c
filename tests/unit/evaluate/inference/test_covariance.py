"""Standard errors, beside closed forms and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from unit.evaluate.inference.cases import inference, line

import shine
from shine.evaluate.losses import poisson, student_t
from shine.evaluate.losses.form import RowLoss

LINE = "2.31*x + 1.37"


def least_squares(x, y, weights=None):
    """Constants, their covariance with an estimated scale, and that with HC3, of a line; by the textbook."""
    design, w = np.column_stack([x, np.ones_like(x)]), np.ones_like(x) if weights is None else weights
    bread = np.linalg.inv(design.T @ (w[:, None] * design))
    constants = bread @ design.T @ (w * y)
    left = y - design @ constants
    leverage = np.einsum("ij,jk,ik->i", design, bread, design) * w
    meat = design.T @ ((w * left / (1 - leverage))[:, None] ** 2 * design)
    return constants, bread * (w @ left**2) / (len(x) - 2), bread @ meat @ bread


def test_a_line_has_the_textbooks_covariance():
    x, y = line()
    found = inference(LINE, {"x": x}, y, kind="model").uncertainty
    constants, covariance, _ = least_squares(x, y)
    assert found.best == pytest.approx(constants, rel=1e-6)
    assert found.covariance == pytest.approx(covariance, rel=1e-6)
    assert found.freedom == 28


def test_known_standard_deviations_weigh():
    x, y = line()
    sigma = 0.1 + 0.2 * x
    found = inference(LINE, {"x": x}, y, sigma=sigma, kind="model").uncertainty
    constants, covariance, _ = least_squares(x, y, 1 / sigma**2)
    assert found.best == pytest.approx(constants, rel=1e-6)
    assert found.covariance == pytest.approx(covariance, rel=1e-6)


@pytest.mark.parametrize("kind", ["model", "robust"])
@pytest.mark.parametrize("loss", ["mse", poisson().kind, "mae"])
def test_repeated_rows_tell_what_they_are_worth(kind, loss):
    x, y = line(rows=400)
    y = np.round(np.abs(y)) if isinstance(loss, RowLoss) else y
    single = inference(LINE, {"x": x}, y, loss, kind=kind)
    repeated = inference(LINE, {"x": np.tile(x, 5)}, np.tile(y, 5), loss, kind=kind, worth=400.0)
    # Leverages are those of the rows.
    accuracy = 0.02 if kind == "robust" else 1e-3
    assert repeated.uncertainty.covariance == pytest.approx(single.uncertainty.covariance, rel=accuracy)
    assert repeated.profile(0.95) == pytest.approx(single.profile(0.95), rel=accuracy)


def test_rows_of_weight_zero_do_not_count():
    x, y = line()
    weights = np.ones(30)
    weights[::3] = 0.0
    y[::3] = 1e6
    some = inference(LINE, {"x": x}, y, weights=weights, kind="model").uncertainty
    alone = inference(LINE, {"x": x[weights > 0]}, y[weights > 0], kind="model").uncertainty
    assert some.covariance == pytest.approx(alone.covariance, rel=1e-6)
    assert some.freedom == alone.freedom == 18


def test_the_robust_covariance_is_hc3():
    x, y = line()
    found = inference(LINE, {"x": x}, y, kind="robust").uncertainty
    assert found.covariance == pytest.approx(least_squares(x, y)[2], rel=1e-6)
    assert any("robust" in note for note in found.notes)


def test_a_row_that_determines_a_constant_alone_leaves_the_others_hc3_of_the_other_rows():
    x, y = line(rows=20)
    alone = np.arange(20) == 0
    found = inference("2.31*x + 5.13*alone + 1.37", {"x": x, "alone": alone * 1.0}, y + 5 * alone, kind="robust")
    assert found.uncertainty.covariance[0, 0] == pytest.approx(least_squares(x[1:], y[1:])[2][0, 0], rel=1e-5)
    assert np.isfinite(found.uncertainty.covariance).all()


def test_a_robust_variance_that_few_rows_make_has_few_degrees_of_freedom():
    rng = np.random.default_rng(0)
    few = np.arange(100) < 5
    y = np.where(few, 7.3 + 2 * rng.normal(size=100), 2.7 + 0.1 * rng.normal(size=100))
    found = inference("1.31*few + 2.57*many", {"few": few * 1.0, "many": ~few * 1.0}, y, kind="robust").uncertainty
    # Two means of rows: each has the squared residuals of its own rows.
    left = [y[few] - y[few].mean(), y[~few] - y[~few].mean()]
    expected = [min(3 * np.sum(r**2) ** 2 / np.sum(r**4), 98) for r in left]
    assert found.freedoms == pytest.approx(expected, rel=1e-4)


def test_uneven_noise_chooses_the_robust_covariance():
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 4, 300)
    y = 1.37 + 2.31 * x + rng.normal(0, 1, 300) * (0.05 + 0.2 * x**2)
    assert inference(LINE, {"x": x}, y).uncertainty.kind == "robust"
    assert inference(LINE, {"x": x}, y, sigma=0.05 + 0.2 * x**2).uncertainty.kind == "model"


def poisson_line(x, y):
    """Constants and their covariance by the expected information, by iteratively reweighted least squares."""
    design, constants = np.column_stack([x, np.ones_like(x)]), np.array([3.0, 5.0])
    for _ in range(50):
        mean = design @ constants
        information = design.T @ (design / mean[:, None])
        constants = np.linalg.solve(information, design.T @ (y / mean))
    return constants, np.linalg.inv(information)


def test_counts_have_the_expected_information_of_poissons_likelihood():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 5, 80)
    y = rng.poisson(4.7 * x + 6.1).astype(float)
    found = inference("4.7*x + 6.13", {"x": x}, y, poisson().kind).uncertainty
    constants, covariance = poisson_line(x, y)
    assert found.best == pytest.approx(constants, rel=1e-6)
    assert found.covariance == pytest.approx(covariance, rel=1e-4)
    assert math.isinf(found.freedom)


def test_a_curved_formula_has_the_hessian_of_its_likelihood():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, 200)
    y = 2.4 * np.exp(-0.7 * x) + 0.2 * rng.standard_t(4, 200)
    found = inference("2.4*exp(-0.7*x)", {"x": x}, y, student_t(4.0, 0.2).kind).uncertainty

    def likelihood(a, b):
        left = (y - a * np.exp(b * x)) / 0.2
        return 2.5 * np.log1p(left**2 / 4).sum()

    (a, b), h, k = found.best, 1e-4, 1e-4
    mixed = sum(s * t * likelihood(a + s * h, b + t * k) for s in (1, -1) for t in (1, -1)) / (4 * h * k)
    own = [
        (likelihood(a + h, b) - 2 * likelihood(a, b) + likelihood(a - h, b)) / h**2,
        (likelihood(a, b + k) - 2 * likelihood(a, b) + likelihood(a, b - k)) / k**2,
    ]
    hessian = np.array([[own[0], mixed], [mixed, own[1]]])
    assert found.covariance == pytest.approx(np.linalg.inv(hessian), rel=1e-3)


def test_absolute_errors_have_the_standard_errors_of_the_median():
    rng = np.random.default_rng(0)
    y = 5.0 + rng.normal(0, 1, 4001)
    found = inference("5.01 + 0*x", {"x": np.zeros(4001)}, y, "mae").uncertainty
    assert found.best == pytest.approx([np.median(y)], abs=1e-3)
    # The median of normal values has the variance pi/2 over their number.
    assert found.errors == pytest.approx([math.sqrt(math.pi / 2 / 4001)], rel=0.15)


@pytest.mark.parametrize("unit", [1e-300, 1e100])
def test_the_unit_of_a_loss_changes_no_standard_error(unit):
    y = 5.0 + np.random.default_rng(0).normal(0, 1, 400)
    plain, scaled = (
        inference("5.01 + 0*x", {"x": np.zeros(400)}, y, f"def own(p, t): return {factor!r}*abs(p - t)").uncertainty
        for factor in (1.0, unit)
    )
    assert scaled.errors == pytest.approx(plain.errors, rel=0.01)  # medians lie between two rows


def test_weighted_absolute_errors_are_those_of_standardized_rows():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 4, 4000)
    y = 2.3 * x + rng.laplace(0, 1, 4000) * x
    weighted = inference("2.3*x", {"x": x}, y, "mae", sigma=np.sqrt(x)).uncertainty
    plain = inference("2.3*x", {"x": np.ones(4000)}, y / x, "mae").uncertainty
    # The median of Laplace noise of scale 1 has a variance of 1 over the number of rows.
    assert plain.errors == pytest.approx([1 / math.sqrt(4000)], rel=0.15)
    assert weighted.errors == pytest.approx(plain.errors, rel=0.1)


def test_a_loss_without_a_likelihood_gets_hubers_sandwich():
    rng = np.random.default_rng(0)
    y = 5.0 + rng.standard_t(4, 3000)
    error = RowLoss("t", student_t(4.0, 3.0).kind.function, least=0.0)
    found = inference("5.01 + 0*x", {"x": np.zeros(3000)}, y, error).uncertainty
    left = (y - found.best[0]) / 3
    slope, curvature = 5 / 4 * 2 * left / (1 + left**2 / 4) / 3, None
    step = 1e-5
    above, below = (5 / 4 * 2 * (left + s * step) / (1 + (left + s * step) ** 2 / 4) / 3 for s in (1, -1))
    curvature = ((above - below) / (2 * step) / 3).sum()
    assert found.errors == pytest.approx([math.sqrt((slope**2).sum()) / curvature], rel=2e-3)
    assert found.kind == "robust"


@pytest.mark.parametrize("exponent", [-35, 35])
def test_units_change_only_the_units(exponent):
    x, y = line()
    scale = 10.0**exponent
    plain = inference(LINE, {"x": x}, y, kind="model").uncertainty
    of_target = inference(f"{2.31 * scale!r}*x + {1.37 * scale!r}", {"x": x}, y * scale, kind="model").uncertainty
    assert of_target.errors == pytest.approx(plain.errors * scale, rel=1e-6)
    of_feature = inference(f"{2.31 / scale!r}*x + 1.37", {"x": x * scale}, y, kind="model").uncertainty
    assert of_feature.errors == pytest.approx(plain.errors * [1 / scale, 1], rel=1e-6)


def test_constants_that_cancel_are_not_determined():
    x, y = line()
    found = inference("2.31*x + 0.77 + 0.6*exp(0.01*0*x)", {"x": x}, y, exact=(0.0, 0.01)).uncertainty
    lost = dict(zip(found.names, found.undetermined, strict=True))
    assert not lost["c0"] and lost["c1"] and lost["c2"]
    assert np.isinf(found.errors[1:3]).all() and math.isfinite(found.errors[0])
    assert any("the rows do not determine c1, c2" in note for note in found.notes)


def test_constants_that_cancel_in_a_curved_formula_are_not_determined():
    x = np.random.default_rng(0).uniform(0, 4, 30)
    y = 2.3 * np.exp(0.3 * x) + np.random.default_rng(1).normal(0, 0.1, 30)
    found = inference("2.1*exp(0.09 + 0.31*x)", {"x": x}, y)
    assert found.uncertainty.undetermined.tolist() == [True, True, False]
    alone = inference("2.3*exp(0.31*x)", {"x": x}, y)
    assert found.uncertainty.errors[2] == pytest.approx(alone.uncertainty.errors[1], rel=1e-4)
    assert found.profile(0.95)[2] == pytest.approx(alone.profile(0.95)[1], abs=0.01 * found.uncertainty.errors[2])


def test_a_constant_that_the_loss_ignores_is_not_determined():
    x, y = line()
    found = inference("2.31*x + 1.37 + 0.0*(x - 7.7)", {"x": x}, y, exact=(0.0, 1.0)).uncertainty
    assert np.isinf(found.errors[-1])
    assert found.notes[-1].startswith("the rows do not determine c2: the loss does not change with it") or any(
        "the loss does not change with it" in note for note in found.notes
    )


def test_as_many_constants_as_rows_leave_no_noise_to_be_known():
    found = inference(LINE, {"x": np.array([1.0, 2.0])}, np.array([3.7, 6.1])).uncertainty
    assert np.isinf(found.errors).all() and found.freedom == 0
    assert any("2 rows cannot tell 2 constants" in note for note in found.notes)
    assert np.isinf(found.wald(0.95)).all()


def test_a_formula_without_constants_has_none():
    x, y = line()
    found = inference("2*x + 1", {"x": x}, y, exact=(1.0, 2.0)).uncertainty
    assert found.names == () and found.covariance.shape == (0, 0)
    assert found.scale == pytest.approx(np.sqrt(np.mean((y - 2 * x - 1) ** 2)))


def test_exact_rows_are_told():
    x = np.linspace(0, 4, 30)
    found = inference(LINE, {"x": x}, 2.31 * x + 1.37)
    assert found.uncertainty.exact and found.uncertainty.errors.max() < 1e-14
    assert any("exact to within rounding" in note for note in found.uncertainty.notes)
    assert found.profile(0.95) == pytest.approx(found.uncertainty.wald(0.95))


def test_a_formula_without_values_on_the_rows_says_so():
    found = inference("log(x - 7.7)", {"x": np.linspace(0, 4, 30)}, np.ones(30)).uncertainty
    assert np.isinf(found.errors).all()
    assert any("no finite loss" in note for note in found.notes)


@pytest.mark.parametrize("slope", [1.01, 1.03, 1.2])
def test_constants_lie_in_their_intervals_if_rounding_all_costs_less_than_a_coefficient(slope):
    x, z = np.random.default_rng(0).uniform(0, 4, (2, 40))
    y = slope * z * (x + 0.5) + np.random.default_rng(1).normal(0, 0.1, 40)
    shift = round(float(z @ (y - z * x) / (z @ z)), 2)  # of the fit without a coefficient
    found = inference(f"z*(x + {shift})", {"x": x, "z": z}, y, kind="model")
    left, least = np.sum((y - z * (x + shift)) ** 2), np.linalg.lstsq(np.array([z * x, z]).T, y, rcond=None)[1][0]
    away = math.sqrt((left - least) / (least / 38))
    for low, high in (found.profile(0.95).T, found.uncertainty.wald(0.95).T):
        assert ((low <= found.form.values) & (found.form.values <= high)).all() == (away < 5)
    assert any("not the most likely" in note for note in found.uncertainty.notes) == (away > 5)


def test_a_simple_number_far_from_the_best_one_is_told():
    x, y = line(noise=0.01)
    found = inference("2.311*x + 1.37", {"x": x}, y).uncertainty
    assert found.notes[-1].startswith("simple numbers stand for the most likely ones: c0 = 2.3")
    other = inference("2.6*x + 1.37", {"x": x}, y).uncertainty
    assert other.notes[-1].startswith("the formula's constants are not the most likely ones, which are: c0 = 2.3")


def decade(rows=400):
    """Readings over a decade of x, with gamma noise of a fifth."""
    rng = np.random.default_rng(1)
    x = rng.uniform(1, 10, rows)
    return x, 3 * x**2 * rng.gamma(20, 1 / 20, rows)


@pytest.mark.parametrize("loss", ["gamma", "logarithmic"])
def test_errors_with_second_derivatives_are_not_smoothed_where_predictions_span_a_decade(loss):
    x, y = decade()
    found = inference("2.93*x**2", {"x": x}, y, loss).uncertainty
    ratio = y / x**2
    center, spread = (np.exp(np.log(ratio).mean()), np.log(ratio)) if loss == "logarithmic" else (ratio.mean(), ratio)
    scale = center if loss == "logarithmic" else 1.0
    assert found.errors == pytest.approx([scale * spread.std() / np.sqrt(len(x))], rel=0.02)


def test_absolute_shares_of_the_target_have_windows_that_fit_each_row():
    # Their least sum is at the median of the ratios, each as often as 1/target says, whatever the sizes of the rows.
    x, y = decade()
    sizes = np.where(np.arange(len(x)) % 2, 1.0, 1e3)
    loss = "lambda prediction, target: abs(prediction - target)/abs(target)"
    alone = inference("2.93*x", {"x": x}, y / x, loss).uncertainty
    spread = inference("2.93*x", {"x": sizes * x}, sizes * y / x, loss).uncertainty
    assert spread.errors == pytest.approx(alone.errors, rel=1e-3)


def test_rows_that_do_not_separate_the_classes_determine_the_odds():
    x = np.random.default_rng(1).uniform(0, 10, 200)
    y = (np.random.default_rng(2).uniform(size=200) < 1 / (1 + np.exp(6 - 1.2 * x))) * 1.0
    found = inference("2.5*x - 12.5", {"x": x}, y, "binomial").uncertainty
    design = np.column_stack([x, np.ones_like(x)])
    odds = 1 / (1 + np.exp(-(found.best[0] * x - found.best[1])))
    information = design.T @ ((odds * (1 - odds))[:, None] * design)
    assert found.errors == pytest.approx(np.sqrt(np.diagonal(np.linalg.inv(information))), rel=1e-4)


def test_errors_that_count_as_zero_do_not_make_a_formula_exact():
    x = np.linspace(1, 9, 20)
    found = shine.Model(shine.parse("5e-300", ("x",)), 0.0, 0.0).with_data(x[:, None], 1e-300 * x**2)
    assert found.uncertainty.notes == ("the target is so small that its errors count as 0; give it in a smaller unit",)


def test_a_loss_that_ignores_small_errors_says_nothing_of_the_size_of_the_target():
    x = np.linspace(1, 9, 20)
    model = shine.Model(shine.parse("2*x", ("x",)), 0.0, 0.0)
    found = model.with_data(x[:, None], 2 * x, loss=lambda p, y: max(abs(p - y) - 0.1, 0.0))
    assert not any("smaller unit" in note for note in found.uncertainty.notes)
