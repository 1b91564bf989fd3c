"""The covariance of fitted constants.

The sum of errors S stands for the log-likelihood: twice its fall is ``dispersion * (S - least S)``, up to terms that do
not matter. If errors are deviances, the dispersion is known. Otherwise it follows from the errors, as their mean
curvature over their mean squared slope: for squared errors, that is 1 over the variance of the noise with n - p degrees
of freedom; for others, the factor of Schrader and Hettmansperger (1980).

* "model": the inverse of the observed information, ``(dispersion/2 * H)^-1`` with H the second derivatives of S (Efron
  and Hinkley 1978), or of the expected one where it is known (see `shine.inference.curvature`). Right if the noise is
  as the weights say.
* "robust": ``H^-1 B H^-1`` with B the sum of the squared slopes of the rows (Huber 1967; White 1980), each divided by
  what its leverage takes away (MacKinnon and White 1985, HC3). Right for any independent noise. If few rows make a
  standard error, its t has few degrees of freedom (see `Curvature.sandwich`).

By default, deviances have the first, other errors than squares the second, and squared errors the second only if
they clearly are not as the weights say (see `shine.inference.spread`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shine.inference.curvature import Curvature
from shine.inference.likelihood import Likelihood
from shine.inference.spread import is_uneven
from shine.typing import Floats, Mask

Kind = Literal["auto", "model", "robust"]

NOT_DETERMINED = 1e-11
"""Share of the largest eigenvalue of the scaled information below which a direction of the constants is not determined:
half of float64's digits, in squares, and some margin."""

TAKES_PART = 1e-3
"""Least share of a constant in such a direction that makes it undetermined."""

LEAST_CURVATURE = 0.01
"""Share of its exact part below which the least curvature of the sum of errors counts as that part: the constants are
then not at a minimum, or hardly."""

FAR, LEVEL = 2.0, 0.01
"""Standard errors along a direction at which the log-likelihood must have fallen, on either side, by this share of what
the information says. Otherwise it levels off, as where the rows separate two classes: the best constants are then
infinite."""


@dataclass(frozen=True, eq=False)
class Covariance:
    """How far fitted constants may be off.

    Parameters
    ----------
    matrix : ndarray of shape (n_constants, n_constants)
        Of the directions that are determined; inf if there are no rows to tell the noise.
    dispersion : float
        Twice the fall of the log-likelihood per unit of the sum of errors.
    freedom : float
        Rows without a constant of their own; inf if the dispersion is known.
    freedoms : ndarray of shape (n_constants,)
        Of the standard error of each constant: fewer if it is robust, and few rows make it.
    undetermined : ndarray of shape (n_constants,), bool
    information : ndarray of shape (n_constants,)
        Second derivatives of the negative log-likelihood by each constant.
    kind : {"model", "robust"}
    adjusted : ndarray of shape (n_constants,)
        Variance of each constant by the information over the one in the matrix; 1 if they are the same.
    directions : ndarray of shape (n_directions, n_constants)
        Changes of the constants that do not change the predictions, or the log-likelihood however large they are.
    levels_off : bool
        Whether there are any of the latter.
    """

    matrix: Floats
    dispersion: float
    freedom: float
    freedoms: Floats
    undetermined: Mask
    information: Floats
    kind: Literal["model", "robust"]
    adjusted: Floats
    directions: Floats
    levels_off: bool = False


def covariance(likelihood: Likelihood, constants: Floats, total: float, kind: Kind = "auto") -> Covariance:
    """The covariance of constants at their best values.

    Parameters
    ----------
    likelihood : Likelihood
    constants : ndarray of shape (n_constants,)
        The best ones.
    total : float
        The sum of errors that they leave.
    kind : {"auto", "model", "robust"}
    """
    count, rows = len(constants), likelihood.rows.effective_rows
    error = likelihood.error
    if not math.isfinite(total):
        unknown, nothing = np.full((count, count), np.inf), np.zeros((0, count))
        lost = np.ones(count, np.bool_)
        return Covariance(unknown, 0.0, 0.0, np.zeros(count), lost, np.zeros(count), "model", np.ones(count), nothing)
    found = Curvature.of(likelihood, constants)
    inverse, directions, undetermined = _inverse(found.hessian, found.convex)
    known, levels_off = error.log_likelihood is not None, False
    if error.log_likelihood is not None and count and np.isfinite(inverse).all():
        inverse, level, scale = _without_level(likelihood, constants, total, inverse, error.log_likelihood)
        directions, levels_off = np.concatenate([directions, level]), len(level) > 0
        undetermined = undetermined | (np.abs(level) > TAKES_PART * scale).any(axis=0)
    rank = count - len(directions)
    freedom = math.inf if known else max(rows - rank, 0.0)
    if known:
        assert error.log_likelihood is not None
        dispersion = 2 * error.log_likelihood
    else:
        dispersion = found.dispersion * freedom / rows
    model = inverse * (2 / dispersion) if dispersion > 0 else 0 * inverse
    if kind == "auto":
        uneven = error.follows_from_moments and is_uneven(likelihood, constants, total)
        smooth_unknown = not known and not error.follows_from_moments and not found.smoothed
        kind = "robust" if uneven or smooth_unknown else "model"
    matrix, freedoms = model, np.full(count, freedom)
    if kind == "robust" and freedom > 0 and count:
        matrix, own = found.sandwich(inverse)
        matrix = matrix if error.follows_from_moments else matrix * rows / max(rows - rank, 1.0)
        freedoms = np.minimum(own, freedom)
    with np.errstate(all="ignore"):
        ratio = np.diagonal(model) / np.diagonal(matrix)
    adjusted = np.where(np.isfinite(ratio) & (ratio > 0), ratio, 1.0)
    if freedom == 0:
        matrix, undetermined = np.full((count, count), np.inf), np.ones(count, np.bool_)
    information = dispersion / 2 * np.diagonal(found.hessian) if dispersion < math.inf else np.full(count, np.inf)
    return Covariance(
        matrix, dispersion, freedom, freedoms, undetermined, information, kind, adjusted, directions, levels_off
    )


def _inverse(hessian: Floats, convex: Floats) -> tuple[Floats, Floats, Mask]:
    """The inverse on the directions that are determined, the other directions, and the constants that they change.

    Parameters
    ----------
    hessian : ndarray of shape (n_constants, n_constants)
    convex : ndarray of shape (n_constants, n_constants)
        Positive semidefinite and exact: it tells which directions are determined.
    """
    count = len(hessian)
    if not count:
        return hessian, hessian, np.zeros(0, np.bool_)
    scale = np.sqrt(np.maximum(np.diagonal(convex), 0.0))
    scale = np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)
    sizes, vectors = np.linalg.eigh(np.where(np.isfinite(convex), convex, 0.0) / scale / scale[:, None])
    lost = ~(sizes > NOT_DETERMINED * max(float(sizes[-1]), 0.0))
    kept, others = vectors[:, ~lost], vectors[:, lost].T
    inner = kept.T @ (hessian / scale / scale[:, None]) @ kept
    if not len(inner) or np.linalg.eigvalsh(inner)[0] < LEAST_CURVATURE * sizes[~lost][0]:
        inner = np.diag(sizes[~lost])
    inverse = kept @ np.linalg.inv(inner) @ kept.T
    return (inverse + inverse.T) / 2 / scale / scale[:, None], others / scale, (np.abs(others) > TAKES_PART).any(axis=0)


def _without_level(
    likelihood: Likelihood, constants: Floats, total: float, inverse: Floats, factor: float
) -> tuple[Floats, Floats, Floats]:
    """The inverse without the directions along which the likelihood levels off, these, and the sizes of the constants.

    Parameters
    ----------
    likelihood : Likelihood
    constants : ndarray of shape (n_constants,)
    total : float
    inverse : ndarray of shape (n_constants, n_constants)
    factor : float
        Of the sum of errors in the negative log-likelihood.
    """
    scale = np.sqrt(np.maximum(np.diagonal(inverse), 0.0))
    scale = np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)
    sizes, vectors = np.linalg.eigh(inverse / scale / scale[:, None])
    expected, level = LEVEL * FAR**2 / 2, np.zeros(len(sizes), np.bool_)
    for index in np.flatnonzero(sizes > NOT_DETERMINED * sizes[-1]).tolist():
        step = FAR * float(np.sqrt(sizes[index] / factor)) * vectors[:, index] * scale
        rises = [factor * (likelihood.total(constants + side * step) - total) for side in (-1, 1)]
        level[index] = min(abs(rise) for rise in rises) < expected
    if not level.any():
        return inverse, np.zeros((0, len(sizes))), scale
    kept = vectors[:, ~level]
    left = (kept * sizes[~level]) @ kept.T * scale * scale[:, None]
    return left, vectors[:, level].T * scale, scale
