"""Small least squares problems, many at once, with sums in a fixed order: the same bits on every processor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Mask
from shine.compiler.arrays.functions import dot

DEPENDENT = 1e-12
"""A column depends on earlier ones if its residual is at most this share of its length: that is rounding."""


@dataclass(frozen=True, eq=False)
class Regression:
    """Columns of a regression as an orthonormal basis and a triangle; leading axes are separate regressions.

    A column that depends on those before it has a basis vector of zeros, and gets the coefficient 0.

    Parameters
    ----------
    basis : ndarray of shape (..., n_columns, n_rows)
    triangle : ndarray of shape (..., n_columns, n_columns)
        The scaled columns in terms of the basis: ``column[j] = sum(triangle[i, j] * basis[i])``; the diagonal is 1 for
        a dependent column.
    scale : ndarray of shape (..., n_columns)
        Divisors of the columns.
    kept : ndarray of shape (..., n_columns), bool
        Whether a column is independent of those before it.

    Notes
    -----
    Gram and Schmidt's method. Each column is orthogonalized twice: that makes it orthogonal to rounding (Kahan; Parlett
    1980).
    """

    basis: Floats
    triangle: Floats
    scale: Floats
    kept: Mask

    @classmethod
    def of(cls, columns: Floats, dependent: float = DEPENDENT) -> Regression:
        """The regression on some columns, shape (..., n_columns, n_rows).

        A column that is not finite counts as dependent. To weigh rows, multiply columns and views by the square roots
        of the weights.
        """
        scale = np.abs(columns).max(axis=-1, initial=0.0)
        usable = np.isfinite(scale) & (scale > 0)
        scale = np.where(usable, scale, 1.0)
        scaled = np.where(usable[..., None], columns, 0.0) / scale[..., None]
        count = columns.shape[-2]
        basis, triangle = np.zeros_like(scaled), np.zeros((*columns.shape[:-1], count))
        kept = np.zeros(columns.shape[:-1], np.bool_)
        for j in range(count):
            rest, before = scaled[..., j, :], basis[..., :j, :]
            own = np.sqrt(dot(rest, rest))
            for _ in range(2 if j else 0):
                along = dot(before, rest[..., None, :])
                triangle[..., :j, j] += along
                rest = rest - np.add.reduce(along[..., None] * before, axis=-2)
            length = np.sqrt(dot(rest, rest))
            fresh = length > dependent * own
            basis[..., j, :] = np.where(fresh[..., None], rest, 0.0) / np.where(fresh, length, 1.0)[..., None]
            triangle[..., j, j] = np.where(fresh, length, 1.0)
            kept[..., j] = fresh
        return cls(basis, triangle, scale, kept)

    def coefficients(self, view: Floats) -> Floats:
        """Coefficients of the columns in the best fit to a view, shape (..., n_columns)."""
        solution = dot(self.basis, view[..., None, :])
        for j in reversed(range(solution.shape[-1])):
            solution[..., j] /= self.triangle[..., j, j]
            solution[..., :j] -= solution[..., j, None] * self.triangle[..., :j, j]
        return np.where(self.kept, solution / self.scale, 0.0)

    def rest(self, view: Floats) -> Floats:
        """Residuals of the best fit to a view, shape (..., n_rows)."""
        along = dot(self.basis, view[..., None, :])
        left: Floats = view - np.add.reduce(along[..., None] * self.basis, axis=-2)
        return left

    @property
    def variances(self) -> Floats:
        """Variance of each coefficient, in units of the rows' variance, shape (..., n_columns); inf where dependent."""
        count = self.triangle.shape[-1]
        inverse = np.zeros_like(self.triangle)
        for j in range(count):
            inverse[..., j, j] = 1 / self.triangle[..., j, j]
            for i in reversed(range(j)):
                across = self.triangle[..., i, i + 1 : j + 1] * inverse[..., i + 1 : j + 1, j]
                inverse[..., i, j] = -np.add.reduce(across, axis=-1) / self.triangle[..., i, i]
        return np.where(self.kept, dot(inverse, inverse) / self.scale**2, np.inf)


def least_squares(columns: Floats, view: Floats) -> Floats:
    """Coefficients of columns, shape (..., n_columns, n_rows), in the best fit to a view (see `Regression`)."""
    return Regression.of(columns).coefficients(view)


def combined(coefficients: Floats, columns: Floats) -> Floats:
    """Sum of columns, shape (..., n_columns, n_rows), each multiplied by its coefficient."""
    total: Floats = np.add.reduce(coefficients[..., None] * columns, axis=-2)
    return total
