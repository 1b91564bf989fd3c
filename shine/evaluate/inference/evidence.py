"""Evidence for each of several formulas: of the rows that there are, and of future readings.

The description of the rows by a formula takes so many nats: the negative log-likelihood at the best constants, the
constants with as many digits as the rows determine (by the Fisher information: Wallace and Freeman 1987; Bartlett,
Desmond and Ferreira 2023), and the formula itself, by its nodes. A formula's weight is exp(-nats), as a share of all.

Before a reading, each form predicts a normal distribution: around its value with the most likely constants, as wide as
noise and uncertain constants make it. The reading's *information* is that between it and the form (Lindley 1956, "On a
measure of the information provided by an experiment"): the fall of the entropy of the forms' probabilities that it
brings in the mean. Box and Hill (1967, "Discrimination among mechanistic models") measure by an upper bound of it,
Hunter and Reiner (1965, "Designs for discriminating between two rival models") by the distance of the predictions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats, Indices
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
    with np.errstate(all="ignore"):  # what is not finite does not count
        precise = 0.5 * np.log(known.information * known.best**2 / 3)
    return float(np.sum(np.maximum(precise, 0.0)[~known.undetermined & np.isfinite(precise)]))


NODES = np.linspace(-6.0, 6.0, 33)
SHARES = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
"""Places in standard deviations, and weights, of integrals over a normal distribution. Evenly spaced ones are exact to
1e-6 for smooth functions."""

BLOCK = 1 << 21
"""Most numbers that an integral holds at once."""

LEAST_PROBABILITY = 1e-300
"""Probabilities of forms below it count as this: their logarithms stay finite."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of several forms at some points.

    Parameters
    ----------
    values : ndarray of shape (n_forms, n_points)
        With the most likely constants.
    slopes : sequence of ndarray of shape (n_directions, n_points)
        For each form, derivatives by independent directions of its constants, each one standard error long.
    noise : ndarray of shape (n_points,)
        Variance of a reading around the law; positive.
    freedom : float
        Degrees of freedom of the noise's scale; inf if it is known.
    """

    values: Floats
    slopes: Sequence[Floats]
    noise: Floats
    freedom: float = math.inf

    @property
    def variances(self) -> Floats:
        """Variance of a reading by each form, shape (n_forms, n_points)."""
        return np.array([(each**2).sum(axis=0) for each in self.slopes]) + self.noise

    def at(self, places: Indices) -> Predictions:
        """The predictions at some of the points."""
        slopes = [each[:, places] for each in self.slopes]
        return replace(self, values=self.values[:, places], slopes=slopes, noise=self.noise[places])


def information(weights: Floats, means: Floats, variances: Floats) -> Floats:
    """Nats that a reading tells about the form, by quadrature.

    Parameters
    ----------
    weights : ndarray of shape (n_forms,)
        Probabilities of the forms.
    means, variances : ndarray of shape (n_forms, n_points)

    Returns
    -------
    ndarray of shape (n_points,)
    """
    forms, points = means.shape
    step = max(BLOCK // (forms * len(NODES)), 1)
    found = np.zeros(points)
    for first in range(0, points, step):
        part = slice(first, first + step)
        found[part] = _information(weights, means[:, part], np.sqrt(variances[:, part]))
    return np.maximum(found, 0.0)


def _information(weights: Floats, means: Floats, deviations: Floats) -> Floats:
    known = np.log(np.maximum(weights, LEAST_PROBABILITY))[:, None] - np.log(deviations)
    total = np.zeros(means.shape[1])
    for weight, mean, deviation in zip(weights, means, deviations, strict=True):
        # Differences first: readings may be many noises away from 0.
        apart = (mean - means)[..., None] + deviation[:, None] * NODES
        terms = known[..., None] - (apart / deviations[..., None]) ** 2 / 2
        most = terms.max(axis=0)
        mixed = most + np.log(np.exp(terms - most).sum(axis=0))
        total += weight * ((-np.log(deviation)[:, None] - NODES**2 / 2 - mixed) @ SHARES)
    return total


@dataclass(frozen=True, eq=False)
class Cases:
    """Readings at some points as the forms foresee them, and what is known after each.

    Parameters
    ----------
    weights : ndarray of shape (n_cases, n_forms)
        Probabilities of the forms after the readings.
    moved : sequence of ndarray of shape (n_cases, n_directions)
        Most likely constants of each form after them, in standard errors from those before.
    roots : sequence of ndarray of shape (n_directions, n_directions)
        A square root of the covariance of these constants.
    """

    weights: Floats
    moved: Sequence[Floats]
    roots: Sequence[Floats]

    def information(self, further: Predictions) -> Floats:
        """Nats that one more reading at each of further points tells about the form, shape (n_points,).

        If there is one form, about its constants.
        """
        means = np.stack(
            [value + moved @ slopes for value, moved, slopes in zip(further.values, self.moved, further.slopes,
                                                                    strict=True)],
            axis=1,
        )  # fmt: skip
        left = [root.T @ slopes for root, slopes in zip(self.roots, further.slopes, strict=True)]
        variances = Predictions(further.values, left, further.noise).variances
        if len(variances) == 1:
            told: Floats = np.log(variances[0] / further.noise) / 2
            return told
        found = np.zeros(means.shape[2])
        for weights, own in zip(self.weights, means, strict=True):
            there = weights >= 1e-3  # probability below which a form adds nothing to what a further reading tells
            found += information(weights[there], own[there], variances[there])
        return found / len(means)

    def deciding(self, odds: float) -> float:
        """Share of the cases in which the odds of a form against all others are at least so high."""
        return float(np.mean(self.weights.max(axis=1) >= odds / (1 + odds)))


def foreseen(weights: Floats, chosen: Predictions, count: int, rng: np.random.Generator) -> Cases:
    """Draw readings at the chosen points from what the forms predict, each form as often as it is probable.

    Parameters
    ----------
    weights : ndarray of shape (n_forms,)
    chosen : Predictions
        At no, one or several points, of which some may be the same.
    count : int
        Number of cases; one is enough for no points.
    rng : numpy.random.Generator
    """
    forms, points = chosen.values.shape
    noise = np.sqrt(chosen.noise)
    # Even steps through the probabilities: the shares of the forms are exact to one case.
    drawn = np.searchsorted(np.cumsum(weights), (np.arange(count) + 0.5) / count * weights.sum())
    drawn = np.minimum(drawn, forms - 1)
    scatter = rng.standard_normal((count, points))
    # All in noises: readings of exact fits differ by tiny parts of their values.
    slopes = [each / noise for each in chosen.slopes]
    readings = scatter.copy()
    for form in range(forms):
        own = drawn == form
        readings[own] += rng.standard_normal((int(own.sum()), len(slopes[form]))) @ slopes[form]
    if math.isfinite(chosen.freedom):
        readings *= np.sqrt(chosen.freedom / rng.chisquare(chosen.freedom, (count, 1)))
    likelihoods: list[Floats] = []
    moved: list[Floats] = []
    roots: list[Floats] = []
    for form in range(forms):
        from_drawn = (chosen.values[drawn] - chosen.values[form]) / noise + readings
        # By singular values: the covariance of constants that are all but unknown drowns that of others in rounding.
        turned, sizes, across = np.linalg.svd(slopes[form], full_matrices=False)
        wider, along = np.hypot(1.0, sizes), from_drawn @ across.T
        beside = np.maximum((from_drawn**2).sum(axis=1) - (along**2).sum(axis=1), 0.0)
        errors = beside + ((along / wider) ** 2).sum(axis=1)
        if math.isfinite(chosen.freedom):
            errors = (chosen.freedom + points) * np.log1p(errors / chosen.freedom)
        likelihoods.append(-errors / 2 - np.log(wider).sum())
        moved.append((along * (sizes / wider / wider)) @ turned.T)
        roots.append(np.eye(len(turned)) + turned * (1 / wider - 1) @ turned.T)
    after = np.log(np.maximum(weights, LEAST_PROBABILITY)) + np.stack(likelihoods, axis=1)
    after = np.exp(after - after.max(axis=1, keepdims=True))
    return Cases(after / after.sum(axis=1, keepdims=True), moved, roots)
