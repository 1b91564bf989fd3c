"""Linear systems with positive semidefinite matrices, solved in a fixed order: the same bits on every processor."""

from __future__ import annotations

import numpy as np

from shine.base.typing import Floats


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
