"""A member times a slope plus an intercept, after any chain."""

from __future__ import annotations

from collections.abc import Iterator

from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.one_member import lines
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_views import View


def affine(screen: Screen, each: int) -> Iterator[Estimate]:
    """chain(y) = a*g + b, by the `each` members that correlate best with chain(y)"""
    yield from lines(screen, "affine", [View(chain) for chain in screen.chains], each)
