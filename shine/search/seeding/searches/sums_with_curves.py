"""Sums of a few simple terms and of functions with a constant inside: the best of each length, with pairs exchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import combined, dot, least_squares, log
from shine.search.seeding.screen.curve_dictionary import Curve, CurveDictionary, Sum, curves_of
from shine.search.seeding.screen.estimates import COST_OF_TERM, Estimate
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.skeletons import Skeleton

LEAST_ROWS, MOST_ROWS, FEW_ROWS = 40, 300, 75
"""Rows that tell so many terms apart; rows that sums are measured on, about, and that further terms are sought on."""

PAIRS, FITTED = (0, 600, 40, 30), (60, 600, 600, 120)
"""For sums of one term, two, three, and more: pairs that a sum is extended by, and sums whose constants are fitted."""

BEAMS, KEPT = 6, 24
"""Sums that are extended, and that are estimated, of each number of terms."""

NEXT, EXCHANGED, EXCHANGES = 24, 6, 2
"""Terms that a sum is extended by, that each of its terms is exchanged for, and rounds of exchanges."""

LONG, STEPS, PATIENCE = 4, (4, 6, 12), (3, 4, 6)
"""Terms from which on pairs are exchanged; most sums whose pairs are, of so many terms and more, and of those in a row
that lead to nothing better."""

ALIKE, FALL = 2, 0.5
"""Terms in which a sum differs from all those before whose pairs were exchanged, unless it leaves less by this factor:
neighbours lead to the same sums."""

EXACT = 1e-11
"""Length of what an exact sum leaves of the target, as a share: the search ends."""


def sums_with_curves(screen: Screen, most: int, terms: int) -> Iterator[Estimate]:
    """y = a*g1 + b*g2 + ... + c*M*u(g; k) + ..., with a few terms

    Parameters
    ----------
    screen : Screen
        Over a bank of simple terms.
    most : int
        Members that are tried as terms.
    terms : int
        Most terms, besides the intercept.
    """
    if len(screen.target) < LEAST_ROWS:
        return
    members = screen.order[screen.normalized.lengths[screen.order] > 0][:most].tolist()
    curves = list(curves_of(screen))
    for root in screen.roots:
        dictionary, few = (_dictionary(screen, members, curves, root, count) for count in (MOST_ROWS, FEW_ROWS))
        for each in _sums(dictionary, few, terms):
            yield _estimate(screen, members, curves, each)


def _dictionary(
    screen: Screen, members: Sequence[int], curves: Sequence[Curve], root: Floats, most_rows: int
) -> CurveDictionary:
    """The dictionary on some of the rows."""
    rows = slice(None, None, -(-len(root) // most_rows))
    weights = root[rows] ** 2 / float(dot(root[rows], root[rows]))
    on_rows = [curve.on(rows) for curve in curves]
    return CurveDictionary.of(screen.values[members][:, rows], on_rows, screen.target[rows], weights)


def _sums(dictionary: CurveDictionary, few: CurveDictionary, terms: int) -> Iterator[Sum]:
    """Sums of one term, of two, and so on, the best of each number first."""
    shorter: list[Sum] = []
    best = [Sum(())]
    for count in range(1, terms + 1):
        if count == 3:
            # Members that sums of three begin with: each gets the best pairs.
            shorter = [Sum(((member, np.nan),)) for member in range(min(30, len(dictionary.members)))]
        pairs, fitted = PAIRS[min(count, len(PAIRS)) - 1], FITTED[min(count, len(FITTED)) - 1]
        found = [other for each in best for other in few.further(each.terms, NEXT)]
        found += [other for each in shorter for other in few.with_pairs(each.terms, pairs)]
        beams = dictionary.fitted(found, fitted)[:KEPT]
        for _ in range(EXCHANGES if 1 < count < LONG and beams else 0):
            before = beams[0].left
            known = {each.groups for each in beams}
            others = [other for each in beams[:BEAMS] for other in _exchanged(few, each)]
            beams += dictionary.fitted([other for other in others if other.groups not in known], FITTED[-1])
            beams = dictionary.ordered(beams)[:KEPT]
            if not beams[0].left < before:
                break
        if count >= LONG and beams:
            exchanged: list[Sum] = []
            for better in _with_pairs_exchanged(few, beams, min(count - LONG, len(STEPS) - 1)):
                exchanged += better
                yield from better[:2]  # sums that are estimated after each exchange, which also looks at the clock
            beams = dictionary.ordered([*beams, *dictionary.fitted(few.ordered(exchanged)[:KEPT], KEPT)])[:KEPT]
        if beams and beams[0].left <= EXACT:
            yield dictionary.needed(beams[0], EXACT)
        yield from beams
        if not beams or beams[0].left <= EXACT or (count > 2 and not _worth(beams[0], best[0], dictionary)):
            return
        shorter, best = best[:BEAMS], beams[:BEAMS]


def _with_pairs_exchanged(dictionary: CurveDictionary, beams: Sequence[Sum], stage: int) -> Iterator[list[Sum]]:
    """Better sums of as many terms, by exchanges of two terms for the best two.

    Sums of nearly dependent terms have many minima that no exchange of one term leaves. The best sum is next whose
    neighbours were not looked at.
    """
    pool = {each.groups: each for each in dictionary.fitted(beams, KEPT)}
    best, waited = min(each.left for each in pool.values()), 0
    seen: list[Sum] = []
    for _ in range(STEPS[stage]):
        following = next((each for each in dictionary.ordered(pool.values()) if _is_new(each, seen)), None)
        if following is None or waited >= PATIENCE[stage] or best <= dictionary.rounding:
            return
        seen.append(following)
        # Sums with another pair in place of each, those whose constants are fitted, and the factor by which a better
        # sum leaves less, at least
        found = [each for each in dictionary.with_exchanged_pairs(following.terms, 12) if each.groups not in pool]
        fitted = dictionary.fitted(found, 48)
        pool.update((each.groups, each) for each in fitted)
        least = min((each.left for each in fitted), default=best)
        waited, best = 0 if least < 0.97 * best else waited + 1, min(least, best)
        yield fitted


def _is_new(each: Sum, seen: Sequence[Sum]) -> bool:
    """Whether the neighbours of a sum are worth a look after those of others."""
    own = set(each.groups)
    return all(len(own.difference(other.groups)) >= ALIKE or each.left < FALL * other.left for other in seen)


def _exchanged(dictionary: CurveDictionary, each: Sum) -> Iterator[Sum]:
    """The sum with one term exchanged."""
    for at in range(len(each.terms)):
        yield from dictionary.further((*each.terms[:at], *each.terms[at + 1 :]), EXCHANGED)


def _worth(longer: Sum, shorter: Sum, dictionary: CurveDictionary) -> bool:
    """Whether another term says more than chance, by Schwarz's criterion."""
    least, rows = np.finfo(np.float64).tiny, len(dictionary.target)
    before, after, price = log(np.array([shorter.left + least, longer.left + least, float(rows)]))
    return bool(rows * (before - after) > price)


def _estimate(screen: Screen, members: Sequence[int], curves: Sequence[Curve], found: Sum) -> Estimate:
    """A sum with the share of the target's variance that it leaves."""
    root, own = np.sqrt(screen.weights), len(members)
    rows: list[Floats] = []
    size = COST_OF_TERM * len(found.terms)
    for which, constant in found.terms:
        curve = curves[which - own] if which >= own else None
        rows.append(screen.values[members[which]] if curve is None else curve.values(np.array([constant]))[0])
        size += int(screen.sizes[members[which]]) if curve is None else curve.size
    design = np.stack([*rows, np.ones(len(root))])
    fitted = combined(least_squares(design * root, screen.target * root), design)
    share = float(screen.unexplained(fitted[None])[0])
    return Estimate(share, size, partial(_skeleton, screen, members, curves, found))


def _skeleton(screen: Screen, members: Sequence[int], curves: Sequence[Curve], found: Sum) -> Skeleton:
    """The target as a sum with these constants inside."""
    own = len(members)
    terms = tuple(
        screen.bank.nodes(members[which]) if which < own else curves[which - own].nodes(screen.writer, constant)
        for which, constant in found.terms
    )
    return screen.sum_of_formulas("sum with curves", (), terms)
