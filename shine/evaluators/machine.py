"""The machine tier: whole populations in one native call, on one thread or several."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shine import codegen, llvm
from shine.codegen.assembler import OPERAND_BYTES
from shine.codegen.instructions import instruction_bytes
from shine.codegen.machine import JOB, ROW_GROUP, TILE_BYTES, emit_machine, operand_room, tile_rows
from shine.codegen.moments import KINDS, LANES
from shine.data import Dataset
from shine.evaluators.rows import addresses, converted, filled, known_chunks, lane_sums, target_of
from shine.fitness import LOSSES, Positions, Products, Scores, score
from shine.lang.population import Population
from shine.lang.primitives import Primitive, PrimitiveSet
from shine.llvm import Engine, cached, host_object

Array = NDArray[np.float64]


SLICE = 32
"""Individuals a thread takes at a time: enough to hide the cost of a call, few enough to share the work evenly."""


class Scratch:
    """Memory of one thread: fields of a job by name, of some bytes each."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._memory = np.empty(sum(sizes.values()) + 64 * (len(sizes) + 1), np.uint8)
        address = self._memory.ctypes.data
        self.fields: dict[str, int] = {}
        for name, size in sizes.items():
            address = -(-address // 64) * 64
            self.fields[name] = address
            address += size


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
        # Handlers are straight code: LLVM's passes would double the time of the first evaluation and gain nothing.
        code = cached(description, lambda: host_object(str(emit_machine(functions, dtype)), "O0", selection=1))
        self._engine = Engine.of_object(code, names)
        self._entries = {name: self._engine.function(name, None, ctypes.c_void_p) for name in names}

    def run(self, name: str, population: Population, fields: Mapping[str, int], workers: Workers) -> None:
        """Run one function of the machine over a population; the results are where the fields say."""
        run_slices(self._entries[name], JOB, population, fields, workers, lambda: self._scratch(population.width))

    def _scratch(self, width: int) -> Scratch:
        """Memory of one thread for individuals of some width."""
        return Scratch(
            {
                "program": (2 * width + 3) * self._instruction_bytes,
                "operands": (width + 1) * OPERAND_BYTES,
                "tiles": (width + 2) * TILE_BYTES,
                "result": TILE_BYTES,
            }
        )


def run_slices(
    entry: Callable[[int], None],
    job_fields: Sequence[str],
    population: Population,
    fields: Mapping[str, int],
    workers: Workers,
    scratch: Callable[[], Scratch],
) -> None:
    """Run a compiled function over a population, slice by slice.

    Each individual is evaluated by one thread, so that the number of threads changes no bit.

    Parameters
    ----------
    entry : callable
        Takes the address of a job.
    job_fields : sequence of str
        Names of the words of a job.
    population : Population
    fields : mapping of str to int
        Words of the job besides those that follow from the population and the scratch memory.
    workers : Workers
    scratch : callable
        Makes the memory of one thread.
    """
    codes, values = np.ascontiguousarray(population.codes), np.ascontiguousarray(population.values)
    sizes = np.ascontiguousarray(population.sizes, dtype=np.int64)
    job = dict.fromkeys(job_fields, 0) | dict(fields)
    job |= {"codes": codes.ctypes.data, "values": values.ctypes.data, "sizes": sizes.ctypes.data}
    job |= {"width": population.width, "functions": population.primitives.first_function}
    count = len(population)
    slice_ = count if workers.threads == 1 else SLICE

    def work(slices: Iterator[int]) -> None:
        memory = scratch()
        own = job | memory.fields
        for first in slices:
            own |= {"first": first, "last": min(first + slice_, count)}
            words = np.array([own[field] % 2**64 for field in job_fields], dtype=np.uint64)
            entry(words.ctypes.data)

    workers.run(work, iter(range(0, count, max(slice_, 1))))


class Workers:
    """Threads that do the same work together, the calling one among them; they wait for the next between calls."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads - 1, thread_name_prefix="shine") if threads > 1 else None

    def run(self, work: Callable[[Iterator[int]], None], items: Iterator[int]) -> None:
        """Call ``work(items)`` on every thread, and return when all are done; each item goes to one of them.

        An interrupt ends it early, but never before the other threads are done with what they have begun: the arrays
        they write to are freed when this returns.
        """
        others: list[Future[None]] = []
        try:
            if self._pool is not None:
                for _ in range(self.threads - 1):
                    others.append(self._pool.submit(work, items))
            work(items)
        finally:
            for _ in items:
                pass  # what nobody has begun, nobody is to begin
            _wait_for_all(others)
        for other in others:
            other.result()


def _wait_for_all(futures: Sequence[Future[None]]) -> None:
    """Wait, through any number of interrupts; the first of them is raised in the end."""
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            wait(futures)
            break
        except KeyboardInterrupt as caught:
            interrupt = interrupt or caught
    if interrupt is not None:
        raise interrupt


ALONE = Workers(1)
"""The calling thread by itself."""


def _meaning(primitive: Primitive) -> str:
    """Text that is equal for equal composite primitives, whatever they call included."""
    if primitive.definition is None:
        return ""
    tree = primitive.definition
    calls = sorted({token[0] for token in tree.tokens[1:] if token[0] in tree.functions})
    parts = [str(tree), *(f"{name}: {_meaning(tree.functions[name])}" for name in calls if name != primitive.name)]
    return "\n".join(parts)


@cache
def source_digest() -> str:
    """Digest of the code that emits and compiles machines: a change of it makes other machines."""
    digest = hashlib.sha256()
    for package in (codegen, llvm):
        for path in sorted(Path(package.__file__ or "").parent.glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Functions:
    """Functions that are equal if they mean the same, and not only if they read the same."""

    meaning: tuple[str, ...]
    functions: tuple[Primitive, ...] = field(compare=False)

    @classmethod
    def of(cls, functions: tuple[Primitive, ...]) -> Self:
        """Functions with their meaning."""
        return cls(tuple(described(function) for function in functions), functions)


def machine_of(functions: tuple[Primitive, ...], dtype: str) -> Machine:
    """The machine of some primitives, made once a process."""
    return _machine_of(Functions.of(functions), dtype)


@lru_cache(maxsize=16)
def _machine_of(functions: Functions, dtype: str) -> Machine:
    return Machine(functions.functions, dtype)


def described(function: Primitive) -> str:
    """Text that is equal for primitives of the same name and meaning."""
    return f"{function.name} {function.arity} {_meaning(function)}"


SHARED_WORK = 1 << 21
"""Individuals times rows from which threads share the work: some milliseconds of it."""

LARGE_ROWS = 1 << 17
"""Rows from which columns are not copied to be filled up; smaller data are, which saves assembling tapes twice."""


class MachineRows:
    """A data set laid out for the machine: what its functions compute of a population over all rows.

    Large data stay where they are: the rows behind the last full tile are copied, and evaluated as a second part.

    Parameters
    ----------
    dataset : Dataset
    dtype : {"float64", "float32"}
    threads : int
    """

    def __init__(self, dataset: Dataset, dtype: str, threads: int) -> None:
        self._dataset, self._dtype, self._workers = dataset, dtype, Workers(threads)
        rows, columns = dataset.n_rows, converted(dataset.columns, dtype)
        full = rows - rows % tile_rows(dtype) if rows >= LARGE_ROWS else 0
        tail = np.pad(columns[:, full:], ((0, 0), (0, -(rows - full) % ROW_GROUP)), mode="edge")
        weights = np.ones(rows - full) if dataset.weights is None else dataset.weights[full:]
        tail_target, tail_weights = filled(dataset.target[full:], "edge"), filled(weights)
        # What the addresses below point to.
        self._held = columns, tail, tail_target, tail_weights
        self._pointers, self._tail_pointers = addresses(columns), addresses(tail)
        self.fixed = {
            "rows": rows,
            "full": full,
            "columns": self._pointers.ctypes.data,
            "tail_columns": self._tail_pointers.ctypes.data,
            "target": dataset.target.ctypes.data,
            "weights": 0 if dataset.weights is None else dataset.weights.ctypes.data,
            "weighted": int(dataset.weights is not None),
            # Rows are counted from the beginning of the data in both parts.
            "tail_target": tail_target.ctypes.data - 8 * full,
            "tail_weights": tail_weights.ctypes.data - 8 * full,
        }

    @cached_property
    def _known(self) -> Array:
        return known_chunks(self._dataset)

    def predict(self, machine: Machine, population: Population) -> NDArray[Any]:
        """Predictions, shape (n_individuals, n_rows), in the machine's number type."""
        out = np.empty((len(population), self._dataset.n_rows), dtype=self._dtype)
        machine.run("predict", population, self.fixed | {"out": out.ctypes.data}, self.workers_for(population))
        return out

    def states(
        self, machine: Machine, kind: str, population: Population, limits: Array, lines: Array | None = None
    ) -> Array:
        """What the functions named in `KINDS` add up, shape (n_individuals, LANES).

        Parameters
        ----------
        machine : Machine
        kind : {"squared", "absolute", "products"}
        population : Population
        limits : ndarray of shape (n_individuals,)
            Sums of errors that an individual may not exceed; evaluation of it stops once it is sure to.
        lines : ndarray of shape (n_individuals, 2), optional
            Slopes and intercepts that errors are measured with; 1 and 0 by default.
        """
        out = np.zeros((len(population), LANES))
        scaled = lines is not None
        lines = np.ascontiguousarray(lines) if scaled else out
        own = {"out": out, "limits": limits, "lines": lines} | ({"known": self._known} if kind == "products" else {})
        fields = self.fixed | {name: array.ctypes.data for name, array in own.items()} | {"scaled": int(scaled)}
        machine.run(kind, population, fields, self.workers_for(population))
        return out

    def workers_for(self, population: Population, effort: int = 1) -> Workers:
        """One thread where waking another costs more than it saves.

        `effort` is what a node and row costs, in units of what its value costs.
        """
        return self._workers if len(population) * self._dataset.n_rows * effort >= SHARED_WORK else ALONE


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
        exact = LOSSES[self._loss].sum_of(threshold, self._target.weight, self._target.square)
        limit = max(exact * (1 + 1e-12), np.finfo(np.float64).tiny)
        # What is left of squares says nothing about a limit of absolute errors.
        squared = LOSSES[self._loss].kind == "squared"
        measure = MachineMeasure(self._rows, self._machine(population), population, limit, limit if squared else np.inf)
        scores = score(measure, len(population), self._target, self._loss, self._linear_scaling)
        return scores.within(threshold)

    def products(self, population: Population) -> Products:
        """Moments of each individual's predictions and the target."""
        measure = MachineMeasure(self._rows, self._machine(population), population)
        return measure.products(np.arange(len(population)))

    def predict(self, population: Population) -> NDArray[Any]:
        """Predictions, shape (n_individuals, n_rows)."""
        return self._rows.predict(self._machine(population), population)

    def _machine(self, population: Population) -> Machine:
        """The machine for a population; generations of one run share their primitive set."""
        if self._latest is None or self._latest[0] is not population.primitives:
            self._latest = population.primitives, machine_of(population.primitives.functions, self._dtype)
        return self._latest[1]


class MachineMeasure:
    """Sums over predictions on the machine (see `shine.fitness.Measure`)."""

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

    def errors(self, which: Positions, kind: str, slopes: Array, intercepts: Array) -> Array:
        """Weighted sums of "squared" or "absolute" errors of ``intercept + slope * p``; inf above the limit."""
        plain = bool((slopes == 1).all() and (intercepts == 0).all())
        lines = None if plain else np.column_stack([slopes, intercepts])
        limits = np.full(len(which), self._limit)
        sums = lane_sums(self._rows.states(self._machine, kind, self._chosen(which), limits, lines))
        return np.where(sums <= self._limit, sums, np.inf)

    def products(self, which: Positions) -> Products:
        """Moments for linear scaling; NaN where no line keeps within the limit."""
        limits = np.full(len(which), self._line_limit)
        states = self._rows.states(self._machine, "products", self._chosen(which), limits)
        return Products(states[:, 0], states[:, 1], states[:, 2])

    def _chosen(self, which: Positions) -> Population:
        everyone = len(which) == len(self._population)
        return self._population if everyone else self._population.take(which)
