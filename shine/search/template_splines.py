"""Rough functions of a template refined: cubic splines in their place, fitted together with the parameters.

A polynomial has the wrong form, and its parameters bear the consequences. A spline can take any smooth form, so that
the parameters come close to the true ones. It is a formula like any other: a cubic polynomial and terms
``c*cube(max(u - knot, 0))``, whose knots stay where the arguments are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shine.data.dataset import Dataset
from shine.fitness.losses import Loss
from shine.gp.slot_breeding import assembled
from shine.gp.slots import Slot, SlottedSet
from shine.lang.parse import parse
from shine.lang.population import Population
from shine.lang.tape import functions_of
from shine.lang.tree import Tree
from shine.search.lines import with_functions
from shine.templates.composition import Composition
from shine.templates.linearizer import TemplateLinearizer
from shine.typing import Floats

KNOTS = 8
"""Knots of a spline: with its polynomial, it has 12 constants to fit."""

_STEPS, _TOLERANCE = 60, 1e-5
"""Most steps of the fit, and the share of the error that its next step must promise to remove."""


@dataclass(frozen=True, eq=False)
class RoughFit:
    """Rough functions and parameters that fit together.

    Parameters
    ----------
    functions : mapping of str to Tree
        Formula of each unknown function.
    numbers : ndarray of shape (n_leaves,)
        Values of all leaves of the parameters.
    error : float
        Sum of errors.
    """

    functions: Mapping[str, Tree]
    numbers: Floats
    error: float


def rough_fits(
    composition: Composition,
    forms: Sequence[Sequence[Tree]],
    numbers: Floats,
    rows: Dataset,
    loss: Loss,
    threads: int,
    steps: int = _STEPS,
    tolerance: float = _TOLERANCE,
    held: Sequence[bool] | None = None,
) -> list[RoughFit]:
    """Formulas of the unknown functions, fitted together with the parameters.

    Parameters
    ----------
    composition : Composition
    forms : sequence of sequence of Tree
        For each fit, a formula of each unknown function.
    numbers : ndarray of shape (n_fits, n_leaves)
        Values of the leaves to start from.
    rows : Dataset
    loss : Loss
    threads : int
    steps, tolerance
        See `shine.fitness.protocols.Linearizer.fit`.
    held : sequence of bool, optional
        Which constants of the formulas, in their order, keep their values.
    """
    slots = []
    for place, slot in enumerate(composition.genome.slots):
        names = sorted({name for trees in forms for name in functions_of(trees[place])})
        size = max(trees[place].size for trees in forms)
        slots.append(Slot(slot.name, with_functions(slot.primitives, names), size, slot.max_depth))
    wider = composition.with_genome(SlottedSet.of(slots, composition.genome.numbers))
    formulas = [
        Population.from_trees([trees[place] for trees in forms], slot.primitives) for place, slot in enumerate(slots)
    ]
    individuals, ones = assembled(formulas, wider.genome, numbers), np.ones(len(forms))
    fixed = (
        None if held is None else np.tile(np.append(held, np.zeros(composition.n_leaves, np.bool_)), (len(forms), 1))
    )
    linearizer = TemplateLinearizer(wider, rows, loss, threads)
    fit = linearizer.fit(individuals, ones, 0 * ones, steps, tolerance=tolerance, fixed=fixed)
    found = []
    for index in np.flatnonzero(np.isfinite(fit.errors)).tolist():
        form = wider.functions_of(fit.population.take(np.array([index])))
        first = int(fit.population.sizes[index]) - 1 - composition.n_leaves
        leaves = fit.population.values[index, first : first + composition.n_leaves]
        functions = {slot.name: form(slot.name, ()) for slot in slots}
        found.append(RoughFit(functions, leaves, float(fit.errors[index])))
    return found


def with_splines(
    composition: Composition, fit: RoughFit, arguments: Sequence[Floats], rows: Dataset, loss: Loss, threads: int
) -> RoughFit:
    """A rough fit with splines in place of its functions; the same fit if that is no better.

    Parameters
    ----------
    composition : Composition
        Its unknown functions have one argument each.
    fit : RoughFit
    arguments : sequence of ndarray of shape (n_rows,)
        Values of the argument of each unknown function.
    rows : Dataset
    loss : Loss
    threads : int
    """
    trees, held = [], []
    for slot, values in zip(composition.genome.slots, arguments, strict=True):
        tree, own = _spline(slot.primitives.features[0], np.sort(values))
        trees.append(tree)
        held += own
    found = rough_fits(composition, [trees], fit.numbers[None], rows, loss, threads, held=held)
    return min([fit, *found], key=lambda each: each.error)


def _spline(name: str, values: Floats) -> tuple[Tree, list[bool]]:
    """A spline with knots at quantiles of sorted values, and which of its constants keep their values."""
    places = (np.arange(1, KNOTS + 1) * len(values)) // (KNOTS + 1)
    terms = [f"0.0*cube(max({name} - ({float(values[place])!r}), 0.0))" for place in places]
    text = " + ".join([f"1.0 + {name}*(0.0 + {name}*(0.0 + {name}*0.0))", *terms])
    return parse(text, (name,)), [False] * 4 + [False, True, True] * KNOTS
