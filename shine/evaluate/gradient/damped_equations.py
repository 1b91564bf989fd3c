"""One step of Levenberg-Marquardt: the normal equations of an individual scaled, damped and solved, as native code.

With J^T J the matrix of the normal equations and S the roots of its diagonal, the step solves
``(S^-1 J^T J S^-1 + damping) (S step) = S^-1 J^T r``: Marquardt's scaling (1963), which makes the step independent of
the unknowns' units. Systems have a handful of unknowns: scalar code solves them by the factors L D L^T.
"""

from __future__ import annotations

from math import inf, sqrt

from shine.base.typing import Floats, Mask
from shine.evaluate.gradient.normal_equations import FIXED_COLUMNS

LINE = FIXED_COLUMNS - 1
"""Unknowns before the constants: intercept and slope."""


def scale_equations(
    products: Floats,
    matrix: Floats,
    gradient: Floats,
    scale: Floats,
    fixed: Mask,
    slope: float,
    count: int,
    size: int,
    line: int,
) -> None:
    """Scale the normal equations to a diagonal of ones.

    It reads the lower triangle of the products of the residual and the unknowns, and writes `gradient`, `scale` and the
    upper triangle of `matrix` without its diagonal. `count` unknowns are in use; a row of the matrix has room for
    `size`. `fixed` has an element for each constant; `line` is whether the line is fitted.

    An unknown that is fixed, or whose influence is 0 or not finite, gets a row of the unit matrix and gradient 0.
    """
    for unknown in range(count):
        row = (unknown + 1) * (size + 1)
        factor = _influence(unknown, slope)
        root = sqrt(products[row + unknown + 1] * factor * factor)
        slant = products[row] * factor
        moves = line
        if unknown >= LINE:
            moves = not fixed[unknown - LINE]
        usable = moves and 0.0 < root < inf and abs(slant) < inf
        # A scale of 0 marks an unusable unknown until the matrix is written.
        scale[unknown] = root if usable else 0.0
        gradient[unknown] = slant / root if usable else 0.0
    for row in range(count):
        for column in range(row):
            value = products[(row + 1) * (size + 1) + column + 1] * _influence(row, slope) * _influence(column, slope)
            value = value / (scale[row] * scale[column])
            usable = scale[row] > 0.0 and scale[column] > 0.0 and abs(value) < inf
            matrix[column * size + row] = value if usable else 0.0
    for unknown in range(count):
        if scale[unknown] == 0.0:
            scale[unknown] = 1.0


def _influence(unknown: int, slope: float) -> float:
    """Factor of the derivatives of the prediction in those of the model."""
    return slope if unknown >= LINE else 1.0


def solve_equations(
    matrix: Floats,
    gradient: Floats,
    scale: Floats,
    work: Floats,
    step: Floats,
    count: int,
    size: int,
    damping: float,
) -> float:
    """Solve the damped equations; the first three arguments are results of `scale_equations`.

    It writes the step, in the units of the unknowns, and returns the promise: how far the squared error would fall if
    the model were linear. `work` has room for a matrix.
    """
    for row in range(count):
        step[row] = gradient[row]
        work[row * size + row] = 1.0 + damping
        for column in range(row + 1, count):
            work[row * size + column] = matrix[row * size + column]
    # A semidefinite matrix needs no pivoting.
    for k in range(count):
        pivot = work[k * size + k]
        # Rounding may leave an unknown that depends on earlier ones without a positive pivot; it then does not move.
        pivot = pivot if pivot > 0.0 else inf
        work[k * size + k] = pivot
        for row in range(k + 1, count):
            factor = work[k * size + row] / pivot
            step[row] -= factor * step[k]
            for column in range(row, count):
                work[row * size + column] -= factor * work[k * size + column]
    promise = 0.0
    for back in range(count):
        k = count - 1 - back
        total = step[k]
        for column in range(k + 1, count):
            total -= work[k * size + column] * step[column]
        step[k] = total / work[k * size + k]
        promise += step[k] * (gradient[k] + damping * step[k])
    for k in range(count):
        step[k] = step[k] / scale[k]
    return promise
