"""Normal equations and fits of constants on the gradient machine: whole populations in one native call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from shine.base.lazy import cached_property
from shine.base.stages import stage
from shine.base.typing import AnyArray, Floats, Indices, Mask
from shine.compiler.codegen.moments import TILE_BYTES
from shine.compiler.codegen.numbers import Functions, described, source_digest
from shine.compiler.llvm import Engine, cached, host_object
from shine.compiler.tapes import constant_counts
from shine.compiler.threads import ONE_THREAD, Workers
from shine.data.datasets.dataset import AllRows, Dataset
from shine.evaluate.gradient.assembler import NODE_WORDS
from shine.evaluate.gradient.constant_fitting import fitting_numbers, record_numbers
from shine.evaluate.gradient.instructions import (
    BROADCAST_BYTES,
    LISTS,
    OPERAND_BYTES,
    gradient_instruction_bytes,
    most_arguments,
)
from shine.evaluate.gradient.interpreter import ADVANCE, FIT, GROUPED, NORMAL, emit_gradient_machine
from shine.evaluate.gradient.job import FIT_JOB, GRADIENT_JOB
from shine.evaluate.gradient.normal_equations import FIXED_COLUMNS, SHORTEST_TILE, WHOLE_BYTES
from shine.evaluate.gradient.working_residuals import ResidualsCode, residuals_code, scales_of
from shine.evaluate.losses.form import WEIGHT, Loss, RowLoss, loss_of
from shine.evaluate.losses.rows import loss_columns_of, loss_rows
from shine.evaluate.machine.job import WORKER_LOOP
from shine.evaluate.machine.tiles import CACHE_BYTES
from shine.evaluate.protocols import FirstLines, Fit, NormalEquations, PickledByArguments
from shine.evaluate.tiers.jobs import QUOTA, PopulationFunctions, zeros
from shine.evaluate.tiers.machine_rows import MachineRows, Pass, shared
from shine.lang.derivative import partials
from shine.lang.forms.tree import Primitive
from shine.lang.population import Population


class StreamedRows:
    """The rows of a `AllRows` for the functions of the machine that add up over rows (see `MachineRows`).

    Parameters
    ----------
    all_rows : AllRows
        Its weight is the sum of the weights of its blocks.
    features : tuple of str
        Those of the populations, in their order.
    kind : RowLoss
    threads : int
    """

    def __init__(self, all_rows: AllRows, features: tuple[str, ...], kind: RowLoss, threads: int) -> None:
        self.all_rows, self._features, self._kind, self._workers = all_rows, features, kind, Workers(threads)
        self.count = all_rows.n_rows
        self.weight = float(all_rows.n_rows) if WEIGHT in kind.columns else all_rows.weight

    def passes(self, population: Population) -> Iterator[Pass]:
        """The blocks of rows in order, for a population; a block is valid until the next one is asked for."""
        for block in self.all_rows.read(self._features):
            loss_columns, rows = loss_columns_of(block, self._kind), loss_rows(block, self._kind)
            laid_out = MachineRows(rows, "float64", self._workers.threads, nested=False, loss_columns=loss_columns)
            yield from laid_out.passes(population)

    def workers_for(self, population: Population, part: Pass, effort: int = 1) -> Workers:
        """The threads for a pass (see `MachineRows`)."""
        return shared(self._workers, population, part, effort)


MOST_CONSTANTS = 40
"""Only the first constants of a tape, up to this number, are fitted: the cost of a step grows with its square."""

EFFORT = 8
"""Cost of the normal equations relative to the cost of the value, roughly; only the number of threads depends on it."""


class GradientMachine:
    """The compiled gradient machine of some primitives."""

    def __init__(self, functions: tuple[Primitive, ...]) -> None:
        self._instruction_bytes = gradient_instruction_bytes(most_arguments(functions))
        meaning = (f"{described(function)} {partials(function)}" for function in functions)
        description = ("gradients", source_digest("evaluate"), *meaning)
        code = cached(description, lambda: _compiled(functions))
        self._engine = engine = Engine.of_object(code, (NORMAL, FIT, ADVANCE, GROUPED, WORKER_LOOP))
        self.functions = PopulationFunctions(engine, (NORMAL,), GRADIENT_JOB, self.scratch)
        self.fits = PopulationFunctions(engine, (FIT, ADVANCE), FIT_JOB, self._fitting_scratch)

    @cached_property
    def grouped(self) -> int:
        """Address of the function that measures normal equations with groups (see
        `shine.evaluate.gradient.grouped`)."""
        return self._engine.address(GROUPED)

    def scratch(self, width: int) -> dict[str, int]:
        """Bytes of the memory of one thread for individuals of some width."""
        return {
            "instructions": LISTS * (width + 1) * self._instruction_bytes,
            "nodes": 8 * width * NODE_WORDS,
            "constants": width * BROADCAST_BYTES,
            "tiles": max(CACHE_BYTES, 3 * width * SHORTEST_TILE) + TILE_BYTES,
            "normal": (width + FIXED_COLUMNS) * OPERAND_BYTES,
            "residual": TILE_BYTES,
            "scratch": TILE_BYTES,
            "whole": WHOLE_BYTES,
        }

    def _fitting_scratch(self, width: int) -> dict[str, int]:
        most = min(width, MOST_CONSTANTS)
        return self.scratch(width) | {"fitting": 8 * fitting_numbers(most)}


@stage("compiling the machine that fits constants; it is kept for the next time")
def _compiled(functions: tuple[Primitive, ...]) -> bytes:
    """Object code of the gradient machine."""
    return host_object(str(emit_gradient_machine(functions)), "O0", selection=1)


@lru_cache(maxsize=16)
def gradient_machine_of(functions: Functions) -> GradientMachine:
    """The machine of some functions, made once in a process."""
    return GradientMachine(functions.functions)


class MachineLinearizer(PickledByArguments):
    """Normal equations of a population over a data set (see `shine.evaluate.protocols.Linearizer`).

    Parameters
    ----------
    dataset : Dataset or Whole
        The features of a `AllRows` are those of `features`.
    loss : str or Loss
        It determines the kind of errors.
    threads : int
    features : tuple of str
    """

    def __init__(
        self, dataset: Dataset | AllRows, loss: str | Loss, threads: int = 1, features: tuple[str, ...] = ()
    ) -> None:
        self._kind = kind = loss_of(loss).kind
        self._rows: MachineRows | StreamedRows
        if isinstance(dataset, AllRows):
            self._rows = StreamedRows(dataset, features, kind, threads)
        else:
            loss_columns, dataset = loss_columns_of(dataset, kind), loss_rows(dataset, kind)
            self._rows = MachineRows(dataset, "float64", threads, nested=False, loss_columns=loss_columns)
        self._code = residuals_code(kind)
        self._latest: tuple[tuple[Primitive, ...], GradientMachine | None] = (), None
        self._scales = scales_of(dataset)

    def _machine_for(self, functions: tuple[Primitive, ...]) -> GradientMachine:
        """The machine of some functions; their meaning is compared only if they differ from the previous call's."""
        known, machine = self._latest
        if machine is None or known is not functions:
            machine = gradient_machine_of(Functions.of(functions))
            self._latest = functions, machine
        return machine

    def normal_equations(
        self, population: Population, slopes: Floats, intercepts: Floats, limits: Floats
    ) -> NormalEquations:
        """Errors, and the normal equations at the constants of the population (see
        `shine.evaluate.protocols.Linearizer`)."""
        counts, most = _constants(population)
        stride = FIXED_COLUMNS + most
        least = self._kind.least_sum(self._rows.weight)
        limits = np.ascontiguousarray(limits, dtype=np.float64) - least
        out = self._states(population, np.column_stack([slopes, intercepts]), limits, stride, most)
        # The machine writes only the diagonal and the entries below it.
        errors, matrices = out[:, 0], out[:, 1:].reshape(-1, stride, stride)
        for column in range(stride - 1):
            matrices[:, column, column + 1 :] = matrices[:, column + 1 :, column]
        return NormalEquations(np.where(errors <= limits, errors, np.inf) + least, matrices, np.minimum(counts, most))

    def errors(self, population: Population) -> Floats:
        """Weighted sum of the errors of each individual; not finite where a prediction is not."""
        lines, limits = np.tile([1.0, 0.0], (len(population), 1)), np.full(len(population), np.inf)
        states = self._states(population, lines, limits, FIXED_COLUMNS, 0)
        return states[:, 0] + self._kind.least_sum(self._rows.weight)

    def _states(self, population: Population, lines: Floats, limits: Floats, stride: int, most: int) -> Floats:
        """Sum of errors and matrix of each individual, over all rows, shape (n_individuals, 1 + stride * stride)."""
        machine = self._machine_for(population.primitives.functions)
        out = zeros(len(population), 1 + stride * stride)
        own = {"out": out, "lines": lines, "limits": limits}
        fields = _addresses(own) | loss_fields(self._kind, self._code, self._scales) | {"stride": stride, "most": most}
        for part in self._rows.passes(population):
            workers = self._rows.workers_for(population, part, EFFORT)
            machine.functions.run(NORMAL, population, part.fields | fields, part.rows, workers)
        return out

    def fit(
        self,
        population: Population,
        steps: int,
        *,
        tolerance: float,
        lines: FirstLines | None = None,
        fixed: Mask | None = None,
    ) -> Fit:
        """Fit the constants of each individual (see `shine.evaluate.protocols.Linearizer`)."""
        _, most = _constants(population)
        n = len(population)
        lines = lines or FirstLines(np.ones(n), np.zeros(n))
        held = np.zeros((n, max(most, 1)), np.uint8)
        if fixed is not None:
            known = min(fixed.shape[1], most)
            held[:, :known] = fixed[:, :known]
        # Trials are written into a copy.
        trial = replace(population, values=np.array(population.values, np.float64, order="C"))
        arrays = {
            "lines": np.column_stack([lines.slopes, lines.intercepts]),
            "errors": np.full(n, np.inf),
            "goals": np.full(n, np.inf) if lines.goals is None else np.array(lines.goals, np.float64),
            "going": np.ones(n, np.int64),
            "fixed": held,
            "tolerance": np.array([tolerance]),
        }
        numbers = {"stride": FIXED_COLUMNS + most, "most": most, "scaled": int(lines.fitted)}
        all_rows = next(self._rows.passes(population)) if isinstance(self._rows, MachineRows) else None
        if all_rows is not None and self._fits_in_one_call(all_rows, population, steps):
            machine = self._machine_for(population.primitives.functions)
            effort = EFFORT * (1 + steps)
            workers = self._rows.workers_for(population, all_rows, effort)
            fields = _addresses(arrays) | loss_fields(self._kind, self._code, self._scales) | numbers | {"steps": steps}
            machine.fits.run(FIT, trial, all_rows.fields | fields, effort * all_rows.rows, workers)
        else:
            self._fit_step_by_step(trial, arrays, numbers, steps)
        slopes, intercepts = arrays["lines"].T
        errors = arrays["errors"] + self._kind.least_sum(self._rows.weight)
        return Fit(trial, slopes.copy(), intercepts.copy(), errors)

    def _fits_in_one_call(self, part: Pass, population: Population, steps: int) -> bool:
        """Whether one call sees all rows, and ends early enough: threads look for an interrupt between individuals."""
        longest = EFFORT * (1 + steps) * part.rows * population.width
        return part.rows == self._rows.count and longest <= QUOTA

    def _fit_step_by_step(
        self, trial: Population, arrays: dict[str, AnyArray], numbers: dict[str, int], steps: int
    ) -> None:
        """Take all individuals through one step before the next."""
        machine = self._machine_for(trial.primitives.functions)
        records = np.empty((len(trial), record_numbers(numbers["most"])))
        going, errors = arrays["going"], arrays["errors"]
        for left in reversed(range(steps + 1)):
            if not going.any():
                break
            # No step follows the last normal equations.
            most = numbers["most"] if left else 0
            limits = np.where(going, errors, -1.0)  # limit of the errors that marks an individual to be skipped
            states = self._states(trial, arrays["lines"], limits, numbers["stride"], most)
            own = _addresses(arrays | {"out": states, "records": records})
            fields = own | loss_fields(self._kind, self._code, self._scales) | numbers | {"steps": left}
            machine.fits.run(ADVANCE, trial, fields, 1, ONE_THREAD)


def loss_fields(kind: RowLoss, code: ResidualsCode, scales: Floats) -> dict[str, int]:
    """Words of a job that depend on the loss."""
    return {
        "residuals": code.table.address,
        "reweighted": int(code.reweights),
        "bounded": int(kind.least is not None),
        "scales": scales.ctypes.data,
    }


def _addresses(arrays: Mapping[str, AnyArray]) -> dict[str, int]:
    return {name: array.ctypes.data for name, array in arrays.items()}


def _constants(population: Population) -> tuple[Indices, int]:
    """Number of constants of each individual, and the largest number that is fitted."""
    counts = constant_counts(population)
    return counts, min(int(counts.max(initial=0)), MOST_CONSTANTS)
