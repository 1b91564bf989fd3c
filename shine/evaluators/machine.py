"""The machine tier: whole populations in one native call, on one thread or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shine.codegen.identity import Functions, described, source_digest
from shine.codegen.machine.assembler import OPERAND_BYTES
from shine.codegen.machine.instructions import instruction_bytes
from shine.codegen.machine.machine import JOB, ROW_GROUP, TILE_BYTES, emit_machine, operand_room, tile_rows
from shine.codegen.machine.sharing import SHARE
from shine.codegen.moments import CHUNK, KINDS, LANES, PRODUCTS, checked_kind
from shine.data.dataset import Dataset
from shine.evaluators.derived import DerivedColumns
from shine.evaluators.jobs import PopulationFunctions, zeros
from shine.evaluators.rows import (
    HELD_BYTES,
    Columns,
    addresses,
    converted,
    filled,
    known_chunks,
    lane_sums,
    target_of,
    used_features,
)
from shine.evaluators.workers import ALONE, Workers
from shine.fitness.losses import loss_of
from shine.fitness.scores import Products, Scores, score
from shine.lang.lazy import cached_property
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet
from shine.lang.tree import Primitive
from shine.llvm import Engine, cached, host_object
from shine.stages import stage
from shine.typing import AnyArray, Floats, Indices


class Machine:
    """The compiled machine of some primitives and a number type.

    Parameters
    ----------
    functions : sequence of Primitive
    dtype : {"float64", "float32"}
    """

    def __init__(self, functions: Sequence[Primitive], dtype: str) -> None:
        self.dtype = dtype
        self._instruction_bytes = instruction_bytes(operand_room(functions))
        names = ("predict", *KINDS)
        description = (dtype, source_digest(), *(described(function) for function in functions))
        code = cached(description, lambda: _compiled(functions, dtype))
        engine = Engine.of_object(code, (*names, SHARE))
        self._functions = PopulationFunctions(engine, names, JOB, self._scratch)

    def run(self, name: str, population: Population, fields: Mapping[str, int], rows: int, workers: Workers) -> None:
        """Run one function of the machine over a population and some rows; the results are where the fields say."""
        self._functions.run(name, population, fields, rows, workers)

    def _scratch(self, width: int) -> dict[str, int]:
        """Bytes of the memory of one thread for individuals of some width."""
        return {
            "program": (2 * width + 3) * self._instruction_bytes,
            "operands": (width + 1) * OPERAND_BYTES,
            "tiles": (width + 2) * TILE_BYTES,
            "result": TILE_BYTES,
        }


@stage("compiling the machine that evaluates formulas; it is kept for the next time")
def _compiled(functions: Sequence[Primitive], dtype: str) -> bytes:
    """Object code of the machine."""
    # Handlers are straight code: LLVM's passes would double the time of the first evaluation and gain nothing.
    return host_object(str(emit_machine(functions, dtype)), "O0", selection=1)


def machine_of(functions: tuple[Primitive, ...], dtype: str) -> Machine:
    """The machine of some primitives, made once a process."""
    return _machine_of(Functions.of(functions), dtype)


@lru_cache(maxsize=16)
def _machine_of(functions: Functions, dtype: str) -> Machine:
    return Machine(functions.functions, dtype)


SHARED_WORK = 1 << 21
"""Individuals times rows from which threads share the work: some milliseconds of it."""

LARGE_ROWS = 1 << 17
"""Rows from which columns are not copied to be filled up; smaller data are, which saves assembling tapes twice."""


@dataclass(frozen=True)
class Pass:
    """A block of rows that compiled functions go over.

    Parameters
    ----------
    start, stop : int
        The first row, and the one behind the last.
    fields : dict of str to int
        Words of a job: where these rows are.
    held : object
        What lives as long as the pass, because the fields have addresses of it.
    """

    start: int
    stop: int
    fields: dict[str, int]
    held: object

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.stop - self.start


class MachineRows:
    """A data set laid out for the machine: what its functions compute of a population over all rows.

    Large data are gone over block by block, each of them once for the whole population, while it is in the cache. They
    stay where they are, unless the machine needs another number type or order (see `Columns`); the rows behind the
    last full tile are copied, and evaluated as a second part of the last block.

    Parameters
    ----------
    dataset : Dataset
    dtype : {"float64", "float32"}
    threads : int
    nested : bool
        Whether the machine can read columns of functions of functions (see `DerivedColumns`).
    """

    def __init__(self, dataset: Dataset, dtype: str, threads: int, nested: bool = True) -> None:
        self._dataset, self._dtype, self._workers = dataset, dtype, Workers(threads)
        self.count = dataset.n_rows
        rows, size = dataset.n_rows, dataset.columns.size * np.dtype(dtype).itemsize
        self._full = rows - rows % tile_rows(dtype) if rows >= LARGE_ROWS or size > HELD_BYTES else 0
        self._columns = Columns(dataset.columns[:, : self._full], dtype)
        rest = slice(self._full, None)
        self._tail = np.pad(
            converted(dataset.columns[:, rest], dtype), ((0, 0), (0, -(rows - self._full) % ROW_GROUP)), mode="edge"
        )
        weights = np.ones(rows - self._full) if dataset.weights is None else dataset.weights[rest]
        self._tail_target, self._tail_weights = filled(dataset.target[rest], "edge"), filled(weights)
        self._tail_pointers = addresses(self._tail)
        self._derived = DerivedColumns(self._tail.shape[1], self._values, nested)
        self._tail_fields = {
            "tail_columns": self._tail_pointers.ctypes.data,
            "tail_target": self._tail_target.ctypes.data,
            "tail_weights": self._tail_weights.ctypes.data,
            "weighted": int(dataset.weights is not None),
        }

    @cached_property
    def _known(self) -> Floats:
        return known_chunks(self._dataset)

    def passes(self, population: Population) -> Iterator[Pass]:
        """The blocks of rows in order, for a population; each stays what it is until the next is asked for."""
        dataset, full, rows, tail = self._dataset, self._full, self._dataset.n_rows, self._tail_fields
        if not full:
            tables = self._derived.tables(population, self._tail.itemsize)
            derived = {name: int(table.addresses.ctypes.data) for name, table in tables.items()}
            yield Pass(0, rows, {"rows": rows, "full": 0, **derived, **tail}, tables)
            return
        weights = 0 if dataset.weights is None else dataset.weights.ctypes.data
        target = dataset.target.ctypes.data
        for block in self._columns.blocks(len(population), used_features(population)):
            start, stop = block.start, block.stop
            end, size = rows if stop == full else stop, 8 * (stop - start)
            # Rows are counted from the beginning of the block in both parts.
            moved = {name: tail[name] - size for name in ("tail_target", "tail_weights")}
            places = {"target": target + 8 * start, "weights": weights and weights + 8 * start}
            own = {"rows": end - start, "full": stop - start, "columns": block.pointers.ctypes.data, **places}
            yield Pass(start, end, tail | moved | own, block)

    def _values(self, population: Population) -> AnyArray:
        return self.predict(machine_of(population.primitives.functions, self._dtype), population)

    def predict(self, machine: Machine, population: Population) -> AnyArray:
        """Predictions, shape (n_individuals, n_rows), in the machine's number type."""
        out = np.empty((len(population), self._dataset.n_rows), dtype=self._dtype)
        for part in self.passes(population):
            # The machine writes whole rows of a matrix.
            whole = part.rows == self._dataset.n_rows
            own = out if whole else np.empty((len(population), part.rows), dtype=self._dtype)
            fields = part.fields | {"out": own.ctypes.data}
            machine.run("predict", population, fields, part.rows, self.workers_for(population, part))
            if not whole:
                out[:, part.start : part.stop] = own
        return out

    def states(
        self, machine: Machine, kind: str, population: Population, limits: Floats, lines: Floats | None = None
    ) -> Floats:
        """What the functions named in `KINDS` add up, shape (n_individuals, LANES).

        Parameters
        ----------
        machine : Machine
        kind : str
            One of `shine.codegen.moments.KINDS`.
        population : Population
        limits : ndarray of shape (n_individuals,)
            Sums of errors that an individual may not exceed; evaluation of it stops once it is sure to.
        lines : ndarray of shape (n_individuals, 2), optional
            Slopes and intercepts that errors are measured with; 1 and 0 by default.
        """
        checked_kind(kind)
        out = zeros(len(population), LANES)
        scaled = lines is not None
        lines = np.ascontiguousarray(lines) if scaled else out
        own = {"out": out.ctypes.data, "limits": limits.ctypes.data, "lines": lines.ctypes.data, "scaled": int(scaled)}
        for part in self.passes(population):
            if kind == PRODUCTS:
                own["known"] = self._known[part.start // CHUNK :].ctypes.data
            machine.run(kind, population, part.fields | own, part.rows, self.workers_for(population, part))
        return out

    def workers_for(self, population: Population, part: Pass, effort: int = 1) -> Workers:
        """One thread where waking another costs more than it saves.

        `effort` is what a node and row costs, in units of what its value costs.
        """
        return self._workers if len(population) * part.rows * effort >= SHARED_WORK else ALONE


class MachineEvaluator:
    """Scores populations on the tile machine."""

    def __init__(self, dataset: Dataset, loss: str, linear_scaling: bool, dtype: str, threads: int = 1) -> None:
        self._rows = MachineRows(dataset, dtype, threads)
        self._loss, self._linear_scaling, self._dtype = loss, linear_scaling, dtype
        self._target = target_of(dataset, dtype)
        self._latest: tuple[PrimitiveSet, Machine] | None = None

    def score(self, population: Population, threshold: float = np.inf) -> Scores:
        """Loss and scaling of each individual.

        Parameters
        ----------
        population : Population
        threshold : float
            An individual whose loss is sure to exceed this gets the loss inf, and is not evaluated to the end.
        """
        # Rounding must not make a loss that equals the threshold exceed it; the last word is `within`.
        loss = loss_of(self._loss)
        exact = loss.sum_of(threshold, self._target.weight, self._target.square)
        limit = max(exact * (1 + 1e-12), np.finfo(np.float64).tiny)
        # What the best line leaves of squares says nothing about a limit of other errors.
        line_limit = limit if loss.kind.follows_from_moments else np.inf
        measure = MachineMeasure(self._rows, self._machine(population), population, limit, line_limit)
        scores = score(measure, len(population), self._target, self._loss, self._linear_scaling)
        return scores.within(threshold)

    def products(self, population: Population) -> Products:
        """Moments of each individual's predictions and the target."""
        measure = MachineMeasure(self._rows, self._machine(population), population)
        return measure.products(np.arange(len(population)))

    def predict(self, population: Population) -> AnyArray:
        """Predictions, shape (n_individuals, n_rows)."""
        return self._rows.predict(self._machine(population), population)

    def _machine(self, population: Population) -> Machine:
        """The machine for a population; generations of one run share their primitive set."""
        latest = self._latest  # read once: another thread may replace it by that of other primitives
        if latest is None or latest[0] is not population.primitives:
            self._latest = latest = population.primitives, machine_of(population.primitives.functions, self._dtype)
        return latest[1]


class MachineMeasure:
    """Sums over predictions on the machine (see `shine.fitness.scores.Measure`)."""

    def __init__(
        self,
        rows: MachineRows,
        machine: Machine,
        population: Population,
        limit: float = np.inf,
        line_limit: float = np.inf,
    ) -> None:
        self._rows, self._machine, self._population = rows, machine, population
        self._limit, self._line_limit = limit, line_limit

    def errors(self, which: Indices, kind: str, slopes: Floats, intercepts: Floats) -> Floats:
        """Weighted sums of the errors of ``intercept + slope * p``; inf above the limit."""
        plain = bool((slopes == 1).all() and (intercepts == 0).all())
        lines = None if plain else np.column_stack([slopes, intercepts])
        limits = np.full(len(which), self._limit)
        sums = lane_sums(self._rows.states(self._machine, kind, self._chosen(which), limits, lines))
        return np.where(sums <= self._limit, sums, np.inf)

    def products(self, which: Indices) -> Products:
        """Moments for linear scaling; NaN where no line keeps within the limit."""
        limits = np.full(len(which), self._line_limit)
        states = self._rows.states(self._machine, PRODUCTS, self._chosen(which), limits)
        return Products(states[:, 0], states[:, 1], states[:, 2])

    def _chosen(self, which: Indices) -> Population:
        everyone = len(which) == len(self._population)
        return self._population if everyone else self._population.take(which)
