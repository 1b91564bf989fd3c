"""Exploration: banks over several systems of coordinates grow in turn, and each is searched as it grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from shine.arrays import dot, log
from shine.gp.regression import Regression
from shine.gp.seeding import combining, searches
from shine.gp.seeding.bank import Enumeration, Members
from shine.gp.seeding.pool import Pool
from shine.gp.seeding.proposals import Proposal
from shine.gp.seeding.quadratic import quadratic
from shine.gp.seeding.screen import Estimate, Screen, best
from shine.gp.seeding.separable import separable
from shine.gp.seeding.symmetries import Coordinates
from shine.gp.seeding.writing import Nodes, Unwritable
from shine.typing import Floats, Indices

SEPARABLE_AFTER = 1
"""Round of a bank, from 0, after which separable targets are looked for."""

MOST_FUNCTIONS_OF_ONE = 12_000
"""Members of the bank for separable targets."""


@dataclass(frozen=True, eq=False)
class Exploration:
    """Searches of banks for one target; what they find goes to a pool.

    Parameters
    ----------
    pool : Pool
    screened : ndarray of shape (n_screened,)
        Rows that members are evaluated on; some of those the pool trains on.
    chosen : ndarray of shape (n_chosen,)
        Features that may be factors of a product, from 0.
    capacity : int
        Most members of the features' bank; those of merged coordinates have half of it.
    rng : numpy.random.Generator
    out_of_time : callable
        Whether to stop.
    """

    pool: Pool
    screened: Indices
    chosen: Indices
    capacity: int
    rng: np.random.Generator
    out_of_time: Callable[[], bool]

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do: a formula fits exactly, or time is up."""
        return self.pool.exact or self.out_of_time()

    def explore(self, systems: list[Coordinates]) -> dict[Nodes, float]:
        """Grow a bank over each system of coordinates, always the smallest one next, and search it.

        Parameters
        ----------
        systems : list of Coordinates
            The features first.

        Returns
        -------
        dict
            The members that come closest to a view of the target, with the share of its variance they explain.
        """
        parts: dict[Nodes, float] = {}
        # Fewer coordinates need smaller banks, and all of them are in memory together.
        capacities = [self.capacity, *[max(self.capacity // 2, 1)] * (len(systems) - 1)]
        passes = [self._rounds(s, capacity, parts) for s, capacity in zip(systems, capacities, strict=True)]
        sizes: list[float] = [0.0] * len(passes)
        # Within a round, what fits better still may follow: cosh(x) after a series of it.
        while not (self.over or self.pool.nearly_exact) and min(sizes) < np.inf:
            smallest = int(np.argmin(sizes))
            size = np.inf
            with self.pool.surviving("bank"):
                size = next(passes[smallest], np.inf)
            sizes[smallest] = size
        return parts

    def _rounds(self, system: Coordinates, capacity: int, parts: dict[Nodes, float]) -> Iterator[int]:
        """Search a bank each time it has grown; yields its size."""
        here, rows = system.on(self.screened), self.pool.rows
        weights = rows.weights[self.screened] / rows.weights[self.screened].sum()
        writer = self.pool.writer
        members = Members(len(self.screened), writer.primitives, capacity, self.pool.max_size, self.rng)
        enumeration = Enumeration(members, here.values, here.nodes)
        screen: Screen | None = None
        for stage, _ in enumerate(enumeration.rounds()):
            if self.over or not members.count:
                return
            if screen is None:
                bases = self._bases(here)
                screen = Screen(members, here, bases, rows.target[self.screened], weights, writer)
                self._look(partial(quadratic, screen))
            else:
                screen.refresh()
            for search in _searches(screen):
                if self.over:
                    return
                self._look(search)
            if stage == SEPARABLE_AFTER and len(here.values) > 1:
                self._search_separable(here, screen)
            for member, share in searches.most_promising(screen, 100):
                nodes = members.nodes(member)
                parts[nodes] = max(share, parts.get(nodes, 0.0))
            yield members.count

    def _search_separable(self, system: Coordinates, screen: Screen) -> None:
        """Look for sums of deep functions of one coordinate each, in a bank of their own."""
        capacity = min(self.capacity, MOST_FUNCTIONS_OF_ONE)
        members = Members(len(self.screened), self.pool.writer.primitives, capacity, self.pool.max_size, self.rng)
        Enumeration(members, system.values, system.nodes).functions_of_one()
        if not self.over:
            own = screen.over(members)
            self._look(partial(separable, own, 200))

    def _look(self, search: partial[Iterator[Estimate]]) -> None:
        """Propose what a search finds; one that fails is skipped, for there are others."""
        with self.pool.surviving(search.func.__name__):
            self.pool.propose(self._proposals(search))

    def _proposals(self, search: Callable[[], Iterator[Estimate]]) -> list[Proposal]:
        found: list[Estimate] = []
        for estimate in search():
            found.append(estimate)
            if len(found) % 64 == 0 and self.out_of_time():
                break
        proposals: list[Proposal] = []
        for estimate in best(found):
            with suppress(Unwritable):
                proposals.append(estimate.proposal())
        return proposals

    def _bases(self, system: Coordinates) -> list[tuple[Nodes, Floats]]:
        """What monomials are made of: the features, and the coordinates that are no monomials of them."""
        columns = self.pool.rows.columns[:, self.screened]
        candidates: list[tuple[Nodes, Floats]] = [(((i + 1, 0.0),), columns[i]) for i in self.chosen.tolist()]
        candidates += zip(system.nodes, system.values, strict=True)
        found: list[tuple[Nodes, Floats]] = []
        logs = [np.ones(len(self.screened))]
        for nodes, values in candidates:
            if not np.abs(values).min() > 0:
                continue
            own = log(np.abs(values))
            rest = Regression.of(np.stack(logs)).rest(own)
            if dot(rest, rest) > 1e-12 * max(float(dot(own, own)), 1e-300):
                logs.append(own)
                found.append((nodes, values))
        return found


def _searches(screen: Screen) -> Iterator[partial[Iterator[Estimate]]]:
    """The searches, the fastest first."""
    yield partial(searches.affine, screen)
    yield partial(searches.products, screen, 3000)
    yield partial(combining.pairs, screen, screen.distinct[:2500])
    yield partial(searches.quotients, screen, 1000, 10_000)
    yield partial(searches.shifted_products, screen, 30)
    yield partial(combining.sums, screen, 12_000, 24, 4)
    yield partial(combining.rational, screen, 1000, 600, 110)
    yield partial(combining.triples, screen, 32, 8000)
