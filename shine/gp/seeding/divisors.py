"""Divisors: factors of a target that are worth undoing before it is looked at."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations

import numpy as np

from shine.arrays import dot, log, power
from shine.gp.regression import Regression
from shine.gp.seeding.screen import Screen
from shine.gp.seeding.writing import Nodes, Unwritable, Writer
from shine.typing import Floats

POWERS = (1.0, -1.0, 2.0, -2.0)
"""Powers of the divided target that are looked at."""

PROBE: Nodes = ((1, 0.0),)
"""Any formula, to see whether something can be written."""


def has_power(writer: Writer, values: Floats, exponent: float) -> bool:
    """Whether values can be raised to a power and brought back, and the way back can be written."""
    if exponent == 1:
        return True
    try:
        writer.power(PROBE, 1 / exponent)
    except Unwritable:
        return False
    with np.errstate(all="ignore"):
        finite = bool(np.isfinite(power(values, exponent)).all())
    return finite and (exponent % 2 == 1 or bool((values > 0).all() or (values < 0).all()))


def plausible_monomials(screen: Screen, most: int) -> list[tuple[tuple[int, float], ...]]:
    """Monomials that may be factors of the target: (feature, exponent) pairs.

    Where a feature is a factor and occurs nowhere else, its logarithm has a whole or half coefficient in the regression
    of log|y|, up to chance; features whose coefficients come closest to one are combined first.
    """
    logs = log(np.abs(screen.target))
    features = list(range(len(screen.powered)))
    if not features or not np.isfinite(logs).all():
        return []
    root = np.sqrt(screen.weights)
    columns = np.stack([np.ones(len(logs)), *(log(np.abs(values)) for _, values in screen.powered)])
    regression = Regression.of(columns * root)
    rest = regression.rest(logs * root)
    spread = np.sqrt(dot(rest, rest) * regression.variances / max(len(logs) - len(columns), 1))[1:]
    coefficients = regression.coefficients(logs * root)[1:]
    nearest = np.round(coefficients)
    options: list[list[tuple[int, float]]] = []
    for i, c, s, n in zip(features, coefficients.tolist(), spread.tolist(), nearest.tolist(), strict=True):
        likely = [e for e in (n, n + 1, n - 1) if e and abs(e) <= 5 and abs(c - e) <= max(3.5 * s, 0.15)]
        options.append([(i, e) for e in likely[:2]])
    sure = sorted(
        (abs(c - o[0][1]) / (s + 0.02), o[0])
        for o, c, s in zip(options, coefficients.tolist(), spread.tolist(), strict=True)
        if o
    )
    found_monomials: dict[tuple[tuple[int, float], ...], None] = {}
    for count in range(len(sure), 0, -1):
        found_monomials[tuple(sorted(pair for _, pair in sure[:count]))] = None
    pairs = [pair for _, pair in sure[:6]]
    for size in range(len(pairs), 0, -1):
        for subset in combinations(pairs, size):
            found_monomials[tuple(sorted(subset))] = None
    return list(found_monomials)[:most]


def divided(screen: Screen, most: int) -> list[tuple[Nodes, Floats]]:
    """Factors of the target worth undoing, with their values: likely monomials, and the best divisors so far."""
    found: dict[Nodes, Floats] = {}
    for monomial in plausible_monomials(screen, most):
        values = np.prod([power(screen.powered[i][1], e) for i, e in monomial], axis=0)
        with suppress(Unwritable):
            found[screen.writer.product([(screen.bases[i], e) for i, e in monomial])] = values
    for _, g in screen.divisors[: max(most - len(found), most // 2)]:
        found[screen.members.nodes(g)] = screen.values[g]
    return list(found.items())
