"""Rounds: the smallest bank grows and is searched, again and again, with one bank for each system of coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from shine.arrays import dot, inner, log
from shine.arrays.regression import Regression
from shine.gp.seeding.bank_growth import BankGrowth
from shine.gp.seeding.candidate_pool import CandidatePool
from shine.gp.seeding.coordinates import Coordinates
from shine.gp.seeding.correlations import Normalized
from shine.gp.seeding.effort import Effort
from shine.gp.seeding.estimates import Estimate, most_promising
from shine.gp.seeding.expression_bank import SEVERAL_LEAVES, ExpressionBank
from shine.gp.seeding.formula_writer import Nodes, Unwritable
from shine.gp.seeding.monomial_projection import beyond_monomials
from shine.gp.seeding.one_coordinate import one_coordinate_systems
from shine.gp.seeding.screen import Screen
from shine.gp.seeding.search_table import EARLY_ROUNDS, Search, searches_of
from shine.gp.seeding.skeletons import Skeleton
from shine.gp.seeding.target_views import values_of
from shine.gp.stagnation import Stagnation
from shine.typing import Floats, Indices

MOST_OF_OWN_BANK = 12_000
"""Most members of a bank for one search; many of them are compared with each other."""

BLOCKS_A_ROUND = 100
"""Building blocks of each sort that a round contributes."""

MOST_COORDINATES = 1500
"""Most members of a small bank that are tried as the only coordinate."""

EXACT = 1e-24
"""Share of variance unexplained below which an estimate is exact to within rounding."""

MOST_EXACT = 6
"""Exact estimates that are completed first, the most promising ones: if a formula fits exactly, no other is needed.
Completing takes most of the time of a short stage."""

FIRST_BANK = 40
"""Members of the first bank for each coordinate, about."""

SYSTEMS_OF_ONE = 2
"""Most systems of one coordinate: their banks grow first, and the others wait for them."""

ROUNDS_OF_NEARLY = 4
"""Rounds after which a nearly exact formula ends the stage: over a narrow range, a few terms of a small bank come so
close to any smooth function, and the law is a member of the next bank."""

SHORT = 8
"""Nodes of an exact formula that is taken at once: looking for a shorter one takes as long as the stage so far."""

ESTIMATES_BETWEEN_LOOKS = 64
"""Estimates after which a search looks at the clock."""

DEPENDENT = 1e-12
"""Squared length, as a share of its own, below which a logarithm adds only rounding to the others."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """The searches for one target; they put what they find into a pool.

    Parameters
    ----------
    pool : CandidatePool
    screened : ndarray of shape (n_screened,)
        Rows that members are evaluated on: some of the pool's training rows.
    chosen : ndarray of shape (n_chosen,)
        Features, from 0, that may be factors of a product.
    capacity : int
        Most members of the bank over the features; banks over merged coordinates have half as many.
    rng : numpy.random.Generator
    effort : Effort
        When to stop.
    """

    pool: CandidatePool
    screened: Indices
    chosen: Indices
    capacity: int
    rng: np.random.Generator
    effort: Effort

    @property
    def over(self) -> bool:
        """Whether a formula fits exactly, or the time or the work is over."""
        return self.pool.exact or self.effort.is_over

    def run(self, systems: list[Coordinates]) -> dict[Nodes, float]:
        """Grow a bank over each system of coordinates, always the smallest one next, and search it.

        Parameters
        ----------
        systems : list of Coordinates
            The features first.

        Returns
        -------
        dict
            Building blocks with the share of a view's variance that each explains.
        """
        blocks: dict[Nodes, float] = {}
        # All banks are in memory together, and fewer coordinates need smaller ones.
        capacity = self.effort.capacity(self.capacity)
        small = max(capacity // 2, 1)
        bank = self._bank(capacity)
        rounds = [self._rounds_of(systems[0], bank, blocks)]
        rounds += [self._rounds_of(system, self._bank(small), blocks) for system in systems[1:]]
        sizes = [0.0, *(float(FIRST_BANK * len(system.nodes)) for system in systems[1:])]
        stagnation, count, waited = Stagnation(), 0, 0
        sorted_by_members = False
        while not self.over and waited < ROUNDS_OF_NEARLY and min(sizes) < np.inf:
            if self._stagnant(stagnation, count, EARLY_ROUNDS * len(rounds)):
                break
            if not sorted_by_members and sizes[0] > 0:
                sorted_by_members = True
                with self.pool.surviving("one coordinate"):
                    found = self._of_one_coordinate(systems[0], bank)
                    rounds += [self._rounds_of(system, self._bank(small), blocks) for system in found]
                    sizes += [0.0] * len(found)
            smallest = int(np.argmin(sizes))
            size = np.inf
            with self.pool.surviving("bank"):
                size = next(rounds[smallest], np.inf)
            sizes[smallest] = size
            count += 1
            stagnation = stagnation.after(self.pool.shortest[0], count)
            waited = waited + 1 if self.pool.nearly_exact else 0
        return blocks

    def _stagnant(self, stagnation: Stagnation, count: int, least: int) -> bool:
        """Whether few noisy rows have nothing more to say: larger formulas would fit the noise."""
        if self.pool.split or count < least:
            return False
        return stagnation.is_over(count, 1, self.pool.shortest[1] / self.pool.max_size)

    def _of_one_coordinate(self, features: Coordinates, bank: ExpressionBank) -> list[Coordinates]:
        """Systems of one coordinate each: a monomial, or a member of a small bank over the features."""
        members = np.flatnonzero(bank.only_leaf[: bank.count] == SEVERAL_LEAVES)
        members = members[np.argsort(bank.costs[members], kind="stable")][:MOST_COORDINATES]
        nodes = [bank.nodes(member) for member in members.tolist()]
        values = self.pool.values(nodes)
        return one_coordinate_systems(features, self.pool.rows.target, nodes, values, self.pool.writer, SYSTEMS_OF_ONE)

    def _rounds_of(self, system: Coordinates, bank: ExpressionBank, blocks: dict[Nodes, float]) -> Iterator[int]:
        """Search a bank each time it has grown; yields its size and adds to the building blocks."""
        system = system.on(self.screened)
        growth = BankGrowth(bank, system.values, system.nodes)
        screen: Screen | None = None
        for number, _ in enumerate(growth.rounds()):
            if self.over or not bank.count:
                return
            if screen is None:
                screen = self._screen(bank, system)
            else:
                screen.refresh()
            for search in searches_of(number, len(system.nodes) == 1 or not self.pool.split):
                if search.fill is not None:
                    self._run_on_own_bank(search, search.fill, screen)
                elif self._may_go_on():
                    self._run(search, screen)
                else:
                    return
            for nodes, share in _closest_members(screen, BLOCKS_A_ROUND).items():
                blocks[nodes] = max(share, blocks.get(nodes, 0.0))
            yield bank.count

    def _may_go_on(self) -> bool:
        """Whether another search of the same bank may run: a few do after a long exact formula, for a shorter one."""
        if self.pool.exact:
            if self.pool.exact_size <= SHORT:
                return False
            self.effort.note_exact()
        return not self.effort.is_over

    def _bank(self, capacity: int) -> ExpressionBank:
        """An empty bank."""
        return ExpressionBank(len(self.screened), self.pool.writer.primitives, capacity, self.pool.max_size, self.rng)

    def _screen(self, bank: ExpressionBank, system: Coordinates) -> Screen:
        """The target and a bank over coordinates on the screened rows."""
        rows = self.pool.rows
        weights = rows.weights[self.screened] / rows.weights[self.screened].sum()
        return Screen(bank, system, self._bases(system), rows.target[self.screened], weights, self.pool.writer)

    def _run_on_own_bank(self, search: Search, fill: Callable[[BankGrowth], None], screen: Screen) -> None:
        """Run a search on a bank of its own, if there are several coordinates."""
        system = screen.coordinates
        if self.over or len(system.values) < 2:
            return
        bank = self._bank(self.effort.capacity(min(self.capacity, MOST_OF_OWN_BANK)))
        fill(BankGrowth(bank, system.values, system.nodes))
        if not self.over:
            self._run(search, screen.over(bank))

    def _run(self, search: Search, screen: Screen) -> None:
        """Complete the best finds of a search. If the search fails, it is skipped: there are others."""
        self.effort.add_search(screen.bank.count)
        with self.pool.surviving(search.name):
            found = self._found(search, screen)
            exact = [estimate for estimate in found if estimate.unexplained < EXACT][:MOST_EXACT]
            self.pool.complete(_skeletons(exact))
            if not self.pool.exact:
                self.pool.complete(_skeletons([estimate for estimate in found if estimate not in exact]))

    def _found(self, search: Search, screen: Screen) -> list[Estimate]:
        """The best finds of a search before the time is up, the most promising first."""
        found: list[Estimate] = []
        for estimate in search.estimates(screen):
            found.append(estimate)
            if len(found) % ESTIMATES_BETWEEN_LOOKS == 0 and self.effort.out_of_time():
                break
        return most_promising(found, len(self.screened))

    def _bases(self, system: Coordinates) -> list[tuple[Nodes, Floats]]:
        """Factors of monomials: features and coordinates without zeros, none a monomial of the others."""
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
            if dot(rest, rest) > DEPENDENT * max(float(dot(own, own)), np.finfo(np.float64).tiny):
                logs.append(own)
                found.append((nodes, values))
        return found


def _skeletons(estimates: list[Estimate]) -> list[Skeleton]:
    """The skeletons of estimates that can be written."""
    skeletons: list[Skeleton] = []
    for estimate in estimates:
        with suppress(Unwritable):
            skeletons.append(estimate.skeleton())
    return skeletons


def _closest_members(screen: Screen, most: int) -> dict[Nodes, float]:
    """Building blocks for evolution: formulas with their squared correlations.

    They are the `most` members that correlate best with a view of the target, and the `most` whose logarithms do after
    monomials are projected out.
    """
    values = values_of(screen.simple_views, screen.target)
    normal = Normalized.of(values, screen.weights)
    plain = np.abs(inner(normal.units, screen.normalized.units)).max(axis=0, initial=0.0)
    rest, _ = beyond_monomials(values, screen.monomial_basis, screen.weights)
    logs = np.abs(inner(rest.astype(np.float32), screen.logs)).max(axis=0, initial=0.0)
    found: dict[int, float] = {}
    for scores, members in ((plain, screen.distinct_in_sums), (logs, screen.distinct_in_products)):
        for member in members[np.argsort(-scores[members], kind="stable")[:most]].tolist():
            found[member] = max(found.get(member, 0.0), min(float(scores[member]) ** 2, 1.0))
    return {screen.bank.nodes(member): share for member, share in found.items()}
