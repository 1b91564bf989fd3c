"""The searches for one or two members: each looks at the bank through one kind of invariant, and proposes formulas."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from shine.arrays import Panels, dot, exp, inner, power
from shine.gp.seeding import views
from shine.gp.seeding.divisors import POWERS, divided, has_power
from shine.gp.seeding.screen import PROPOSED, Estimate, Screen
from shine.gp.seeding.screening import Normalized, best_matches, best_pairs, beyond_monomials
from shine.gp.seeding.views import Chain
from shine.gp.seeding.writing import Nodes
from shine.lang.primitives import CONSTANT
from shine.typing import Floats, Indices, Singles


def most_promising(screen: Screen, most: int) -> list[tuple[int, float]]:
    """Members that correlate best with a view of the target, or whose logarithm does beyond monomials.

    Returns
    -------
    list of (int, float)
        Members, each of another class, and their squared correlation.
    """
    seen = views.through([chain for chain in screen.chains if len(chain) < 2], screen.target)
    plain = np.abs(inner(Normalized.of(seen, screen.weights).units, screen.normalized.units)).max(axis=0, initial=0.0)
    rest, _ = beyond_monomials(seen, screen.basis, screen.weights)
    logs = np.abs(inner(rest.astype(np.float32), screen.logs)).max(axis=0, initial=0.0)
    found: dict[int, float] = {}
    for scores, classes in ((plain, screen.distinct), (logs, screen.classes)):
        for member in classes[np.argsort(-scores[classes], kind="stable")[:most]].tolist():
            found[member] = max(found.get(member, 0.0), min(float(scores[member]) ** 2, 1.0))
    return list(found.items())


def affine(screen: Screen) -> Iterator[Estimate]:
    """chain(y) = a*g + b"""
    seen = views.through(screen.chains, screen.target)
    normal = Normalized.of(seen, screen.weights)
    which, member, correlation = best_matches(Panels(screen.normalized.units), normal.units, 12)
    fitted = line(screen, normal, which, member, correlation)
    for k, chain in enumerate(screen.chains):
        at = np.flatnonzero(which == k)
        with np.errstate(all="ignore"):
            left = screen.left(views.inverse(chain, fitted[at]))
        for i, share in zip(at.tolist(), left.tolist(), strict=True):
            m = int(member[i])
            yield Estimate(
                share,
                int(screen.sizes[m]),
                partial(screen.linear, "affine", chain, None, (m,)),
            )


def line(screen: Screen, normal: Normalized, which: Indices, member: Indices, correlation: Floats) -> Floats:
    """Views as the regression on a member gives them, shape (n, n_rows)."""
    slopes = correlation * normal.lengths[which] / np.maximum(screen.normalized.lengths[member], 1e-300)
    return (
        normal.means[which][:, None]
        + (screen.values[member] - screen.normalized.means[member][:, None]) * slopes[:, None]
    )


def products(screen: Screen, pairs_of: int) -> Iterator[Estimate]:
    """chain(y) = c * M * g1^k1, and with a second member g2^k2, M any monomial."""
    seen = views.through(screen.shifted, screen.target)
    rest, lengths = beyond_monomials(seen, screen.basis, screen.weights)
    for k, chain in enumerate(screen.shifted):
        if lengths[k] == 0:
            yield Estimate(0.0, len(screen.bases), partial(screen.product, "monomial", chain, None, ()))
            return
    # A product of powers of the features alone, as far as it goes.
    for k, chain in enumerate(screen.shifted):
        with np.errstate(all="ignore"):
            off = rest[k] * lengths[k] / np.sqrt(screen.weights)
            left = screen.left(views.inverse(chain, seen[k] * exp(-off))[None])
        yield Estimate(
            float(left[0]),
            2 * len(screen.bases),
            partial(screen.product, "monomial", chain, None, ()),
        )
    units = rest.astype(np.float32)
    which, member, correlation = best_matches(Panels(screen.logs), units, 12)
    off = rest[which] - correlation[:, None] * screen.logs[member]
    for k, chain in enumerate(screen.shifted):
        at = np.flatnonzero(which == k)
        left = _left_of_logs(screen, chain, seen[k], off[at] * lengths[k])
        for i, share in zip(at.tolist(), left.tolist(), strict=True):
            m = int(member[i])
            yield Estimate(
                share,
                int(screen.sizes[m]),
                partial(screen.product, "product", chain, None, (m,)),
            )
    some = screen.classes[:pairs_of]
    if len(some) < 2:
        return
    logs = screen.logs[some]
    gram = inner(logs, logs)
    for k, chain in enumerate(screen.shifted):
        if len(chain) > 1 or (chain and not chain[0].homogeneous and chain[0].name != "shift"):
            continue
        first, second, _ = best_pairs(logs, units[k], gram, 24)
        off = _two_regressors(units[k], logs[first], logs[second])
        left = _left_of_logs(screen, chain, seen[k], off * lengths[k])
        for i, j, share in zip(some[first].tolist(), some[second].tolist(), left.tolist(), strict=True):
            yield Estimate(
                share,
                int(screen.sizes[i] + screen.sizes[j]),
                partial(screen.product, "product of two", chain, None, (i, j)),
            )


def _left_of_logs(screen: Screen, chain: Chain, seen: Floats, off: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return screen.left(views.inverse(chain, seen * exp(-off / np.sqrt(screen.weights))))


def _two_regressors(view: Singles, first: Singles, second: Singles) -> Floats:
    """What regressions on pairs of rows of length 1 leave of a view, shape (n, n_rows)."""
    a, b = dot(first, view).astype(np.float64), dot(second, view).astype(np.float64)
    r = dot(first, second).astype(np.float64)
    apart = np.maximum(1 - r * r, 1e-6)
    return view - ((a - b * r) / apart)[:, None] * first - ((b - a * r) / apart)[:, None] * second


def quotients(screen: Screen, most: int, others: int) -> Iterator[Estimate]:
    """(y / g1)^p = a*g2 + b for every small member g1; the best g1 become multipliers for other searches."""
    smallest = screen.order[: 2 * most]
    usable = (np.abs(screen.values[smallest]).min(axis=1) > 0) & (screen.members.codes[smallest] != CONSTANT)
    divisors, dividends = smallest[usable][:most], screen.order[:others]
    panels = Panels(screen.normalized.units[dividends])
    scores: dict[int, float] = {}
    for exponent in POWERS:
        if not has_power(screen.writer, np.ones(1), exponent):
            continue
        with np.errstate(all="ignore"):
            ratio = screen.target / screen.values[divisors]
            seen = power(ratio, exponent)
        one_sign = (ratio > 0).all(axis=1) | (ratio < 0).all(axis=1)
        valid = np.isfinite(seen).all(axis=1) & (one_sign if exponent % 2 == 0 else True)
        own, seen, ratio = divisors[valid], seen[valid], ratio[valid]
        normal = Normalized.of(seen, screen.weights)
        which, member, correlation = best_matches(panels, normal.units, 3)
        member = dividends[member]
        fitted = line(screen, normal, which, member, correlation)
        with np.errstate(all="ignore"):
            back = screen.values[own[which]] * (
                1 / fitted if exponent == -1 else power(fitted, 1 / exponent) * np.where(ratio[which, :1] < 0, -1, 1)
            )
        left = screen.left(back)
        for i in np.argsort(left, kind="stable")[: 2 * PROPOSED].tolist():
            g, m = int(own[which[i]]), int(member[i])
            sign = -1.0 if ratio[which[i], 0] < 0 else 1.0
            chain: Chain = () if exponent == 1 else (views.power(exponent, sign),)
            scores[g] = min(scores.get(g, 1.0), float(left[i]))
            yield Estimate(
                float(left[i]),
                int(screen.sizes[g] + screen.sizes[m]),
                partial(screen.linear, "quotient", chain, screen.members.nodes(g), (m,)),
            )
    screen.divisors = sorted((share, g) for g, share in scores.items())


def shifted_products(screen: Screen, most: int) -> Iterator[Estimate]:
    """(y / g1)^p + s = c * M * g2^k, for likely factors g1 and s of plus or minus 1"""
    looks: list[tuple[Nodes | None, Chain, Floats, Floats]] = []
    for nodes, values in divided(screen, most):
        scaled = screen.target / values
        for exponent in POWERS:
            sign = -1.0 if (scaled < 0).all() else 1.0
            start: Chain = () if exponent == 1 else (views.power(exponent, sign),)
            for by in (1.0, -1.0):
                chain = (*start, views.shift(by))
                if has_power(screen.writer, scaled, exponent):
                    looks.append((nodes, chain, views.forward(chain, scaled), values))
    if not looks:
        return
    seen = np.array([look[2] for look in looks])
    rest, lengths = beyond_monomials(seen, screen.basis, screen.weights)
    which, member, correlation = best_matches(Panels(screen.logs), rest.astype(np.float32), 3)
    off = (rest[which] - correlation[:, None] * screen.logs[member]) * lengths[which, None]
    off = np.concatenate([off, rest * lengths[:, None]])
    which, member = np.concatenate([which, np.arange(len(looks))]), np.concatenate([member, np.full(len(looks), -1)])
    with np.errstate(all="ignore"):
        views_fitted = seen[which] * exp(-off / np.sqrt(screen.weights))
        back = np.array(
            [looks[w][3] * views.inverse(looks[w][1], view) for w, view in zip(which, views_fitted, strict=True)]
        )
    left = screen.left(back)
    for i in np.argsort(left, kind="stable")[: 2 * PROPOSED].tolist():
        nodes, chain, _, _ = looks[which[i]]
        m = int(member[i])
        size = len(nodes or ()) + (int(screen.sizes[m]) if m >= 0 else 0) + len(screen.bases)
        yield Estimate(
            float(left[i]),
            size,
            partial(screen.product, "shifted product", chain, nodes, (m,) if m >= 0 else ()),
        )
