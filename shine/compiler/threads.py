"""Threads for one piece of work, and its early end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from numbers import Integral
from typing import Any, ClassVar


def processors() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_threads(threads: object) -> None:
    """Raise a `ValueError` unless a number of threads is a whole number from 1 on, or None for all processors."""
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, Integral) or threads < 1):
        raise ValueError(f"threads must be a whole number from 1 on, or None for all processors, not {threads!r}")


class Workers:
    """Threads, the calling one included, that share a piece of work; between calls the others wait for the next."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._kept: tuple[object, ThreadPoolExecutor] | None = None

    def run(self, work: Callable[[int], None], abandon: Callable[[], Any], most: int | None = None) -> None:
        """Call ``work(thread)`` on every thread, or on at most so many, and return when all are done.

        ``abandon()`` must make the threads take no further items. It is called after an interrupt, and also when the
        calling thread finds no items left: work must check for it before it takes an item, and finish every item taken.

        An interrupt ends a run early, but only after all threads have finished their current items: the arrays they
        write to are freed when this returns.
        """
        others: list[Future[None]] = []
        try:
            try:
                for thread in range(1, self.threads if most is None else min(self.threads, most)):
                    others.append(Future())
                    self._pool().submit(_take_part, others[-1], work, thread)
            except RuntimeError:
                # The system may refuse threads, and Python refuses them when it exits: the existing ones do all work.
                self._kept = None
            work(0)
        finally:
            abandon()
            # Parts that have not begun must never begin, not even those that the pool keeps for a later thread.
            begun = [other for other in others if not other.cancel()]
            _wait_for_all(begun)
        for other in begun:
            other.result()

    def _pool(self) -> ThreadPoolExecutor:
        """The other threads; a forked process has no threads of its parent and makes its own."""
        kept = self._kept
        if kept is None or kept[0] is not _Process.this:
            kept = _Process.this, ThreadPoolExecutor(self.threads - 1, thread_name_prefix="shine")
            self._kept = kept
        return kept[1]


def _take_part(future: Future[None], work: Callable[[int], None], thread: int) -> None:
    """Do the part of a thread unless it was cancelled; the future gets its result or error."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        work(thread)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(None)


class _Process:
    """The identity of this process: a process number may be reused from an ancestor that has ended."""

    this: ClassVar[object] = object()

    @classmethod
    def forked(cls) -> None:
        cls.this = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Process.forked)


def _wait_for_all(futures: Sequence[Future[None]]) -> None:
    """Wait for all futures, even if interrupted; the first interrupt is raised at the end."""
    interrupt: KeyboardInterrupt | None = None
    while futures:
        try:
            wait(futures)
            break
        except KeyboardInterrupt as caught:
            interrupt = interrupt or caught
    if interrupt is not None:
        raise interrupt


ONE_THREAD = Workers(1)
"""The calling thread alone."""
