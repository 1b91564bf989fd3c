"""Sums of errors that are rounded once, as by `math.fsum`.

The fitnesses of formulas that compute the same values in another order may differ in the last bits of the sum, and
these bits decide tournaments. With exact sums, a script makes the same decisions as without Shine.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shine.base.typing import Floats
from shine.evaluate.losses.form import RowLoss

BLOCK = 2048
"""Rows that are added up at a time."""

_CELLS = 1 << 15
"""Numbers summed at a time: few enough for the cache, enough to hide the cost of calling NumPy."""

_LARGEST = 2.0**960
"""Largest number that can be split; larger ones are added unsplit."""


def sums_of_errors(predictions: NDArray[np.floating], target: Floats, kind: RowLoss) -> Floats:
    """Sum over the rows of the errors of each individual.

    Parameters
    ----------
    predictions : ndarray of shape (n_individuals, n_rows)
    target : ndarray of shape (n_rows,)
    kind : RowLoss

    Returns
    -------
    ndarray of shape (n_individuals,), float64
        The exact sum of the errors, each rounded to float64, to the nearest float64 (except within about 1e-21 of a
        tie, relative to the sum); inf or NaN where an error is.
    """
    individuals, rows = predictions.shape
    starts = range(0, rows, BLOCK)
    parts = np.empty((individuals, 2 * len(starts)))
    group = max(_CELLS // min(rows, BLOCK), 1)
    memory = np.empty((2, group, min(rows, BLOCK)))
    with np.errstate(all="ignore"):
        for first in range(0, individuals, group):
            chosen = slice(first, first + group)
            for block, start in enumerate(starts):
                span = slice(start, start + BLOCK)
                some = predictions[chosen, span]
                errors, rest = memory[:, : some.shape[0], : some.shape[1]]
                errors[...] = kind.errors(some, target[span])
                parts[chosen, 2 * block], parts[chosen, 2 * block + 1] = _halves(errors, rest)
        plain = parts.sum(axis=1)
    sure = np.isfinite(plain) & (plain < _LARGEST)
    plain[sure] = [math.fsum(row) for row in parts[sure].tolist()]
    return plain


def _halves(values: Floats, memory: Floats) -> tuple[Floats, Floats]:
    """Two sums over each row of non-negative numbers: an exact one of their leading bits, and one of the rest.

    Adding and subtracting a power of two that exceeds the sum leaves multiples of its last bit, whose sums are exact in
    any order (Rump, Ogita, Oishi, Accurate floating-point summation, 2008). `memory` has the shape of the values.
    """
    bits = values.shape[1].bit_length() + 1
    exponents = np.frexp(values.max(axis=1))[1]
    power = np.ldexp(1.0, np.minimum(exponents + bits, 1023))[:, None]
    np.add(values, power, out=memory)
    np.subtract(memory, power, out=memory)
    total = memory.sum(axis=1)
    np.subtract(values, memory, out=memory)
    return total, memory.sum(axis=1)
