"""Shrinkage: the values of a parameter by group as draws from a normal distribution, which is estimated too.

Groups with few rows, or noisy ones, have uncertain values of their own. Empirical Bayes (Efron and Morris 1975) takes
the values of a parameter as draws from a normal distribution. Its mean and variance are estimated from all groups by
expectation and maximization (Dempster, Laird and Rubin 1977), in turns with fits in which each value is charged for its
distance from the mean: the less a group's own rows determine its value, the closer it comes to the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shine.base.typing import Floats, Mask
from shine.search.templates.composition import Composed
from shine.search.templates.fits.grouped_fits import GroupedFits
from shine.search.templates.fits.unknowns import Unknowns

_STEPS, _TOLERANCE = 20, 1e-10
"""Most steps of a fit, and the share of the error that its next step must promise to remove."""


def shrunk(fits: GroupedFits, composed: Sequence[Composed], unknowns: Unknowns, start: Floats, power: float) -> Floats:
    """Values of the unknowns of each individual, those by group shrunk towards their mean.

    Parameters
    ----------
    fits : GroupedFits
    composed : sequence of Composed
    unknowns : Unknowns
    start : ndarray of shape (n_individuals, n_unknowns)
        Fitted values.
    power : float
        Effective number of rows, times the loss's factor in the negative log-likelihood.
    """
    own, groups = unknowns.own, len(fits.rows.groups)
    if not own or groups < 3:  # groups below which a distribution cannot be estimated: nothing is shrunk
        return start
    values: Floats = start
    variances: Floats = np.full((len(start), own), np.inf)
    # Most turns, and relative change of the variances below which they have settled
    for _ in range(100):
        prior, found = _prior(fits, composed, unknowns, values, variances, power)
        usable: Mask = np.logical_and.reduce(np.isfinite(prior), axis=(1, 2))
        settled = np.abs(found - variances) <= 1e-3 * found
        variances = np.where(usable[:, None], found, variances)
        if (settled.all(axis=1) | ~usable).all():
            break
        fitted, errors = fits.fitted(
            composed, unknowns, values, _STEPS, _TOLERANCE, np.where(usable[:, None, None], prior, 0.0)
        )
        values = np.where((usable & np.isfinite(errors))[:, None], fitted, values)
    return values


def _prior(
    fits: GroupedFits,
    composed: Sequence[Composed],
    unknowns: Unknowns,
    values: Floats,
    variances: Floats,
    power: float,
) -> tuple[Floats, Floats]:
    """Precisions and centers, shape (n_individuals, 2, own), and variances, estimated at some values."""
    own, groups = unknowns.own, len(fits.rows.groups)
    group_errors, blocks = fits.blocks(composed, unknowns, values)
    errors = _mean(group_errors) * groups
    own_values = values[:, : groups * own].reshape(-1, groups, own)
    with np.errstate(all="ignore"):
        noise, posterior = _posterior(blocks[:, :, :own, :own], 1 / variances, errors, power, unknowns.shared)
        centers = _mean(own_values)
        found = _mean((own_values - centers[:, None]) ** 2 + posterior)
        # Least variance of a distribution, as a share of the mean variance that the rows leave to a group's value:
        # below, groups do not differ.
        found = np.maximum(found, 1e-6 * _mean(posterior))
        precisions = noise[:, None] / found
    return np.stack([precisions, centers], axis=1), found


def _posterior(
    matrices: Floats, precisions: Floats, errors: Floats, power: float, shared: int
) -> tuple[Floats, Floats]:
    """Variance of the noise, in units of the errors, and of each value by group given its rows and the distribution.

    The noise has the rows less the unknowns, of which a shrunk one counts by the share that its rows determine.
    """
    noise, size = errors / (2 * power), matrices.shape[-1]
    posterior = np.zeros(matrices.shape[:3])
    for _ in range(3):
        inverse = inverses(matrices, (noise[:, None] * precisions)[:, None])
        determined = sum(inverse[:, :, k, j] * matrices[:, :, j, k] for k in range(size) for j in range(size))
        used = shared + matrices.shape[1] * _mean(np.asarray(determined))
        noise = errors / np.maximum(2 * power - used, 1.0)
        posterior = noise[:, None, None] * np.stack([inverse[:, :, k, k] for k in range(size)], axis=-1)
    return noise, posterior


def inverses(matrices: Floats, penalties: Floats) -> Floats:
    """Inverses of small positive matrices, each with penalties on its diagonal, by Gauss and Jordan's elimination.

    Parameters
    ----------
    matrices : ndarray of shape (..., n, n)
    penalties : ndarray of shape (..., n)
        A value without influence that is not charged either gets a row of zeros.
    """
    size = matrices.shape[-1]
    rest = np.concatenate([matrices, np.broadcast_to(np.eye(size), matrices.shape)], axis=-1)
    for k in range(size):
        rest[..., k, k] += penalties[..., k]
    for k in range(size):
        pivot = rest[..., k, k]
        rest[..., k, :] = rest[..., k, :] / np.where(pivot > 0, pivot, np.inf)[..., None]
        for j in range(size):
            if j != k:
                rest[..., j, :] = rest[..., j, :] - rest[..., j, k][..., None] * rest[..., k, :]
    return rest[..., size:]


def _mean(values: Floats) -> Floats:
    """Mean over the second axis, by halving it: the same bits for one individual as for many."""
    total, count = values, values.shape[1]
    while count > 1:
        half = (count + 1) // 2
        lower = total[:, :half].copy()
        lower[:, : count - half] += total[:, half:count]
        total, count = lower, half
    return total[:, 0] / values.shape[1]
