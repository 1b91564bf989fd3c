"""A data set laid out for the tile machine, the machine's code, and passes of the machine over the data.

Functions of one feature are the most common expensive subtrees of populations, and functions of such functions,
``exp(sin(x0))``, the second most common. They have the same values in all individuals and generations, so they are
derived columns, computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shine.base.lazy import cached_property
from shine.base.stages import stage
from shine.base.typing import AnyArray, Floats, Indices
from shine.compiler.codegen.moments import CHUNK, LANES, LINE_FORMS, TILE_BYTES
from shine.compiler.codegen.numbers import Functions, described, is_elementary, source_digest
from shine.compiler.llvm import Engine, cached, host_object
from shine.compiler.threads import ONE_THREAD, Workers
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.row_errors import Table
from shine.evaluate.machine.instructions import instruction_bytes
from shine.evaluate.machine.interpreter import LINES, PREDICT, PRODUCTS, RESULTS, emit_machine
from shine.evaluate.machine.job import JOB, WORKER_LOOP
from shine.evaluate.machine.tiles import OPERAND_BYTES, ROW_GROUP, tile_rows
from shine.evaluate.tiers.jobs import PopulationFunctions, zeros
from shine.evaluate.tiers.rows import (
    HELD_BYTES,
    Columns,
    addresses,
    columns_from,
    converted,
    filled,
    known_chunks,
    used_features,
)
from shine.lang.forms.tree import Primitive
from shine.lang.population import Population

MOST_BYTES = 1 << 23
"""Most bytes of all columns: about the size of a cache."""

INDIVIDUALS = 4
"""Individuals evaluated for each column before columns are made: most columns do not pay for themselves sooner."""


@dataclass(frozen=True)
class Addresses:
    """Addresses of columns, and the columns."""

    addresses: NDArray[np.uintp]
    columns: AnyArray


class _Seen:
    """A set of primitives, the number of individuals seen with it, and its tables once they are made."""

    def __init__(self, functions: tuple[Primitive, ...]) -> None:
        self.functions, self.which = functions, _which_take_long(functions)
        self.individuals = 0
        self.tables: dict[str, Addresses] | None = None


class DerivedColumns:
    """The columns of the primitives of the population seen last.

    Parameters
    ----------
    rows : int
        Rows of a column, padding included: the last row of the data is repeated.
    predict : callable
        Predictions of a population, shape (n_individuals, n_rows), by the instructions that the columns replace.
    nested : bool
        Whether columns of functions of functions are read.
    """

    def __init__(self, rows: int, predict: Callable[[Population], AnyArray], nested: bool = True) -> None:
        self._rows, self._predict, self._nested = rows, predict, nested
        self._latest = _Seen(())

    def tables(self, population: Population, itemsize: int) -> dict[str, Addresses]:
        """Addresses of the columns, with `itemsize` bytes per number; 0 if there is no column.

        Table "derived" has an address for each function and feature, "nested" for each function and entry of "derived".
        A table is missing while it would cost more than it saves, and "nested" also if its columns would take too much
        memory. The columns live as long as the tables.
        """
        functions, features = population.primitives.functions, len(population.primitives.features)
        seen = self._latest  # read once: another thread may replace it
        if seen.functions is not functions:
            self._latest = seen = _Seen(functions)
        if seen.tables is None:
            single = len(seen.which) * features
            double = single * len(seen.which)
            most = MOST_BYTES // (self._rows * itemsize)
            count = single + double if self._nested and single + double <= most else single
            seen.individuals += len(population)
            if not count or count > most or seen.individuals < INDIVIDUALS * count:
                return {}
            seen.individuals = -count  # the evaluation of the columns must not make columns
            seen.tables = self._made(population, seen.which, count > single)
        return seen.tables

    def _made(self, population: Population, which: Indices, nested: bool) -> dict[str, Addresses]:
        primitives = population.primitives
        functions, features, first = len(primitives.functions), len(primitives.features), primitives.first_function
        tapes: list[tuple[int, ...]] = [(1 + x, first + f) for f in which.tolist() for x in range(features)]
        single = len(tapes)
        if nested:
            tapes += [(*tape, first + f) for f in which.tolist() for tape in tapes]
        sizes = np.array([len(tape) for tape in tapes])
        codes = np.array([(*tape, 0)[:3] for tape in tapes], np.int16)
        values = self._predict(Population(codes, np.zeros(codes.shape), sizes, primitives))
        columns = np.pad(values, ((0, 0), (0, self._rows - values.shape[1])), mode="edge")
        places = addresses(columns)
        of_features = np.zeros((functions, features), np.uintp)
        of_features[which] = places[:single].reshape(len(which), features)
        tables = {"derived": Addresses(of_features, columns)}
        if nested:
            of_derived = np.zeros((functions, functions, features), np.uintp)
            of_derived[np.ix_(which, which)] = places[single:].reshape(len(which), len(which), features)
            tables["nested"] = Addresses(of_derived, columns)
        return tables


def _which_take_long(functions: tuple[Primitive, ...]) -> Indices:
    """Positions of the expensive functions of one argument."""
    chosen = [f.arity == 1 and is_elementary(f) for f in functions]
    return np.flatnonzero(np.array(chosen, np.bool_))


SHARED_WORK = 1 << 18
"""Least work for several threads, in individuals times rows: a millisecond, ten times what waking one takes."""

LARGE_ROWS = 1 << 17
"""Rows from which data are read in place and only the rows after the last full tile are copied. Smaller data are
copied whole and padded: that saves assembling tapes twice."""


def is_large(dataset: Dataset, dtype: str) -> bool:
    """Whether the rows are evaluated block by block, where they lie."""
    return dataset.n_rows >= LARGE_ROWS or dataset.columns.size * np.dtype(dtype).itemsize > HELD_BYTES


@dataclass(frozen=True)
class Pass:
    """A block of rows that compiled functions evaluate in one call.

    Parameters
    ----------
    start, stop : int
        The first row, and the one after the last.
    fields : dict of str to int
        Words of a job: where the rows are.
    held : object
        The owner of memory whose addresses are in the fields; it must live as long as the pass.
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
    """A data set laid out for the machine, and the results of the machine's functions over all rows.

    A small data set (fewer than `LARGE_ROWS` rows, and columns of at most `HELD_BYTES`) is copied whole, padded to full
    groups of rows, and evaluated in one pass: it is all "tail". A large data set is evaluated block by block, each
    block for the whole population while it is in the cache. Its columns are read in place, unless the machine needs
    another number type or order (see `Columns`); only the rows after the last full tile are copied. They are the tail,
    which is evaluated as a second part of the last block.

    Parameters
    ----------
    dataset : Dataset
    dtype : {"float64", "float32"}
    threads : int
    nested : bool
        Whether the machine reads columns of functions of functions (see `DerivedColumns`).
    loss_columns : sequence of ndarray of shape (n_rows,), float64, contiguous
        Columns that the errors read besides.
    """

    def __init__(
        self, dataset: Dataset, dtype: str, threads: int, nested: bool = True, loss_columns: Sequence[Floats] = ()
    ) -> None:
        self._dataset, self._dtype, self._workers = dataset, dtype, Workers(threads)
        self.count = dataset.n_rows
        rows = dataset.n_rows
        self._full = rows - rows % tile_rows(dtype) if is_large(dataset, dtype) else 0
        self._columns = Columns(dataset.columns[:, : self._full], dtype)
        rest = slice(self._full, None)
        self._tail = np.pad(
            converted(dataset.columns[:, rest], dtype), ((0, 0), (0, -(rows - self._full) % ROW_GROUP)), mode="edge"
        )
        weights = np.ones(rows - self._full) if dataset.weights is None else dataset.weights[rest]
        self._tail_target, self._tail_weights = filled(dataset.target[rest], "edge"), filled(weights)
        self._tail_pointers = addresses(self._tail)
        self._loss_columns, self._tail_loss_columns = (
            tuple(loss_columns),
            [filled(column[rest], "edge") for column in loss_columns],
        )
        self._derived = DerivedColumns(self._tail.shape[1], self._values, nested)
        self._tail_fields = {
            "tail_columns": self._tail_pointers.ctypes.data,
            "tail_target": self._tail_target.ctypes.data,
            "tail_weights": self._tail_weights.ctypes.data,
            "weighted": int(dataset.weights is not None),
        }

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return self._dataset.weight

    @cached_property
    def _known(self) -> Floats:
        return known_chunks(self._dataset)

    def passes(self, population: Population) -> Iterator[Pass]:
        """The blocks of rows in order, for a population; a block is valid until the next one is asked for."""
        dataset, full, rows, tail = self._dataset, self._full, self._dataset.n_rows, self._tail_fields
        if not full:
            tables = self._derived.tables(population, self._tail.itemsize)
            derived = {name: int(table.addresses.ctypes.data) for name, table in tables.items()}
            loss_columns = columns_from(self._tail_loss_columns, 0)
            fields = {"rows": rows, "full": 0, "tail_loss_columns": loss_columns.ctypes.data, **derived, **tail}
            yield Pass(0, rows, fields, (tables, loss_columns))
            return
        weights = 0 if dataset.weights is None else dataset.weights.ctypes.data
        target = dataset.target.ctypes.data
        for block in self._columns.blocks(len(population), used_features(population)):
            start, stop = block.start, block.stop
            end, size = rows if stop == full else stop, 8 * (stop - start)
            # Rows are counted from the beginning of the block in both parts.
            moved = {name: tail[name] - size for name in ("tail_target", "tail_weights")}
            places = {"target": target + 8 * start, "weights": weights and weights + 8 * start}
            # A field points to the addresses of the columns, in the order of the loss's arguments.
            loss_columns, tail_loss_columns = (
                columns_from(self._loss_columns, start),
                columns_from(self._tail_loss_columns, start - stop),
            )
            pointers = {"loss_columns": loss_columns.ctypes.data, "tail_loss_columns": tail_loss_columns.ctypes.data}
            own = {"rows": end - start, "full": stop - start, "columns": block.pointers.ctypes.data}
            yield Pass(start, end, tail | moved | places | pointers | own, (block, loss_columns, tail_loss_columns))

    def _values(self, population: Population) -> AnyArray:
        return self.predict(machine_of(population.primitives.functions, self._dtype), population)

    def predict(self, machine: Machine, population: Population) -> AnyArray:
        """Predictions, shape (n_individuals, n_rows), in the machine's number type."""
        out = np.empty((len(population), self._dataset.n_rows), dtype=self._dtype)
        for part in self.passes(population):
            # The machine writes contiguous rows of a matrix.
            whole = part.rows == self._dataset.n_rows
            own = out if whole else np.empty((len(population), part.rows), dtype=self._dtype)
            fields = part.fields | {"out": own.ctypes.data}
            machine.run(PREDICT, population, fields, part.rows, self.workers_for(population, part))
            if not whole:
                out[:, part.start : part.stop] = own
        return out

    def line_errors(
        self, machine: Machine, code: Table, population: Population, lines: Floats, fields: dict[str, int]
    ) -> Floats:
        """Sums of errors of several lines of each individual, shape (n_individuals * n_forms, LANES).

        Parameters
        ----------
        machine : Machine
        code : Table
            The errors, for predictions of the machine's number type (see `errors_code`).
        population : Population
        lines : ndarray of shape (n_individuals, n_forms, n_fields)
            `LINE_FIELDS` of each of `LINE_FORMS`. Those whose error is not finite are not measured.
        fields : dict of str to int
            Words of the job that fit the lines first; none if they are known.
        """
        own = fields | {"lines": lines.ctypes.data, "scaled": 1, "errors": code.address}
        return self.sums(machine, LINES, population, own, len(LINE_FORMS)).reshape(-1, LANES)

    def sums(
        self, machine: Machine, name: str, population: Population, fields: dict[str, int], sums: int = 1
    ) -> Floats:
        """What a function of the machine adds up over all rows, shape (n_individuals, sums * LANES)."""
        out = zeros(len(population), sums * LANES)
        own = fields | {"out": out.ctypes.data}
        for part in self.passes(population):
            if name == PRODUCTS:
                own["known"] = self._known[part.start // CHUNK :].ctypes.data
            machine.run(name, population, part.fields | own, part.rows, self.workers_for(population, part))
        return out

    def workers_for(self, population: Population, part: Pass, effort: int = 1) -> Workers:
        """The threads for a pass: only one if waking the others costs more than it saves.

        `effort` is the cost of a node and row, as a multiple of the cost of its value.
        """
        return shared(self._workers, population, part, effort)


def shared(workers: Workers, population: Population, part: Pass, effort: int) -> Workers:
    """The threads, or the calling one alone if a pass has little work (see `MachineRows.workers_for`)."""
    return workers if len(population) * part.rows * effort >= SHARED_WORK else ONE_THREAD


class Machine(PopulationFunctions):
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
        super().__init__(Engine.of_object(code, (*RESULTS, WORKER_LOOP)), RESULTS, JOB, self._scratch_of)

    def _scratch_of(self, width: int) -> dict[str, int]:
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
