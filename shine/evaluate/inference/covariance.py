"""The covariance of fitted constants.

The sum of errors S stands for the log-likelihood: twice its fall is ``dispersion * (S - least S)``, up to terms that do
not matter. If errors are deviances, the dispersion is known. Otherwise it follows from the errors, as their mean
curvature over their mean squared slope: for squared errors, that is 1 over the variance of the noise with n - p degrees
of freedom; for others, the factor of Schrader and Hettmansperger (1980).

* "model": the inverse of the observed information, ``(dispersion/2 * H)^-1`` with H the second derivatives of S (Efron
  and Hinkley 1978), or of the expected one where it is known (see `shine.evaluate.inference.curvature`). Right if the
  noise is as the weights say.
* "robust": ``H^-1 B H^-1`` with B the sum of the squared slopes of the rows (Huber 1967; White 1980), each divided by
  what its leverage takes away (MacKinnon and White 1985, HC3). Right for any independent noise. If few rows make a
  standard error, its t has few degrees of freedom (see `Curvature.sandwich`).

* "dependent": for squared errors of rows with groups, or that follow one another, ``H^-1 B H^-1``, too. If errors
  correlate by ``rho ** gap`` along the order of the rows, B follows from rho, which the errors and the derivatives tell
  by residual maximum likelihood. If rows come in clusters, B is the sum of the squares of the clusters' slopes, each
  error less what its own cluster contributed to the fit: that is the jackknife over clusters, CR3 (Bell and McCaffrey
  2002), with Student's t of one degree of freedom less than there are clusters.

By default, such rows have the third; else deviances have the first, other errors than squares the second, and squared
errors the second only if they clearly are not as the weights say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from shine.base.typing import Floats, Mask
from shine.evaluate.inference.determined import Determined, determined
from shine.evaluate.inference.likelihood import Likelihood, gram
from shine.evaluate.inference.quantiles import tail_of_chi_squared


class Dependent(NamedTuple):
    """A covariance of constants, the variance of the errors, the degrees of freedom of both, and a note for people."""

    matrix: Floats
    variance: float
    freedom: float
    note: str


def dependent(likelihood: Likelihood, constants: Floats, inverse: Floats, rank: int) -> Dependent | None:
    """The covariance of the best constants if errors are squared and rows have groups or follow one another; else None.

    `inverse` is that of the second derivatives of the sum of errors; `rank` constants are determined.
    """
    rows = likelihood.rows
    if (rows.groups is None and rows.serial is None) or not likelihood.error.follows_from_moments:
        return None
    blocks = list(likelihood.blocks(constants))
    at, roots = (np.concatenate(parts) for parts in zip(*((b.rows, np.sqrt(b.weights)) for b in blocks), strict=True))
    errors = roots * (rows.target[at] - np.concatenate([block.predictions for block in blocks]))
    columns = roots * np.concatenate([block.partials for block in blocks], axis=1)
    half = 2 * inverse  # the inverse of the columns' products: the second derivative of a square is 2
    if rows.groups is not None:
        return _clustered(errors, columns, half, rows.groups[at])
    assert rows.serial is not None
    serial = rows.serial.take(at).estimated(errors, columns)
    inner, left = serial.correlated(columns), serial.independent_rows
    freedom = len(errors) - float(np.sum(half * inner))
    variance = float(errors @ errors) / freedom if freedom > 0 else np.inf
    matrix = half @ inner @ half * variance
    return Dependent(matrix, variance, max(left - rank, 0.0), serial.told(len(errors)))


def _clustered(errors: Floats, columns: Floats, half: Floats, groups: Floats) -> Dependent:
    """By the jackknife over groups."""
    count, moved = len(columns), half @ columns
    numbers = np.unique(groups)
    changes = np.zeros((len(numbers), count))
    for place, number in enumerate(numbers):
        own = np.flatnonzero(groups == number)
        leverage = columns[:, own].T @ moved[:, own]
        left = np.linalg.lstsq(np.eye(len(own)) - leverage, errors[own], rcond=None)[0]
        changes[place] = moved[:, own] @ left
    share = (len(numbers) - 1) / len(numbers) or np.inf
    variance = float(errors @ errors) / max(len(errors) - count, 1)
    note = f"standard errors allow for rows of a group that depend on one another; there are {len(numbers)} groups"
    return Dependent(share * changes.T @ changes, variance, float(len(numbers) - 1), note)


CONVINCING = 0.05
"""Probability below which even noise would give such errors; then it counts as uneven. Robust standard errors cost
little where they are not needed, so weak evidence is enough (Long and Ervin 2000)."""

SAME = 1e-12
"""Share of the largest eigenvalue of the normal equations below which columns are combinations of others."""


def is_uneven(likelihood: Likelihood, constants: Floats, total: float) -> bool:
    """Whether squared errors grow or fall clearly with the size of the predictions, or with a constant's influence.

    Koenker's (1981) form of the test of Breusch and Pagan (1979), on the predictions, their squares and the squared
    derivatives by the constants.
    """
    if likelihood.count < max(20, 4 * len(constants)) or not total > 0:  # rows below which nothing is said
        return False
    parts = [
        (block.weights * (block.arguments[1] - block.predictions) ** 2, block.predictions, block.partials)
        for block in likelihood.blocks(constants)
    ]
    errors = np.concatenate([part[0] for part in parts])
    predictions = np.concatenate([part[1] for part in parts])
    partials = np.concatenate([part[2] for part in parts], axis=1)
    columns = [np.ones_like(errors)]
    for column in (predictions, predictions**2, *partials**2):
        size = float(np.max(np.abs(column), initial=0.0))
        if size > 0 and np.isfinite(size):
            columns.append(column / size)
    mean = float(np.mean(errors))
    if not np.isfinite(errors).all() or not mean > 0:
        return False
    # The last column is the response; the normal equations are quicker than a decomposition of all rows.
    products = gram(np.array([*columns, errors / mean - 1]), np.ones_like(errors))
    sizes, vectors = np.linalg.eigh(products[:-1, :-1])
    kept = sizes > SAME * sizes[-1]
    explained = float(np.sum((vectors.T @ products[-1, :-1])[kept] ** 2 / sizes[kept]))
    rank, whole = int(np.count_nonzero(kept)), float(products[-1, -1])
    if rank < 2 or not whole > 0:
        return False
    count = len(errors) * likelihood.rows.independence
    return tail_of_chi_squared(count * explained / whole, rank - 1) < CONVINCING


Kind = Literal["auto", "model", "robust"]


@dataclass(frozen=True, eq=False)
class Covariance:
    """The covariance of fitted constants.

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
    kind : {"model", "robust", "dependent"}
    adjusted : ndarray of shape (n_constants,)
        Variance of each constant by the information over the one in the matrix; 1 if they are the same.
    determined : Determined, optional
        None if the sum of errors is not defined.
    note : str
        On rows that depend on one another.
    """

    matrix: Floats
    dispersion: float
    freedom: float
    freedoms: Floats
    undetermined: Mask
    information: Floats
    kind: str
    adjusted: Floats
    determined: Determined | None
    note: str = ""

    @property
    def directions(self) -> Floats:
        """Directions that the rows do not determine, shape (n_directions, n_constants)."""
        return np.zeros((0, len(self.matrix))) if self.determined is None else self.determined.directions


def covariance(likelihood: Likelihood, constants: Floats, total: float, kind: str = "auto") -> Covariance:
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
    count, rows, error = len(constants), likelihood.rows.effective_rows, likelihood.error
    if not math.isfinite(total):
        unknown, zeros = np.full((count, count), np.inf), np.zeros(count)
        return Covariance(unknown, 0.0, 0.0, zeros, zeros == 0, zeros, "model", zeros + 1, None)
    known = determined(likelihood, constants, total)
    found, inverse, undetermined = known.curvature, known.inverse, known.lost
    rank = count - len(known.directions)
    if error.log_likelihood is not None:
        freedom, dispersion = math.inf, 2 * error.log_likelihood
    else:
        freedom = max(rows - rank, 0.0)
        dispersion = found.dispersion * freedom / rows
    # Only ratios of weights tell something about noise of unknown size.
    independence = likelihood.rows.independence * (1.0 if math.isinf(freedom) else likelihood.rows.rows_by_weight)
    allowed = dependent(likelihood, constants, inverse, rank) if kind == "auto" and count and freedom > 0 else None
    if allowed is not None:
        kind, dispersion = "dependent", 1 / allowed.variance if allowed.variance > 0 else math.inf
    else:
        dispersion *= independence
    model = inverse * (2 / dispersion) if dispersion > 0 else 0 * inverse
    if kind == "auto":
        uneven = error.follows_from_moments and is_uneven(likelihood, constants, total)
        smooth = not error.follows_from_moments and not found.smoothed
        kind = "robust" if uneven or (smooth and math.isfinite(freedom)) else "model"
    matrix, freedoms = model, np.full(count, freedom)
    if allowed is not None:
        matrix, freedoms = allowed.matrix, np.minimum(allowed.freedom, freedoms)
    if kind == "robust" and freedom > 0 and count:
        matrix, own = found.sandwich(inverse)
        matrix, own = matrix / independence, own * independence
        matrix = matrix if error.follows_from_moments else matrix * rows / max(rows - rank, 1.0)
        freedoms = np.minimum(own, freedom)
    with np.errstate(all="ignore"):
        ratio = np.diagonal(model) / np.diagonal(matrix)
    adjusted = np.where(np.isfinite(ratio) & (ratio > 0), ratio, 1.0)
    if freedom == 0:
        matrix, undetermined = np.full((count, count), np.inf), np.ones(count, np.bool_)
    told = dispersion if allowed is None else dispersion * likelihood.rows.independence
    information = told / 2 * np.diagonal(found.hessian) if dispersion < math.inf else np.full(count, np.inf)
    note = "" if allowed is None else allowed.note
    return Covariance(matrix, dispersion, freedom, freedoms, undetermined, information, kind, adjusted, known, note)
