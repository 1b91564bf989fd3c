"""Threads that share a piece of work, and how it ends early."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, ClassVar


def processors() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
