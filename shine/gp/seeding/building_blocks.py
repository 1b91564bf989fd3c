"""Building blocks: members that come closest to a view of the target, which evolution may insert into formulas."""

from __future__ import annotations

import numpy as np

from shine.arrays import inner
from shine.gp.seeding.correlations import Normalized
from shine.gp.seeding.formula_writer import Nodes
from shine.gp.seeding.monomial_projection import beyond_monomials
from shine.gp.seeding.screen import Screen
from shine.gp.seeding.target_views import values_of


def closest_members(screen: Screen, most: int) -> dict[Nodes, float]:
    """Members that correlate best with a view, and those whose logarithms do after monomials are projected out.

    Parameters
    ----------
    screen : Screen
    most : int
        Of each of the two sorts.

    Returns
    -------
    dict
        Their formulas with their squared correlations.
    """
    values = values_of(screen.simple_views, screen.target)
    normal = Normalized.of(values, screen.weights)
    plain = np.abs(inner(normal.units, screen.normalized.units)).max(axis=0, initial=0.0)
    rest, _ = beyond_monomials(values, screen.monomial_basis, screen.weights)
    logs = np.abs(inner(rest.astype(np.float32), screen.logs)).max(axis=0, initial=0.0)
    found: dict[int, float] = {}
    for scores, members in ((plain, screen.distinct_in_sums), (logs, screen.distinct_in_products)):
        for member in members[np.argsort(-scores[members], kind="stable")[:most]].tolist():
            found[member] = max(found.get(member, 0.0), min(float(scores[member]) ** 2, 1.0))
    return {screen.bank.nodes(member): share for member, share in found.items()}
