"""Evidence of the rows for each of several formulas.

The description of the rows by a formula takes so many nats: the negative log-likelihood at the best constants, the
constants with as many digits as the rows determine (by the Fisher information: Wallace and Freeman 1987; Bartlett,
Desmond and Ferreira 2023), and the formula itself, by its nodes. A formula's weight is exp(-nats), as a share of all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shine.base.typing import Floats
from shine.evaluate.inference.uncertainty import Uncertainty

LEAST_SHARE = 1e-30
"""Sums of errors below this share of the largest count as this: they are rounding."""


def nats(known: Sequence[Uncertainty], prices: Sequence[float]) -> Floats:
    """Length of the description by each formula, up to a term that all share.

    Parameters
    ----------
    known : sequence of Uncertainty
        Of the formulas, on the same rows.
    prices : sequence of float
        Nats to write down each formula without its constants.

    Returns
    -------
    ndarray of shape (n_formulas,)
        inf for formulas with as many constants as rows, and for those with constants that the rows do not determine,
        unless all have such: how long their description is, is not known.
    """
    totals = np.array([each.total for each in known])
    largest = float(np.max(totals[np.isfinite(totals)], initial=0.0))
    floor = max(LEAST_SHARE * largest, float(np.finfo(np.float64).tiny))
    found = []
    for each, price in zip(known, prices, strict=True):
        if not each.freedom > 0 or not math.isfinite(each.total):
            found.append(math.inf)
            continue
        if each.likelihood is None:
            errors = each.power * each.freedom * math.log(max(each.total, floor) / (largest or 1.0))
        else:
            errors = each.total * each.likelihood
        found.append(errors + _of_constants(each) + price)
    lengths = np.array(found)
    determined = np.array([not each.undetermined.any() for each in known], np.bool_)
    return np.where(determined, lengths, math.inf) if np.isfinite(lengths[determined]).any() else lengths


def shares(lengths: Floats) -> Floats:
    """Weights of descriptions of some lengths, which add up to 1; all are equal if none is finite."""
    least = float(np.min(lengths))
    if not math.isfinite(least):
        return np.full(len(lengths), 1 / len(lengths))
    weights = np.exp(least - lengths)
    found: Floats = weights / weights.sum()
    return found


def averaged(values: Floats, deviations: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Mean of several formulas' predictions, and its standard deviation: that of each, and their disagreement.

    Parameters
    ----------
    values, deviations : ndarray of shape (n_formulas, n_rows)
    weights : ndarray of shape (n_formulas,)

    Returns
    -------
    (ndarray, ndarray) of shape (n_rows,)
    """
    # Formulas that count for nothing may be undefined in some rows.
    counting = weights > 0
    shares, each, spread = weights[counting, None], values[counting], deviations[counting]
    mean = (shares * each).sum(axis=0)
    with np.errstate(invalid="ignore"):
        variance = (shares * (spread**2 + (each - mean) ** 2)).sum(axis=0)
    return mean, np.sqrt(variance)


def _of_constants(known: Uncertainty) -> float:
    """Nats of the constants, each to the precision that the rows determine; none for one that is 0 within its error."""
    with np.errstate(divide="ignore"):
        precise = 0.5 * np.log(known.information * known.best**2 / 3)
    return float(np.sum(np.maximum(precise, 0.0)[~known.undetermined & np.isfinite(precise)]))
