"""The searches in the order in which they run, each with its budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from shine.search.seeding.bank.bank_growth import BankGrowth
from shine.search.seeding.effort import A_SEARCH
from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.searches.factors import (
    affine,
    factor_times_affine,
    factor_times_sum,
    rational_forms,
)
from shine.search.seeding.searches.products import functions_with_constants, products, products_with_constants
from shine.search.seeding.searches.sums import quadratic_forms, sums_of_terms, sums_of_two
from shine.search.seeding.searches.sums_with_curves import sums_with_curves

EARLY_ROUNDS = 2
"""Rounds of a bank within which all searches have run, if it is over one coordinate, where fewer members express the
same, or if there are few rows: from larger banks noise chooses."""


@dataclass(frozen=True)
class Search:
    """A search with its budget, and when it runs.

    Parameters
    ----------
    find : partial
        A generator function with its budget; takes a `Screen` and yields estimates.
    only_round : int, optional
        The round of a bank, from 0, in which it runs; None for all rounds.
    fill : callable, optional
        Fills a small bank of its own, over many training rows; it then gets a screen over that. The coordinates are the
        features, also a single one.
    divides : bool
        Whether it divides the target by the members that `DIVIDING` has found.
    most_coordinates : float
        Coordinates beyond which it runs two rounds later, as it takes seconds, and most formulas are found before.
    work : int
        What it counts as, besides the members of its bank: its time, as that of the others is about 50 µs a unit.
    hurried : partial, optional
        What runs where it is more work than is left.
    """

    find: partial[Iterator[Estimate]]
    only_round: int | None = None
    fill: Callable[[BankGrowth], None] | None = None
    divides: bool = False
    most_coordinates: float = math.inf
    work: int = A_SEARCH
    hurried: partial[Iterator[Estimate]] | None = None

    @property
    def is_slow(self) -> bool:
        """Whether it takes seconds."""
        return self.most_coordinates < math.inf

    @property
    def name(self) -> str:
        """The name of the generator function."""
        return self.find.func.__name__

    def within(self, left: float) -> Search:
        """The search for so much work that is left."""
        return self if self.hurried is None or self.work <= left else replace(self, find=self.hurried)

    def estimates(self, screen: Screen) -> Iterator[Estimate]:
        """Its finds on a screen."""
        return self.find(screen)


DIVIDING = Search(partial(factor_times_affine, divisors=1000, others=10_000, each=3, estimated=40))
"""The search that finds the members by which division helps most (`Screen.best_divisors`)."""

SEARCHES = (
    # One regression for each view. It does not look at the bank, so once is enough.
    Search(partial(quadratic_forms, rows_a_term=3, standard_errors=3.0), only_round=0),
    # All members with all views: one product of matrices.
    Search(partial(affine, each=12)),
    # The same with logarithms, and for each view all pairs: the square of `pairs_of`.
    Search(partial(products, each=12, pairs_of=3000, pairs=24)),
    # A regression on up to `terms`, once, and projections of all views: only exact sums are worth more.
    Search(
        partial(sums_of_terms, most=400, divisors=30, terms=8),
        only_round=0,
        fill=BankGrowth.fill_with_simple_terms,
        work=3000,
    ),
    # For each view all pairs: the square of `most`.
    Search(partial(sums_of_two, most=2500, pairs=24)),
    # For each of four powers all pairs: `divisors` times `others`.
    DIVIDING,
    # For each term a few passes over `most` members, for some `divisors` times four views.
    Search(partial(factor_times_sum, most=12_000, divisors=24, terms=4), divides=True),
    # One regression for each homogeneous view and each of six pairs of degrees. It does not look at the bank either.
    Search(partial(rational_forms, standard_errors=3.0), only_round=0, work=5000),
    # Functions with unknown constants inside. They look at small members only, so once is enough; many formulas are
    # found without constants, in the first rounds of a merged system of coordinates.
    # Some thousand functions with all views, and a fit of the constants of each estimate.
    Search(
        partial(functions_with_constants, arguments=40, simplest=4, divisors=6), only_round=2, divides=True, work=8000
    ),
    # The same with logarithms, and all pairs: the square of `pairs_of`.
    Search(partial(products_with_constants, arguments=32, pairs_of=1000, pairs=24), only_round=2, work=8000),
    # Fits of the constants of some thousand sums: seconds, as much as the rounds of all banks of one coordinate.
    Search(
        partial(sums_with_curves, most=160, terms=6),
        only_round=0,
        fill=BankGrowth.fill_with_simple_terms,
        most_coordinates=2,
        work=30_000,
        hurried=partial(sums_with_curves, most=160, terms=3),  # two thirds of the time go to sums of four and more
    ),
)
"""All searches, the fast ones first: an exact formula ends the stage before the slow ones run."""


def searches_of(number: int, coordinates: int, early: bool = False, noisy: bool = False) -> tuple[Search, ...]:
    """The searches that run in a round of a bank over coordinates, from 0.

    If they are early, or there is one coordinate, all have run after `EARLY_ROUNDS`. With noise, no exact formula can
    end the stage before the slow ones, and they do not wait with one coordinate more: among many, near rows are far.
    """
    last = EARLY_ROUNDS - 1 if early or coordinates == 1 else math.inf

    def runs(search: Search) -> bool:
        if search.only_round is None:
            return True
        return min(search.only_round + 2 * (coordinates > search.most_coordinates + noisy), last) == number

    return tuple(search for search in SEARCHES if runs(search))
