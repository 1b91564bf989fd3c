"""Values of an unknown function behind parameters: a smooth function stands in for it until they are known.

Parameters hide the values that an unknown function must have: of ``K[group]*f(t - s[group])``, neither the value nor
the argument of f is known. So a cubic spline stands in for f, and its coefficients are fitted along with the
parameters. With these, the known part can be solved for the values of f, of which the seeding makes guesses. They need
not be exact: each guess becomes an individual, whose constants and parameters are fitted again.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np

from shine.data.dataset import Dataset
from shine.gp.slot_breeding import assembled
from shine.gp.slots import Slot, SlottedSet
from shine.lang.library import STANDARD
from shine.lang.parse import parse
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT, PrimitiveSet
from shine.lang.tape import functions_of
from shine.lang.tree import Tree
from shine.search.template_solving import Solved, solved
from shine.templates.composition import Composition
from shine.templates.linearizer import TemplateLinearizer
from shine.typing import Floats, Mask

KNOTS = 8
"""Knots of the spline, at quantiles of the argument."""

_ROUNDS = 3
"""Fits of the spline; each begins with knots where the arguments lie with the parameters of the one before."""

_STEPS, _TOLERANCE = 60, 1e-6
"""Most steps of a fit, and the share of the error that its next step must promise to remove."""

FACTORS = (1.0, 0.3, 3.0, -1.0)
"""What the parameters' first values are multiplied by, each parameter by itself, in further starts."""

_COEFFICIENT = "0.1"
"""What coefficients start from: 0 would hide the parameters."""

ENOUGH = 0.5
"""Share of the target's variance above which the rest that the spline leaves makes its values useless."""


def solved_with_stand_in(composition: Composition, dataset: Dataset) -> Solved | None:
    """The values of the unknown function of a template, as far as a smooth function in its place tells them.

    Parameters
    ----------
    composition : Composition
    dataset : Dataset
        With numbers of groups.

    Returns
    -------
    Solved or None
        None if the template cannot be solved for the function, or nothing smooth describes the data.
    """
    if not composition.parameters or len(composition.template.unknowns) > 1:
        return None
    starts, error = _starts(composition), np.inf
    leaves = starts[0]
    for _ in range(_ROUNDS):
        found = solved(*_known(composition, dataset, leaves))
        if found is None:
            return None
        spline = _smooth(found.rows.features, found.rows.columns)
        best = _fitted(composition, dataset, *spline, np.vstack([leaves, starts]))
        if best is None or not best[1] < error:
            break
        leaves, error = best
    if error > ENOUGH * dataset.target_square:
        return None
    return solved(*_known(composition, dataset, leaves))


def _starts(composition: Composition) -> Floats:
    """Values of the leaves to start from, shape (n_starts, n_leaves)."""
    first = np.array(composition.genome.numbers)
    starts = [first]
    for parameter, offset, count in zip(composition.parameters, composition.offsets, composition.counts, strict=True):
        for factor in FACTORS[1:]:
            changed = first.copy()
            low, high = parameter.bounds
            changed[offset : offset + count] = np.clip(factor * first[offset : offset + count], low, high)
            starts.append(changed)
    return np.array(starts)


def _smooth(arguments: tuple[str, ...], columns: Floats) -> tuple[Tree, list[bool]]:
    """A cubic spline of one argument, or a polynomial of several; and which of its constants are fixed."""
    if len(arguments) > 1:
        terms = [
            "*(".join(names) + ")" * (len(names) - 1)
            for degree in (1, 2, 3)
            for names in combinations_with_replacement(arguments, degree)
        ]
        text = " + ".join([_COEFFICIENT, *(f"{_COEFFICIENT}*({term})" for term in terms)])
        return parse(text, arguments), [False] * (1 + len(terms))
    (u,), (values,) = arguments, columns
    quantiles = np.sort(values)[np.linspace(0, len(values) - 1, KNOTS + 2).astype(np.int64)[1:-1]]
    text = f"{_COEFFICIENT} + {u}*({_COEFFICIENT} + {u}*({_COEFFICIENT} + {u}*{_COEFFICIENT}))"
    fixed = [False] * 4
    for knot in np.unique(quantiles).tolist():
        hinge = f"max({u} {'-' if knot >= 0 else '+'} {abs(knot)!r}, 0.0)"
        text += f" + {_COEFFICIENT}*({hinge}*({hinge}*{hinge}))"
        fixed += [False, *[True] * 6]
    return parse(text, arguments), fixed


def _fitted(
    composition: Composition, dataset: Dataset, tree: Tree, fixed: list[bool], leaves: Floats
) -> tuple[Floats, float] | None:
    """The leaves of the best fit with a formula in place of the unknown function, and its error."""
    slot = composition.genome.slots[0]
    table = {**STANDARD, **tree.functions}
    own = PrimitiveSet(tuple(table[name] for name in sorted(functions_of(tree))), slot.primitives.features)
    formulas = Population.from_trees([tree] * len(leaves), own)
    genome = SlottedSet.of([Slot(slot.name, own, formulas.width, formulas.width)], composition.genome.numbers)
    stand_in = composition.with_genome(genome)
    individuals = assembled([formulas], genome, leaves)
    constants = int((formulas.codes[0] == CONSTANT).sum())
    if constants != len(fixed):
        return None
    held: Mask = np.zeros((len(leaves), constants + composition.n_leaves), np.bool_)
    held[:, :constants] = fixed
    ones = np.ones(len(leaves))
    linearizer = TemplateLinearizer(stand_in, dataset, "mse")
    fit = linearizer.fit(individuals, ones, 0 * ones, _STEPS, tolerance=_TOLERANCE, fixed=held)
    best = int(np.argmin(fit.errors))
    if not np.isfinite(fit.errors[best]):
        return None
    last = int(fit.population.sizes[best]) - 1
    return fit.population.values[best, last - composition.n_leaves : last], float(fit.errors[best])


def _known(composition: Composition, dataset: Dataset, leaves: Floats) -> tuple[Composition, Dataset]:
    """The template with its parameters as columns, and the data with these."""
    columns, names = [], []
    groups = composition.template.groups
    for parameter, offset, count in zip(composition.parameters, composition.offsets, composition.counts, strict=True):
        own = leaves[offset : offset + count]
        numbers = np.zeros(dataset.n_rows, np.int64)
        if parameter.by_group and groups is not None:
            numbers = dataset.columns[dataset.features.index(groups)].astype(np.int64)
        columns.append(own[numbers])
        names.append(parameter.name)
    fixed = tuple(each for each in composition.template.parameters if each.value is not None)
    known = replace(
        composition,
        template=replace(composition.template, parameters=fixed),
        features=(*composition.features, *names),
        parameters=(),
    )
    wider = replace(dataset, columns=np.vstack([dataset.columns, *columns]), features=(*dataset.features, *names))
    return known, wider
