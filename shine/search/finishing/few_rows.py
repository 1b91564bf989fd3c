"""Formulas that owe a pole or a needle to a few rows: they fit an outlier, not a law.

A narrow pole next to a row gives that row any value, and hardly changes the others. So a formula that is not steady
between the rows must be better than each simpler steady one even without the few rows that gain most, when the
constants of the simpler one are fitted to the rest. A law with a pole, such as 1/(x - a), is: it explains all rows.
Rows with the same value of a feature, or of all that the formula reads, are one observation, however many they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats, Indices
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.domain import Domain
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.search.finishing.polishing import POLISHING_ROWS, converged, population_of
from shine.search.models.certainty import fitted_constants
from shine.search.models.model import Model
from shine.search.problem.reference_losses import rounding_error

FrontOf = Callable[[Sequence[Model]], tuple[Model, ...]]

FEW, FEW_SHARE, LARGEST_SHARE = 3, 0.03, 0.25
"""Observations that prove nothing by themselves: this number, or this share if it is more; never more than the last
share, but at least one."""

TOLERANCE = 1e-6
"""Relative change of the loss at which a fit has converged."""


@dataclass(frozen=True)
class FewRows:
    """Leaves out the formulas that owe a pole or a needle to a few rows.

    Parameters
    ----------
    domain : Domain
    primitives : PrimitiveSet
        Functions of the formulas.
    threads : int
    refits : bool
        Whether to fit simpler formulas to the other rows; their functions may have to be compiled for it.
    """

    domain: Domain
    primitives: PrimitiveSet
    threads: int
    refits: bool = True

    def front(self, models: Sequence[Model], others: Sequence[Model], front_of: FrontOf) -> tuple[Model, ...]:
        """The Pareto front of the models that owe no pole and no needle to a few rows.

        Parameters
        ----------
        models : sequence of Model
        others : sequence of Model
            What they are compared with besides: with finite losses.
        front_of : callable
            The Pareto front of some models.
        """
        compared = sorted(others, key=lambda each: each.loss)
        left, cleared = list(models), set[Model]()
        while True:
            front = front_of(left)
            owing = {each for each in front if each not in cleared and self._owes(each, compared)}
            if not owing:
                return front
            cleared.update(each for each in front if each not in owing)
            left = [each for each in left if each not in owing]

    def _owes(self, model: Model, others: Sequence[Model]) -> bool:
        """Whether few rows are all that speaks for a model against some simpler steady one."""
        if self.domain.is_steady(model.tree):
            return False
        simpler = (each for each in others if each.complexity <= model.complexity and self.domain.is_steady(each.tree))
        errors = squared_errors(model.tree, self._rows)
        cells = list(_observations(model.tree, self._rows))
        # Most simpler formulas that a formula is compared with: those of the least loss.
        return any(self._is_no_better(errors, each.tree, cells) for each in islice(simpler, 6))

    def _is_no_better(self, errors: Floats, simpler: Tree, cells: Sequence[Indices]) -> bool:
        """Whether a formula with these squared errors is hardly better than a simpler one on all but a few cells."""
        gains = squared_errors(simpler, self._rows) - errors
        return float(stable_sum(gains)) > 0 and any(self._owes_to(errors, gains, simpler, each) for each in cells)

    def _owes_to(self, errors: Floats, gains: Floats, simpler: Tree, cell: Indices) -> bool:
        """The same for the cells of each row."""
        sums = np.bincount(cell, gains)
        few = max(min(max(FEW, int(FEW_SHARE * len(sums))), int(LARGEST_SHARE * len(sums))), 1)
        others = np.flatnonzero(~np.isin(cell, np.argsort(-sums, kind="stable")[:few]))
        rest = self._rows.take(others)
        own = float(stable_sum(errors[others]))
        # If the simpler formula is as good even with constants fitted to all rows, there is nothing to fit.
        # Nats by which the other rows must speak for a pole. Its constants alone gain a few, as it may lie anywhere.
        return any(_nats(squared_errors(tree, rest), own, rest) < 10.0 for tree in self._forms(simpler, rest))

    def _forms(self, tree: Tree, rows: Dataset) -> Iterator[Tree]:
        """A formula as it is, and with its constants fitted to some rows."""
        yield tree
        if self.refits and fitted_constants(tree):
            yield converged(
                population_of([tree], self.primitives), MachineLinearizer(rows, "mse", self.threads), TOLERANCE
            ).tree(0)

    @cached_property
    def _rows(self) -> Dataset:
        return self.domain.dataset.sampled(POLISHING_ROWS, np.random.default_rng(0))


def _observations(tree: Tree, rows: Dataset) -> Iterator[Indices]:
    """The cell of each row: each is one; those with a value of a feature that the formula reads; or of all these."""
    yield np.arange(rows.n_rows)
    used = [at for at, name in enumerate(rows.features) if ("name", name) in tree.tokens[1:]]
    cells = [np.unique(rows.columns[at], return_inverse=True)[1] for at in used]
    if len(cells) > 1:
        cells.append(np.unique(np.array(cells), axis=1, return_inverse=True)[1].reshape(-1))
    for cell in cells:
        # Least rows of a value, in the mean, for which they are one observation.
        if 1 < int(cell.max()) + 1 <= rows.n_rows / 2:
            yield cell


def squared_errors(tree: Tree, rows: Dataset) -> Floats:
    """Weighted squared errors, shape (n_rows,); infinite where there is no value."""
    with np.errstate(all="ignore"):
        squares = (rows.target - evaluate(tree, list(rows.columns), np.float64, COMPILED)) ** 2
    return rows.row_weights * np.where(np.isnan(squares), np.inf, squares)


def _nats(errors: Floats, own: float, rows: Dataset) -> float:
    """Nats by which a formula with a sum of errors is better than one with these errors."""
    least = rounding_error(rows, "mse")
    return rows.effective_rows / 2 * math.log(max(float(stable_sum(errors)), least) / max(own, least))
