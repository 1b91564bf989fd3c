"""Fits of whole populations of a template, in one native call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from shine.base.typing import AnyArray, Floats
from shine.compiler.codegen.numbers import Functions, source_digest
from shine.compiler.llvm import Engine
from shine.compiler.threads import ONE_THREAD, Workers
from shine.data.datasets.dataset import Dataset
from shine.evaluate.gradient.grouped_fitting import FIT_GROUPED, REDUCE_GROUPED, emit_grouped_fitting, grouped_scratch
from shine.evaluate.gradient.job import GROUPED_JOB, OUTPUT
from shine.evaluate.gradient.normal_equations import FIXED_COLUMNS
from shine.evaluate.gradient.working_residuals import residuals_code, scales_of
from shine.evaluate.losses.form import Loss, loss_of
from shine.evaluate.losses.rows import loss_columns_of, loss_rows
from shine.evaluate.machine.job import WORKER_LOOP
from shine.evaluate.machine.tiles import ROW_GROUP
from shine.evaluate.protocols import PickledByArguments
from shine.evaluate.tiers.gradients import EFFORT, GradientMachine, gradient_machine_of, loss_fields
from shine.evaluate.tiers.jobs import PopulationFunctions
from shine.evaluate.tiers.machine_rows import SHARED_WORK, DerivedColumns, MachineRows, machine_of
from shine.evaluate.tiers.rows import addresses, columns_from
from shine.lang.population import Population
from shine.search.templates.composition import Composed
from shine.search.templates.fits.sections import Composer, sections_of
from shine.search.templates.fits.unknowns import Constants, Unknowns

MOST_CONSTANTS = 120
"""Only the first constants of a composed formula, up to this number, are fitted: an unknown function that is used often
has copies of its constants, and the cost of a step grows with the square of their number."""


class GroupedFits(PickledByArguments):
    """Fits of unknowns over a data set in sections."""

    def __init__(self, composer: Composer, dataset: Dataset, loss: str | Loss, threads: int = 1) -> None:
        self._kind = kind = loss_of(loss).kind
        loss_columns, dataset = loss_columns_of(dataset, kind), loss_rows(dataset, kind)
        self.rows, self._code = PaddedRows(dataset, composer, loss_columns), residuals_code(kind)
        self._scales, self._workers = scales_of(dataset), Workers(threads)
        self._least = kind.least_sum(dataset.weight)

    def fitted(
        self,
        composed: Sequence[Composed],
        unknowns: Unknowns,
        start: Floats,
        steps: int,
        tolerance: float,
        prior: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """Fit the unknowns of each individual by a few steps; no individual becomes worse.

        Parameters
        ----------
        composed : sequence of Composed
            The formulas of each output.
        unknowns : Unknowns
        start : ndarray of shape (n_individuals, n_unknowns)
        steps : int
            Most steps of an individual.
        tolerance : float
            A fit stops once the next step promises to remove less than this share of the error.
        prior : ndarray of shape (n_individuals, 2, own), optional
            Precisions and centers of the parameters by group: each is charged ``precision * (value - center)^2``.

        Returns
        -------
        values : ndarray of shape (n_individuals, n_unknowns)
        errors : ndarray of shape (n_individuals,)
            Weighted sum of errors and charges; inf where it was not finite to begin with.
        """
        values, errors = np.array(start, np.float64, order="C"), np.full(len(start), np.inf)
        arrays = {"unknowns": values, "errors": errors, "tolerance": np.array([tolerance])}
        if prior is not None:
            arrays["prior"] = np.ascontiguousarray(prior)
        self._run(FIT_GROUPED, composed, unknowns, arrays, steps)
        return values, errors + self._least

    def errors(self, composed: Sequence[Composed], unknowns: Unknowns, values: Floats, limit: float | Floats) -> Floats:
        """Sum of the errors above the least ones of each individual; inf where it is not below the limit."""
        errors = np.full(len(values), limit)
        own = {"unknowns": np.array(values, np.float64, order="C"), "errors": errors, "tolerance": np.zeros(1)}
        self._run(FIT_GROUPED, composed, unknowns, own, 0)
        return np.where(errors < limit, errors, np.inf)

    def reduced(self, composed: Sequence[Composed], unknowns: Unknowns, values: Floats) -> tuple[Floats, Floats]:
        """The normal equations of the shared constants, the parameters by group eliminated.

        Returns
        -------
        errors : ndarray of shape (n_individuals,)
        matrices : ndarray of shape (n_individuals, 1 + shared, 1 + shared)
            The upper triangle; the last column has the products with the residual.
        """
        width = 1 + unknowns.shared
        errors, out = np.empty(len(values)), np.zeros((len(values), width, width))
        arrays = {"unknowns": np.array(values, np.float64, order="C"), "errors": errors, "out": out}
        self._run(REDUCE_GROUPED, composed, unknowns, arrays, 1)
        return errors + self._least, out

    def blocks(self, composed: Sequence[Composed], unknowns: Unknowns, values: Floats) -> tuple[Floats, Floats]:
        """The errors and the normal equations of each group.

        Returns
        -------
        errors : ndarray of shape (n_individuals, n_groups)
            Above the least ones, if the loss has such; not finite where a prediction is not.
        blocks : ndarray of shape (n_individuals, n_groups, 1 + own + shared, 1 + own + shared)
            Products of the derivatives by the group's own unknowns, by the shared ones, and of the residual.
        """
        n, groups, width = len(values), len(self.rows.groups), 1 + unknowns.own + unknowns.shared
        arrays = {
            "unknowns": np.array(values, np.float64, order="C"),
            "errors": np.empty(n),
            "group_errors": np.zeros((n, groups)),
            "blocks": np.zeros((n, groups, width, width)),
            "out": np.zeros((n, (1 + unknowns.shared) ** 2)),
        }
        self._run(REDUCE_GROUPED, composed, unknowns, arrays, 1)
        return arrays["group_errors"], arrays["blocks"]

    def _run(
        self, name: str, composed: Sequence[Composed], unknowns: Unknowns, arrays: dict[str, AnyArray], steps: int
    ) -> None:
        """Run one of the compiled functions on all individuals."""
        population = composed[0].population
        machine = gradient_machine_of(Functions.of(population.primitives.functions))
        constants = [unknowns.constants(each) for each in composed]
        outputs = [self._output(output, *each) for output, each in enumerate(zip(composed, constants, strict=True))]
        given: dict[str, AnyArray] = arrays | {
            "outputs": np.array([[words[name] for name in OUTPUT] for words, _ in outputs], np.int64),
            "fixed": np.ascontiguousarray(unknowns.fixed, np.uint8),
            "lows": np.ascontiguousarray(unknowns.lows),
            "highs": np.ascontiguousarray(unknowns.highs),
        }
        rows, tables = self.rows.fields(population)
        fields = {name: array.ctypes.data for name, array in given.items()} | rows
        fields |= loss_fields(self._kind, self._code, self._scales)
        fields |= {
            "grouped": machine.grouped,
            "functions": population.primitives.first_function,
            "n_outputs": len(composed),
            "n_groups": len(self.rows.groups),
            "own": unknowns.own,
            "shared": unknowns.shared,
            "steps": steps,
        }
        most = min(max(each.most for each in constants), MOST_CONSTANTS)
        widest = max((each.population for each in composed), key=lambda each: each.width)
        effort = EFFORT * (1 + steps) * self.rows.count
        workers = self._workers if len(population) * effort >= SHARED_WORK else ONE_THREAD
        functions = _functions(machine, len(self.rows.groups), unknowns, most)
        functions.run(name, widest, fields, effort, workers)
        del outputs, tables  # the job has their addresses until here

    def _output(self, output: int, composed: Composed, constants: Constants) -> tuple[dict[str, int], object]:
        """Words of an output, and the arrays they point to."""
        population = composed.population
        arrays: dict[str, AnyArray] = {
            "codes": np.ascontiguousarray(population.codes),
            "values": np.ascontiguousarray(population.values),
            "sizes": np.ascontiguousarray(population.sizes, np.int64),
            "starts": constants.starts,
            "nodes": constants.nodes,
            "slots": constants.slots,
        }
        first, last = self.rows.outputs[output].tolist()
        words = {name: array.ctypes.data for name, array in arrays.items()}
        words |= {"width": population.width, "constants": min(constants.most, MOST_CONSTANTS)}
        return words | {"first_section": first, "last_section": last}, arrays


def _functions(machine: GradientMachine, groups: int, unknowns: Unknowns, constants: int) -> PopulationFunctions:
    """The compiled fit, with memory for individuals of this form."""
    further = grouped_scratch(groups, unknowns.own, unknowns.shared, constants, FIXED_COLUMNS)
    return PopulationFunctions(
        _engine(), (FIT_GROUPED, REDUCE_GROUPED), GROUPED_JOB, lambda width: machine.scratch(width) | further
    )


@cache
def _engine() -> Engine:
    names = (FIT_GROUPED, REDUCE_GROUPED, WORKER_LOOP)
    return Engine.kept(names, ("fits with groups", source_digest("evaluate")), emit_grouped_fitting, "O1")


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
