"""Small linear systems, against LAPACK."""

import numpy as np
import pytest

from shine.compiler.arrays import inverse_diagonal, solved


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
