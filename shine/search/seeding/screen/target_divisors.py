"""Formulas that may be factors of the target: searches divide the target by them first."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import Regression, dot, log, power
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable, Writer
from shine.search.seeding.screen import target_views
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_views import PROBE, Chain, View

POWERS = (1.0, -1.0, 2.0, -2.0)
"""Powers of the divided target that are searched."""

LARGEST_EXPONENT = 5
"""Largest absolute exponent of a feature in a divisor."""

LIKELY_ERRORS, LIKELY_DISTANCE = 3.5, 0.15
"""Largest distance of a coefficient from its likely exponent: in standard errors, or absolute if that is larger."""

LEAST_ERROR = 0.02
"""Added to standard errors, so that exact data does not rank exponents by rounding."""

MOST_COMBINED = 6
"""Features whose combinations are all tried as divisors."""

Monomial = tuple[tuple[int, float], ...]
"""Pairs of a base, as its place in `Screen.bases`, and its exponent."""


def has_power(writer: Writer, values: Floats, exponent: float) -> bool:
    """Whether values can be raised to a power, and the inverse power can be written."""
    if exponent == 1:
        return True
    try:
        writer.power(PROBE, 1 / exponent)
    except Unwritable:
        return False
    with np.errstate(all="ignore"):
        finite = bool(np.isfinite(power(values, exponent)).all())
    return finite and (exponent % 2 == 1 or bool((values > 0).all() or (values < 0).all()))


def power_chain(exponent: float, sign: float) -> Chain:
    """The chain that raises a target of this sign to a power."""
    return () if exponent == 1 else (target_views.power(exponent, sign),)


def divided_views(screen: Screen, most: int) -> list[View]:
    """Views of the target divided by likely divisors, and raised to the powers that are searched."""
    found = []
    for nodes, values in likely_divisors(screen, most).items():
        divided = screen.target / values
        sign = -1.0 if (divided < 0).all() else 1.0
        found += [
            View(power_chain(exponent, sign), nodes, values)
            for exponent in POWERS
            if has_power(screen.writer, divided, exponent)
        ]
    return found


def likely_divisors(screen: Screen, most: int) -> dict[Nodes, Floats]:
    """Divisors with their values: likely monomials, and the members by which division helped most so far."""
    found: dict[Nodes, Floats] = {}
    for monomial in likely_monomials(screen, most):
        values = np.prod([power(screen.base_values[i], e) for i, e in monomial], axis=0)
        with suppress(Unwritable):
            found[screen.writer.product([(screen.bases[i], e) for i, e in monomial])] = values
    for _, g in (screen.best_divisors or [])[: max(most - len(found), most // 2)]:
        found[screen.bank.nodes(g)] = screen.values[g]
    return found


def likely_monomials(screen: Screen, most: int) -> list[Monomial]:
    """Monomials that may be factors of the target.

    If a feature is a factor and occurs nowhere else, its logarithm has a whole coefficient in the regression of log|y|,
    up to noise. Features whose coefficients come closest to a whole number are combined first.
    """
    logs = log(np.abs(screen.target))
    features = list(range(len(screen.bases)))
    if not features or not np.isfinite(logs).all():
        return []
    root = np.sqrt(screen.weights)
    columns = np.stack([np.ones(len(logs)), *(log(np.abs(values)) for values in screen.base_values)])
    regression = Regression.of(columns * root)
    rest = regression.rest(logs * root)
    errors = np.sqrt(dot(rest, rest) * regression.variances / max(len(logs) - len(columns), 1))[1:]
    coefficients = regression.coefficients(logs * root)[1:]
    ranked: list[tuple[float, tuple[int, float]]] = []
    for i, c, error in zip(features, coefficients.tolist(), errors.tolist(), strict=True):
        exponent = _likely_exponent(c, error)
        if exponent:
            ranked.append((abs(c - exponent) / (error + LEAST_ERROR), (i, exponent)))
    powers = [pair for _, pair in sorted(ranked)]
    found = [powers[:count] for count in range(len(powers), 0, -1)]
    few = powers[:MOST_COMBINED]
    found += [list(subset) for count in range(len(few), 0, -1) for subset in combinations(few, count)]
    return list(dict.fromkeys(tuple(sorted(monomial)) for monomial in found))[:most]


def _likely_exponent(coefficient: float, error: float) -> float:
    """The nearest whole number other than 0 that a coefficient with this standard error may be; 0 if there is none."""
    nearest = float(np.round(coefficient))
    allowed = max(LIKELY_ERRORS * error, LIKELY_DISTANCE)
    for e in (nearest, nearest + 1, nearest - 1):
        if e and abs(e) <= LARGEST_EXPONENT and abs(coefficient - e) <= allowed:
            return e
    return 0.0
