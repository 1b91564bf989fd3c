"""The searches for several members: sums of them, and quotients of sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from shine.arrays import inner
from shine.gp.regression import combined, least_squares
from shine.gp.seeding import views
from shine.gp.seeding.divisors import POWERS, divided, has_power
from shine.gp.seeding.screen import Estimate, Screen
from shine.gp.seeding.screening import Normalized, best_pairs, best_triples
from shine.gp.seeding.sums import Dictionary, Sums, first_terms, replaced, with_another_term
from shine.gp.seeding.views import Chain
from shine.gp.seeding.writing import Nodes
from shine.typing import Floats, Indices

Look = tuple[Nodes | None, Chain, Floats]
"""A view of the target divided by something: that as a formula, the chain, and its values."""


def pairs(screen: Screen, members: Indices) -> Iterator[Estimate]:
    """chain(y) = a*g1 + b*g2 + c, every pair of some members, and with a third"""
    units = screen.normalized.units[members]
    gram, dictionary = inner(units, units), Dictionary(units)
    looks = undivided(screen)
    seen = views.through([chain for _, chain, _ in looks], screen.target)
    normal = Normalized.of(seen, screen.weights)
    for k in range(len(looks)):
        first, second, _ = best_pairs(units, normal.units[k], gram, 24)
        found = Sums(np.full(len(first), k), np.column_stack([first, second]), np.zeros(len(first)))
        more = replaced(dictionary, normal.units, with_another_term(dictionary, normal.units, found))
        for some in (found, more):
            yield from estimates_of_sums(screen, f"sum of {some.chosen.shape[1]}", looks, seen, members, some)


def triples(screen: Screen, simplest: int, most: int) -> Iterator[Estimate]:
    """chain(y) = a*g1 + b*g2 + c*g3 + d, every pair of the simplest members with every other"""
    members = screen.distinct[:most]
    dictionary = Dictionary(screen.normalized.units[members])
    looks = undivided(screen)
    seen = views.through([chain for _, chain, _ in looks], screen.target)
    normal = Normalized.of(seen, screen.weights)
    first, second = np.triu_indices(min(simplest, len(members)), 1)
    if not len(first):
        return
    for k, (_, chain, _) in enumerate(looks):
        if views.homogeneous(chain) or chain[0].name == "exp":
            found = Sums(np.full(len(first), k), np.column_stack([first, second]), np.zeros(len(first)))
            found = with_another_term(dictionary, normal.units, found)
            found = found.take(np.argsort(found.left, kind="stable")[:16])
            more = with_another_term(dictionary, normal.units, found)
            for some in (found, more):
                yield from estimates_of_sums(screen, f"sum of {some.chosen.shape[1]}", looks, seen, members, some)


def undivided(screen: Screen) -> list[Look]:
    """The target through chains of at most one step."""
    return [(None, chain, np.ones_like(screen.target)) for chain in screen.chains if len(chain) < 2]


def estimates_of_sums(
    screen: Screen, kind: str, looks: Sequence[Look], seen: Floats, members: Indices, some: Sums
) -> Iterator[Estimate]:
    """What sums of members leave of the target behind their views, each with its proposal."""
    left = _left_of_sums(screen, looks, seen, members, some.views, some.chosen)
    for view, row, share in zip(some.views.tolist(), some.chosen, left.tolist(), strict=True):
        nodes, chain, _ = looks[view]
        terms = tuple(sorted(set(members[row].tolist())))
        yield Estimate(
            share,
            len(nodes or ()) + int(screen.sizes[list(terms)].sum()) + 2 * len(terms),
            partial(screen.linear, kind, chain, nodes, terms),
        )


def sums(screen: Screen, most: int, multipliers: int, terms: int) -> Iterator[Estimate]:
    """chain(y / g1) = a sum of a few members, for likely factors g1"""
    members = screen.order[:most]
    units = screen.normalized.units[members]
    used = np.flatnonzero((units != 0).any(axis=1))
    members, units = members[used], units[used]
    looks = undivided(screen)
    for nodes, values in divided(screen, multipliers):
        scaled = screen.target / values
        sign = -1.0 if (scaled < 0).all() else 1.0
        for exponent in POWERS:
            chain: Chain = () if exponent == 1 else (views.power(exponent, sign),)
            if has_power(screen.writer, scaled, exponent):
                looks.append((nodes, chain, values))
    if not looks:
        return
    seen = np.array([views.forward(chain, screen.target / values) for _, chain, values in looks])
    yield from _stepwise_estimates(screen, "sum", looks, seen, members, Dictionary(units), terms)


def _stepwise_estimates(
    screen: Screen,
    kind: str,
    looks: Sequence[Look],
    seen: Floats,
    members: Indices,
    dictionary: Dictionary,
    terms: int,
) -> Iterator[Estimate]:
    normal = Normalized.of(seen, screen.weights)
    found = first_terms(dictionary, normal.units, 3)
    for _ in range(terms - 1):
        found = with_another_term(dictionary, normal.units, found)
        left = _left_of_sums(screen, looks, seen, members, found.views, found.chosen)
        promising = found.take(_promising(left, found.views))
        for some in (promising, replaced(dictionary, normal.units, promising, 2)):
            yield from estimates_of_sums(screen, kind, looks, seen, members, some)


def rational(screen: Screen, above: int, below: int, simplest: int) -> Iterator[Estimate]:
    """chain(y) = (sum of members) / (1 + sum of members), from the linear chain(y) = sum - chain(y) * sum

    With two members of all, three of the simplest, and four that begin with these three.
    """
    # Divisors that differ by a constant would explain the view by itself.
    numerators, divisors = screen.distinct[:above], screen.distinct[:below]
    members = np.concatenate([numerators, divisors])
    simple = np.concatenate(
        [np.arange(len(numerators))[:simplest], len(numerators) + np.arange(len(divisors))[:simplest]]
    )
    # The simplest members are the same ever after; what is found with them is found the first time.
    fresh, screen.simplest = screen.simplest != len(simple), len(simple)
    for chain in screen.chains:
        if len(chain) > 1 or not views.homogeneous(chain):
            continue
        view = views.forward(chain, screen.target)
        # Times its distance from the mean, for times a divisor that hardly varies the view would explain itself.
        centered = screen.values[divisors] - screen.normalized.means[divisors][:, None]
        columns = np.concatenate([screen.values[numerators], -view * centered])
        units = Normalized.of(columns, screen.weights).units
        own, dictionary = Normalized.of(view[None], screen.weights).units, Dictionary(units)
        first, second, left = best_pairs(units, own[0], inner(units, units), 16)
        found = [Sums(np.zeros(len(first), np.int64), np.column_stack([first, second]), left)]
        found.append(replaced(dictionary, own, with_another_term(dictionary, own, found[0])))
        if fresh:
            three, left = best_triples(units[simple], own[0], 16)
            found.append(Sums(np.zeros(len(three), np.int64), simple[three], left))
        found.append(replaced(dictionary, own, with_another_term(dictionary, own, found[-1])))
        for some in found:
            shares = _left_of_quotients(screen, chain, view, columns, some.chosen, len(numerators))
            for row, share in zip(some.chosen, shares, strict=True):
                up = sorted({int(members[i]) for i in row if i < len(numerators)})
                down = sorted({int(members[i]) for i in row if i >= len(numerators)})
                if up and down:
                    size = int(screen.sizes[up].sum() + screen.sizes[down].sum()) + 2 * len(row)
                    yield Estimate(float(share), size, partial(screen.linear, "rational", chain, None, up, down))


def _left_of_quotients(
    screen: Screen, chain: Chain, view: Floats, columns: Floats, chosen: Indices, above: int
) -> Floats:
    """Share of the target's variance that quotients leave."""
    root = np.sqrt(screen.weights)
    design = np.concatenate([np.ones((len(chosen), 1, len(view))), columns[chosen]], axis=1)
    solution = least_squares(design * root, np.broadcast_to(view * root, (len(chosen), len(view))))
    is_above = np.concatenate([np.ones((len(chosen), 1), bool), chosen < above], axis=1)
    with np.errstate(all="ignore"):
        up = combined(np.where(is_above, solution, 0.0), design)
        down = 1 - combined(np.where(is_above, 0.0, solution), design) / view
        return screen.left(views.inverse(chain, up / down))


def _promising(left: Floats, which: Indices) -> Indices:
    """The best sums of each view, and the best of all."""
    order = np.argsort(left, kind="stable")
    _, firsts = np.unique(which[order], return_index=True)
    return np.unique(np.concatenate([order[firsts], order[:24]]))


def _left_of_sums(
    screen: Screen,
    looks: Sequence[Look],
    seen: Floats,
    members: Indices,
    which: Indices,
    chosen: Indices,
) -> Floats:
    """Share of the target's variance that sums leave, by regressions in step."""
    root = np.sqrt(screen.weights)
    n, k = chosen.shape
    design = np.ones((n, k + 1, len(root)))
    design[:, :k] = screen.values[members[chosen]]
    fitted = combined(least_squares(design * root, seen[which] * root), design)
    back = np.empty_like(fitted)
    with np.errstate(all="ignore"):
        for view in np.unique(which).tolist():
            at = which == view
            back[at] = looks[view][2] * views.inverse(looks[view][1], fitted[at])
    return screen.left(back)
