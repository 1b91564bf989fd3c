"""The numbers that a fit of templates' individuals moves, and where they stand on tapes and in normal equations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from shine.base.typing import AnyArray, Floats, Indices, Mask
from shine.lang.population import Population
from shine.search.templates.composition import Composed
from shine.search.templates.fits.sections import Composer, constant_ranks, constants_within


@dataclass(frozen=True, eq=False)
class Constants:
    """The constants of formulas, in order: those of the first individual, those of the second, ...

    Parameters
    ----------
    starts : ndarray of shape (n_individuals + 1,), int64
        Where those of each individual start.
    nodes, slots : ndarray of shape (n_constants,), int64
        Position on the tape; and unknown, or -1: parameters by group first, then shared constants.
    most : int
        Greatest number of constants of a formula.
    """

    starts: Indices
    nodes: Indices
    slots: Indices
    most: int


@dataclass(frozen=True, eq=False)
class Unknowns:
    """The unknowns of individuals: parameters by group, a group after the other, then shared constants.

    Parameters
    ----------
    shared : int
        Greatest number of shared constants.
    leaves : ndarray of shape (n_individuals, own), int64
        Position of the first leaf of each parameter by group on its individual's tape.
    places : ndarray of shape (n_individuals, n_groups * own + shared), int64
        Position of each unknown; -1 if the individual has fewer shared constants.
    fixed : ndarray of the same shape, bool
        Whether an unknown keeps its value, or is none.
    lows, highs : ndarray of shape (n_individuals, own + shared)
        Bounds of the parameters by group, and of the shared constants.
    integers : ndarray of shape (n_individuals, own + shared), bool
        Whether they are whole numbers.
    """

    shared: int
    leaves: Indices
    places: Indices
    fixed: Mask
    lows: Floats
    highs: Floats
    integers: Mask

    @property
    def own(self) -> int:
        """Number of parameters by group."""
        return int(self.leaves.shape[1])

    @classmethod
    def of(
        cls, composer: Composer, population: Population, groups: Sequence[int], fixed: Mask | None = None
    ) -> Unknowns:
        """The unknowns of individuals, of the given groups.

        Parameters
        ----------
        composer : Composition
        population : Population
        groups : sequence of int
        fixed : ndarray of shape (n_individuals, n_constants), bool, optional
            Whether each constant of an individual, in the order of its tape, keeps its value.
        """
        first = population.sizes - 1 - composer.n_leaves
        everyone = np.arange(len(first))
        # The leaves stand behind the formulas, and are as many as there are groups: nothing looks for them.
        rows, columns = np.nonzero(constants_within(population, first))
        counts = np.bincount(rows, minlength=len(first))
        slots = np.arange(len(rows)) - np.searchsorted(rows, rows)

        parameters = list(zip(composer.parameters, composer.offsets, strict=True))
        by_group = [(parameter, offset) for parameter, offset in parameters if parameter.by_group]
        alone = [(parameter, offset) for parameter, offset in parameters if not parameter.by_group]
        own, shared = len(by_group), int(counts.max(initial=0)) + len(alone)
        offsets = np.array([offset for _, offset in by_group], np.int64)
        leaves = (offsets + np.array(groups, np.int64)[:, None]).ravel()

        shape = len(first), own + shared
        lows, highs, integers = np.full(shape, -np.inf), np.full(shape, np.inf), np.zeros(shape, np.bool_)
        places = np.full((len(first), len(leaves) + shared), -1)
        places[:, : len(leaves)] = first[:, None] + leaves
        places[rows, len(leaves) + slots] = columns
        for k, (parameter, _) in enumerate(by_group):
            (lows[:, k], highs[:, k]), integers[:, k] = parameter.bounds, parameter.integer
        for k, (parameter, offset) in enumerate(alone):
            at = everyone, own + counts + k
            (lows[at], highs[at]), integers[at] = parameter.bounds, parameter.integer
            places[everyone, len(leaves) + counts + k] = first + offset

        kept = places < 0
        if fixed is not None:
            ranks = np.full(places.shape, fixed.shape[1])
            ranks[:, : len(leaves)] = counts[:, None] + leaves
            ranks[rows, len(leaves) + slots] = slots
            for k, (_, offset) in enumerate(alone):
                ranks[everyone, len(leaves) + counts + k] = counts + offset
            known = ranks < fixed.shape[1]
            kept[known] = fixed[np.nonzero(known)[0], ranks[known]]
        return cls(shared, first[:, None] + offsets, places, kept, lows, highs, integers)

    def take(self, which: Indices) -> Unknowns:
        """The unknowns of some individuals."""
        arrays = {each.name: getattr(self, each.name)[which] for each in fields(self) if each.name != "shared"}
        return replace(self, **arrays)

    def spread(self, properties: AnyArray) -> AnyArray:
        """Properties of the unknowns, of shape (n_individuals, own + shared), for those of each group."""
        groups = (self.places.shape[1] - self.shared) // max(self.own, 1)
        return np.concatenate([np.tile(properties[:, : self.own], (1, groups)), properties[:, self.own :]], axis=1)

    def read(self, values: Floats) -> Floats:
        """The unknowns on some tapes, shape (n_individuals, n_unknowns); 0 where there is none."""
        found: Floats = values[np.arange(len(values))[:, None], self.places]
        return np.where(self.places < 0, 0.0, found)

    def written(self, unknowns: Floats, values: Floats) -> Floats:
        """The values of tapes, with other unknowns."""
        rows, slots = np.nonzero(self.places >= 0)
        values = values.copy()
        values[rows, self.places[rows, slots]] = unknowns[rows, slots]
        return values

    def constants(self, composed: Composed) -> Constants:
        """The constants of formulas, and the unknown that each is."""
        n, population = len(composed.population), composed.population
        rows, nodes, ranks = constant_ranks(population)
        sources, grouped = composed.sources[rows, nodes], composed.grouped[rows, nodes]
        slot_of = np.full((n, int(max(sources.max(initial=-1), self.places.max(initial=-1))) + 2), -1)
        shared = self.places[:, self.places.shape[1] - self.shared :]
        slot_of[np.arange(n)[:, None], shared] = self.own + np.arange(self.shared)
        # Constants without a source read the last column, which unknowns that are none have written to.
        slot_of[:, -1] = -1
        slots = slot_of[rows, sources]
        for k in range(self.own):
            slots = np.where(grouped & (sources == self.leaves[rows, k]), k, slots)
        starts = np.searchsorted(rows, np.arange(n + 1))
        return Constants(starts, np.ascontiguousarray(nodes), slots, int(ranks.max(initial=-1)) + 1)
