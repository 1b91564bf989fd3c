"""The tile machine's code, compiled or from the cache, ready to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from shine.base.stages import stage
from shine.compiler.codegen.numbers import Functions, described, source_digest
from shine.compiler.llvm import Engine, cached, host_object
from shine.compiler.threads import Workers
from shine.evaluate.machine.instructions import instruction_bytes
from shine.evaluate.machine.interpreter import RESULTS, emit_machine
from shine.evaluate.machine.job import JOB, WORKER_LOOP
from shine.evaluate.machine.tiles import OPERAND_BYTES, TILE_BYTES
from shine.evaluate.tiers.jobs import PopulationFunctions
from shine.lang.forms.tree import Primitive
from shine.lang.population import Population


class Machine:
    """The compiled machine of a set of primitives and a number type.

    Parameters
    ----------
    functions : sequence of Primitive
    dtype : {"float64", "float32"}
    """

    def __init__(self, functions: Sequence[Primitive], dtype: str) -> None:
        self.dtype = dtype
        self._instruction_bytes = instruction_bytes(functions)
        description = (dtype, source_digest("evaluate"), *(described(function) for function in functions))
        code = cached(description, lambda: _compiled(functions, dtype))
        engine = Engine.of_object(code, (*RESULTS, WORKER_LOOP))
        self._functions = PopulationFunctions(engine, RESULTS, JOB, self._scratch)

    def run(self, name: str, population: Population, fields: Mapping[str, int], rows: int, workers: Workers) -> None:
        """Run one function of the machine over a population and some rows; the fields say where results go."""
        self._functions.run(name, population, fields, rows, workers)

    def _scratch(self, width: int) -> dict[str, int]:
        """Bytes of the scratch memory of one thread, by field of a job, for tapes of some width."""
        return {
            "instructions": (2 * width + 3) * self._instruction_bytes,
            "operands": (width + 1) * OPERAND_BYTES,
            "tiles": (width + 2) * TILE_BYTES,
            "result": TILE_BYTES,
        }


@stage("compiling the machine that evaluates formulas; it is kept for the next time")
def _compiled(functions: Sequence[Primitive], dtype: str) -> bytes:
    """Object code of the machine."""
    # Handlers are straight-line code: LLVM's passes would double the time of the first evaluation and gain nothing.
    return host_object(str(emit_machine(functions, dtype)), "O0", selection=1)


def machine_of(functions: tuple[Primitive, ...], dtype: str) -> Machine:
    """The machine of a set of primitives, made once in a process."""
    return _machine_of(Functions.of(functions), dtype)


@lru_cache(maxsize=16)
def _machine_of(functions: Functions, dtype: str) -> Machine:
    return Machine(functions.functions, dtype)
