"""Equations of the states joined to systems: the most likely combinations first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shine.search.dynamics.rows import RateRows, settled
from shine.search.models.certainty import lengths_of
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.problem.reference_losses import description_length


@dataclass(frozen=True, eq=False)
class Candidate:
    """A formula for the rate of a state, or for those of several.

    Parameters
    ----------
    model : Model
    nats : float
        Length of the description of the rates by it, beyond that by the best of its front.
    """

    model: Model
    nats: float


def candidates_of(front: Front, rows: RateRows | None) -> list[Candidate]:
    """The formulas of a front, the shortest description first, but the recommended one before all others.

    Known equations have no rows.
    """
    if rows is None:
        return [Candidate(model, 0.0) for model in front]
    lengths = lengths_of(front.models, description_length(settled(rows), "mse"))
    least = float(np.min(lengths))
    nats = [float(length) - least for length in lengths.tolist()]
    nats[front.best_index] = 0.0
    found = [Candidate(model, own) for model, own in zip(front.models, nats, strict=True) if np.isfinite(own)]
    return sorted(found, key=lambda each: (each.nats, each.model is not front.best, each.model.complexity))


def best_first(candidates: Sequence[Sequence[Candidate]]) -> Iterator[tuple[Candidate, ...]]:
    """Combinations of one candidate a state, by rising sum of their nats; each list is sorted by them."""
    if not all(candidates):
        return
    first = (0,) * len(candidates)
    waiting, seen = [(sum(own[0].nats for own in candidates), first)], {first}
    while waiting:
        _, places = heapq.heappop(waiting)
        yield tuple(own[place] for own, place in zip(candidates, places, strict=True))
        for state, own in enumerate(candidates):
            if places[state] + 1 == len(own):
                continue
            following = (*places[:state], places[state] + 1, *places[state + 1 :])
            if following not in seen:
                seen.add(following)
                nats = sum(each[place].nats for each, place in zip(candidates, following, strict=True))
                heapq.heappush(waiting, (nats, following))
