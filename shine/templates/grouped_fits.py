"""Fits of whole populations of a template, in one native call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from shine.codegen.gradient.grouped_fitting import FIT_GROUPED, emit_grouped_fitting, grouped_scratch
from shine.codegen.gradient.job import GROUPED_JOB, OUTPUT
from shine.codegen.gradient.normal_equations import FIXED_COLUMNS, checked_error_kind
from shine.codegen.identity import Functions, source_digest
from shine.codegen.machine.worker_loop import WORKER_LOOP
from shine.data.dataset import Dataset
from shine.evaluators.gradients import EFFORT, GradientMachine, floor_of, gradient_machine_of
from shine.evaluators.jobs import PopulationFunctions
from shine.evaluators.machine_rows import SHARED_WORK
from shine.evaluators.workers import ALONE, Workers
from shine.fitness.losses import loss_of
from shine.llvm import Engine, cached, host_object
from shine.templates.composition import Composed
from shine.templates.padded_rows import PaddedRows
from shine.templates.sections import Composer
from shine.templates.unknowns import Unknowns
from shine.typing import Floats

MOST_CONSTANTS = 120
"""Only the first constants of a composed formula, up to this number, are fitted: an unknown function that is used often
has copies of its constants, and the cost of a step grows with the square of their number."""


class GroupedFits:
    """Fits of unknowns over a data set in sections.

    Parameters
    ----------
    composer : Composition
    dataset : Dataset
    loss : str
    threads : int
    """

    def __init__(self, composer: Composer, dataset: Dataset, loss: str, threads: int = 1) -> None:
        self.rows = PaddedRows(dataset, composer)
        self._kind = checked_error_kind(loss_of(loss).kind.name)
        self._floor, self._workers = floor_of(dataset), Workers(threads)

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
        n, population = len(start), composed[0].population
        machine = gradient_machine_of(Functions.of(population.primitives.functions))
        constants = [unknowns.constants(each) for each in composed]
        table = np.zeros((len(composed), len(OUTPUT)), np.int64)
        held: list[object] = []
        for output, (each, own) in enumerate(zip(composed, constants, strict=True)):
            arrays = {
                "codes": np.ascontiguousarray(each.population.codes),
                "values": np.ascontiguousarray(each.population.values),
                "sizes": np.ascontiguousarray(each.population.sizes, np.int64),
                "starts": own.starts,
                "nodes": own.nodes,
                "slots": own.slots,
            }
            held.append(arrays)
            first, last = self.rows.outputs[output].tolist()
            words = {name: array.ctypes.data for name, array in arrays.items()}
            words |= {"width": each.population.width, "constants": min(own.most, MOST_CONSTANTS)}
            words |= {"first_section": first, "last_section": last}
            table[output] = [words[name] for name in OUTPUT]
        values, errors = np.array(start, np.float64, order="C"), np.empty(n)
        given = {
            "outputs": table,
            "unknowns": values,
            "errors": errors,
            "fixed": np.ascontiguousarray(unknowns.fixed, np.uint8),
            "lows": np.ascontiguousarray(unknowns.lows),
            "highs": np.ascontiguousarray(unknowns.highs),
            "floor": self._floor,
            "tolerance": np.array([tolerance]),
        }
        if prior is not None:
            given["prior"] = np.ascontiguousarray(prior)
        rows, kept = self.rows.fields(population)
        fields = {name: array.ctypes.data for name, array in given.items()} | rows
        fields |= {
            "grouped": machine.grouped(self._kind),
            "functions": population.primitives.first_function,
            "n_outputs": len(composed),
            "n_groups": len(self.rows.groups),
            "own": unknowns.own,
            "shared": unknowns.shared,
            "steps": steps,
        }
        most = min(max((each.most for each in constants), default=0), MOST_CONSTANTS)
        widest = max((each.population for each in composed), key=lambda each: each.width)
        effort = EFFORT * (1 + steps) * self.rows.count
        workers = self._workers if n * effort >= SHARED_WORK else ALONE
        functions = _functions(machine, len(self.rows.groups), unknowns, most)
        functions.run(FIT_GROUPED, widest, fields, effort, workers)
        del held, kept  # the job has their addresses until here
        return values, errors


def _functions(machine: GradientMachine, groups: int, unknowns: Unknowns, constants: int) -> PopulationFunctions:
    """The compiled fit, with memory for individuals of this form."""
    further = grouped_scratch(groups, unknowns.own, unknowns.shared, constants, FIXED_COLUMNS)
    return PopulationFunctions(_engine(), (FIT_GROUPED,), GROUPED_JOB, lambda width: machine.scratch(width) | further)


@cache
def _engine() -> Engine:
    code = cached(("fits with groups", source_digest()), lambda: host_object(str(emit_grouped_fitting()), "O1"))
    return Engine.of_object(code, (FIT_GROUPED, WORKER_LOOP))
