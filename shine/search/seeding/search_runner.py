"""Runs the searches of a plan, in this process or on the workers of a pool.

What a search finds is a pure function of the search and the screen. So searches may run anywhere, in any order, and
again if a worker dies: taken in the order of the plan, their results give the same guesses.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from shine.base.parallel import Pool, Round, Shipment
from shine.base.typing import Floats, Indices
from shine.compiler.arrays import apply
from shine.lang.forms.primitives import CONSTANT
from shine.search.seeding.bank.expression_bank import ExpressionBank
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable
from shine.search.seeding.effort import FIRST_SLICE, Effort
from shine.search.seeding.screen.estimates import Estimate, most_promising
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.skeletons import Skeleton
from shine.search.seeding.search_table import DIVIDING, Search

EXACT = 1e-24
"""Share of variance unexplained below which an estimate is exact to within rounding."""

SECONDS_TO_RETURN = 1.0
"""Time after the deadline in which workers may return what they have found."""

LEAF = -1
"""Code of a leaf in a bank."""


@dataclass(frozen=True, eq=False)
class NextSearch:
    """A search that is about to run on a screen.

    Parameters
    ----------
    search : Search
    screen : Screen
    members : int
        Members of the bank now; it grows again for the next round.
    """

    search: Search
    screen: Screen
    members: int


@dataclass(frozen=True, eq=False)
class BuildingBlocks:
    """Building blocks of a round, with the share of a view's variance that each explains."""

    shares: Mapping[Nodes, float]


@dataclass(frozen=True)
class FailedStep:
    """A step that has failed and is skipped."""

    name: str
    error: Exception


class RoundEnd:
    """The end of a round."""


Step = NextSearch | BuildingBlocks | FailedStep | RoundEnd
"""A step of the plan. The plan does not depend on what the searches find; that only decides where it is left."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Result of a search: skeletons of the most promising estimates, the exact ones in a list of their own; or the
    reason for its failure."""

    exact: Sequence[Skeleton] = ()
    others: Sequence[Skeleton] = ()
    error: Exception | None = None


def run_search(search: Search, screen: Screen, out_of_time: Callable[[], bool]) -> SearchResult:
    """Run a search on a screen until the time is up."""
    if search.divides and screen.best_divisors is None:
        screen.best_divisors = []
        with suppress(Exception):  # its own run reports it
            deque(DIVIDING.estimates(screen), 0)
    found: list[Estimate] = []
    try:
        for estimate in search.estimates(screen):
            found.append(estimate)
            if out_of_time():
                break
        found = most_promising(found, len(screen.target))
        # Exact estimates that are completed first, the most promising ones: if a formula fits exactly, no other is
        # needed. Completing takes most of the time of a short stage.
        exact = [estimate for estimate in found if estimate.unexplained < EXACT][:6]
        return SearchResult(_skeletons(exact), _skeletons([estimate for estimate in found if estimate not in exact]))
    except Exception as error:
        return SearchResult(error=error)


def _skeletons(estimates: list[Estimate]) -> list[Skeleton]:
    """The skeletons of estimates that can be written."""
    skeletons: list[Skeleton] = []
    for estimate in estimates:
        with suppress(Unwritable):
            skeletons.append(estimate.skeleton())
    return skeletons


class SearchRunner:
    """Runs the searches of a plan.

    Parameters
    ----------
    pool : Pool, optional
        Workers for the searches; they change no bit of what is found. They begin after the work of a small bank,
        because many formulas are found before anything could be sent.
    effort : Effort
    rng : numpy.random.Generator
        What the plan draws from. It ends in the state of the last step that was passed on, however far the plan was
        read ahead.
    """

    def __init__(self, pool: Pool | None, effort: Effort, rng: np.random.Generator) -> None:
        self._pool, self.effort, self._rng = pool, effort, rng
        self._arrived: Future[Any] | None = None

    def __call__(self, plan: Iterator[Step]) -> Generator[tuple[Step, Callable[[], SearchResult]]]:
        """The steps of a plan in their order, each with a function that runs its search, or waits for it.

        Close it to take back what workers have not begun.
        """
        sent: deque[_Sent] = deque()
        state: Mapping[str, Any] | None = None
        try:
            while True:
                if not sent and not self._workers_are_there():
                    for step in plan:
                        yield step, partial(self._run_locally, step)
                        if isinstance(step, RoundEnd):
                            break
                    else:
                        return
                    continue
                assert self._pool is not None
                # A screen that could not be sent is looked at here, before its bank grows.
                # Rounds that workers have in hand: while the last searches of one run, others begin with the next
                while len(sent) < 2 and not (sent and sent[-1].stays) and (steps := self._round(plan)):
                    sent.append(_Sent(self._pool, steps, self.effort.deadline.left, self._run_locally))
                if not sent:
                    return
                for step, following, see in sent[0].steps():
                    state = following
                    yield step, see
                sent.popleft().recall()
        finally:
            for each in sent:
                each.recall()
            if state is not None:
                self._rng.bit_generator.state = state

    def _workers_are_there(self) -> bool:
        """Whether searches are sent; processes take a second to begin, and are asked to when it is likely worth it."""
        if self._pool is None or self.effort.work < FIRST_SLICE:
            return False
        self._arrived = self._arrived or self._pool.submit(_arrive)
        return self._arrived.done()

    def _run_locally(self, step: Step) -> SearchResult:
        assert isinstance(step, NextSearch)
        effort = self.effort
        # Its own work is counted already.
        search = step.search.within(step.search.work + effort.most - effort.work)
        return run_search(search, step.screen, lambda: effort.deadline.is_over or effort.pause_deadline.is_over)

    def _round(self, plan: Iterator[Step]) -> list[tuple[Step, Mapping[str, Any]]]:
        """The steps of a round, each with the state of the generator there."""
        steps: list[tuple[Step, Mapping[str, Any]]] = []
        for step in plan:
            steps.append((step, self._rng.bit_generator.state))
            if isinstance(step, RoundEnd):
                break
        return steps


class _Sent:
    """The steps of a round whose searches workers have got.

    Attributes
    ----------
    stays : bool
        Whether they were not sent, because there is no room for the screen.
    """

    def __init__(
        self,
        pool: Pool,
        steps: list[tuple[Step, Mapping[str, Any]]],
        seconds: float,
        local: Callable[[Step], SearchResult],
    ) -> None:
        self._steps, self._run_locally, self.stays = steps, local, False
        self._until = time.monotonic() + seconds + SECONDS_TO_RETURN
        self._shipments: list[Shipment] = []
        self._rounds: list[Round[tuple[Search, float], SearchResult]] = []
        try:
            self._send(pool, [step for step, _ in steps if isinstance(step, NextSearch)], seconds)
        except OSError as error:
            warnings.warn(
                f"there is no room for a bank of the seeding in {tempfile.gettempdir()} ({error}); this process "
                "searches it itself. The result is the same, but it takes longer: set TMPDIR to a folder with room",
                RuntimeWarning,
                stacklevel=2,
            )
            self.recall()
            self.stays = True
        except BaseException:
            # Ctrl-C while files are written: nobody else knows them yet.
            self.recall()
            raise

    def _send(self, pool: Pool, searches: list[NextSearch], seconds: float) -> None:
        """Give the searches to the workers, those of one screen together."""
        for _, group in groupby(searches, key=lambda each: id(each.screen)):
            alike = list(group)
            tasks = [(each.search, time.time() + seconds) for each in alike]
            self._shipments.append(Shipment(alike[0].screen, LightScreen.of(alike[0].screen)))
            self._rounds.append(Round(pool, _run_in_worker, tasks, self._shipments[-1]))

    def steps(self) -> Iterator[tuple[Step, Mapping[str, Any], Callable[[], SearchResult]]]:
        """The steps, each with the state of the generator and a function that waits for its result."""
        results = (seen for each in self._rounds for seen in each.results(self._until))
        for step, state in self._steps:
            yield step, state, partial(self._run_locally, step) if self.stays else partial(_received, results)

    def recall(self) -> None:
        """Let the workers stop."""
        for shipment in self._shipments:
            shipment.recall()
        for each in self._rounds:
            each.cancel()


def _received(results: Iterator[SearchResult]) -> SearchResult:
    """The next result; nothing if it does not come before the deadline."""
    try:
        return next(results, SearchResult())
    except TimeoutError:
        return SearchResult()


def _arrive() -> None:
    """Import this module in a worker."""


@np.errstate(all="ignore")
def _run_in_worker(screen: Screen, task: tuple[Search, float], stopped: Callable[[], bool]) -> SearchResult:
    """NextSearch in a worker."""
    search, deadline = task
    return run_search(search, screen, lambda: stopped() or time.time() >= deadline)


@dataclass(frozen=True, eq=False)
class LightScreen:
    """A screen as it is now, light while it travels: what is unpickled is a `Screen` of the same bits.

    Parameters
    ----------
    bank : mapping
        State of the bank without its values.
    leaves : ndarray of shape (n_leaves, n_rows)
    arguments : tuple
    """

    bank: Mapping[str, Any]
    leaves: Floats
    arguments: tuple[Any, ...]

    @classmethod
    def of(cls, screen: Screen) -> LightScreen:
        """The light form of a screen; it stays as it is when the bank grows."""
        state = screen.bank.__getstate__()
        values = state.pop("values")
        return cls(state, values[state["codes"] == LEAF], screen.arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (self.bank, self.leaves, self.arguments)


def _made_again(state: Mapping[str, Any], leaves: Floats, arguments: tuple[Any, ...]) -> Screen:
    bank = ExpressionBank.__new__(ExpressionBank)
    vars(bank).update(state)
    bank.values = _values(bank, leaves)
    screen = Screen(bank, *arguments)
    return screen


@np.errstate(all="ignore")
def _values(bank: ExpressionBank, leaves: Floats) -> Floats:
    """The values of the members from those of the leaves: functions of earlier members, as many at a time as can be."""
    values = np.empty((bank.count, leaves.shape[1]))
    values[bank.codes == LEAF] = leaves
    latest: Indices = np.maximum(bank.left, bank.right)
    ends = [*(np.flatnonzero(np.diff(bank.codes)) + 1).tolist(), bank.count]
    at = 0
    for end in ends:
        while at < end:
            code = int(bank.codes[at])
            before = np.flatnonzero(latest[at:end] >= at)
            now = slice(at, at + int(before[0]) if len(before) else end)
            if code == CONSTANT:
                values[now] = bank.constants[now, None]
            elif code != LEAF:
                arguments = (bank.left, bank.right)[: int(bank.primitives.arities[code])]
                values[now] = apply(bank.primitives.function(code), *(values[each[now]] for each in arguments))
            at = now.stop
    return values
