"""Damped normal equations of shared unknowns and of unknowns by group, for many individuals at once.

The matrix of an individual is a border of the shared unknowns around one block for each group::

    [ A1          C1 ]         A: block of a group's own unknowns
    [     A2      C2 ]         C: products of a group's own unknowns and the shared ones
    [         ... .. ]         S: products of shared unknowns
    [ C1' C2' ..  S  ]

Eliminating the blocks leaves the Schur complement ``S - sum(C' A^-1 C)``: the cost is linear in the number of groups.
All sums have a fixed order, so that a step has the same bits on every processor, whatever other individuals there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shine.typing import Floats, Mask

_DEPENDENT = 1e-14
"""An unknown whose pivot is at most this share of its diagonal depends on those before it: it does not move."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Normal equations of each individual and group.

    Parameters
    ----------
    products : ndarray of shape (n_unknowns + 1, n_unknowns + 1, n_groups, n_individuals)
        Weighted sums over a group's rows of the products of any two of: the derivatives by its own unknowns, those by
        the shared unknowns, and the residual.
    own : int
        Number of unknowns of a group.
    """

    products: Floats
    own: int

    def finite(self) -> Blocks:
        """The equations without unknowns whose derivatives are not finite."""
        fine = np.isfinite(self.products)
        if fine.all():
            return self
        diagonal, slant = fine[range(len(fine) - 1), range(len(fine) - 1)], fine[:-1, -1]
        bad = ~(diagonal & slant)
        cleaned = Blocks(np.where(fine, self.products, 0.0), self.own)
        return cleaned.without(bad[: self.own], bad[self.own :].any(axis=1))

    def slants(self) -> tuple[Floats, Floats]:
        """Half the fall of the errors along each unknown: by group, and of the shared ones."""
        return self.products[: self.own, -1], _added(self.products[self.own : -1, -1])

    def without(self, own: Mask, shared: Mask) -> Blocks:
        """The equations without some unknowns, which do not move then.

        Parameters
        ----------
        own : ndarray of shape (n_own, n_groups, n_individuals), bool
        shared : ndarray of shape (n_shared, n_individuals), bool
        """
        across = np.broadcast_to(shared[:, None], (len(shared), *own.shape[1:]))
        held = np.concatenate([own, across, np.zeros((1, *own.shape[1:]), np.bool_)])
        return Blocks(np.where(held[:, None] | held[None], 0.0, self.products), self.own)

    def with_prior(self, precisions: Floats, offsets: Floats) -> Blocks:
        """The equations with a penalty ``precision * (unknown - center)^2`` on each group's own unknowns.

        Parameters
        ----------
        precisions : ndarray of shape (n_own, n_individuals)
        offsets : ndarray of shape (n_own, n_groups, n_individuals)
            Center of the penalty, minus the unknown.
        """
        products = self.products.copy()
        for k in range(self.own):
            products[k, k] += precisions[k]
            pull = precisions[k] * offsets[k]
            products[k, -1] += pull
            products[-1, k] += pull
        return Blocks(products, self.own)


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of the unknowns.

    Parameters
    ----------
    own : ndarray of shape (n_own, n_groups, n_individuals)
    shared : ndarray of shape (n_shared, n_individuals)
    promises : ndarray of shape (n_individuals,)
        How far each individual's sum of squared errors would fall if its formula were linear in the unknowns.
    """

    own: Floats
    shared: Floats
    promises: Floats


def damped_steps(blocks: Blocks, damping: Floats) -> Steps:
    """One step of Levenberg-Marquardt of each individual, with Marquardt's scaling (1963).

    Parameters
    ----------
    blocks : Blocks
    damping : ndarray of shape (n_individuals,)
        Relative to the diagonal of the equations.
    """
    own, products = blocks.own, blocks.products
    size = len(products) - 1
    rest = products.copy()
    own_diagonals = [products[k, k] for k in range(own)]
    factors: list[Floats] = []
    for k in range(own):
        rest[k, k] += damping * own_diagonals[k]
        factors.append(_eliminated(rest, k, own_diagonals[k]))
    count, total = size - own, _added(rest[own:, own:])
    diagonals = [_added(products[k, k]) for k in range(own, size)]
    for k in range(count):
        total[k, k] += damping * diagonals[k]
    shared_factors = [_eliminated(total, k, diagonals[k]) for k in range(count)]
    shared = np.zeros((count, len(damping)))
    for k in reversed(range(count)):
        shared[k] = shared_factors[k][-1]
        for j in range(k + 1, count):
            shared[k] -= shared_factors[k][j - k - 1] * shared[j]
    steps = np.zeros((own, *products.shape[2:]))
    for k in reversed(range(own)):
        steps[k] = factors[k][-1]
        for j in range(k + 1, own):
            steps[k] -= factors[k][j - k - 1] * steps[j]
        for j in range(count):
            steps[k] -= factors[k][own - k - 1 + j] * shared[j]
    promises = np.zeros(len(damping))
    for k in range(count):
        slant = _added(products[own + k, size])
        promises += shared[k] * (slant + damping * diagonals[k] * shared[k])
    for k in range(own):
        promises += _added(steps[k] * (products[k, size] + damping * own_diagonals[k] * steps[k]))
    return Steps(steps, shared, promises)


def _eliminated(rest: Floats, k: int, diagonal: Floats) -> Floats:
    """Eliminate an unknown from the equations after its own; return its equation, divided by its pivot."""
    pivot = rest[k, k]
    usable = pivot > _DEPENDENT * diagonal
    equation: Floats = np.where(usable, rest[k, k + 1 :], 0.0) / np.where(usable, pivot, 1.0)
    rest[k + 1 :, k + 1 :] -= rest[k + 1 :, k][:, None] * equation[None]
    return equation


def _added(values: Floats) -> Floats:
    """Sum over the axis before the last, by halving it: the same bits for one individual as for many."""
    count = values.shape[-2]
    while count > 1:
        half = (count + 1) // 2
        lower = values[..., :half, :].copy()
        lower[..., : count - half, :] += values[..., half:count, :]
        values, count = lower, half
    return values[..., 0, :].copy()
