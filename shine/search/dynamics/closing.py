"""Systems on planes: where sums of states stay as they are along the runs, many equations fit alike.

A law keeps such a sum from wherever a motion begins: what leaves one state enters others. So the equations of some
states follow from those of the others, for which the shortest sums of terms are tried in every combination. Those with
the fewest terms and numbers are integrated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import least_squares
from shine.search.dynamics.conserved import SMALL, Plane
from shine.search.dynamics.joining import Candidate, candidate_of, shortest_sums, sums_of
from shine.search.dynamics.rows import RateRows
from shine.search.dynamics.summands import Product, collected


def closed(
    candidates: Sequence[Sequence[Candidate]], rows: Sequence[RateRows], states: Sequence[str], planes: Sequence[Plane]
) -> list[tuple[Candidate, ...]]:
    """The shortest systems of sums that keep the sums of some planes, one candidate a state."""
    shortest = [
        [Candidate(model, 0.0) for model in shortest_sums(at, candidates, rows, states)] for at in range(len(rows))
    ]
    # Most systems that are written down, and most sums of a state: of many states, only the shortest sums are tried.
    free, choices = len(states) - len(planes), math.comb(len(states), len(planes))
    most = max((each for each in range(1, 7) if math.prod([each] * free) * choices <= 4000), default=1)
    sums = [sums_of([*new, *known])[:most] for new, known in zip(shortest, candidates, strict=True)]
    found: dict[str, tuple[tuple[int, int], list[list[Product]]]] = {}
    for shares in _shares(states, planes):
        for chosen in product(*(own if share else [[]] for own, share in zip(sums, np.diagonal(shares), strict=True))):
            system = [_sum(chosen, share) for share in shares.tolist()]
            terms = [(place, each.powers) for place, own in enumerate(system) for each in own]
            length = len(terms), len({f"{abs(each.coefficient):.4g}" for own in system for each in own})
            if all(system):
                key = str(sorted(terms))
                found[key] = min(found.get(key, (length, system)), (length, system), key=lambda each: each[0])
    # Most systems that are integrated
    best = sorted(found.values(), key=lambda each: each[0])[:8]
    return [tuple(map(candidate_of, system, candidates, rows)) for _, system in best]


def _shares(states: Sequence[str], planes: Sequence[Plane]) -> Iterator[Floats]:
    """Ways of writing the rates of all states by those of some, shape (n_states, n_states): as many as there are planes
    follow from the others, which are written by themselves."""
    weights = np.array([[plane.weights.get(name, 0.0) for plane in planes] for name in states])
    for gone in combinations(range(len(states)), len(planes)):
        shares, own = np.eye(len(states)), weights[list(gone)]
        for place, each in enumerate(weights):
            shares[list(gone), place] = 0.0 if place in gone else least_squares(own, -each)
        if (np.abs(np.add.reduce(shares[:, :, None] * weights[:, None], axis=0)) < SMALL).all():
            yield shares


def _sum(chosen: Sequence[Sequence[Product]], shares: Sequence[float]) -> list[Product]:
    """Some sums, each times its share, as one sum; terms that rounding leaves are gone."""
    pairs = zip(chosen, shares, strict=True)
    parts = [Product(each.coefficient * share, each.powers) for own, share in pairs if share for each in own]
    largest = max((abs(each.coefficient) for each in parts), default=0.0)
    return [each for each in collected(parts) if abs(each.coefficient) > SMALL * largest]
