"""Whether the noise is as the weights of the rows say, or grows with the predictions."""

from __future__ import annotations

import numpy as np

from shine.base.typing import Floats
from shine.evaluate.inference.intervals.quantiles import tail_of_chi_squared
from shine.evaluate.inference.likelihood import Likelihood, gram

CONVINCING = 0.05
"""Probability below which even noise would give such errors; then it counts as uneven. Robust standard errors cost
little where they are not needed, so weak evidence is enough (Long and Ervin 2000)."""

SAME = 1e-12
"""Share of the largest eigenvalue of the normal equations below which columns are combinations of others."""

FEWEST_ROWS = 20
"""Rows below which nothing is said."""


def is_uneven(likelihood: Likelihood, constants: Floats, total: float) -> bool:
    """Whether squared errors grow or fall clearly with the size of the predictions, or with a constant's influence.

    Koenker's (1981) form of the test of Breusch and Pagan (1979), on the predictions, their squares and the squared
    derivatives by the constants.
    """
    if likelihood.count < max(FEWEST_ROWS, 4 * len(constants)) or not total > 0:
        return False
    parts = [
        (block.weights * (block.arguments[1] - block.predictions) ** 2, block.predictions, block.partials)
        for block in likelihood.blocks(constants)
    ]
    errors = np.concatenate([part[0] for part in parts])
    predictions = np.concatenate([part[1] for part in parts])
    partials = np.concatenate([part[2] for part in parts], axis=1)
    columns = [np.ones_like(errors)]
    for column in (predictions, predictions**2, *partials**2):
        size = float(np.max(np.abs(column), initial=0.0))
        if size > 0 and np.isfinite(size):
            columns.append(column / size)
    mean = float(np.mean(errors))
    if not np.isfinite(errors).all() or not mean > 0:
        return False
    # The last column is the response; the normal equations are quicker than a decomposition of all rows.
    products = gram(np.array([*columns, errors / mean - 1]), np.ones_like(errors))
    sizes, vectors = np.linalg.eigh(products[:-1, :-1])
    kept = sizes > SAME * sizes[-1]
    explained = float(np.sum((vectors.T @ products[-1, :-1])[kept] ** 2 / sizes[kept]))
    rank, whole = int(np.count_nonzero(kept)), float(products[-1, -1])
    if rank < 2 or not whole > 0:
        return False
    return tail_of_chi_squared(len(errors) * explained / whole, rank - 1) < CONVINCING
