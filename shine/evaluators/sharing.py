"""Native functions of a population on several threads: who does what, in which memory, and how it ends early."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine.codegen.sharing import SHARE
from shine.lang.population import Population
from shine.llvm import Engine

STEP_ROWS = 1 << 15
"""Rows, times individuals, that a thread takes at a time: enough to hide the cost of taking them, few enough to end
with the others."""

QUOTA = 1 << 29
"""Nodes times rows after which a thread looks for an interrupt: some hundredths of a second."""

_LINE = 64
"""Bytes of a cache line, which two threads had better not write to at a time."""


def zeros(individuals: int, numbers: int) -> NDArray[np.float64]:
    """Zeros, shape (individuals, numbers); the first is at the beginning of a cache line."""
    memory = np.zeros(individuals * numbers + _LINE // 8)
    skipped = -memory.ctypes.data % _LINE // 8
    return memory[skipped : skipped + individuals * numbers].reshape(individuals, numbers)


class PopulationFunctions:
    """Compiled functions that take a job and evaluate a range of a population.

    Parameters
    ----------
    engine : Engine
        Defines them, and what `shine.codegen.sharing` emits.
    names : sequence of str
    job_fields : sequence of str
        Names of the words of a job; ``first`` and ``last`` are its last two.
    scratch : callable
        ``scratch(width)``: bytes of the fields of a job that are memory of one thread, for individuals of a width.
    """

    def __init__(
        self, engine: Engine, names: Sequence[str], job_fields: Sequence[str], scratch: Callable[[int], dict[str, int]]
    ) -> None:
        self._engine, self._entries = engine, dict.fromkeys(names, 0)
        self._share = engine.function(SHARE, None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 3)
        self._job_fields, self._scratch = tuple(job_fields), scratch

    def run(self, name: str, population: Population, fields: Mapping[str, int], rows: int, workers: Workers) -> None:
        """Run a function over a population.

        Each individual is evaluated by one thread, so that the number of threads changes no bit.

        Parameters
        ----------
        name : str
        population : Population
        fields : mapping of str to int
            Words of the job besides those that follow from the population and the scratch memory.
        rows : int
            Over how many rows: what an individual costs.
        workers : Workers
        """
        arrays: dict[str, NDArray[Any]] = {
            "codes": np.ascontiguousarray(population.codes),
            "values": np.ascontiguousarray(population.values),
            "sizes": np.ascontiguousarray(population.sizes, dtype=np.int64),
        }
        job = {name: array.ctypes.data for name, array in arrays.items()}
        job |= {"width": population.width, "functions": population.primitives.first_function, **fields}
        memory, places = _scratch(self._scratch(population.width), workers.threads)
        # A job for each thread; before them, far enough from what others write to, how many individuals are taken.
        size = 8 * -(-len(self._job_fields) // 8)
        words = np.zeros((1 + workers.threads, size), np.int64)
        for own, place in zip(words[1:], places, strict=True):
            own[: len(self._job_fields)] = [place.get(field) or job.get(field, 0) for field in self._job_fields]
        begun, count, base = words[0], len(population), words.ctypes.data
        entry, share, range_ = self._entry(name), self._share, 8 * (len(self._job_fields) - 2)
        step = max(STEP_ROWS // rows, 1)
        quota = max(QUOTA // (rows * max(population.width, 1)), step)

        def work(thread: int) -> None:
            own = base + 8 * size * (1 + thread)
            while begun[0] < count:
                share(entry, own, own + range_, base, count, step, quota)

        workers.run(work, lambda: begun.fill(count))
        del arrays, memory  # what the addresses point to, until here

    def _entry(self, name: str) -> int:
        """Address of a function, looked up when it is first needed."""
        self._entries[name] = self._entries[name] or self._engine.address(name)
        return self._entries[name]


def _scratch(sizes: Mapping[str, int], threads: int) -> tuple[NDArray[np.uint8], list[dict[str, int]]]:
    """Memory for some fields of a job, of some bytes each, and where they are for each thread."""
    offsets, total = {}, 0
    for name, size in sizes.items():
        offsets[name] = total
        total += -(-size // _LINE) * _LINE
    memory = np.empty(threads * total + _LINE, np.uint8)
    first = -(-memory.ctypes.data // _LINE) * _LINE
    starts = range(first, first + threads * total, total)
    return memory, [{name: start + offset for name, offset in offsets.items()} for start in starts]


class Workers:
    """Threads that do the same work together, the calling one among them; they wait for the next between calls."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads - 1, thread_name_prefix="shine") if threads > 1 else None

    def run(self, work: Callable[[int], None], abandon: Callable[[], Any]) -> None:
        """Call ``work(thread)`` on every thread, and return when all are done.

        An interrupt ends it early, but never before the other threads are done with what they have begun: the arrays
        they write to are freed when this returns. Then ``abandon()`` is to see to it that they begin nothing more.
        """
        others: list[Future[None]] = []
        try:
            if self._pool is not None:
                for thread in range(1, self.threads):
                    others.append(self._pool.submit(work, thread))
            work(0)
        finally:
            abandon()
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
