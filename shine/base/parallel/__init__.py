"""Many processes and machines: executors that others keep, tasks that are done again when a worker dies.

An executor is what PEP 3148 calls one: of the standard library, joblib, Dask, mpi4py or executorlib. docs/parallel.md
shows how to use them.
"""

from shine.base.parallel.opening import ExecutorSource, ParallelSettings, opened
from shine.base.parallel.pool import Pool, Round, Stream
from shine.base.parallel.shipment import Shipment

__all__ = ["ExecutorSource", "ParallelSettings", "Pool", "Round", "Shipment", "Stream", "opened"]
