"""Fits of parameters by group while everything else is fixed: groups do not depend on one another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shine.base.typing import Floats, Mask
from shine.evaluate.gradient.constant_fitting import (
    AFTER_BETTER,
    AFTER_WORSE,
    FIRST_DAMPING,
    LEAST_DAMPING,
    MOST_DAMPING,
)
from shine.search.templates.composition import Composed
from shine.search.templates.fits.grouped_fits import GroupedFits
from shine.search.templates.fits.shrinkage import inverses
from shine.search.templates.fits.unknowns import Unknowns


class SeparateFits:
    """Fits of each group by itself (Levenberg-Marquardt, with a damping of its own).

    Parameters
    ----------
    fits : GroupedFits
    composed : sequence of Composed
        Formulas without shared constants that are free.
    unknowns : Unknowns
    prior : ndarray of shape (2, own), optional
        Precisions and centers: each value is charged ``precision * (value - center)^2``.
    """

    def __init__(
        self, fits: GroupedFits, composed: Sequence[Composed], unknowns: Unknowns, prior: Floats | None = None
    ) -> None:
        self._fits, self._composed, self._unknowns = fits, composed, unknowns
        self._lows, self._highs = unknowns.lows[:, None, : unknowns.own], unknowns.highs[:, None, : unknowns.own]
        self._prior = np.zeros((2, unknowns.own)) if prior is None else prior

    def fitted(self, start: Floats, steps: int, tolerance: float, held: Mask) -> tuple[Floats, Floats]:
        """Values of each group, and its errors and charges.

        Parameters
        ----------
        start : ndarray of shape (n_individuals, n_groups, own)
        steps : int
        tolerance : float
            A group's fit has ended if its next step promises to remove less than this share of its error.
        held : ndarray of shape (own,), bool
            Which parameters keep their values.

        Returns
        -------
        values : ndarray of shape (n_individuals, n_groups, own)
        errors : ndarray of shape (n_individuals, n_groups)
            inf where a prediction is not finite.
        """
        values, damping = start, np.full(start.shape[:2], FIRST_DAMPING)
        errors, matrices, slants = self._measured(start)
        with np.errstate(all="ignore"):
            for _ in range(steps):
                diagonals = np.stack([matrices[..., k, k] for k in range(start.shape[2])], axis=-1)
                stays = held | ((values <= self._lows) & (slants < 0)) | ((values >= self._highs) & (slants > 0))
                stays |= ~(np.isfinite(slants) & np.isfinite(diagonals) & (diagonals > 0))
                free = np.where(stays[..., None] | stays[..., None, :] | ~np.isfinite(matrices), 0.0, matrices)
                charges = np.where(stays, 0.0, damping[..., None] * diagonals)
                inverse, pull = inverses(free, charges), np.where(stays, 0.0, slants)
                step = np.add.reduce(inverse * pull[..., None, :], axis=-1)
                promise = np.add.reduce(step * (pull + charges * step), axis=-1)
                going = (promise > tolerance * errors) & np.isfinite(errors)
                if not going.any():
                    break
                moved = np.minimum(np.maximum(values + step, self._lows), self._highs)
                trial = np.where(going[..., None], moved, values)
                found, new_matrices, new_slants = self._measured(trial)
                better = going & (found < errors)
                damping = np.clip(damping * np.where(better, AFTER_BETTER, AFTER_WORSE), LEAST_DAMPING, MOST_DAMPING)
                values, errors = np.where(better[..., None], trial, values), np.where(better, found, errors)
                matrices = np.where(better[..., None, None], new_matrices, matrices)
                slants = np.where(better[..., None], new_slants, slants)
        return values, errors

    def _measured(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Errors, matrices, and products with the residual of each group, charges included."""
        n, _, own = values.shape
        errors, blocks = self._fits.blocks(self._composed, self._unknowns, values.reshape(n, -1))
        precisions, centers = self._prior
        away = centers - values
        matrices, slants = blocks[:, :, :own, :own] + np.diag(precisions), blocks[:, :, :own, -1] + precisions * away
        total = errors + np.add.reduce(precisions * away**2, axis=-1)
        return np.where(np.isfinite(total), total, np.inf), matrices, slants


def separately_fitted(
    fits: SeparateFits, starts: Floats, integers: Mask, steps: int, tolerance: float
) -> tuple[Floats, Floats]:
    """The best value of each parameter for each group from several starts, and each group's errors.

    Parameters
    ----------
    fits : SeparateFits
    starts : ndarray of shape (n_starts, n_groups, own)
    integers : ndarray of shape (own,), bool
        Which parameters are whole numbers; the nearest ones, and their neighbours, are tried.
    steps, tolerance
        See `SeparateFits.fitted`.
    """
    values, errors = _best(*fits.fitted(starts, steps, tolerance, np.zeros(len(integers), np.bool_)))
    if not integers.any():
        return values, errors
    rounded = np.where(integers, np.rint(values), values)
    changes = [np.zeros(len(integers))]
    for k in np.flatnonzero(integers).tolist():
        changes += [sign * np.eye(len(integers))[k] for sign in (1.0, -1.0)]
    trials = np.stack([rounded + change for change in changes] + [rounded] * max(len(starts) - len(changes), 0))
    found = [fits.fitted(np.broadcast_to(each, starts.shape), steps, tolerance, integers) for each in trials]
    return _best(np.concatenate([each for each, _ in found]), np.concatenate([loss for _, loss in found]))


def _best(values: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """The best start of each group."""
    first, everyone = np.argmin(errors, axis=0), np.arange(errors.shape[1])
    return values[first, everyone], errors[first, everyone]
