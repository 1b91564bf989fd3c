"""Errors of predictions: in the target's units, and for a wide target also as a share of each value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Mask
from shine.compiler.arrays import dot

WIDE = 300.0
"""Quotient of the largest and the least size of a target's values, beyond which the squared errors of the large ones
hide those of the others."""

LINE = 2
"""Constants of a line: slope and intercept."""


@dataclass(frozen=True, eq=False)
class TargetErrors:
    """A target with the weights that its squared errors may get.

    Parameters
    ----------
    target : ndarray of shape (n_rows,)
    weights : tuple of ndarray of shape (n_rows,)
        Of errors in the target's units; and of relative errors, if the target has one sign and is wide. Each adds up
        to 1.
    """

    target: Floats
    weights: tuple[Floats, ...]

    @classmethod
    def of(cls, target: Floats, weights: Floats) -> TargetErrors:
        """The errors that are worth looking at.

        Parameters
        ----------
        target, weights : ndarray of shape (n_rows,)
            The weights add up to 1.
        """
        counted = np.abs(target[weights > 0])
        one_sign = (target > 0).all() or (target < 0).all()
        if not one_sign or not counted.max(initial=0.0) > WIDE * counted.min(initial=np.inf):
            return cls(target, (weights,))
        relative = weights * (counted.min() / target) ** 2
        return cls(target, (weights, relative / relative.sum()))

    def unexplained(self, predictions: Floats) -> Floats:
        """Share of variance that each prediction leaves unexplained by its best line, for each kind of error.

        Parameters
        ----------
        predictions : ndarray of shape (n, n_rows)

        Returns
        -------
        ndarray of shape (n_kinds, n)
            1 where a number is not finite.
        """
        return np.stack([self._angle(predictions, weights) for weights in self.weights])

    def _angle(self, predictions: Floats, weights: Floats) -> Floats:
        """Squared sines of the angles between predictions and target, both centered."""
        with np.errstate(all="ignore"):
            root = np.sqrt(weights)
            own = (self.target - dot(self.target, weights)) * root
            unit = own / np.sqrt(dot(own, own))
            centered = (predictions - dot(predictions, weights)[:, None]) * root
            squares = dot(centered, centered)
            # The sine is the same whichever of the two is projected on the other.
            rest = centered - dot(centered, unit)[:, None] * unit
            share = dot(rest, rest) / squares
        return np.where(np.isfinite(share), share, 1.0)

    def held_out(self, predictions: Floats, training: Mask, held_out: Mask, line: bool) -> Floats:
        """Share of the held-out rows' variance that each prediction leaves unexplained, for each kind of error.

        Parameters
        ----------
        predictions : ndarray of shape (n, n_rows)
        training, held_out : ndarray of shape (n_rows,), bool
        line : bool
            Whether predictions get the slope and the intercept that fit best on the training rows.

        Returns
        -------
        ndarray of shape (n_kinds, n)
        """
        return np.stack([self._held_out(predictions, w, training, held_out, line) for w in self.weights])

    def _held_out(self, predictions: Floats, weights: Floats, training: Mask, held_out: Mask, line: bool) -> Floats:
        """The same for one kind of error."""
        target = self.target
        fit, held = np.where(training, weights, 0), np.where(held_out, weights, 0)
        fit, held = fit / fit.sum(), held / held.sum()
        with np.errstate(all="ignore"):
            mean, target_mean = dot(predictions, fit), dot(target, fit)
            centered = predictions - mean[:, None]
            slopes = dot(centered, fit * (target - target_mean)) / dot(centered**2, fit)
            lines = target_mean + slopes[:, None] * centered
            errors = target - (lines if line else predictions)
            share: Floats = dot(errors**2, held) / dot((target - dot(target, held)) ** 2, held)
        return share


def together(shares: Floats) -> Floats:
    """One measure for each prediction, from its shares by every kind of error: their geometric mean."""
    with np.errstate(all="ignore"):
        found: Floats = shares[0] if len(shares) == 1 else np.sqrt(shares[0]) * np.sqrt(shares[1])
    return found
