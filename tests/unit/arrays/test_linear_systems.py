"""Small linear systems, against LAPACK."""

import numpy as np
import pytest

from shine.arrays.linear_systems import inverse_diagonal, solved, solved_together


def test_a_system_is_solved():
    a = np.random.default_rng(0).standard_normal((5, 20))
    matrix, rights = a @ a.T, np.arange(10.0).reshape(2, 5)
    assert solved(matrix, rights, 0.5) == pytest.approx(np.linalg.solve(matrix + 0.5 * np.eye(5), rights.T).T)


def test_the_diagonal_of_the_inverse():
    a = np.random.default_rng(0).standard_normal((6, 30))
    a /= np.sqrt((a**2).sum(axis=1))[:, None]
    assert inverse_diagonal(a @ a.T) == pytest.approx(np.diag(np.linalg.inv(a @ a.T)))


def test_an_unknown_that_depends_on_others_counts_as_known():
    matrix = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    known = np.linalg.inv(matrix[np.ix_([0, 2], [0, 2])])
    assert inverse_diagonal(matrix) == pytest.approx([known[0, 0], 0.0, known[1, 1]])


def test_systems_of_different_sizes_are_solved_together():
    a = np.random.default_rng(0).standard_normal((3, 4, 9))
    matrices, damping, gradients = a @ a.swapaxes(1, 2), np.array([0.1, 1.0, 0.0]), np.ones((4, 3))
    # The last system lacks the last unknown.
    matrices[2, 3], matrices[2, :, 3], gradients[3, 2] = 0.0, 0.0, 0.0
    solutions = solved_together(matrices.transpose(1, 2, 0), damping, gradients, np.array([3, 3, 3, 2]))
    for i, unknowns in enumerate((4, 4, 3)):
        matrix = matrices[i, :unknowns, :unknowns] + damping[i] * np.eye(unknowns)
        assert solutions[:unknowns, i] == pytest.approx(np.linalg.solve(matrix, np.ones(unknowns)))
