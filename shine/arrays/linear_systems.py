"""Linear systems with positive semidefinite matrices, solved in a fixed order: the same bits on every processor."""

from __future__ import annotations

import numpy as np

from shine.typing import Floats, Indices


def solved_together(matrices: Floats, damping: Floats, gradients: Floats, counts: Indices) -> Floats:
    """Solve ``(matrix + damping) solution = gradient`` for many systems in step, by the factors L D L^T.

    The matrices are positive semidefinite and need no pivoting. The solution of a system does not depend on the other
    systems: an unknown that it lacks adds exact zeros. LAPACK promises neither this nor the same bits on every machine.

    Parameters
    ----------
    matrices : ndarray of shape (n_unknowns, n_unknowns, n_systems)
    damping : ndarray of shape (n_systems,)
        Added to the diagonals.
    gradients : ndarray of shape (n_unknowns, n_systems)
    counts : ndarray of shape (n_unknowns,), int64
        Number of systems that have each unknown. They come first: systems lie in descending order of their unknowns.

    Returns
    -------
    ndarray of shape (n_unknowns, n_systems)
    """
    rest, solution = matrices.copy(), gradients.copy()
    diagonal = np.einsum("jji->ji", rest)
    diagonal += damping
    for k, n in enumerate(counts.tolist()):
        pivot = diagonal[k, :n]
        # Rounding may leave no positive pivot to an unknown that depends on those before it: its solution is then 0.
        np.copyto(pivot, np.inf, where=~(pivot > 0))
        factors = rest[k + 1 :, k, :n] / pivot
        rest[k + 1 :, k + 1 :, :n] -= factors[:, None] * rest[k, k + 1 :, :n]
        solution[k + 1 :, :n] -= factors * solution[k, :n]
    for k, n in reversed(list(enumerate(counts.tolist()))):
        solution[k, :n] /= diagonal[k, :n]
        solution[:k, :n] -= rest[:k, k, :n] * solution[k, :n]
    return solution


def solved(matrix: Floats, rights: Floats, ridge: float) -> Floats:
    """Solve ``(matrix + ridge) solution = right`` for each right side; shapes (n, n) and (n_sides, n)."""
    size = len(matrix)
    triangle, pivots, solutions = _eliminated(matrix + ridge * np.eye(size), rights.T)
    for k in reversed(range(size)):
        solutions[k] /= pivots[k]
        solutions[:k] -= np.multiply.outer(triangle[:k, k], solutions[k])
    return solutions.T


def inverse_diagonal(matrix: Floats, dependent: float = 1e-14) -> Floats:
    """Diagonal of the inverse of a matrix with a diagonal of ones, shape (n,).

    An unknown whose pivot is at most `dependent` depends on those before it. It counts as known: its entry is 0.
    """
    _, pivots, lower = _eliminated(matrix, np.eye(len(matrix)), dependent)
    total: Floats = np.add.reduce(lower**2 / pivots[:, None], axis=0)
    return total


def _eliminated(matrix: Floats, rights: Floats, dependent: float = 0.0) -> tuple[Floats, Floats, Floats]:
    """Eliminate each unknown from the equations below its own; return the upper triangle, pivots and right sides.

    An unknown whose pivot is at most `dependent` is left out; its pivot becomes infinite.
    """
    size = len(matrix)
    rest, pivots = np.concatenate([matrix, rights], axis=1), np.full(size, np.inf)
    for k in range(size):
        if not rest[k, k] > dependent:
            rest[k] = 0.0
            continue
        pivots[k] = rest[k, k]
        rest[k + 1 :, k + 1 :] -= np.multiply.outer(rest[k + 1 :, k] / pivots[k], rest[k, k + 1 :])
    return rest[:, :size], pivots, rest[:, size:]
