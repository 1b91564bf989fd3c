"""Short numbers in exact equations: 10 where a fit to clean readings has left 10.00000000005."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from shine.evaluate.rollouts.rates import with_named_constants, with_numbers
from shine.lang.forms.named_numbers import short
from shine.search.dynamics.equations import KNOWN, Equation
from shine.search.dynamics.system import SystemModel

RIGHT = 8
"""Digits of a constant that readings without noise tell, at least, though errors grow along a run."""

CLEAN = 1e-12
"""Error of rollouts, as a share of the variance, of readings without noise."""

WORSE, ROUNDING = 4.0, 1e-16
"""Factor by which short numbers may raise the error, and the error that is rounding."""


def with_short_numbers(system: SystemModel, fit: Callable[[Sequence[Equation]], SystemModel]) -> SystemModel:
    """An exact system with short decimals for its constants, if its rollouts follow the readings as well.

    Parameters
    ----------
    system : SystemModel
    fit : callable
        Equations -> the system with the initial states that fit best, and constants without a name as given.
    """
    if not system.error < CLEAN or any(tree.assignments for tree in system.trees):
        return system
    equations = []
    for model in system.equations:
        numbers = with_named_constants(model.tree)[1].tolist()
        tree = with_numbers(model.tree, [short(number, RIGHT) for number in numbers])
        equations.append(Equation(replace(model, tree=tree), (KNOWN,) * len(numbers)))
    found = fit(equations)
    if not found.error <= max(WORSE * system.error, ROUNDING) or np.array_equal(found.constants, system.constants):
        return system
    pairs = zip(system.equations, found.trees, strict=True)
    models = tuple(replace(model, tree=tree) for model, tree in pairs)
    return replace(system, equations=models, losses=found.losses, starts=found.starts, noise=found.noise)
