"""Settings for sharing a search among processes and machines; none of them changes a result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

Cluster = Literal["slurm", "pbs", "lsf", "sge", "oar", "moab", "htcondor"]
"""Batch systems that dask-jobqueue submits to."""


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
