"""Executors as users give them, and pools made of them."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from signal import SIG_IGN, SIGINT, getsignal, signal
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from joblib.externals import loky
from joblib.externals.loky.backend.utils import kill_process_tree

from shine.base.errors import needing
from shine.base.parallel.pool import Pool
from shine.base.stages import stage

SECONDS_KEPT = 60
"""Seconds that idle processes wait for the next search: starting them takes seconds."""


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
        yield Pool(executor, workers=count)
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
        time.sleep(1.0)  # seconds between a worker's checks that its master still runs
    os._exit(1)


Cluster = Literal["slurm", "pbs", "lsf", "sge", "oar", "moab", "htcondor"]
"""Batch systems that dask-jobqueue submits to."""

ExecutorSource = Any
"""An executor of PEP 3148, a Dask `Client`, cluster or address, a number of processes, or `ParallelSettings`."""

CLASSES: dict[Cluster, str] = {
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "lsf": "LSFCluster",
    "sge": "SGECluster",
    "oar": "OARCluster",
    "moab": "MoabCluster",
    "htcondor": "HTCondorCluster",
}
"""Class of dask-jobqueue for each batch system."""

LONGEST = 100
"""Characters of an address, or of what Dask says of it, that a message shows."""

SECONDS_TO_CONNECT = 30
"""Seconds after which a scheduler that does not answer is not there."""


@dataclass(frozen=True)
class ParallelSettings:
    """Processes and machines that share a search. They do not change the front, unless they have lives of their own."""

    workers: Annotated[int, Ge(1), Le(100_000)] | None = None
    """Processes on this machine, or with `cluster`, workers of the batch system; by default, no other process."""
    dask: str | None = None
    """Address of a Dask scheduler, such as `tcp://10.0.0.1:8786`, or the path of its scheduler file."""
    cluster: Cluster | None = None
    """A batch system whose jobs are the workers."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of its jobs, as dask-jobqueue calls them: `queue`, `cores`, `memory`, `walltime`, `account`, ..."""

    def __post_init__(self) -> None:
        if self.dask is not None and (self.workers is not None or self.cluster is not None):
            raise ValueError("dask is the address of workers that run already; leave out workers and cluster")
        if self.cluster is not None and self.workers is None:
            raise ValueError(f"cluster: {self.cluster} needs workers, the number of workers to ask for")
        if self.options and self.cluster is None:
            raise ValueError("options are those of a batch system; say which: cluster: slurm")

    @property
    def is_set(self) -> bool:
        """Whether anything is done by others than this process."""
        return self.workers is not None or self.dask is not None


@contextmanager
def opened(executor: ExecutorSource = None, *, workers: int | None = None) -> Iterator[Pool | None]:
    """The pool of an executor, for the time of a `with` block.

    Parameters
    ----------
    executor : Executor, dask.distributed.Client or cluster, str, int or ParallelSettings, optional
        An executor of PEP 3148; a Dask client or cluster; the address of a Dask scheduler or the path of its scheduler
        file; a number of processes; settings. What is given stays open; what is made here is closed at the end, except
        a number of processes, which wait a minute for the next search unless an error or Ctrl-C leaves the block.
    workers : int, optional
        Processes on this machine.

    Yields
    ------
    Pool or None
        None if nothing is given: the calling process does everything.

    Raises
    ------
    ValueError, TypeError
        If the executor is none, both are given, or Dask cannot be reached.
    """
    if executor is not None and workers is not None:
        raise ValueError("give executor or workers, not both: workers are processes that are started for you")
    settings = ParallelSettings(workers=_count(workers, "workers")) if executor is None else executor
    if isinstance(settings, int):
        settings = ParallelSettings(workers=_count(settings, "executor"))
    elif isinstance(settings, str | os.PathLike):
        settings = ParallelSettings(dask=os.fspath(settings))
    if not isinstance(settings, ParallelSettings):
        with _pool_of(settings) as pool:
            yield pool
    elif settings.cluster is not None:
        assert settings.workers is not None
        with cluster_of(settings.cluster, settings.workers, settings.options) as cluster, _pool_of(cluster) as pool:
            yield pool
    elif settings.dask is not None:
        with client_of(settings.dask) as client, _pool_of(client) as pool:
            yield pool
    elif settings.workers is not None:
        # A program that reads its settings from a file does one search: nobody needs its processes afterwards.

        with processes(settings.workers, keep=settings is not executor) as pool:
            yield pool
    else:
        yield None


def _count(workers: int | None, name: str) -> int | None:
    if workers is None or (isinstance(workers, int) and not isinstance(workers, bool) and workers >= 1):
        return workers
    raise ValueError(f"{name} must be a whole number of at least 1, is {workers!r}")


@contextmanager
def _pool_of(source: ExecutorSource) -> Iterator[Pool]:
    """The pool of an executor, or of a Dask client or cluster."""
    from concurrent.futures import Executor  # it imports logging

    if isinstance(source, Executor):
        yield Pool(lambda: source, workers=getattr(source, "_max_workers", None) or 1)
    elif hasattr(source, "get_executor"):
        executor = source.get_executor()
        known = source.nthreads() if hasattr(source, "nthreads") else {}
        yield Pool(lambda: executor, workers=max(1, sum(known.values())))
    elif hasattr(source, "scheduler_address"):
        with client_of(source) as client, _pool_of(client) as pool:
            yield pool
    elif hasattr(source, "submit") and hasattr(source, "shutdown"):
        yield Pool(lambda: source)
    else:
        raise TypeError(
            f"executor must be an executor of concurrent.futures, a Dask client, cluster or address, or a number of "
            f"processes, is {type(source).__name__}"
        )


@contextmanager
def client_of(source: Any) -> Iterator[Any]:
    """A client of a Dask scheduler: an address, the path of a scheduler file, or a cluster."""
    with needing("an executor named by its address", "Dask", "dask"):
        from distributed import Client
    place = {"scheduler_file": source} if str(source).endswith(".json") else {"address": source}
    try:
        client = Client(**place, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError, AssertionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        shown = str(source) if len(str(source)) <= LONGEST else f"{str(source)[:LONGEST]}..."
        raise ValueError(f"executor: no Dask scheduler answers at {shown}: {reason[:LONGEST]}") from None
    with client:
        yield client


@contextmanager
def cluster_of(name: Cluster, workers: int, options: Mapping[str, Any]) -> Iterator[Any]:
    """A cluster whose workers are jobs of a batch system; they end with the block.

    Parameters
    ----------
    name : str
    workers : int
    options : mapping
        Options of its jobs, as dask-jobqueue calls them.
    """
    cluster = jobs_of(name, options)
    with cluster:
        with stage(f"asking {name} for {workers} workers"):
            cluster.scale(n=workers)
        yield cluster


def jobs_of(name: Cluster, options: Mapping[str, Any]) -> Any:
    """The cluster before it asks for workers; its `job_script()` is what the batch system gets.

    A `ValueError` if dask-jobqueue refuses an option, a `MissingExtraError` without it.
    """
    interrupt = getsignal(SIGINT)
    with needing(f"cluster: {name}", "dask-jobqueue", "dask"):
        import dask_jobqueue
    if threading.current_thread() is threading.main_thread():
        signal(SIGINT, interrupt)  # its import makes Ctrl-C end the process; a search keeps what it has found
    # One process of one thread for each core, unless the user says otherwise: an epoch takes one thread.
    cores = options.get("cores", 1)
    given = {"cores": 1, "memory": f"{2 * cores} GB", "processes": cores, **options}
    try:
        return getattr(dask_jobqueue, CLASSES[name])(**given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"cluster: {name} refuses its options: {str(error).splitlines()[0]}") from None
