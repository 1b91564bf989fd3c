"""Quantiles of the distributions that intervals need."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from shine.base.typing import Floats
from shine.lang.forms.names import value_text


def check_level(level: float) -> float:
    """The level of an interval as a number; a `ValueError` if it is not between 0 and 1."""
    allowed = isinstance(level, int | float | np.integer | np.floating) and not isinstance(level, bool)
    if not allowed or not 0 < level < 1:
        raise ValueError(f"level is {value_text(level)}; it is a share between 0 and 1, such as 0.95")
    return float(level)


def two_sided(level: float, freedom: float) -> float:
    """The number of standard errors on each side of an interval: a quantile of Student's t, or of the normal
    distribution if the degrees of freedom are infinite."""
    if not math.isfinite(freedom):
        return NormalDist().inv_cdf((1 + level) / 2)
    return _quantile_of_t(1 - level, max(freedom, 1.0))


def _quantile_of_t(tails: float, n: float) -> float:
    """The size that Student's t exceeds with a probability (Hill 1970, algorithm 396)."""
    if n < 1.5:
        return 1 / math.tan(tails * math.pi / 2)
    if n < 2.5:
        return math.sqrt(2 / (tails * (2 - tails)) - 2)
    a = 1 / (n - 0.5)
    b = 48 / (a * a)
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    y = (d * tails) ** (2 / n)
    if y <= 0.05 + a:
        near = 1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)
        return math.sqrt(n * ((near * y - 1) * (n + 1) / (n + 2) + 1 / y))
    x = NormalDist().inv_cdf(tails / 2)
    y = x * x
    if n < 5:
        c += 0.3 * (n - 4.5) * (x + 0.6)
    c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
    return math.sqrt(n * math.expm1(a * y * y))


def tail_of_t(size: float, freedom: float) -> float:
    """Probability that Student's t is farther from 0 than `size`."""
    if not math.isfinite(freedom):
        return math.erfc(abs(size) / math.sqrt(2))
    from scipy.special import stdtr  # slow to import

    return float(2 * stdtr(freedom, -abs(size)))


def tail_of_chi_squared(value: float, freedom: float) -> float:
    """Probability that chi-squared is larger than `value` (Wilson and Hilferty 1931)."""
    part = 2 / (9 * freedom)
    root = max(value / freedom, 0.0) ** (1 / 3)
    return 0.5 * math.erfc((root - 1 + part) / math.sqrt(2 * part))


def counts_between(expected: Floats, spread: Floats, level: float) -> tuple[Floats, Floats]:
    """Ends of intervals of Poisson counts whose expected number is itself uncertain.

    Mixed over a gamma distribution of the expected number, counts are negative binomial (Greenwood and Yule 1920).

    Parameters
    ----------
    expected, spread : ndarray of shape (n_rows,)
        The expected number and its standard error.
    level : float
    """
    from scipy.stats import nbinom, poisson

    with np.errstate(all="ignore"):
        size = np.where(spread > 0, expected / np.where(spread > 0, spread, 1.0), np.inf) ** 2
        mixed = np.isfinite(size) & (size < 1e12) & (expected > 0)
        share = np.where(mixed, size / (size + expected), 0.5)
        shape = np.where(mixed, size, 1.0)
        mean = np.where(expected > 0, expected, 0.0)
        tails = ((1 - level) / 2, (1 + level) / 2)
        low, high = (np.where(mixed, nbinom.ppf(q, shape, share), poisson.ppf(q, mean)) for q in tails)
    known = np.isfinite(expected) & np.isfinite(spread)
    return np.where(known, low, 0.0), np.where(known, high, np.inf)
