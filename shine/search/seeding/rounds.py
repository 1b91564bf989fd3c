"""Rounds: the smallest bank grows and is searched, again and again, with one bank for each system of coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import Regression, dot, inner, log
from shine.search.description import Stagnation
from shine.search.seeding.bank.bank_growth import BankGrowth
from shine.search.seeding.bank.coordinates import Coordinates
from shine.search.seeding.bank.expression_bank import ExpressionBank
from shine.search.seeding.bank.formula_writer import Nodes
from shine.search.seeding.candidate_pool import CandidatePool
from shine.search.seeding.effort import Effort
from shine.search.seeding.fits.correlations import Normalized, beyond_monomials
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_views import values_of
from shine.search.seeding.search_runner import (
    BuildingBlocks,
    FailedStep,
    NextSearch,
    RoundEnd,
    SearchResult,
    SearchRunner,
    Step,
)
from shine.search.seeding.search_table import EARLY_ROUNDS, Search, searches_of

MOST_OF_SMALL_BANK, MOST_ROWS = 700, 600
"""Most members of the small bank of a search on more rows, and its rows, about: exact sums need several rows a term."""

DOUBTFUL, ROUNDS_OF_DOUBT = 7, 10
"""Least constants of an exact formula that is doubted, and most rounds in which sums of few terms are still sought:
along a curve, a fraction of that many constants comes to within rounding of any smooth function."""


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
    rng : numpy.random.Generator
    runner : SearchRunner
        Does the searches, here or on workers, until the effort is over.
    """

    pool: CandidatePool
    screened: Indices
    chosen: Indices
    rng: np.random.Generator
    runner: SearchRunner

    @property
    def effort(self) -> Effort:
        """Limits of the stage."""
        return self.runner.effort

    @property
    def capacity(self) -> int:
        """Most members of the bank over the features; banks over merged coordinates have half as many."""
        return self.pool.task.settings.members

    @property
    def over(self) -> bool:
        """Whether a formula fits exactly, or the time or the work is over."""
        return self.pool.exact or self.effort.is_over

    @property
    def _doubtful(self) -> bool:
        """Whether a formula fits exactly with so many constants that a sum of few terms may be the law."""
        return self.pool.exact and self.pool.exact_constants >= DOUBTFUL and not self.effort.is_over

    def run(self, systems: list[Coordinates]) -> Iterator[dict[Nodes, float]]:
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
        stagnation, count, waited, doubted = Stagnation(), 0, 0, 0
        if self.over:
            yield blocks
            return
        with closing(self.runner(self._plan(systems))) as steps:
            for step, see in steps:
                if self.effort.is_paused and not self.pool.exact:
                    yield blocks
                if isinstance(step, NextSearch):
                    if doubted and self._doubtful and step.search.fill is None:
                        continue
                    if self.pool.exact and not self._doubtful and step.search.is_slow:
                        continue
                    if not self._may_run(step):
                        break
                    self._take_in(step, see)
                elif isinstance(step, FailedStep):
                    with self.pool.surviving(step.name):
                        raise step.error
                elif isinstance(step, BuildingBlocks):
                    for nodes, share in step.shares.items():
                        blocks[nodes] = max(share, blocks.get(nodes, 0.0))
                    if self.over and not self._doubtful:
                        break
                else:
                    count += 1
                    doubted += self._doubtful
                    stagnation = stagnation.after(self.pool.shortest[0], count)
                    waited = waited + 1 if self.pool.nearly_exact else 0
                    # Rounds after which a nearly exact formula ends the stage: over a narrow range, a few terms of a
                    # small bank come so close to any smooth function, and the law is a member of the next bank.
                    ended = doubted >= ROUNDS_OF_DOUBT if self._doubtful else waited >= 4 or self.over
                    if ended:
                        break
                    if self._stagnant(stagnation, count, EARLY_ROUNDS * len(systems)):
                        break
        yield blocks

    def _plan(self, systems: list[Coordinates]) -> Iterator[Step]:
        """The full plan of the stage: the smallest bank grows, then searches look at it."""
        # All banks are in memory together, and fewer coordinates need smaller ones.
        capacity = self.effort.capacity(self.capacity)
        banks = [self._bank(capacity)]
        banks += [self._bank(max(capacity // 2, 1)) for _ in systems[1:]]
        rounds = [self._rounds_of(system, bank) for system, bank in zip(systems, banks, strict=True)]
        # Members of the first bank for each coordinate, about.
        sizes = [0.0, *(float(40 * len(system.nodes)) for system in systems[1:])]
        while min(sizes) < np.inf:
            smallest = int(np.argmin(sizes))
            try:
                steps = next(rounds[smallest], None)
                sizes[smallest] = np.inf if steps is None else banks[smallest].count
                yield from steps or ()
            except Exception as error:
                sizes[smallest] = np.inf
                yield FailedStep("bank", error)
            yield RoundEnd()

    def _stagnant(self, stagnation: Stagnation, count: int, least: int) -> bool:
        """Whether the noise is reached, or few rows have nothing more to say: larger formulas would fit the noise."""
        if count < least:
            return False
        if self.pool.split:
            return self.pool.reaches_noise
        return stagnation.is_over(count, 1, self.pool.shortest[1] / self.pool.task.max_size)

    def _rounds_of(self, system: Coordinates, bank: ExpressionBank) -> Iterator[Iterator[Step]]:
        """The steps of each round of a bank, which grows when the next is asked for."""
        seen = system.on(self.screened)
        growth = BankGrowth(bank, seen.values, seen.nodes)
        screen: Screen | None = None
        for number, _ in enumerate(growth.rounds()):
            if not bank.count:
                return
            if screen is None:
                screen = self._screen(bank, seen, self.screened)
            else:
                screen.refresh()
            yield self._steps(number, screen, system)

    def _steps(self, number: int, screen: Screen, whole: Coordinates) -> Iterator[Step]:
        """The searches of a round, and building blocks before the searches that are slow."""
        coordinates = len(screen.coordinates.nodes)
        searches = searches_of(number, coordinates, not self.pool.split, self.pool.task.noise > 0)
        quick = [search for search in searches if not search.is_slow]
        for search in quick:
            yield from self._on_its_bank(search, screen, whole)
        yield BuildingBlocks(_closest_members(screen, 100))  # building blocks of each sort that a round contributes
        for search in searches:
            if search not in quick:
                yield from self._on_its_bank(search, screen, whole)

    def _on_its_bank(self, search: Search, screen: Screen, whole: Coordinates) -> Iterator[Step]:
        """A search on the bank of the screen; or on one of its own, over more rows."""
        if search.fill is None:
            yield NextSearch(search, screen, screen.bank.count)
        elif not screen.merged:
            try:
                yield self._on_more_rows(search, whole)
            except Exception as error:
                yield FailedStep(search.name, error)

    def _on_more_rows(self, search: Search, system: Coordinates) -> NextSearch:
        """A search on a small bank of its own, over many training rows."""
        training = np.flatnonzero(self.pool.training)
        rows = training[:: -(-len(training) // MOST_ROWS)]
        seen = system.on(rows)
        bank = self._bank(MOST_OF_SMALL_BANK, len(rows))
        assert search.fill is not None
        search.fill(BankGrowth(bank, seen.values, seen.nodes))
        return NextSearch(search, self._screen(bank, seen, rows), bank.count)

    def _may_run(self, step: NextSearch) -> bool:
        """Whether a search may run: a few of the same bank do after a long exact formula, for a shorter one."""
        if self.pool.exact:
            # Nodes of an exact formula that is taken at once: looking for a shorter one takes as long as the stage so
            # far.
            if self.pool.exact_size <= 8:
                return False
            if not self._doubtful:
                self.effort.note_exact()
        return not self.effort.is_over

    def _take_in(self, step: NextSearch, see: Callable[[], SearchResult]) -> None:
        """Complete the best finds of a search. If the search fails, it is skipped: there are others."""
        self.effort.add_search(step.members, step.search.work)
        seen = see()
        with self.pool.surviving(step.search.name):
            if seen.error is not None:
                raise seen.error
            self.pool.complete(seen.exact)
            if not self.pool.exact:
                self.pool.complete(seen.others)

    def _bank(self, capacity: int, rows: int | None = None) -> ExpressionBank:
        """An empty bank; for the screened rows, or so many."""
        task = self.pool.task
        return ExpressionBank(rows or len(self.screened), task.primitives, capacity, task.max_size, self.rng)

    def _screen(self, bank: ExpressionBank, system: Coordinates, which: Indices) -> Screen:
        """The target and a bank over coordinates on some rows."""
        rows = self.pool.rows
        weights = rows.weights[which] / rows.weights[which].sum()
        return Screen(bank, system, self._bases(system, which), rows.target[which], weights, self.pool.writer)

    def _bases(self, system: Coordinates, which: Indices) -> list[tuple[Nodes, Floats]]:
        """Factors of monomials: features and coordinates without zeros, none a monomial of the others."""
        columns = self.pool.rows.columns[:, which]
        candidates: list[tuple[Nodes, Floats]] = [(((i + 1, 0.0),), columns[i]) for i in self.chosen.tolist()]
        candidates += zip(system.nodes, system.values, strict=True)
        found: list[tuple[Nodes, Floats]] = []
        logs = [np.ones(len(which))]
        for nodes, values in candidates:
            if not np.abs(values).min() > 0:
                continue
            own = log(np.abs(values))
            rest = Regression.of(np.stack(logs)).rest(own)
            # Squared length, as a share of its own, below which a logarithm adds only rounding to the others.
            if dot(rest, rest) > 1e-12 * max(float(dot(own, own)), np.finfo(np.float64).tiny):
                logs.append(own)
                found.append((nodes, values))
        return found


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
