"""Systems on planes: where sums of states stay as they are along the runs, many equations fit alike.

A law keeps such a sum from wherever a motion begins: what leaves one state enters others. So the equations of some
states follow from those of the others, for which the shortest sums of terms are tried in every combination. Those with
the fewest terms and numbers are integrated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import combined, least_squares
from shine.lang.parse import parse
from shine.search.dynamics.conserved import SMALL, Plane
from shine.search.dynamics.joining import Candidate, described, model_of, shortest_sums, sums_of
from shine.search.dynamics.rows import RateRows
from shine.search.dynamics.summands import Product, collected, written

Sums = Sequence[Product]

MOST_SUMS, MOST_SYSTEMS = 6, 8
"""Most sums of a state that are tried, and most systems that are integrated."""


def closed(
    candidates: Sequence[Sequence[Candidate]], rows: Sequence[RateRows], states: Sequence[str], planes: Sequence[Plane]
) -> list[tuple[Candidate, ...]]:
    """The shortest systems of sums that keep the sums of some planes, one candidate a state."""
    shortest = [[Candidate(model, 0.0) for model in shortest_sums(at, candidates, rows)] for at in range(len(rows))]
    sums = [sums_of([*new, *known])[:MOST_SUMS] for new, known in zip(shortest, candidates, strict=True)]
    found: dict[frozenset[tuple[int, str]], tuple[tuple[int, int], tuple[Sums, ...]]] = {}
    for shares in _shares(states, planes):
        for chosen in product(*(sums[place] for place in range(len(states)) if place not in shares)):
            system = _system(iter(chosen), shares, len(states))
            terms = [(place, each.powers) for place, own in enumerate(system) for each in own]
            numbers = {f"{abs(each.coefficient):.4g}" for own in system for each in own}
            length = len(terms), len(numbers)
            key = frozenset((place, str(powers)) for place, powers in terms)
            if all(system) and (key not in found or length < found[key][0]):
                found[key] = length, system
    best = sorted(found.values(), key=lambda each: each[0])[:MOST_SYSTEMS]
    return [_described(system, candidates, rows) for _, system in best]


def _shares(states: Sequence[str], planes: Sequence[Plane]) -> Iterator[Mapping[int, Floats]]:
    """Ways of writing the rates of as many states as there are planes as sums of those of all states."""
    weights = np.array([[plane.weights.get(name, 0.0) for plane in planes] for name in states])
    for gone in combinations(range(len(states)), len(planes)):
        own, others = weights[list(gone)], weights.copy()
        others[list(gone)] = 0.0
        shares = np.array([least_squares(own, -each) for each in others])
        if all(
            np.allclose(combined(share, own), -each, atol=SMALL) for share, each in zip(shares, others, strict=True)
        ):
            yield dict(zip(gone, shares.T, strict=True))


def _system(chosen: Iterator[Sums], shares: Mapping[int, Floats], count: int) -> tuple[Sums, ...]:
    """The sums of all states, given those of the states that do not follow from others."""
    known = {place: next(chosen) for place in range(count) if place not in shares}
    found: list[Sums] = []
    for place in range(count):
        if place in known:
            found.append(known[place])
            continue
        parts = [
            Product(each.coefficient * float(shares[place][other]), each.powers)
            for other, own in known.items()
            for each in own
            if shares[place][other]
        ]
        largest = max((abs(each.coefficient) for each in parts), default=0.0)
        found.append([each for each in collected(parts) if abs(each.coefficient) > SMALL * largest])
    return tuple(found)


def _described(
    system: Sequence[Sums], candidates: Sequence[Sequence[Candidate]], rows: Sequence[RateRows]
) -> tuple[Candidate, ...]:
    """A system of sums as candidates of each state."""
    found = []
    for own, known, given in zip(system, candidates, rows, strict=True):
        model = model_of(parse(written(own), given.dataset.features), given)
        found.append(next(iter(described([model], known, given)), Candidate(model, math.inf)))
    return tuple(found)
