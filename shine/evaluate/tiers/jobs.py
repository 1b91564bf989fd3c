"""Native functions over a population: the jobs of its threads, and the memory each job works in."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from shine.base.typing import AnyArray, Floats
from shine.compiler.llvm import Engine
from shine.compiler.threads import Workers
from shine.evaluate.machine.job import WORKER_LOOP
from shine.lang.population import Population

STEP_ROWS = 1 << 15
"""Rows times individuals that a thread takes at a time: enough to hide the cost of taking them, few enough that all
threads end at about the same time."""

QUOTA = 1 << 29
"""Nodes times rows after which a thread looks for an interrupt: some hundredths of a second."""

_LINE = 64
"""Bytes of a cache line: threads that write to the same line slow each other down."""


def zeros(individuals: int, numbers: int) -> Floats:
    """Zeros, shape (individuals, numbers), that begin at a cache line."""
    memory = np.zeros(individuals * numbers + _LINE // 8)
    skipped = -memory.ctypes.data % _LINE // 8
    return memory[skipped : skipped + individuals * numbers].reshape(individuals, numbers)


class PopulationFunctions:
    """Compiled functions that take a job and evaluate a range of a population.

    Parameters
    ----------
    engine : Engine
        Defines them, and the function of `shine.evaluate.machine.job`.
    names : sequence of str
    job_fields : sequence of str
        Names of the words of a job; the last two are ``first`` and ``last``.
    scratch : callable
        ``scratch(width)``: bytes of the scratch memory of one thread, by field of a job, for tapes of a width.
    """

    def __init__(
        self, engine: Engine, names: Sequence[str], job_fields: Sequence[str], scratch: Callable[[int], dict[str, int]]
    ) -> None:
        self._engine, self._entries = engine, dict.fromkeys(names, 0)
        self._worker_loop = engine.function(WORKER_LOOP, None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 3)
        self._job_fields, self._scratch = tuple(job_fields), scratch
        self._kept: list[_Jobs] = []

    def run(self, name: str, population: Population, fields: Mapping[str, int], rows: int, workers: Workers) -> None:
        """Run a function over a population.

        Each individual is evaluated by one thread, so that the number of threads changes no bit.

        Parameters
        ----------
        name : str
        population : Population
        fields : mapping of str to int
            Words of the job, except those of the population and of the scratch memory.
        rows : int
            Rows that an individual is evaluated over.
        workers : Workers
        """
        arrays: dict[str, AnyArray] = {
            "codes": np.ascontiguousarray(population.codes),
            "values": np.ascontiguousarray(population.values),
            "sizes": np.ascontiguousarray(population.sizes, dtype=np.int64),
        }
        job = {name: array.ctypes.data for name, array in arrays.items()}
        job |= {"width": population.width, "functions": population.primitives.first_function, **fields}
        jobs = self._jobs(population.width, workers.threads)
        jobs.fill(job)
        begun, count, base, size = jobs.words[0], len(population), jobs.address, jobs.words.strides[0]
        entry, worker_loop, range_ = self._entry(name), self._worker_loop, 8 * (len(self._job_fields) - 2)
        step = max(STEP_ROWS // rows, 1)
        quota = max(QUOTA // (rows * max(population.width, 1)), step)

        def work(thread: int) -> None:
            own = base + size * (1 + thread)
            while begun[0] < count:
                worker_loop(entry, own, own + range_, base, count, step, quota)

        most = -(-count // step)
        if min(workers.threads, most) <= 1:
            work(0)
        else:
            workers.run(work, lambda: begun.fill(count), most)
        self._kept = [jobs]
        del arrays  # the job has their addresses until here

    def _jobs(self, width: int, threads: int) -> _Jobs:
        """The jobs of the last run if they have the right size and no other run uses them, else new ones."""
        with suppress(IndexError):
            kept = self._kept.pop()
            if (kept.width, kept.threads) == (width, threads):
                return kept
        return _Jobs(self._job_fields, self._scratch(width), width, threads)

    def _entry(self, name: str) -> int:
        """Address of a function, looked up when it is first needed."""
        self._entries[name] = self._entries[name] or self._engine.address(name)
        return self._entries[name]


class _Jobs:
    """A job for each thread, with its own scratch memory, for tapes of some width.

    The first row of `words` begins with the number of individuals taken so far; each further row is the job of a
    thread. Rows are whole cache lines long, so that threads do not write to the same line.
    """

    def __init__(self, fields: Sequence[str], scratch: Mapping[str, int], width: int, threads: int) -> None:
        self.width, self.threads = width, threads
        self.words = np.zeros((1 + threads, 8 * -(-len(fields) // 8)), np.int64)
        self.address = self.words.ctypes.data
        self._fields = [name for name in fields if name not in scratch]
        self._places = np.array([fields.index(name) for name in self._fields])
        offsets = np.cumsum([0, *(-(-size // _LINE) * _LINE for size in scratch.values())])
        total = int(offsets[-1])
        self._memory = np.empty(threads * total + _LINE, np.uint8)
        first = -(-self._memory.ctypes.data // _LINE) * _LINE
        starts = first + total * np.arange(threads)[:, None]
        self.words[1:, [fields.index(name) for name in scratch]] = starts + offsets[:-1]

    def fill(self, job: Mapping[str, int]) -> None:
        """Start a run: all threads get the same words, except those of their scratch memory."""
        self.words[0] = 0
        self.words[1:, self._places] = [job.get(name, 0) for name in self._fields]
