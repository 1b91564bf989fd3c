"""Normal equations of fitting constants, on the gradient machine: whole populations in one native call."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shine.codegen.gradient_assembler import FIXED_COLUMNS, NODE_WORDS
from shine.codegen.gradient_instructions import BROADCAST_BYTES, OPERAND_BYTES, gradient_instruction_bytes
from shine.codegen.gradient_machine import GRADIENT_JOB, SHORTEST_TILE, emit_gradient_machine, most_arguments
from shine.codegen.machine import CACHE_BYTES, TILE_BYTES
from shine.codegen.normal_equations import ERROR_KINDS
from shine.codegen.sharing import SHARE, emit_sharing
from shine.data import Dataset
from shine.evaluators.machine import (
    Functions,
    MachineRows,
    described,
    source_digest,
)
from shine.evaluators.sharing import PopulationFunctions, zeros
from shine.fitness import LOSSES, NormalEquations
from shine.lang.derivative import partials
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT, Primitive
from shine.llvm import Engine, cached, host_object

Array = NDArray[np.float64]

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
        code = cached(description, lambda: host_object(_emitted(functions), "O0", selection=1))
        engine = Engine.of_object(code, (*ERROR_KINDS, SHARE))
        self.functions = PopulationFunctions(engine, ERROR_KINDS, GRADIENT_JOB, self._scratch)

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


def _emitted(functions: tuple[Primitive, ...]) -> str:
    """The gradient machine, and what lets threads share the individuals, as LLVM IR."""
    module = emit_gradient_machine(functions)
    emit_sharing(module)
    return str(module)


@lru_cache(maxsize=16)
def _gradient_machine_of(functions: Functions) -> GradientMachine:
    return GradientMachine(functions.functions)


class MachineLinearizer:
    """Normal equations of a population over a data set (see `shine.fitness.Linearizer`).

    Parameters
    ----------
    dataset : Dataset
    loss : str
        One of `shine.fitness.LOSSES`, which says what errors are minimized.
    threads : int
    """

    def __init__(self, dataset: Dataset, loss: str, threads: int = 1) -> None:
        self._rows = MachineRows(dataset, "float64", threads)
        self._kind = LOSSES[loss].kind
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
        self, population: Population, slopes: Array, intercepts: Array, limits: Array
    ) -> NormalEquations:
        """Errors, and the normal equations at the constants the population has."""
        machine = self._machine_for(population.primitives.functions)
        inside = np.arange(population.width) < population.sizes[:, None]
        counts = ((population.codes == CONSTANT) & inside).sum(axis=1)
        most = min(int(counts.max(initial=0)), MOST_CONSTANTS)
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
