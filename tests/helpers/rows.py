"""Random rows: ordinary numbers, numbers of every magnitude, subnormal and special ones."""

from __future__ import annotations

import numpy as np
from helpers.formulas import FEATURES, WRITTEN
from numpy.typing import NDArray


def random_rows(rng: np.random.Generator, rows: int, dtype: str) -> list[NDArray[np.floating]]:
    """Columns of ordinary numbers, of all magnitudes, of subnormal and of special values.

    Some columns have whole or usual numbers instead of ordinary ones, some have no negative ones.
    """
    info = np.finfo(dtype)
    special = np.array(
        [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 0.5, np.pi]
    )
    columns = []
    for _ in FEATURES:
        ordinary = rng.normal(size=rows) * 3
        wide = np.ldexp(rng.uniform(-1, 1, rows), rng.integers(info.minexp, info.maxexp, rows))
        kind = rng.random(rows)
        style = rng.random()
        if style < 0.1:
            ordinary = rng.integers(-10, 11, rows).astype(np.float64)
        elif style < 0.2:
            ordinary = rng.choice(WRITTEN, rows)
        elif style < 0.3:
            ordinary, wide = np.abs(ordinary), np.abs(wide)
        elif style < 0.35:
            wide = rng.normal(size=rows) * float(info.tiny)
        column = np.where(kind < 0.8, ordinary, np.where(kind < 0.95, wide, rng.choice(special, rows)))
        with np.errstate(over="ignore", under="ignore"):
            columns.append(column.astype(dtype))
    return columns
