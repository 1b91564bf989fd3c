"""Quantiles of the distributions that intervals need."""

from __future__ import annotations

import math

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
    from scipy.special import ndtri, stdtrit  # slow to import

    share = (1 + level) / 2
    return float(stdtrit(max(freedom, 1.0), share) if math.isfinite(freedom) else ndtri(share))


def tail_of_t(size: float, freedom: float) -> float:
    """Probability that Student's t is farther from 0 than `size`."""
    if not math.isfinite(freedom):
        return math.erfc(abs(size) / math.sqrt(2))
    from scipy.special import stdtr  # slow to import

    return float(2 * stdtr(freedom, -abs(size)))


def tail_of_chi_squared(value: float, freedom: float) -> float:
    """Probability that chi-squared is larger than `value`."""
    from scipy.special import chdtrc

    return float(chdtrc(freedom, max(value, 0.0)))


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
