"""The searches of one fit: they share its time, and a word from the user ends all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shine.frontends.seeds import Seed
from shine.gp.evolution import Progress
from shine.search.model import Result
from shine.typing import Floats

Search = Callable[..., Result]
"""`shine.evolve`, or what takes its arguments and finds something else."""

USER = ("interrupted", "callback")
"""Reasons to stop that are meant for the fit, not for the search that happens to be running."""

_LEAST_SECONDS = 1e-3
"""What a search gets when the time is over: its first population is looked at in part."""


@dataclass
class Searches:
    """One search after the other.

    Parameters
    ----------
    count : int
        How many there will be, at most.
    seconds : float, optional
        For all of them together.
    generations : int
        For each.
    seed : int
        Of the first; the others have the numbers that follow.
    options : mapping
        Arguments of all searches.
    report : callable
        Makes what receives the progress of the search of a number.
    keep : bool
        Whether an interrupt ends the fit with what was found; otherwise it is raised again.
    """

    count: int
    seconds: float | None
    generations: int
    seed: int
    options: Mapping[str, Any]
    report: Callable[[int], Callable[[Progress], bool]]
    keep: bool
    results: list[Result] = field(default_factory=list)

    @property
    def stopped_by_user(self) -> bool:
        """Whether the user has said that it is enough."""
        return any(result.stopped_by in USER for result in self.results)

    @property
    def stopped_by(self) -> str:
        """Why the fit ended: the user's word if there was one, else what ended the last search."""
        reasons = [result.stopped_by for result in self.results]
        return next((reason for reason in reasons if reason in USER), reasons[-1])

    def run(
        self, search: Search, X: Floats, y: Floats, weights: Floats | None, seeds: Sequence[Seed], **options: Any
    ) -> Result:
        """Search with a fair share of the time that is left.

        After the user's word, only the first population is looked at: what is asked for is there, and soon.

        Raises
        ------
        KeyboardInterrupt
            If the search was interrupted, and it is not for this fit to keep what was found, or the user has
            interrupted it before.
        """
        number = len(self.results)
        result = search(
            X,
            y,
            sample_weight=weights,
            generations=0 if self.stopped_by_user else self.generations,
            seconds=self._share(),
            seed=self.seed + number,
            seeds=seeds,
            report=self.report(number),
            **self.options,
            **options,
        )
        interrupted = result.stopped_by == "interrupted"
        if interrupted and (not self.keep or any(before.stopped_by == "interrupted" for before in self.results)):
            raise KeyboardInterrupt
        self.results.append(result)
        return result

    def _share(self) -> float | None:
        """Seconds of the next search."""
        if self.seconds is None:
            return None
        if not self.results:
            return self.seconds / self.count
        spent = sum(result.seconds for result in self.results)
        return max((self.seconds - spent) / (self.count - len(self.results)), _LEAST_SECONDS)
