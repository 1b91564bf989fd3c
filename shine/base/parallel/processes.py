"""Processes of this machine: loky's executors, and their end."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from signal import SIG_IGN, SIGINT, signal
from typing import Any

from joblib.externals import loky
from joblib.externals.loky.backend.utils import kill_process_tree

from shine.base.parallel.pool import Pool

SECONDS_KEPT = 60
"""Seconds that idle processes wait for the next search: starting them takes seconds."""

SECONDS_BETWEEN_LOOKS = 1.0
"""Seconds between a worker's checks that its master still runs."""


class Processes(loky.ProcessPoolExecutor):
    """loky's executor, which sees the death of every process."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """The future of a call.

        Where idle processes have ended, loky starts others for a new task, but its manager may look at its list of
        processes before they are on it. It would never learn that one of these has died, and the task never be over:
        so it looks again.
        """
        future: Future[Any] = super().submit(function, *arguments, **options)
        with self._flags.shutdown_lock:
            self._executor_manager_thread_wakeup.wakeup()
        return future


_KEPT: dict[tuple[int, int], Processes] = {}
"""Executors for the next search, by the process that they belong to and their number of processes. joblib keeps one
for all its users, and scikit-learn's searches fail on one that is not of their kind."""


@contextmanager
def processes(count: int, *, keep: bool) -> Iterator[Pool]:
    """Processes of this machine, started anew if one of them is killed."""
    # loky restarts workers that hold much memory, and that is nothing that a user could mend.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
    here = os.getpid(), count  # a forked process has processes of its own

    def executor() -> Processes:
        latest = _KEPT.get(here)
        if latest is None or latest._flags.broken or latest._flags.shutdown:
            latest = Processes(max_workers=count, timeout=SECONDS_KEPT, initializer=_begin, initargs=(os.getpid(),))
            _KEPT[here] = latest
        return latest

    try:
        yield Pool(executor)
    except BaseException:  # what they are busy with is of no use any more, and nothing follows
        keep = False
        raise
    finally:
        if not keep and here in _KEPT:
            _end(_KEPT.pop(here))


def _end(executor: Processes) -> None:
    """End the processes of a loky executor, whatever they are doing.

    Its own `kill_workers` fails on tasks that wait or have been taken back, before it has killed anything: the
    processes then stay until they have been idle for `SECONDS_KEPT`. It bears the death of its processes.
    """
    for process in list((executor._processes or {}).values()):
        with suppress(ProcessLookupError):
            kill_process_tree(process)  # by psutil
    executor.shutdown(wait=True)


def _begin(parent: int) -> None:
    # Ctrl-C in a terminal reaches all processes; the one that the user started decides what happens.
    signal(SIGINT, SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), name="shine-parent", daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process soon after its parent has been killed: then loky's tracker removes semaphores and folders.

    Linux can send a signal instead, but when the thread ends that started this process.
    """
    while os.getppid() == parent:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    os._exit(1)
