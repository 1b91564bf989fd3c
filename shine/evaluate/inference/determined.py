"""Directions of the constants that the rows determine.

Changes of the constants that do not change the predictions are not determined. Nor are those along which the likelihood
levels off, as where a formula separates two classes: any larger multiple of the predictions is as likely there, and the
best constants are infinite. So standard errors and profiles begin at constants before, where the rows still speak.

A number is redundant if the others make up for any change of it. In ``a/(b + c*x)`` one of the three constants can be
any number. Where that is a simple number, 1 say, people mean the others: it belongs to the structure of the formula.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Mask
from shine.data.datasets.dataset import Dataset
from shine.evaluate.inference.constants import Form, is_simple
from shine.evaluate.inference.curvature import Curvature
from shine.evaluate.inference.likelihood import Likelihood, gram, row_error
from shine.lang.numerals import cost_as_written

NOT_DETERMINED = 1e-11
"""Share of the largest eigenvalue of the scaled information below which a direction of the constants is not determined:
half of float64's digits, in squares, and some margin."""

TAKES_PART = 1e-3
"""Least share of a constant in such a direction that makes it undetermined."""

FAR, LEVEL = 2.0, 0.01
"""Standard errors along a direction at which the log-likelihood must have fallen, on either side, by this share of what
the information says. Otherwise it levels off."""

RISE = 0.05
"""Largest drop in log-likelihood, in nats, that still counts."""


@dataclass(frozen=True, eq=False)
class Determined:
    """The part of the constants that the rows determine.

    Parameters
    ----------
    start : ndarray of shape (n_constants,)
        The best constants, or some before the log-likelihood levels off: where profiles begin.
    curvature : Curvature
        Of the sum of errors there.
    inverse : ndarray of shape (n_constants, n_constants)
        Of its second derivatives, on the directions that are determined.
    full_inverse : ndarray of shape (n_constants, n_constants)
        The same with the directions along which the log-likelihood levels off.
    directions : ndarray of shape (n_directions, n_constants)
        Changes of the constants that do not change the predictions, or the log-likelihood however large they are.
    lost : ndarray of shape (n_constants,), bool
        Constants that they change.
    levels_off : ndarray of shape (n_constants,)
        Side on which a constant is not bounded, as the log-likelihood levels off: 1 or -1, or 0.
    """

    start: Floats
    curvature: Curvature
    inverse: Floats
    full_inverse: Floats
    directions: Floats
    lost: Mask
    levels_off: Floats


def determined(likelihood: Likelihood, constants: Floats, total: float) -> Determined:
    """The part that the rows determine of constants with a finite sum of errors.

    Parameters
    ----------
    likelihood : Likelihood
    constants : ndarray of shape (n_constants,)
        The best ones.
    total : float
        The sum of errors that they leave.
    """
    known, growing = likelihood.error.log_likelihood is not None, np.zeros_like(constants)
    if known:
        constants, growing = _before_level(likelihood, constants, total)
    found = Curvature.of(likelihood, constants)
    full_inverse, directions, lost = _inverse(found.hessian, found.convex)
    if not known or not len(constants) or not np.isfinite(full_inverse).all():
        return Determined(constants, found, full_inverse, full_inverse, directions, lost, np.zeros_like(constants))
    inverse, level = _without_level(likelihood, constants, full_inverse, growing, found.smoothed)
    moved = np.where(np.abs(level) > TAKES_PART, np.sign(level), 0.0)
    sides = np.where(lost, 0.0, np.sign(moved.sum(axis=0)))
    scale = _sizes(full_inverse)
    return Determined(
        constants,
        found,
        inverse,
        full_inverse,
        np.concatenate([directions, level * scale]),
        lost | moved.any(axis=0),
        sides,
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
    known = np.isfinite(scale)
    scale = np.where(known & (scale > 0), scale, 1.0)
    sizes, vectors = np.linalg.eigh(np.where(known & known[:, None], convex, 0.0) / scale / scale[:, None])
    lost = ~(sizes > NOT_DETERMINED * max(float(sizes[-1]), 0.0))
    kept, others = vectors[:, ~lost], vectors[:, lost].T
    inner = kept.T @ (hessian / scale / scale[:, None]) @ kept
    # Share of its exact part below which the least curvature of the sum of errors counts as that part: the constants
    # are then not at a minimum, or hardly. It also counts where second derivatives overflow.
    if not len(inner) or not np.isfinite(inner).all() or np.linalg.eigvalsh(inner)[0] < 0.01 * sizes[~lost][0]:
        inner = np.diag(sizes[~lost])
    inverse = kept @ np.linalg.inv(inner) @ kept.T
    return (inverse + inverse.T) / 2 / scale / scale[:, None], others / scale, (np.abs(others) > TAKES_PART).any(axis=0)


def _before_level(likelihood: Likelihood, constants: Floats, total: float) -> tuple[Floats, Floats]:
    """Constants before the log-likelihood levels off with growing predictions, and the change by which they grow.

    Parameters
    ----------
    likelihood : Likelihood
        Its error has a factor that makes it a log-likelihood.
    constants : ndarray of shape (n_constants,)
    total : float
        Sum of errors that they leave.

    Returns
    -------
    (ndarray, ndarray) of shape (n_constants,)
        The constants as they are, and 0, if it does not level off.
    """
    factor = likelihood.error.log_likelihood or 1.0
    step = _growth(likelihood, constants)

    def rise(share: float) -> float:
        return factor * (likelihood.total(constants + share * step) - total)

    if not rise(-1.0) > RISE or not rise(1.0) < LEVEL * rise(-1.0):
        return constants, 0 * step
    shares = (0.5**halving - 1 for halving in range(1, 60))  # most times that predictions are halved to get there
    return constants + next((share for share in shares if rise(share) >= RISE), 0.0) * step, step


def _growth(likelihood: Likelihood, constants: Floats) -> Floats:
    """The change of the constants that doubles the predictions, as well as a line can."""
    count = len(constants)
    products, slopes = np.zeros((count, count)), np.zeros(count)
    with np.errstate(all="ignore"):
        for block in likelihood.blocks(constants):
            products += gram(block.partials, block.counts)
            slopes += np.einsum("ir,r->i", block.partials, block.counts * block.predictions)
        scale = np.sqrt(np.diagonal(products))
        scaled = products / scale / scale[:, None]
        if not (np.isfinite(scaled).all() and np.isfinite(slopes).all()):
            return np.zeros(count)
        step: Floats = np.linalg.pinv(scaled, hermitian=True) @ (slopes / scale) / scale
    return step


def _without_level(
    likelihood: Likelihood, constants: Floats, full_inverse: Floats, growing: Floats, smoothed: bool
) -> tuple[Floats, Floats]:
    """The inverse without the directions along which the likelihood levels off; and these, in sizes of the constants.

    Parameters
    ----------
    likelihood : Likelihood
    constants : ndarray of shape (n_constants,)
    full_inverse : ndarray of shape (n_constants, n_constants)
        The inverse of the second derivatives of the sum of errors.
    growing : ndarray of shape (n_constants,)
        A direction that is known to be such a one (see `_before_level`), or 0.
    smoothed : bool
        Whether the errors have kinks. Their curvature does not say what the likelihood is in a single direction, so
        that no others are looked for.
    """
    factor, total, scale = likelihood.error.log_likelihood or 1.0, likelihood.total(constants), _sizes(full_inverse)
    flat = (growing / scale)[None] if growing.any() else np.zeros((0, len(scale)))
    flat = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    others = np.eye(len(constants)) - flat.T @ flat
    sizes, vectors = np.linalg.eigh(others @ (full_inverse / scale / scale[:, None]) @ others)
    expected, level = LEVEL * FAR**2 / 2, np.zeros(len(sizes), np.bool_)
    for index in [] if smoothed else np.flatnonzero(sizes > NOT_DETERMINED * sizes[-1]).tolist():
        step = FAR * float(np.sqrt(sizes[index] / factor)) * vectors[:, index] * scale
        rises = [factor * (likelihood.total(constants + side * step) - total) for side in (-1, 1)]
        level[index] = min(rises) < expected
        vectors[:, index] *= 1.0 if rises[1] < rises[0] else -1.0
    kept = vectors[:, ~level]
    left = (kept * sizes[~level]) @ kept.T * scale * scale[:, None]
    return left, np.concatenate([flat, vectors[:, level].T])


def _sizes(inverse: Floats) -> Floats:
    """Sizes of the constants by their variances."""
    scale = np.sqrt(np.maximum(np.diagonal(inverse), 0.0))
    return np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)


ROWS = 2000
"""Number of rows for comparisons of changes."""


def redundant(form: Form, rows: Dataset) -> frozenset[int]:
    """Places of simple numbers that the other constants make redundant, the simplest first.

    Parameters
    ----------
    form : Form
        All its numbers are constants.
    rows : Dataset
    """
    simple = [at >= 0 and is_simple(value) for at, value in zip(form.places, form.values.tolist(), strict=True)]
    if not any(simple):
        return frozenset()
    sample = rows.sampled(ROWS, np.random.default_rng(0))
    count = len(form.names)
    products = np.zeros((count, count))
    with np.errstate(all="ignore"):
        for block in Likelihood(form, sample, row_error("mse")).blocks(form.values):
            partials = np.where(np.isfinite(block.partials).all(axis=0), block.partials, 0.0)
            products += gram(partials, block.counts)
        scale = np.sqrt(np.diagonal(products))
        scale = np.where(scale > 0, scale, 1.0)
        products = products / scale / scale[:, None]
    if not np.isfinite(products).all():
        return frozenset()
    costs = [cost_as_written(value) if own else np.inf for own, value in zip(simple, form.values.tolist(), strict=True)]
    kept: list[int] = []
    found = set()
    # The simplest come last, when the others may already span their changes; first of all those that are not written.
    for index in sorted(range(count), key=lambda at: (form.places[at] in form.implied, -costs[at])):
        own = products[np.ix_(kept, kept)]
        others = products[kept, index]
        left = products[index, index] - float(others @ np.linalg.lstsq(own, others, rcond=None)[0] if kept else 0.0)
        if left > count * NOT_DETERMINED:
            kept.append(index)
        elif simple[index]:
            found.add(form.places[index])
    return frozenset(found)
