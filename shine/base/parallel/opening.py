"""Executors as users give them, and pools made of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from shine.base.parallel.clusters import client_of, cluster_of
from shine.base.parallel.pool import Pool
from shine.base.parallel.settings import ParallelSettings

ExecutorSource = Any
"""An executor of PEP 3148, a Dask `Client`, cluster or address, a number of processes, or `ParallelSettings`."""


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
        from shine.base.parallel.processes import processes

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
