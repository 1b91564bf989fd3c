"""Oddity of a formula, in nats: of formulas that fit equally well, people prefer the plainer one.

Among the laws of physics and among formulas in encyclopedias (Guimerà et al. 2020) functions hardly ever contain other
functions, and sines are rarer than the rest. Where noise hides a difference, the plainer formula is the likelier law:
`15.7 - 0.95*log(x)` beside `log(6.7e6/x + 4e4)`.
"""

from __future__ import annotations

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.lang.forms.facts import names_where
from shine.lang.population import Population
from shine.lang.subtrees import begins

NESTED = 1.0
"""Nats for a function inside another function."""

PERIODIC = 1.0
"""Nats for a periodic function."""

SUM_INSIDE = 0.5
"""Nats for a sum or difference inside a function."""

_NESTS = names_where(lambda facts: facts.family == "function" and not facts.nests_freely)
_PERIODIC = names_where(lambda facts: facts.period is not None)
_SUMS = frozenset({"add", "sub"})


def oddities(population: Population) -> Floats:
    """Nats of each individual, shape (n_individuals,), float64."""
    nests, periodic, sums = (_is_one_of(population, names) for names in (_NESTS, _PERIODIC, _SUMS))
    total: Floats = PERIODIC * periodic.sum(axis=1)
    # Most individuals have no function around anything odd; subtrees take most of the time.
    which = np.flatnonzero(nests.any(axis=1) & ((nests | sums).sum(axis=1) > 1))
    if len(which):
        nests, sums = nests[which], sums[which]
        inside = _count_around(population.take(which), nests) > 0
        total[which] += (NESTED * (nests & inside) + SUM_INSIDE * (sums & inside)).sum(axis=1)
    return total


def _is_one_of(population: Population, names: frozenset[str]) -> Mask:
    """Whether each cell is a call of one of the functions, shape (n_individuals, width)."""
    codes = [code for name, code in population.primitives.function_codes.items() if name in names]
    in_use = np.arange(population.width) < population.sizes[:, None]
    found: Mask = np.isin(population.codes, codes) & in_use
    return found


def _count_around(population: Population, marked: Mask) -> Indices:
    """Number of marked nodes that each node is an argument of, directly or not, shape (n_individuals, width)."""
    rows, ends = np.nonzero(marked)
    changes = np.zeros((len(population), population.width + 1), np.int64)
    np.add.at(changes, (rows, begins(population, rows, ends)), 1)
    np.add.at(changes, (rows, ends), -1)
    around: Indices = np.cumsum(changes, axis=1)[:, :-1]
    return around
