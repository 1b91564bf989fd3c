"""Native functions of a population on several threads: who does what, in which memory, and how it ends early."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from shine.codegen.machine.worker_loop import WORKER_LOOP
from shine.lang.population import Population
from shine.llvm import Engine
from shine.typing import AnyArray, Floats

STEP_ROWS = 1 << 15
"""Rows, times individuals, that a thread takes at a time: enough to hide the cost of taking them, few enough to end
with the others."""

QUOTA = 1 << 29
"""Nodes times rows after which a thread looks for an interrupt: some hundredths of a second."""

_LINE = 64
"""Bytes of a cache line, which two threads had better not write to at a time."""


def zeros(individuals: int, numbers: int) -> Floats:
    """Zeros, shape (individuals, numbers); the first is at the beginning of a cache line."""
    memory = np.zeros(individuals * numbers + _LINE // 8)
    skipped = -memory.ctypes.data % _LINE // 8
    return memory[skipped : skipped + individuals * numbers].reshape(individuals, numbers)


class PopulationFunctions:
    """Compiled functions that take a job and evaluate a range of a population.

    Parameters
    ----------
    engine : Engine
        Defines them, and what `shine.codegen.machine.worker_loop` emits.
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
            Words of the job besides those that follow from the population and the scratch memory.
        rows : int
            Over how many rows: what an individual costs.
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

        workers.run(work, lambda: begun.fill(count))
        self._kept = [jobs]
        del arrays  # what the addresses point to, until here

    def _jobs(self, width: int, threads: int) -> _Jobs:
        """The jobs of the last run, if they have the right size and no other run has taken them meanwhile."""
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
    """A job for each thread, with scratch memory of its own, for individuals of some width.

    `words` has a row for each; before them, far enough from what others write to, is how many individuals are taken.
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
        """Begin anew, with the same words for every thread but for its memory."""
        self.words[0] = 0
        self.words[1:, self._places] = [job.get(name, 0) for name in self._fields]


class Workers:
    """Threads that do the same work together, the calling one among them; they wait for the next between calls."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._kept: tuple[object, ThreadPoolExecutor] | None = None

    def run(self, work: Callable[[int], None], abandon: Callable[[], Any]) -> None:
        """Call ``work(thread)`` on every thread, and return when all are done.

        Work has to look whether it was abandoned before it takes the next item, and to finish what it has taken:
        ``abandon()`` is also called when the first thread has found that nothing is left to take.

        An interrupt ends it early, but never before the other threads are done with what they have begun: the arrays
        they write to are freed when this returns. Then ``abandon()`` is to see to it that they begin nothing more.
        """
        others: list[Future[None]] = []
        try:
            try:
                for thread in range(1, self.threads):
                    others.append(Future())
                    self._pool().submit(_take_part, others[-1], work, thread)
            except RuntimeError:
                # The system may refuse threads, and Python does when it ends: those there are do all of the work.
                self._kept = None
            work(0)
        finally:
            abandon()
            # What has not begun by now must not: not even in a pool that kept it when it had no thread for it.
            begun = [other for other in others if not other.cancel()]
            _wait_for_all(begun)
        for other in begun:
            other.result()

    def _pool(self) -> ThreadPoolExecutor:
        """The other threads. A forked process has none of those that were made before, and makes its own."""
        kept = self._kept
        if kept is None or kept[0] is not _Process.this:
            kept = _Process.this, ThreadPoolExecutor(self.threads - 1, thread_name_prefix="shine")
            self._kept = kept
        return kept[1]


def _take_part(future: Future[None], work: Callable[[int], None], thread: int) -> None:
    """Do a thread's part, unless that was cancelled; the future says how it ended."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        work(thread)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(None)


class _Process:
    """What stands for this process: a number could be that of an ancestor that has ended."""

    this: ClassVar[object] = object()

    @classmethod
    def forked(cls) -> None:
        cls.this = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Process.forked)


def _wait_for_all(futures: Sequence[Future[None]]) -> None:
    """Wait, through any number of interrupts; the first of them is raised in the end."""
    interrupt: KeyboardInterrupt | None = None
    while futures:
        try:
            wait(futures)
            break
        except KeyboardInterrupt as caught:
            interrupt = interrupt or caught
    if interrupt is not None:
        raise interrupt


ALONE = Workers(1)
"""The calling thread by itself."""
