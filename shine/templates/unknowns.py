"""The numbers that a fit of templates' individuals moves, and where they stand on tapes and in normal equations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from shine.lang.population import Population
from shine.templates.composition import Composed
from shine.templates.sections import Composer, constant_ranks
from shine.typing import Floats, Indices, Mask

MOST_CONSTANTS = 120
"""Only the first constants of a composed formula, up to this number, are fitted: an unknown function that is used often
has copies of its constants, and the cost of a step grows with the square of their number."""


@dataclass(frozen=True, eq=False)
class Unknowns:
    """The unknowns of some individuals: parameters by group first, then shared constants in the order of the tape.

    Parameters
    ----------
    leaves : ndarray of shape (n_own, n_individuals), int64
        Position of the first leaf of each parameter by group.
    positions : ndarray of shape (n_shared, n_individuals), int64
        Position of each shared constant on the individual's tape; -1 if it has fewer.
    held : ndarray of shape (n_shared, n_individuals), bool
        Whether a shared unknown keeps its value, or is none.
    held_own : ndarray of shape (n_own, n_groups, n_individuals), bool
        Whether a parameter of a group keeps its value.
    lows, highs : ndarray of shape (n_own + n_shared, n_individuals)
        Bounds of the unknowns.
    integers : ndarray of shape (n_own + n_shared, n_individuals), bool
        Whether an unknown is a whole number.
    """

    leaves: Indices
    positions: Indices
    held: Mask
    held_own: Mask
    lows: Floats
    highs: Floats
    integers: Mask

    @property
    def own(self) -> int:
        """Number of parameters by group."""
        return len(self.leaves)

    @property
    def shared(self) -> int:
        """Greatest number of shared constants."""
        return len(self.positions)

    @classmethod
    def of(
        cls, composer: Composer, population: Population, groups: Sequence[int], fixed: Mask | None = None
    ) -> Unknowns:
        """The unknowns of individuals, of the given groups.

        Parameters
        ----------
        fixed : ndarray of shape (n_individuals, n_constants), bool, optional
            Whether each constant of an individual, in the order of its tape, keeps its value.
        """
        n, width = population.codes.shape
        parameters = list(zip(composer.parameters, composer.offsets, composer.counts, strict=True))
        first = population.sizes - 1 - composer.n_leaves
        by_group = [(parameter, offset) for parameter, offset, _ in parameters if parameter.by_group]
        leaves = np.array([first + offset for _, offset in by_group], np.int64).reshape(len(by_group), n)

        rows, columns, ranks = constant_ranks(population)
        place = columns - first[rows]
        bounds = np.tile([[-np.inf], [np.inf]], len(rows))
        whole, grouped = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
        for parameter, offset, count in parameters:
            inside = (place >= offset) & (place < offset + count)
            bounds[:, inside] = np.array(parameter.bounds)[:, None]
            whole |= inside & parameter.integer
            grouped |= inside & parameter.by_group
        kept = np.zeros(len(rows), np.bool_)
        if fixed is not None:
            known = ranks < fixed.shape[1]
            kept[known] = fixed[rows[known], ranks[known]]
        held_by_place = np.zeros((n, width), np.bool_)
        held_by_place[rows, columns] = kept
        everyone = np.arange(n)
        held_own = np.array(
            [[held_by_place[everyone, leaf + group] for group in groups] for leaf in leaves], np.bool_
        ).reshape(len(leaves), len(groups), n)

        rows, columns, bounds, whole, kept = (
            rows[~grouped],
            columns[~grouped],
            bounds[:, ~grouped],
            whole[~grouped],
            kept[~grouped],
        )
        slots = np.arange(len(rows)) - np.searchsorted(rows, rows)
        count = int(slots.max(initial=-1)) + 1
        positions, held = np.full((count, n), -1), np.ones((count, n), np.bool_)
        positions[slots, rows], held[slots, rows] = columns, kept
        limits = np.empty((2, len(leaves) + count, n))
        limits[0], limits[1] = -np.inf, np.inf
        integers = np.zeros((len(leaves) + count, n), np.bool_)
        limits[:, len(leaves) + slots, rows], integers[len(leaves) + slots, rows] = bounds, whole
        for k, (parameter, _) in enumerate(by_group):
            limits[:, k], integers[k] = np.array(parameter.bounds)[:, None], parameter.integer
        return cls(leaves, positions, held, held_own, limits[0], limits[1], integers)

    def take(self, which: Indices) -> Unknowns:
        """The unknowns of some individuals."""
        return Unknowns(*(getattr(self, each.name)[..., which] for each in fields(self)))

    def read(self, values: Floats, groups: Sequence[int]) -> tuple[Floats, Floats]:
        """The unknowns on some tapes: by group, shape (n_own, n_groups, n_individuals); shared, (n_shared, n_individuals)."""
        everyone = np.arange(len(values))
        shared = np.where(self.positions < 0, 0.0, values[everyone, self.positions])
        places = self.leaves[:, None, :] + np.array(groups, np.int64)[None, :, None]
        return values[everyone, places], shared

    def write(self, own: Floats, shared: Floats, values: Floats, groups: Sequence[int]) -> None:
        """Write the unknowns into the values of tapes."""
        slots, rows = np.nonzero(self.positions >= 0)
        values[rows, self.positions[slots, rows]] = shared[slots, rows]
        places = self.leaves[:, None, :] + np.array(groups, np.int64)[None, :, None]
        values[np.arange(len(values)), places] = own

    def columns(self, composed: Composed) -> tuple[Indices, Mask]:
        """Which unknown each constant of a composed formula is.

        Returns
        -------
        columns : ndarray of shape (n_individuals, n_constants), int64
            Position of the unknown; ``own + shared + 1`` if the constant is none.
        lost : ndarray of shape (own + shared, n_individuals), bool
            Whether an unknown has copies that are not fitted.
        """
        n, count = len(composed.population), self.own + self.shared
        rows, places, ranks = constant_ranks(composed.population)
        sources, grouped = composed.sources[rows, places], composed.grouped[rows, places]
        of_source = np.full((n, int(composed.sources.max(initial=-1)) + 2), count + 1)
        slots, owners = np.nonzero(self.positions >= 0)
        reached = self.positions[slots, owners] < of_source.shape[1] - 1
        of_source[owners[reached], self.positions[slots, owners][reached]] = self.own + slots[reached]
        found = of_source[rows, sources]
        for k, leaf in enumerate(self.leaves):
            found = np.where(grouped & (sources == leaf[rows]), k, found)
        within = ranks < MOST_CONSTANTS
        columns = np.full((n, int(ranks[within].max(initial=-1)) + 1), count + 1)
        columns[rows[within], ranks[within]] = found[within]
        lost = np.zeros((count + 2, n), np.bool_)
        lost[found[~within], rows[~within]] = True
        return columns, lost[:count]
