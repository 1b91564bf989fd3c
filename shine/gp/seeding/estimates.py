"""Estimates: the finds of a search, and the choice of those worth a regression on the training rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shine.arrays import log
from shine.gp.seeding.skeletons import Skeleton

MOST_CHOSEN = 20
"""Most estimates of a search that are completed on the training rows: each costs a regression and a prediction."""

MOST_UNEXPLAINED = 0.999
"""Estimates that leave this share of variance unexplained, or more, are dropped."""

ORDERS = ((1e-13, 0.02, 2), (1e-6, 0.1, 1))
"""Two orders to choose estimates by: share of variance that counts as rounding, price of a node, thirds of the places.

The first order prefers the least error; the second prefers small formulas, for noisy targets.
"""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A formula without its constants, and how well it fits the screened rows.

    Parameters
    ----------
    unexplained : float
        Share of the target's variance that it leaves unexplained.
    size : int
        Approximate number of nodes.
    skeleton : callable
        Makes its skeleton; raises `Unwritable` if the primitive set has no functions for it.
    """

    unexplained: float
    size: int
    skeleton: Callable[[], Skeleton]


def most_promising(estimates: list[Estimate], most: int = MOST_CHOSEN) -> list[Estimate]:
    """The best estimates by each of the orders."""
    useful = [e for e in estimates if e.unexplained < MOST_UNEXPLAINED]
    unexplained, sizes = np.array([e.unexplained for e in useful]), np.array([e.size for e in useful])
    chosen: dict[Estimate, None] = {}
    for rounding, price, thirds in ORDERS:
        order = np.argsort(log(unexplained + rounding) + price * sizes, kind="stable")
        chosen.update(dict.fromkeys(useful[i] for i in order[: thirds * most // 3].tolist()))
    return list(chosen)
