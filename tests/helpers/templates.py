"""Templates bound to columns, their random individuals, and laws that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shine.lang.growth import Terminals
from shine.lang.parse import parse
from shine.lang.population import Population
from shine.search.evolution.operators.creation import ptc2
from shine.search.evolution.operators.slot_breeding import assembled
from shine.search.templates.composition import Composition, bound, resolved
from shine.search.templates.law import Groups, Law, law_from
from shine.search.templates.reading import template

PRIMITIVES = ("add", "sub", "mul", "div", "sin", "exp", "sqrt", "square", "where", "max", "pow", "abs", "lt")
"""Functions with every kind of derivative: steps, kinks, conditions, partials that contain the value."""


def composition(
    text: str,
    features: Sequence[str],
    n_groups: int = 0,
    primitives: Sequence[str] = PRIMITIVES,
    max_size: int = 15,
    max_depth: int = 6,
    **options: Any,
) -> Composition:
    """A template bound to columns."""
    return bound(template(text, **options), features, n_groups, primitives, max_size, max_depth)


def individuals(composed: Composition, count: int, seed: int = 0) -> Population:
    """Random individuals with random numbers."""
    rng, terminals = np.random.default_rng(seed), Terminals((-5.0, 5.0), 0.3)
    formulas = [
        ptc2(count, slot.primitives, slot.max_size, slot.max_depth, terminals, rng) for slot in composed.genome.slots
    ]
    return assembled(formulas, composed.genome, rng.normal(size=(count, composed.n_leaves)))


def law(
    text: str,
    features: Sequence[str],
    functions: Mapping[str, str],
    constants: Mapping[str, Any],
    groups: Groups | None = None,
    **options: Any,
) -> Law:
    """A law of functions as text."""
    made = resolved(template(text, **options), features)
    trees = {each.name: parse(functions[each.name], each.arguments) for each in made.unknowns}
    values = {name: np.array(value) if np.ndim(value) else float(value) for name, value in constants.items()}
    return law_from(made, features, trees, values, groups)
