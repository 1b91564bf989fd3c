"""Normal equations of fitting constants, on the gradient machine: whole populations in one native call."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from shine.codegen.gradient.assembler import FIXED_COLUMNS, NODE_WORDS
from shine.codegen.gradient.constant_fitting import SETTINGS, fitting_numbers
from shine.codegen.gradient.instructions import BROADCAST_BYTES, OPERAND_BYTES, gradient_instruction_bytes
from shine.codegen.gradient.machine import (
    FIT_JOB,
    GRADIENT_JOB,
    SHORTEST_TILE,
    emit_gradient_machine,
    fit_name,
    most_arguments,
)
from shine.codegen.gradient.normal_equations import ERROR_KINDS, checked_error_kind
from shine.codegen.identity import Functions, described, source_digest
from shine.codegen.machine.machine import CACHE_BYTES, TILE_BYTES
from shine.codegen.machine.sharing import SHARE, emit_sharing
from shine.data.dataset import Dataset
from shine.evaluators.jobs import QUOTA, PopulationFunctions, zeros
from shine.evaluators.machine_rows import MachineRows
from shine.fitness.losses import loss_of
from shine.fitness.protocols import Damping, Fit, NormalEquations
from shine.lang.derivative import partials
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT
from shine.lang.tree import Primitive
from shine.llvm import Engine, cached, host_object
from shine.stages import stage
from shine.typing import Floats, Indices, Mask

MOST_CONSTANTS = 40
"""Constants of an individual that are fitted; those behind the first so many of its tape stay what they are."""

EFFORT = 8
"""What the normal equations cost, in units of what the value costs, about: it decides on threads only."""

_SMALLEST_WEIGHED = 1e-6
"""Absolute errors below this share of the target's deviation are fitted as if they were that large."""


class GradientMachine:
    """The compiled gradient machine of some primitives.

    Parameters
    ----------
    functions : sequence of Primitive
    """

    def __init__(self, functions: tuple[Primitive, ...]) -> None:
        self._instruction_bytes = gradient_instruction_bytes(most_arguments(functions))
        meaning = (f"{described(function)} {partials(function)}" for function in functions)
        description = ("gradients", source_digest(), *meaning)
        code = cached(description, lambda: _compiled(functions))
        fits = tuple(fit_name(kind) for kind in ERROR_KINDS)
        engine = Engine.of_object(code, (*ERROR_KINDS, *fits, SHARE))
        self.functions = PopulationFunctions(engine, ERROR_KINDS, GRADIENT_JOB, self._scratch)
        self.fits = PopulationFunctions(engine, fits, FIT_JOB, self._fitting_scratch)

    def _scratch(self, width: int) -> dict[str, int]:
        """Bytes of the memory of one thread for individuals of some width."""
        return {
            "program": (2 * width + 2) * self._instruction_bytes,
            "nodes": 8 * width * NODE_WORDS,
            "constants": width * BROADCAST_BYTES,
            "tiles": max(CACHE_BYTES, 2 * width * SHORTEST_TILE) + TILE_BYTES,
            "normal": (width + FIXED_COLUMNS) * OPERAND_BYTES,
            "residual": TILE_BYTES,
            "scratch": TILE_BYTES,
        }

    def _fitting_scratch(self, width: int) -> dict[str, int]:
        most = min(width, MOST_CONSTANTS)
        return self._scratch(width) | {"fitting": 8 * fitting_numbers(most)}


@stage("compiling the machine that fits constants; it is kept for the next time")
def _compiled(functions: tuple[Primitive, ...]) -> bytes:
    """Object code of the gradient machine."""
    return host_object(_emitted(functions), "O0", selection=1)


def _emitted(functions: tuple[Primitive, ...]) -> str:
    """The gradient machine, and what lets threads share the individuals, as LLVM IR."""
    module = emit_gradient_machine(functions)
    emit_sharing(module)
    return str(module)


@lru_cache(maxsize=16)
def _gradient_machine_of(functions: Functions) -> GradientMachine:
    return GradientMachine(functions.functions)


class MachineLinearizer:
    """Normal equations of a population over a data set (see `shine.fitness.protocols.Linearizer`).

    Parameters
    ----------
    dataset : Dataset
    loss : str
        One of `shine.fitness.losses.LOSSES`, which says what errors are minimized.
    threads : int
    """

    def __init__(self, dataset: Dataset, loss: str, threads: int = 1) -> None:
        self._rows = MachineRows(dataset, "float64", threads, nested=False)
        self._kind = checked_error_kind(loss_of(loss).kind.name)
        deviation = np.sqrt(dataset.target_square / dataset.weight)
        self._latest: tuple[tuple[Primitive, ...], GradientMachine | None] = (), None
        self._floor = np.array([max(_SMALLEST_WEIGHED * deviation, np.finfo(np.float64).tiny)])

    def _machine_for(self, functions: tuple[Primitive, ...]) -> GradientMachine:
        """The machine of some functions; what they mean is looked at only if they are others than those of the call
        before."""
        known, machine = self._latest
        if machine is None or known is not functions:
            machine = _gradient_machine_of(Functions.of(functions))
            self._latest = functions, machine
        return machine

    def normal_equations(
        self, population: Population, slopes: Floats, intercepts: Floats, limits: Floats
    ) -> NormalEquations:
        """Errors, and the normal equations at the constants the population has."""
        machine = self._machine_for(population.primitives.functions)
        counts, most = _constants(population)
        stride = FIXED_COLUMNS + most
        out = zeros(len(population), 1 + stride * stride)
        lines = np.column_stack([slopes, intercepts])
        limits = np.ascontiguousarray(limits, dtype=np.float64)
        own = {"out": out, "lines": lines, "limits": limits, "floor": self._floor}
        fields = {name: array.ctypes.data for name, array in own.items()} | {"stride": stride, "most": most}
        for part in self._rows.passes(population):
            workers = self._rows.workers_for(population, part, EFFORT)
            machine.functions.run(self._kind, population, part.fields | fields, part.rows, workers)
        # The machine writes what is on and below the diagonal.
        errors, matrices = out[:, 0], out[:, 1:].reshape(-1, stride, stride)
        for column in range(stride - 1):
            matrices[:, column, column + 1 :] = matrices[:, column + 1 :, column]
        return NormalEquations(np.where(errors <= limits, errors, np.inf), matrices, np.minimum(counts, most))

    def fit(
        self,
        population: Population,
        slopes: Floats,
        intercepts: Floats,
        steps: int,
        tolerance: float,
        damping: Damping,
        *,
        scaled: bool,
        fixed: Mask | None = None,
    ) -> Fit | None:
        """All steps of the fit of each individual in one native call (see `shine.fitness.protocols.Linearizer`)."""
        whole = next(self._rows.passes(population))
        longest = EFFORT * (1 + steps) * whole.rows * population.width
        # A thread looks for an interrupt between individuals, and an individual has to see all rows again and again.
        if (whole.start, whole.stop) != (0, self._rows.count) or longest > QUOTA:
            return None
        machine = self._machine_for(population.primitives.functions)
        _, most = _constants(population)
        held = np.zeros((len(population), max(most, 1)), np.uint8)
        if fixed is not None:
            held[:, : fixed.shape[1]] = fixed[:, :most]
        values = np.array(population.values, np.float64, order="C")
        lines, errors = np.column_stack([slopes, intercepts]), np.zeros(len(population))
        settings = np.array([tolerance, *(getattr(damping, name) for name in SETTINGS[1:])])
        own = {"out": errors, "lines": lines, "floor": self._floor, "fixed": held, "settings": settings}
        fields = {name: array.ctypes.data for name, array in own.items()}
        fields |= {"stride": FIXED_COLUMNS + most, "most": most, "steps": steps, "scaled": int(scaled)}
        effort = EFFORT * (1 + steps)
        workers = self._rows.workers_for(population, whole, effort)
        fitted = replace(population, values=values)
        machine.fits.run(fit_name(self._kind), fitted, whole.fields | fields, effort * whole.rows, workers)
        return Fit(fitted, lines[:, 0].copy(), lines[:, 1].copy(), errors)


def _constants(population: Population) -> tuple[Indices, int]:
    """How many constants each individual has, and how many are fitted at most."""
    inside = np.arange(population.width) < population.sizes[:, None]
    counts = ((population.codes == CONSTANT) & inside).sum(axis=1)
    return counts, min(int(counts.max(initial=0)), MOST_CONSTANTS)
