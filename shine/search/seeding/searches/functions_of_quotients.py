"""A function of a line or a product of a member, times a likely factor; and functions of functions of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from shine.base.typing import Floats
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable
from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.logarithms import Logarithms
from shine.search.seeding.screen.one_member import lines, powers
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_divisors import likely_divisors
from shine.search.seeding.screen.target_views import View, function_chains, nested_chains

KIND = "function of quotient"
"""The kind of the formulas."""


def functions_of_quotients(screen: Screen, divisors: int, each: int) -> Iterator[Estimate]:
    """f(y / g1) = a*g2 + b, and = c * M * g2^k; also f1(f2(y)), for functions f with an inverse

    Parameters
    ----------
    screen : Screen
    divisors : int
        Likely g1 that are tried, besides the coordinates and their inverses.
    each : int
        Members g2 that are estimated for each view.
    """
    views = [View(chain) for chain in nested_chains(screen.target, screen.writer)]
    for nodes, values in {**_coordinates(screen), **likely_divisors(screen, divisors)}.items():
        with np.errstate(all="ignore"):
            divided = screen.target / values
        if np.isfinite(divided).all():
            views += [View(chain, nodes, values) for chain in function_chains(divided, screen.writer)]
    yield from lines(screen, KIND, views, each)
    yield from powers(screen, KIND, Logarithms.of_views(screen, views), each)


def _coordinates(screen: Screen) -> dict[Nodes, Floats]:
    """Coordinates without zeros, and their inverses."""
    found: dict[Nodes, Floats] = {}
    for nodes, values in zip(screen.coordinates.nodes, screen.coordinates.values, strict=True):
        if (values != 0).all():
            found[nodes] = values
            with suppress(Unwritable):
                found[screen.writer.power(nodes, -1.0)] = 1 / values
    return found
