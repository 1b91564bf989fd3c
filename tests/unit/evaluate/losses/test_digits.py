"""Built-in losses keep their digits from tiny to huge numbers, against mpmath."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from shine import losses

DIGITS = 700
"""Enough for 1 + 1e-300 squared."""

LEAST = 1e-305
"""Errors below this may lose digits, being near the end of the numbers."""

Exact = Callable[[mpmath.mpf, mpmath.mpf], mpmath.mpf]


def _poisson(mean: mpmath.mpf, target: mpmath.mpf) -> mpmath.mpf:
    return 2 * (target * mpmath.log(target / mean) - (target - mean))


def _negative_binomial(alpha: float) -> Exact:
    def error(mean: mpmath.mpf, target: mpmath.mpf) -> mpmath.mpf:
        spread = (target + 1 / mpmath.mpf(alpha)) * mpmath.log((1 + alpha * target) / (1 + alpha * mean))
        return 2 * (target * mpmath.log(target / mean) - spread)

    return error


def _huber(x: mpmath.mpf, y: mpmath.mpf) -> mpmath.mpf:
    size = abs(x - y)
    return size**2 / 2 if size <= 1 else size - mpmath.mpf(1) / 2


POSITIVE: dict[str, Exact] = {
    "poisson": _poisson,
    "negative_binomial": _negative_binomial(1.0),
    "negative_binomial(0.001)": _negative_binomial(0.001),
    "negative_binomial(50)": _negative_binomial(50.0),
    "gamma": lambda x, y: 2 * (y / x - 1 - mpmath.log(y / x)),
    "logarithmic": lambda x, y: mpmath.log(x / y) ** 2,
    "relative": lambda x, y: (x / y - 1) ** 2,
}
"""Losses of predictions and targets above 0."""

ANY: dict[str, Exact] = {
    "log_cosh": lambda x, y: mpmath.log(mpmath.cosh(x - y)),
    "student_t(4)": lambda x, y: 5 * mpmath.log1p((x - y) ** 2 / 4),
    "huber(1)": _huber,
    "quantile(0.9)": lambda x, y: (x - y) * mpmath.mpf(1 - 0.9) if x > y else (y - x) * mpmath.mpf(0.9),
}


def _agree(name: str, exact: Exact, predictions: np.ndarray, targets: np.ndarray) -> None:
    own = losses.errors(name, predictions, targets)
    wrong = []
    with mpmath.workdps(DIGITS):
        for x, y, found in zip(predictions.tolist(), targets.tolist(), own.tolist(), strict=True):
            true = exact(mpmath.mpf(x), mpmath.mpf(y))
            if true < 1e300 and not abs(found - true) <= 1e-10 * true + LEAST:
                wrong.append((x, y, found, float(true)))
    assert not wrong, wrong[:5]


@pytest.mark.slow
@pytest.mark.parametrize("name", POSITIVE)
def test_errors_of_positive_predictions_keep_their_digits(name):
    rng = np.random.default_rng(0)
    least = -25 if "binomial" in name or name == "poisson" else -140
    targets = 10.0 ** rng.uniform(least, 140, 300)
    near = targets * (1 + rng.choice([-1, 1], 300) * 10.0 ** rng.uniform(-15, -1, 300))
    far = targets * 10.0 ** rng.uniform(-2.9, 100, 300)
    _agree(name, POSITIVE[name], np.append(near, far), np.append(targets, targets))


@pytest.mark.slow
@pytest.mark.parametrize("name", ANY)
def test_errors_of_residuals_keep_their_digits(name):
    rng = np.random.default_rng(0)
    sizes = rng.choice([-1, 1], 300) * 10.0 ** rng.uniform(-150, 150, 300)
    middle = rng.choice([-1, 1], 300) * 10.0 ** rng.uniform(-2, 2, 300)
    _agree(name, ANY[name], np.append(sizes, middle), np.zeros(600))


@pytest.mark.parametrize("name", ["log_cosh", "huber(1)", "quantile(0.9)"])
def test_losses_that_grow_linearly_are_finite_for_the_largest_numbers(name):
    assert np.isfinite(losses.errors(name, [1e-300, -1e-300, 1e300, -1e300], [0.0] * 4)).all()
