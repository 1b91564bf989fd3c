"""Dask: clients of running schedulers, and clusters whose workers are jobs of a batch system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from shine.base.parallel.settings import Cluster
from shine.base.stages import stage

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


@contextmanager
def client_of(source: Any) -> Iterator[Any]:
    """A client of a Dask scheduler: an address, the path of a scheduler file, or a cluster."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(
            "Dask, which an executor named by its address belongs to, is not installed; run pip install 'shine[dask]'"
        ) from None
    place = {"scheduler_file": source} if str(source).endswith(".json") else {"address": source}
    try:
        client = Client(**place, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
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

    Raises
    ------
    ValueError
        If dask-jobqueue is not installed, or refuses an option.
    """
    try:
        import dask_jobqueue
    except ImportError:
        raise ValueError(
            f"cluster: {name} needs dask-jobqueue, which is not installed; run pip install 'shine[dask]'"
        ) from None
    # One process of one thread for each core, unless the user says otherwise: an epoch takes one thread.
    cores = options.get("cores", 1)
    given = {"cores": 1, "memory": f"{2 * cores} GB", "processes": cores, **options}
    try:
        return getattr(dask_jobqueue, CLASSES[name])(**given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"cluster: {name} refuses its options: {str(error).splitlines()[0]}") from None
