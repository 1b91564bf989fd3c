"""Executors as users give them, and pools made of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from shine.base.distribution import install_hint
from shine.base.parallel.pool import Pool
from shine.base.stages import stage

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
    """Processes and machines that share a search; they do not change the front."""

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
        from shine.base.parallel.processes import processes

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
        yield Pool(lambda: source)
    elif hasattr(source, "get_executor"):
        executor = source.get_executor()
        yield Pool(lambda: executor)
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
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(
            f"Dask, which an executor named by its address belongs to, is not installed; run {install_hint('dask')}"
        ) from None
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

    A `ValueError` if dask-jobqueue is not installed, or refuses an option.
    """
    try:
        import dask_jobqueue
    except ImportError:
        raise ValueError(
            f"cluster: {name} needs dask-jobqueue, which is not installed; run {install_hint('dask')}"
        ) from None
    # One process of one thread for each core, unless the user says otherwise: an epoch takes one thread.
    cores = options.get("cores", 1)
    given = {"cores": 1, "memory": f"{2 * cores} GB", "processes": cores, **options}
    try:
        return getattr(dask_jobqueue, CLASSES[name])(**given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"cluster: {name} refuses its options: {str(error).splitlines()[0]}") from None
