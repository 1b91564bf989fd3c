"""Levenberg-Marquardt (Marquardt 1963) on all unknowns of templates' individuals, many at once, within bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shine.codegen.gradient.constant_fitting import (
    AFTER_BETTER,
    AFTER_WORSE,
    FIRST_DAMPING,
    LEAST_DAMPING,
    MOST_DAMPING,
)
from shine.templates.blocks import Blocks, Steps, damped_steps
from shine.templates.equations import Equations
from shine.templates.unknowns import Unknowns
from shine.typing import Floats, Mask


@dataclass(frozen=True, eq=False)
class Values:
    """Values of the unknowns of some individuals.

    Parameters
    ----------
    own : ndarray of shape (n_own, n_groups, n_individuals)
    shared : ndarray of shape (n_shared, n_individuals)
    """

    own: Floats
    shared: Floats

    def where(self, chosen: Mask, others: Values) -> Values:
        """The own values of the chosen individuals, and others' values of the rest."""
        return Values(np.where(chosen, self.own, others.own), np.where(chosen, self.shared, others.shared))


@dataclass(frozen=True, eq=False)
class Prior:
    """A penalty ``precision * (value - center)^2`` on each value by group.

    Parameters
    ----------
    precisions, centers : ndarray of shape (n_own, n_individuals)
    """

    precisions: Floats
    centers: Floats

    def penalties(self, own: Floats) -> Floats:
        """Sum of the penalties of each individual, shape (n_individuals,)."""
        total = np.zeros(own.shape[-1])
        for k in range(len(own)):
            for group in range(own.shape[1]):
                total = total + self.precisions[k] * (own[k, group] - self.centers[k]) ** 2
        return total

    def applied(self, blocks: Blocks, own: Floats) -> Blocks:
        """The equations with the penalties."""
        return blocks.with_prior(self.precisions, self.centers[:, None] - own)


def fitted(
    equations: Equations,
    unknowns: Unknowns,
    start: Values,
    steps: int,
    tolerance: float,
    held: Values | None = None,
    prior: Prior | None = None,
) -> tuple[Values, Floats]:
    """Fit the unknowns of each individual by a few steps; no individual becomes worse.

    Parameters
    ----------
    equations : Equations
    unknowns : Unknowns
    start : Values
    steps : int
        Most steps of an individual.
    tolerance : float
        A fit stops once the next step promises to remove less than this share of the error.
    held : Values of bool, optional
        Further unknowns that keep their values.
    prior : Prior, optional
        The penalties are part of the errors.

    Returns
    -------
    values : Values
    errors : ndarray of shape (n_individuals,)
        Weighted sum of errors; inf where it was not finite to begin with.
    """
    n = start.shared.shape[-1]
    fixed = _fixed(equations, unknowns, held)
    best, errors, damping = start, np.full(n, np.inf), np.full(n, FIRST_DAMPING)
    trial, going = start, np.ones(n, np.bool_)
    kept: Blocks | None = None
    for step in range(steps + 1):
        limits = np.where(going, errors, -1.0)
        found, blocks = equations.measured(trial.own, trial.shared, limits)
        if prior is not None:
            found = found + prior.penalties(trial.own)
            blocks = prior.applied(blocks, trial.own)
        better = going & (found < errors)
        if step:
            factor = np.where(better, AFTER_BETTER, AFTER_WORSE)
            damping = np.minimum(np.maximum(damping * factor, LEAST_DAMPING), MOST_DAMPING)
        best, errors = trial.where(better, best), np.where(better, found, errors)
        kept = blocks if kept is None else Blocks(np.where(better, blocks.products, kept.products), kept.own)
        going &= np.isfinite(errors) & (errors > 0)
        if step == steps or not going.any():
            break
        moved = _step(kept, best, unknowns, fixed, damping)
        going &= moved.promises > tolerance * errors
        trial = _inside(Values(best.own + moved.own, best.shared + moved.shared), unknowns)
    return best, errors


def _fixed(equations: Equations, unknowns: Unknowns, held: Values | None) -> tuple[Mask, Mask]:
    """Which unknowns never move: by group, and shared."""
    own = unknowns.held_own | equations.lost[: unknowns.own, None, :]
    shared = unknowns.held | equations.lost[unknowns.own :]
    return (own, shared) if held is None else (own | (held.own != 0), shared | (held.shared != 0))


def _step(blocks: Blocks, at: Values, unknowns: Unknowns, fixed: tuple[Mask, Mask], damping: Floats) -> Steps:
    """The step of each individual; unknowns at a bound that would be pushed across it do not move."""
    own, lows, highs = unknowns.own, unknowns.lows, unknowns.highs
    blocks = blocks.finite()
    slants, total = blocks.slants()
    at_bound = ((at.own <= lows[:own, None]) & (slants < 0)) | ((at.own >= highs[:own, None]) & (slants > 0))
    shared_at = ((at.shared <= lows[own:]) & (total < 0)) | ((at.shared >= highs[own:]) & (total > 0))
    return damped_steps(blocks.without(fixed[0] | at_bound, fixed[1] | shared_at), damping)


def _inside(values: Values, unknowns: Unknowns) -> Values:
    """The nearest values within the bounds."""
    own, lows, highs = unknowns.own, unknowns.lows, unknowns.highs
    return Values(
        np.minimum(np.maximum(values.own, lows[:own, None]), highs[:own, None]),
        np.minimum(np.maximum(values.shared, lows[own:]), highs[own:]),
    )
