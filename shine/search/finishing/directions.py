"""Formulas that break a monotonicity constraint are not chosen where others keep it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.monotonic import Monotonicity
from shine.lang.forms.primitives import PrimitiveSet
from shine.search.constraints.constraints import Constraints
from shine.search.finishing.polishing import population_of
from shine.search.models.model import Model


def directed(
    front: Sequence[Model], rows: Dataset, constraints: Constraints, primitives: PrimitiveSet, threads: int
) -> tuple[Floats, str]:
    """Further nats of each formula (see `choose`), and a word for the reason of the choice.

    They are inf if the formula orders a pair of rows wrongly, and another does not. Penalties alone do not do: 100
    times the loss of a formula that is nearly exact is next to nothing.
    """
    free = np.zeros(len(front))
    if not (constraints.monotonic and constraints.penalty):
        return free, ""
    trees = [replace(model.tree, parameters=rows.features) for model in front]
    measure = Monotonicity(rows, constraints.monotonic, threads, np.random.default_rng(0))
    population = population_of(trees, replace(primitives, features=rows.features))
    wrong = measure.wrong_shares(population, np.ones(len(front))) > 0
    if wrong.all():
        return free, "; no formula keeps the monotonicity in all pairs of rows"
    return np.where(wrong, math.inf, 0.0), "; of those that keep the monotonicity" if wrong.any() else ""
