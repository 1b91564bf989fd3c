"""Coefficients of 1 that nobody wrote.

Somebody chose the units of features and targets: meters or feet. So ``cos(T**2)`` says that a constant is 1 in these
units, as ``cos(1.7*T**2)`` says that it is 1.7. Where a constant makes up for any other unit, nothing is said: ``2*T``
is as long in feet. A formula says as many numbers as there are changes of units that its constants do not follow: the
rank of its derivatives by its constants and by all units, less the rank of those by its constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from shine.base.typing import AnyArray, Floats, Indices
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import Loss, loss_of
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tape import Tape, functions_of
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.search.description import DescriptionLength
from shine.search.problem.reference_losses import description_length
from shine.search.problem.scaling import LINE_FUNCTIONS, with_functions

ROWS = 200
"""Most rows that tell which changes of constants and of units are alike."""

PREDICTION, FIRST = 2, 3
"""Columns of normal equations: the predictions, and the first constant (see
`shine.evaluate.protocols.NormalEquations`)."""

ALIKE = 1e-10
"""Share of a column's square below which those before it explain it: rounding leaves 1e-15."""


def description_of(
    rows: Dataset, loss: str | Loss, primitives: PrimitiveSet, given: Dataset | None = None
) -> DescriptionLength:
    """The length of the rows' description by formulas, whose unwritten coefficients count, too.

    Parameters
    ----------
    rows : Dataset
    loss : str or Loss
        With likelihoods nothing is counted: nobody chose the unit of their target.
    primitives : PrimitiveSet
        Functions of the search: with those of lines, they are compiled already.
    given : Dataset, optional
        The rows in the units of the formulas, if those are others.
    """
    described = description_length(rows, loss)
    if loss_of(loss).kind.log_likelihood is not None:
        return described
    some = (rows if given is None else given).sampled(ROWS, np.random.default_rng(0))
    return replace(described, unwritten=partial(unwritten, rows=some, primitives=primitives))


def unwritten(trees: Sequence[Tree], rows: Dataset, primitives: PrimitiveSet) -> Indices:
    """Number of unwritten coefficients in each formula, shape (n_formulas,).

    Parameters
    ----------
    trees : sequence of Tree
    rows : Dataset
        Formulas that are undefined in one of them have none, and neither have those with more constants and features
        than a fit takes.
    primitives : PrimitiveSet
    """
    used = sorted({name for tree in trees for name in functions_of(tree)})
    known = with_functions(with_functions(replace(primitives, features=rows.features), LINE_FUNCTIONS), used)
    given = Population.from_trees([replace(tree, parameters=rows.features) for tree in trees], known)
    scaled = [_with_units(given.tape(at), known) for at in range(len(given))]
    population = Population.from_tapes([tape for tape, _ in scaled], known)
    ones, anything = np.ones(len(trees)), np.full(len(trees), np.inf)
    found = MachineLinearizer(rows, "mse").normal_equations(population, ones, 0 * ones, anything)
    with np.errstate(all="ignore"):
        counts = [
            _further(matrix, features) if len(features) <= count else 0
            for matrix, count, (_, features) in zip(found.matrices, found.counts.tolist(), scaled, strict=True)
        ]
    return np.where(np.isfinite(found.errors), counts, 0)


def _with_units(tape: Tape, primitives: PrimitiveSet) -> tuple[Tape, Indices]:
    """A formula whose features have a factor of 1 each; the code of the feature of each constant, 0 for its own."""
    places = np.flatnonzero((tape.codes > CONSTANT) & (tape.codes <= len(primitives.features)))
    around = np.stack([places, places + 1], axis=1).reshape(-1)

    def with_factors(nodes: AnyArray, before: AnyArray | int, after: int) -> AnyArray:
        factors = np.empty((len(places), 2), nodes.dtype)
        factors[:, 0], factors[:, 1] = before, after
        return np.insert(nodes, around, factors.reshape(-1))

    codes = with_factors(tape.codes, CONSTANT, primitives.function_codes["mul"])
    owners = with_factors(np.zeros(len(tape.codes), np.int64), tape.codes[places], 0)
    return Tape(codes, with_factors(tape.values, 1, 0)), owners[codes == CONSTANT]


def _further(matrix: Floats, features: Indices) -> int:
    """Dimensions that changes of units add to those of the constants."""
    own = np.flatnonzero(features == 0) + FIRST
    groups = [*own[:, None], np.array([PREDICTION])]
    groups += [np.flatnonzero(features == code) + FIRST for code in np.unique(features[features > 0])]
    sums = np.array([np.add.reduce(matrix[group], axis=0) for group in groups])
    left = np.array([np.add.reduce(sums[:, group], axis=1) for group in groups])
    least, found = ALIKE * np.diagonal(left).copy(), 0
    for at, limit in enumerate(least):
        if left[at, at] > limit:
            found += at >= len(own)
            left = left - left[:, at, None] * (left[at] / left[at, at])
    return found
