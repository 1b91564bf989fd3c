"""Monomials projected out: the part of a logarithm that no product of powers of the features explains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import Regression, dot, inner, log

DEPENDENT = 1e-9
"""Length, as a share of its own, below which a logarithm adds only rounding to the others."""

LEAST_BEYOND = 1e-7
"""Length of the part that monomials leave, as a share of the whole logarithm, below which it is rounding."""


def monomial_basis(columns: Sequence[Floats], weights: Floats) -> Floats:
    """An orthonormal basis of the span of 1 and log|column|, times the square roots of weights; (n_basis, n_rows)."""
    ones = np.ones(len(weights))
    logs = [log(np.abs(column)) for column in columns]
    found = Regression.of(np.stack([ones, *logs]) * np.sqrt(weights), DEPENDENT)
    return found.basis[found.kept]


def beyond_monomials(values: Floats, basis: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The part of log|values| that no monomial explains, each row scaled to length 1, and its length before.

    Rows with a zero or a non-finite value, and rows that are monomials themselves, become 0 with the length 0.
    """
    with np.errstate(all="ignore"):
        logs = log(np.abs(values)) * np.sqrt(weights)
        total = np.sqrt(dot(logs, logs))
        rest = logs - inner(inner(logs, basis), basis.T)
        lengths = np.sqrt(dot(rest, rest))
        good = np.isfinite(lengths) & (lengths > LEAST_BEYOND * total)
        rest = np.where(good[:, None], rest / np.where(good, lengths, 1)[:, None], 0)
    return rest, np.where(good, lengths, 0.0)
