"""Normal equations of templates' individuals: measured section by section, equal constants added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.codegen.gradient.normal_equations import FIXED_COLUMNS
from shine.data.dataset import Dataset
from shine.evaluators.gradients import MachineLinearizer
from shine.templates.blocks import Blocks
from shine.templates.composition import Composed
from shine.templates.sections import Composer, Placement, sections_of
from shine.templates.unknowns import MOST_CONSTANTS, Unknowns
from shine.typing import Floats, Indices, Mask

_SKIPPED = -1.0
"""Limit of the errors that marks an individual to be skipped."""


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """A data set divided into sections for fits.

    Parameters
    ----------
    groups : tuple of int
        The groups that have rows, in order; those of the whole data set are one group if no parameter goes by group.
    sections : tuple of (int, int, MachineLinearizer)
        Output of each section, place of its group in `groups`, and what measures its normal equations.
    n_rows : int
    """

    groups: tuple[int, ...]
    sections: tuple[tuple[int, int, MachineLinearizer], ...]
    n_rows: int

    @classmethod
    def of(cls, dataset: Dataset, composer: Composer, loss: str) -> GroupedRows:
        """The rows of a data set, for a template and a loss."""
        sections = sections_of(dataset, composer)
        groups = tuple(sorted({section.group for section in sections}))
        measured = (
            (each.output, groups.index(each.group), MachineLinearizer(each.dataset, loss, 1, MOST_CONSTANTS))
            for each in sections
        )
        return cls(groups, tuple(measured), dataset.n_rows)


class Equations:
    """The normal equations of some individuals, as a function of their unknowns.

    Parameters
    ----------
    rows : GroupedRows
    composed : sequence of Composed
        Formulas of each output.
    unknowns : Unknowns
    values : ndarray of shape (n_individuals, width)
        Values of the individuals' tapes; overwritten by `measured`.

    Attributes
    ----------
    lost : ndarray of shape (n_own + n_shared, n_individuals), bool
        Whether the equations do not know all copies of an unknown, so that it cannot be fitted.
    """

    def __init__(self, rows: GroupedRows, composed: Sequence[Composed], unknowns: Unknowns, values: Floats) -> None:
        self._rows, self._unknowns, self._values = rows, unknowns, values
        self._placements = [Placement(each, values) for each in composed]
        found = [unknowns.columns(each) for each in composed]
        self.lost: Mask = np.logical_or.reduce([lost for _, lost in found])
        self._places = [_places(columns, unknowns.own + unknowns.shared) for columns, _ in found]

    def measured(self, own: Floats, shared: Floats, limits: Floats) -> tuple[Floats, Blocks]:
        """Sum of the errors of each individual, inf above its limit, and its equations, meaningless above the limit.

        A limit below 0 skips the individual.
        """
        rows, unknowns, n = self._rows, self._unknowns, len(limits)
        size = unknowns.own + unknowns.shared
        unknowns.write(own, shared, self._values, rows.groups)
        for placement in self._placements:
            placement.put(self._values)
        products = np.zeros((len(rows.groups), (size + 2) ** 2 * n))
        totals, ones, zeros = np.where(limits < 0, np.inf, 0.0), np.ones(n), np.zeros(n)
        for output, group, linearizer in rows.sections:
            left = np.where(totals <= limits, limits - totals, _SKIPPED)
            formulas = self._placements[output].of_group(rows.groups[group])
            equations = linearizer.normal_equations(formulas, ones, zeros, left)
            totals += equations.errors
            matrices = equations.matrices
            used = np.concatenate([matrices[:, :1], matrices[:, FIXED_COLUMNS:]], axis=1)
            used = np.concatenate([used[:, :, :1], used[:, :, FIXED_COLUMNS:]], axis=2)
            products[group] += np.bincount(self._places[output], used.ravel(), products.shape[1])
        shaped = products.reshape(-1, size + 2, size + 2, n)[:, :-1, :-1]
        return totals, Blocks(np.ascontiguousarray(shaped.transpose(1, 2, 0, 3)), unknowns.own)


def _places(columns: Indices, size: int) -> Indices:
    """Where each product of the normal equations of composed formulas belongs among those of the unknowns.

    The residual comes first in the former and after the unknowns in the latter; products with constants that are no
    unknowns go to the last row.
    """
    n = len(columns)
    places = np.concatenate([np.full((n, 1), size), columns], axis=1)
    flat: Indices = (places[:, :, None] * (size + 2) + places[:, None, :]) * n + np.arange(n)[:, None, None]
    return flat.ravel()
