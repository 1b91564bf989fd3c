"""How far off may the constants of a law be that noisy rows determine?

Let d be the candidate minus the law in the rows, and J the derivatives of the law by its constants. Whoever fits the
law by least squares with weights w has d = J e, with errors e of the constants of covariance
(J'wJ)^-1 J'w S w J (J'wJ)^-1, where S holds the variances of the readings. So (J'wd)' (J'w S wJ)^-1 (J'wd) is a sum of
as many squares as J has independent columns; the limit is exceeded with the probability of four standard deviations.
The weights are those of absolute, of relative, or of the true errors: whichever the engine used, its fit may pass.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from quality.formulas import Formula
from quality.freedom import Freed, as_law

Array = NDArray[np.float64]

DEVIATIONS = 4.0
"""Standard errors that constants may be off."""


def within_noise(candidate: Formula, law: Formula, X: Array, sigma: Array, *, offset: bool = False) -> bool:
    """Whether the candidate's values are those of the law with constants that are off by what the noise allows.

    `offset` adds a constant to the law, whose true value is 0.
    """
    true, freed = law.predict(X), as_law(law)
    off = candidate.predict(X) - true
    if not np.isfinite(off).all():
        return False
    sigma = np.maximum(sigma, 1e-9 * np.abs(true).max())
    J = _derivatives(freed, X, true)
    if offset:
        J = np.column_stack([J, np.ones(len(true))])
    weights = [np.ones(len(true)), 1 / sigma**2]
    if (true != 0).all():
        weights.append(1 / true**2)
    return any(_allowed(J, off, sigma, w / w.mean()) for w in weights)


def _allowed(J: Array, off: Array, sigma: Array, weights: Array) -> bool:
    """Whether a least-squares fit with these weights can be this far off."""
    roots = np.sqrt(weights)
    Q, singular, _ = np.linalg.svd(roots[:, None] * J / np.linalg.norm(roots[:, None] * J, axis=0), full_matrices=False)
    Q = Q[:, singular > 1e-9 * singular[0]]
    spread = weights * sigma**2
    along = Q.T @ (roots * off)
    beside = roots * off - Q @ along
    covariance = Q.T @ (spread[:, None] * Q)
    limit = float(chi2.isf(2 * norm.sf(DEVIATIONS), Q.shape[1]))
    return bool(along @ np.linalg.pinv(covariance) @ along <= limit and beside @ beside <= limit * spread.mean())


def _derivatives(law: Freed, X: Array, true: Array) -> Array:
    """Derivatives by the law's factor and its free constants, one column each, in units that make them comparable."""
    columns = [true]
    values = law.formula.values
    for i in np.flatnonzero(law.free):
        step = 1e-6 * np.eye(len(values))[i] * np.abs(values[i])
        columns.append((law.formula.predict(X, values + step) - law.formula.predict(X, values - step)) / 2e-6)
    matrix = np.column_stack([column for column in columns if np.isfinite(column).all() and np.any(column)])
    return matrix
