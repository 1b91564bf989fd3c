"""Positive semidefinite systems, solved in a fixed order of operations: the same bits on every processor."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def solved(matrix: Array, right: Array, ridge: float) -> Array:
    """Solution of ``(matrix + ridge) solution = right``, shapes (n, n) and (n,)."""
    one = np.ones(len(right), np.int64)
    return solved_together(matrix[:, :, None], np.array([ridge]), right[:, None], one)[:, 0]


def solved_together(matrices: Array, damping: Array, gradients: Array, counts: Integers) -> Array:
    """Solutions of ``(matrix + damping) solution = gradient`` by the factors L D L^T, for all individuals in step.

    The matrices are positive semidefinite, so that no pivoting is needed. An individual's solution has the same bits
    whatever others it comes with: unknowns that only they have add exact zeros. LAPACK does not promise that, nor the
    same bits on every machine.
    """
    rest, solution = matrices.copy(), gradients.copy()
    diagonal = np.einsum("jji->ji", rest)
    diagonal += damping
    for k, n in enumerate(counts.tolist()):
        pivot = diagonal[k, :n]
        # Rounding may leave an unknown that depends on those before it without a positive pivot; it stays where it is.
        np.copyto(pivot, np.inf, where=~(pivot > 0))
        factors = rest[k + 1 :, k, :n] / pivot
        rest[k + 1 :, k + 1 :, :n] -= factors[:, None] * rest[k, k + 1 :, :n]
        solution[k + 1 :, :n] -= factors * solution[k, :n]
    for k, n in reversed(list(enumerate(counts.tolist()))):
        solution[k, :n] /= diagonal[k, :n]
        solution[:k, :n] -= rest[:k, k, :n] * solution[k, :n]
    return solution


def inverse_diagonal(matrix: Array, dependent: float = 1e-14) -> Array:
    """Diagonal of the inverse of a matrix with a diagonal of ones, shape (n,).

    An unknown that depends on those before it, so that its pivot is at most `dependent`, counts as known.
    """
    n = len(matrix)
    rest, inverse = matrix.copy(), np.eye(n)
    total = np.zeros(n)
    for k in range(n):
        pivot = rest[k, k]
        if not pivot > dependent:
            inverse[k] = 0.0
            continue
        factors = rest[k + 1 :, k] / pivot
        rest[k + 1 :, k + 1 :] -= factors[:, None] * rest[k, k + 1 :]
        inverse[k + 1 :] -= factors[:, None] * inverse[k]
        total += inverse[k] ** 2 / pivot
    return total
