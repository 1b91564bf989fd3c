"""Information of future readings about which of several forms is the law.

Before a reading, each form predicts a normal distribution: around its value with the most likely constants, as wide as
noise and uncertain constants make it. The reading's *information* is that between it and the form (Lindley 1956, "On a
measure of the information provided by an experiment"): the fall of the entropy of the forms' probabilities that it
brings in the mean. Box and Hill (1967, "Discrimination among mechanistic models") measure by an upper bound of it,
Hunter and Reiner (1965, "Designs for discriminating between two rival models") by the distance of the predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Indices

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
    """

    values: Floats
    slopes: Sequence[Floats]
    noise: Floats

    @property
    def variances(self) -> Floats:
        """Variance of a reading by each form, shape (n_forms, n_points)."""
        return np.array([(each**2).sum(axis=0) for each in self.slopes]) + self.noise

    def at(self, places: Indices) -> Predictions:
        """The predictions at some of the points."""
        return Predictions(self.values[:, places], [each[:, places] for each in self.slopes], self.noise[places])

    def joined_with(self, others: Predictions) -> Predictions:
        """These predictions, and then those at other points."""
        slopes = [np.concatenate(pair, axis=1) for pair in zip(self.slopes, others.slopes, strict=True)]
        values = np.concatenate([self.values, others.values], axis=1)
        return Predictions(values, slopes, np.concatenate([self.noise, others.noise]))


def information(weights: Floats, means: Floats, variances: Floats) -> Floats:
    """Nats that a reading tells about the form, by quadrature.

    Parameters
    ----------
    weights : ndarray of shape (n_cases, n_forms)
        Probabilities of the forms in each of some cases, which are equally likely.
    means : ndarray of shape (n_cases, n_forms, n_points)
    variances : ndarray of shape (n_forms, n_points)

    Returns
    -------
    ndarray of shape (n_points,)
        The mean over the cases.
    """
    cases, forms, points = means.shape
    step = max(BLOCK // (cases * forms * len(NODES)), 1)
    found = np.zeros(points)
    for first in range(0, points, step):
        part = slice(first, first + step)
        found[part] = _information(weights, means[:, :, part], np.sqrt(variances[:, part]))
    return np.maximum(found, 0.0)


def _information(weights: Floats, means: Floats, deviations: Floats) -> Floats:
    known = np.log(np.maximum(weights, LEAST_PROBABILITY))[:, :, None] - np.log(deviations)
    total = np.zeros(means.shape[2])
    for form in range(means.shape[1]):
        # Differences first: readings may be many noises away from 0.
        apart = (means[:, form : form + 1] - means)[..., None] + deviations[form][:, None] * NODES
        terms = known[..., None] - (apart / deviations[:, :, None]) ** 2 / 2
        most = terms.max(axis=1)
        mixed = most + np.log(np.exp(terms - most[:, None]).sum(axis=1))
        own = -np.log(deviations[form])[:, None] - NODES**2 / 2
        total += np.mean(weights[:, form, None] * ((own - mixed) @ SHARES), axis=0)
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
        """Nats that one more reading at each of further points tells about the form, shape (n_points,)."""
        means = np.stack(
            [value + moved @ slopes for value, moved, slopes in zip(further.values, self.moved, further.slopes,
                                                                    strict=True)],
            axis=1,
        )  # fmt: skip
        left = [root.T @ slopes for root, slopes in zip(self.roots, further.slopes, strict=True)]
        return information(self.weights, means, Predictions(further.values, left, further.noise).variances)

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
    likelihoods: list[Floats] = []
    moved: list[Floats] = []
    roots: list[Floats] = []
    for form in range(forms):
        from_drawn = (chosen.values[drawn] - chosen.values[form]) / noise + readings
        precision = np.eye(len(slopes[form])) + slopes[form] @ slopes[form].T
        covariance = np.asarray(np.linalg.inv(precision), np.float64)
        mean: Floats = from_drawn @ slopes[form].T @ covariance
        errors = (from_drawn * (from_drawn - mean @ slopes[form])).sum(axis=1)
        likelihoods.append(-errors / 2 - np.linalg.slogdet(precision)[1] / 2)
        moved.append(mean)
        roots.append(np.asarray(np.linalg.cholesky((covariance + covariance.T) / 2), np.float64))
    after = np.log(np.maximum(weights, LEAST_PROBABILITY)) + np.stack(likelihoods, axis=1)
    after = np.exp(after - after.max(axis=1, keepdims=True))
    return Cases(after / after.sum(axis=1, keepdims=True), moved, roots)


def of_constants(weights: Floats, chosen: Predictions, further: Predictions) -> Floats:
    """Nats that one more reading tells about the constants, each form by its weight, shape (n_points,)."""
    found = np.zeros(further.values.shape[1])
    for weight, before, slopes in zip(weights, chosen.slopes, further.slopes, strict=True):
        scaled = before / np.sqrt(chosen.noise)
        covariance = np.linalg.inv(np.eye(len(slopes)) + scaled @ scaled.T)
        left = np.einsum("ir,ij,jr->r", slopes, covariance, slopes, optimize=True)
        found += weight * np.log1p(np.maximum(left, 0.0) / further.noise) / 2
    return found
