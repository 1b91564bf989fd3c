"""Fits in which some unknowns are whole numbers: fitted as if they were not, rounded, and their neighbours tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.search.templates.fits.unknowns import Unknowns

NEIGHBOURS_FROM = 20
"""Steps of a fit from which neighbours of whole numbers are tried: in the final fits, not in those of a search."""

_ROUNDS, _MOST_TRIALS = 3, 4096
"""Most rounds of neighbours, and most trials of a round."""

Fitted = Callable[[Indices, Unknowns, Floats], tuple[Floats, Floats]]
"""``fitted(which, unknowns, start)``: fits of the individuals at some positions, each from its start."""


def with_integers(fitted: Fitted, unknowns: Unknowns, start: Floats, *, neighbours: bool) -> tuple[Floats, Floats]:
    """Values and errors of the best fit of each individual whose integers are whole numbers.

    Parameters
    ----------
    fitted : callable
    unknowns : Unknowns
    start : ndarray of shape (n_individuals, n_unknowns)
    neighbours : bool
        Whether numbers one above and one below are tried too.
    """
    integer, everyone = unknowns.spread(unknowns.integers) & ~unknowns.fixed, np.arange(len(start))
    held = replace(unknowns, fixed=unknowns.fixed | integer)
    values, errors = fitted(everyone, held, _rounded(start, integer, unknowns))
    relaxed, _ = fitted(everyone, unknowns, values)
    values, errors = _better(values, errors, *fitted(everyone, held, _rounded(relaxed, integer, unknowns)))
    for _ in range(_ROUNDS if neighbours else 0):
        trials = _neighbours(values, errors, integer, unknowns)
        if not len(trials.rows) or len(trials.rows) > _MOST_TRIALS:
            break
        found, losses = fitted(trials.rows, held.take(trials.rows), trials.values)
        gains = losses < errors[trials.rows]
        before = errors
        # The best neighbour of each, and all that are better together: groups do not depend on one another.
        first = trials.best(losses, len(start))
        single = np.where(first >= 0, losses[first], np.inf)
        values, errors = _better(values, errors, found[first], single)
        together = trials.together(values, gains, integer, unknowns)
        values, errors = _better(values, errors, *fitted(everyone, held, together))
        if not (errors < before).any():
            break
    return values, errors


class _Trials:
    """Individuals with one whole number changed by one."""

    def __init__(self, rows: Indices, places: Indices, numbers: Floats, values: Floats) -> None:
        self.rows, self.places, self.numbers, self.values = rows, places, numbers, values

    def best(self, losses: Floats, count: int) -> Indices:
        """The trial of each individual with the least loss; -1 if it has none."""
        first = np.full(count, -1)
        order = np.lexsort((losses, self.rows))
        rows, at = np.unique(self.rows[order], return_index=True)
        first[rows] = order[at]
        return first

    def together(self, values: Floats, gains: Mask, integer: Mask, unknowns: Unknowns) -> Floats:
        """The individuals with all changes that gain; of two for one number, the later one."""
        changed = values.copy()
        changed[self.rows[gains], self.places[gains]] = self.numbers[gains]
        return _rounded(changed, integer, unknowns)


def _neighbours(values: Floats, errors: Floats, integer: Mask, unknowns: Unknowns) -> _Trials:
    lows, highs = unknowns.spread(unknowns.lows), unknowns.spread(unknowns.highs)
    rows, places = np.nonzero(integer & (np.isfinite(errors) & (errors > 0))[:, None])
    rows, places, change = np.repeat(rows, 2), np.repeat(places, 2), np.tile([1.0, -1.0], len(rows))
    numbers = values[rows, places] + change
    allowed = (numbers >= lows[rows, places]) & (numbers <= highs[rows, places])
    rows, places, numbers = rows[allowed], places[allowed], numbers[allowed]
    trial = values[rows]
    trial[np.arange(len(rows)), places] = numbers
    return _Trials(rows, places, numbers, trial)


def _rounded(values: Floats, integer: Mask, unknowns: Unknowns) -> Floats:
    """Values with whole numbers within the bounds where they must be."""
    lows, highs = np.ceil(unknowns.spread(unknowns.lows)), np.floor(unknowns.spread(unknowns.highs))
    return np.where(integer, np.minimum(np.maximum(np.rint(values), lows), highs), values)


def _better(values: Floats, errors: Floats, others: Floats, losses: Floats) -> tuple[Floats, Floats]:
    better = losses < errors
    return np.where(better[:, None], others, values), np.where(better, losses, errors)
