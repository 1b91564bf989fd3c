"""The covariance of constants that least squares fitted to rows that depend on one another.

Both are sandwiches ``H^-1 B H^-1`` with H the second derivatives of the sum of errors. If errors correlate by
``rho ** gap`` along the order of the rows, B follows from rho, which the errors and the derivatives tell by residual
maximum likelihood. If rows come in clusters, B is the sum of the squares of the clusters' slopes, each error less what
its own cluster contributed to the fit: that is the jackknife over clusters, CR3 (Bell and McCaffrey 2002), with
Student's t of one degree of freedom less than there are clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shine.base.typing import Floats
from shine.evaluate.inference.likelihood import Likelihood


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
