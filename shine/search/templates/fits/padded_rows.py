"""A data set laid out for fits with groups: sections one after the other, each padded to whole groups of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shine.base.typing import AnyArray, Floats
from shine.data.datasets.dataset import Dataset
from shine.evaluate.machine.tiles import ROW_GROUP
from shine.evaluate.tiers.derived import DerivedColumns
from shine.evaluate.tiers.machine_code import machine_of
from shine.evaluate.tiers.machine_rows import MachineRows
from shine.evaluate.tiers.rows import addresses, columns_from
from shine.lang.population import Population
from shine.search.templates.fits.sections import Composer, sections_of


class PaddedRows:
    """The rows of a data set in sections.

    Parameters
    ----------
    dataset : Dataset
    composer : Composition
    loss_columns : sequence of ndarray of shape (n_rows,), float64
        Columns that the errors read besides.

    Attributes
    ----------
    groups : tuple of int
        The groups that have rows, in order; all rows are one group if no parameter goes by group.
    sections : ndarray of shape (n_sections, 3), int64
        Place of each section's group in `groups`, its first row, and the row after its last.
    outputs : ndarray of shape (n_outputs, 2), int64
        First section of each output, and the one after its last.
    count : int
        Number of rows, without padding.
    """

    def __init__(self, dataset: Dataset, composer: Composer, loss_columns: Sequence[Floats] = ()) -> None:
        sections = sections_of(dataset, composer)
        self.groups = tuple(sorted({section.group for section in sections}))
        self.count = dataset.n_rows
        sizes = np.array([len(section.which) for section in sections])
        room = -(-sizes // ROW_GROUP) * ROW_GROUP
        begins = np.cumsum(room) - room
        places = np.searchsorted(self.groups, [section.group for section in sections])
        self.sections = np.ascontiguousarray(np.column_stack([places, begins, begins + sizes]), np.int64)
        found = np.searchsorted([section.output for section in sections], np.arange(len(composer.template.outputs) + 1))
        self.outputs = np.column_stack([found[:-1], found[1:]])
        # Padding repeats a section's last row, so that its values are finite if that row's are.
        which = np.concatenate(
            [
                np.pad(each.which, (0, int(space) - len(each.which)), mode="edge")
                for each, space in zip(sections, room, strict=True)
            ]
        )
        inside = np.concatenate([np.arange(space) < size for space, size in zip(room, sizes, strict=True)])
        own = [dataset.features.index(name) for name in composer.features if name in dataset.features]
        self._columns = np.ascontiguousarray(dataset.columns[own][:, which])
        self._target = dataset.target[which]
        self._weights = np.where(inside, dataset.row_weights[which], 0.0)
        self._pointers = addresses(self._columns)
        self._loss_columns = [np.ascontiguousarray(column[which]) for column in loss_columns]
        self._loss_column_pointers = columns_from(self._loss_columns, 0)
        padded = replace(
            dataset,
            columns=self._columns,
            features=composer.features,
            target=self._target,
            weights=None,
            deviations=None,
            groups=None,
            loss_columns={},
        )
        self._padded = MachineRows(padded, "float64", 1, nested=False)
        self._derived = DerivedColumns(len(which), self._values, nested=False)
        self._weighted = int(dataset.weights is not None)

    def fields(self, population: Population) -> tuple[dict[str, int], object]:
        """Words of a job, and what owns the memory they point to."""
        tables = self._derived.tables(population, 8)
        known = {name: int(table.addresses.ctypes.data) for name, table in tables.items()}
        return {
            "columns": self._pointers.ctypes.data,
            "target": self._target.ctypes.data,
            "weights": self._weights.ctypes.data,
            "weighted": self._weighted,
            "loss_columns": self._loss_column_pointers.ctypes.data,
            "rows": len(self._target),
            "sections": self.sections.ctypes.data,
            **known,
        }, tables

    def _values(self, population: Population) -> AnyArray:
        return self._padded.predict(machine_of(population.primitives.functions, "float64"), population)
